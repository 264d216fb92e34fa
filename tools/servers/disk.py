"""A small disk: a tmpfs, which root mounts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.servers.server import UnavailableError

_KIND = "tmpfs"


class SmallDisk:
    """A mounted disk.

    Attributes:
        folder: where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        """``folder``: where it is mounted."""
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, left: int = 0) -> None:
        """Use up the disk, but for ``left`` bytes."""
        with self._ballast.open("wb") as file:
            while (space := os.statvfs(self.folder)).f_bavail * space.f_frsize > left:
                with suppress(OSError):  # another process has written meanwhile
                    size = os.fstat(file.fileno()).st_size + space.f_bavail * space.f_frsize - left
                    os.posix_fallocate(file.fileno(), 0, size)

    def free(self) -> None:
        """Make room again."""
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a disk of this size at a folder, which is created if it is missing.

    Raises:
        UnavailableError: the user is not root, or the system refuses.
    """
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", _KIND, "-o", f"size={megabytes}m,mode=0777", _KIND, str(folder)]
    if (done := subprocess.run(mount, check=False, capture_output=True, text=True)).returncode:
        raise UnavailableError(f"{' '.join(mount)} (as root): {done.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607
