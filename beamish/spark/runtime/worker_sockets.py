"""Immediate TCP acknowledgements in workers, which avoid a delay of 40 ms per task.

Over TCP Spark sends a task's function, then its rows. Its kernel delays a small segment until the one before is acknowledged
(Nagle's algorithm); the worker's kernel delays the acknowledgement by up to 40 ms, to send it with an answer. So each task began
with 40 idle ms (docs/spark-notes.md#acknowledged). A function is unpickled when it is complete, and before any row is read: then
the worker requests an immediate acknowledgement.

Over Unix sockets (``spark.python.unix.domain.socket.enabled``), and on systems without such an option, this does nothing.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

_FILES = Path("/proc/self/fd")
_ACKNOWLEDGE: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux


class Acknowledged:
    """An object that acknowledges received data when it is unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        acknowledge()
        self.__dict__.update(state)


class AcknowledgedFunction(Acknowledged):
    """A function wrapped in this way; for ``mapInArrow``."""

    def __init__(self, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> None:
        self._function = function

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._function(batches)


def acknowledge() -> None:
    """Acknowledge data received over this process's TCP connections."""
    if _ACKNOWLEDGE is None or not _FILES.is_dir():
        return
    for number in [int(file.name) for file in _FILES.iterdir()]:
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                _acknowledge(number, _ACKNOWLEDGE)
        except OSError:  # another family, or already closed
            continue


def _acknowledge(number: int, option: int) -> None:
    connection = socket.socket(fileno=number)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    finally:
        connection.detach()  # do not close it: it is Spark's
