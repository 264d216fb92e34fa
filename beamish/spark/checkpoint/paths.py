"""The paths that a checkpoint notes of itself: Spark writes down where the schema of each operator's state is, as an absolute URI.

So a checkpoint that was moved or copied is not read: Spark looks for the schema in the first place.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOTED = re.compile(r'"([^"]*)(/state/\d+/_stateSchema/)')
"""A noted path: the checkpoint, and the folder within it."""


def relocate(folder: Path, location: str) -> None:
    """Note another place in a checkpoint.

    Args:
        folder: where it is now.
        location: the URI under which Spark will find it.
    """
    for path in _notes(folder):
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        moved = _NOTED.sub(lambda found: f'"{location}{found[2]}', path.read_text("utf-8"))
        path.write_text(moved, "utf-8")


@contextmanager
def in_place(checkpoint: Path, beside: Path) -> Iterator[Path]:
    """The checkpoint as Spark reads it: itself, or if it was moved a copy, for the time being, that notes its own place.

    Args:
        checkpoint: its folder.
        beside: the copy is in the folder of this path.
    """
    noted = {found[1] for path in _notes(checkpoint) for found in _NOTED.finditer(path.read_text("utf-8"))}
    if noted <= {f"file:{checkpoint}"}:
        yield checkpoint
        return
    beside.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{beside.name}.", dir=beside.parent) as folder:
        copy = Path(folder, "checkpoint")
        shutil.copytree(checkpoint, copy)
        relocate(copy, f"file:{copy}")
        yield copy


def _notes(checkpoint: Path) -> list[Path]:
    """The files in which Spark notes paths."""
    return [path for path in checkpoint.glob("state/*/_metadata/*/*") if not path.name.startswith(".")]
