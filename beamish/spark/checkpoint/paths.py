"""The absolute paths in a checkpoint: Spark stores the location of each operator's state schema as a URI.

So a moved or copied checkpoint cannot be read: Spark looks for the schema in the old location.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOTED = re.compile(r'"([^"]*)(/state/\d+/_stateSchema/)')
"""A stored path: the checkpoint, and the folder within it."""


def relocate(folder: Path, location: str) -> None:
    """Rewrite the location of a checkpoint.

    Args:
        folder: its folder.
        location: the URI under which Spark will find it.
    """
    for path in _notes(folder):
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        moved = _NOTED.sub(lambda found: f'"{location}{found[2]}', path.read_text("utf-8"))
        path.write_text(moved, "utf-8")


@contextmanager
def in_place(checkpoint: Path, beside: Path) -> Iterator[Path]:
    """A checkpoint that Spark can read: itself, or for a moved one a temporary copy with rewritten paths.

    Args:
        checkpoint: its folder.
        beside: where to put the copy.
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
    """The files with stored paths."""
    return [path for path in checkpoint.glob("state/*/_metadata/*/*") if not path.name.startswith(".")]
