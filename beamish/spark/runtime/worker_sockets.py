"""What Spark sends to a worker is acknowledged at once, so that the worker need not wait for what comes after it.

Over TCP Spark sends a task's function, then its rows. Its kernel holds a small piece back until the one before it is acknowledged (Nagle's
algorithm); the worker's kernel, once the worker has answered before, waits up to 40 ms with that, for an answer that could carry it. So each
task began with 40 ms in which nobody did anything (docs/spark-notes.md#acknowledged). A function is unpickled when all of it is there, and
before any row is read: then the worker has its kernel acknowledge it.

Over Unix sockets (``spark.python.unix.domain.socket.enabled``), and where the system has no such option, there is nothing to do.
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
    """What is pickled with an object of this class is acknowledged where it is unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        acknowledge()
        self.__dict__.update(state)


class AcknowledgedFunction(Acknowledged):
    """Such a function; for ``mapInArrow``."""

    def __init__(self, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> None:
        self._function = function

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._function(batches)


def acknowledge() -> None:
    """Acknowledge what has come over this process's TCP connections."""
    if _ACKNOWLEDGE is None or not _FILES.is_dir():
        return
    for number in [int(file.name) for file in _FILES.iterdir()]:
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                _acknowledge(number, _ACKNOWLEDGE)
        except OSError:  # of another family, or closed meanwhile
            continue


def _acknowledge(number: int, option: int) -> None:
    connection = socket.socket(fileno=number)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    finally:
        connection.detach()  # it is not ours to close
