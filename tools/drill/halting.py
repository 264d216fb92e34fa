"""A query's own code comes to a halt where the drill wants it to be killed.

The drill writes the place into the file ``halt`` of the folder that BEAMISH_DRILL names; who comes by it makes the file ``halted``, and waits.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path


def folder() -> Path:
    """Where the drill and its queries meet."""
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
    """Have a query come to a halt."""
    written = folder() / "halt.new"
    written.write_text(json.dumps({"query": query, "moment": moment, "number": number}))
    written.rename(folder() / "halt")


def forget_halt() -> None:
    """Have none come to a halt."""
    for name in ("halt", "halted"):
        (folder() / name).unlink(missing_ok=True)


def is_halted() -> bool:
    """Whether one has."""
    return (folder() / "halted").exists()
