"""Halts a query's own code where the drill wants to kill it.

The drill writes the position to the file ``halt`` in the folder BEAMISH_DRILL; code that reaches it creates the file ``halted``, and waits.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path


def folder() -> Path:
    """The folder shared by the drill and its queries."""
    return Path(os.environ["BEAMISH_DRILL"])


def halt(query: str, moment: str, number: int | None = None) -> None:
    """Wait to be killed, if the drill said so of this moment of this query.

    Args:
        query: its name.
        moment: what the caller is about to do, or has done.
        number: the batch's, or that of the chunk of rows; None: any.
    """
    try:
        said = json.loads((folder() / "halt").read_text())
    except (OSError, ValueError):
        return
    if (said["query"], said["moment"]) == (query, moment) and number in (None, said["number"]):
        (folder() / "halted").touch()
        while True:
            time.sleep(1)


def say_halt(query: str, moment: str, number: int) -> None:
    """Halt a query."""
    written = folder() / "halt.new"
    written.write_text(json.dumps({"query": query, "moment": moment, "number": number}))
    written.rename(folder() / "halt")


def forget_halt() -> None:
    """Cancel the halt."""
    for name in ("halt", "halted"):
        (folder() / name).unlink(missing_ok=True)


def is_halted() -> bool:
    """Whether a query has halted."""
    return (folder() / "halted").exists()
