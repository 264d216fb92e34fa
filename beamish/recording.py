"""A record of a query's micro-batches, a line of JSON each: ``bm.Listener(record=...)`` writes it, ``bm.replay`` reads it.

Spark keeps the last 100 batches in the checkpoint's offset log; a record keeps all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from beamish.addresses import printable
from beamish.errors import OptionError
from beamish.instants import instant_us

_NOTHING = ("None", "null", "")
"""How Spark shows an offset that is not there."""


@attrs.frozen
class RecordedBatch:
    """A micro-batch.

    Attributes:
        query: the query's id.
        batch: its number.
        clock_us: when it began.
        watermark_us: its watermark; None: there was none.
        starts, ends: the offsets of each source, as JSON; None: none yet.
    """

    query: str
    batch: int
    clock_us: int
    watermark_us: int | None
    starts: tuple[str | None, ...]
    ends: tuple[str | None, ...]

    @classmethod
    def read(cls, progress: Any) -> RecordedBatch:
        """From Spark's ``StreamingQueryProgress``."""
        watermark = progress.eventTime.get("watermark")
        watermark_us = 0 if watermark is None else _us(watermark)
        return cls(
            str(progress.id),
            progress.batchId,
            _us(progress.timestamp),
            watermark_us if watermark_us > 0 else None,
            tuple(_offset(source.startOffset) for source in progress.sources),
            tuple(_offset(source.endOffset) for source in progress.sources),
        )


def _us(text: str) -> int:
    return instant_us("progress", datetime.fromisoformat(text))


def _offset(text: str | None) -> str | None:
    return None if text is None or text in _NOTHING else text


class Recorder:
    """Appends batches to a file.

    Args:
        path: of the file.

    Raises:
        OptionError: the file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch()
        except OSError as error:
            raise OptionError(f"Listener(record={printable(path)}): cannot be written: {error.strerror}") from None

    def add(self, batch: RecordedBatch) -> None:
        """Append a batch."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(attrs.asdict(batch)) + "\n")


def read_record(path: str | Path) -> list[RecordedBatch]:
    """The batches of a record; the last line of a process that was killed may be incomplete, and is left out.

    Raises:
        OptionError: no such file, or it is not a record.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as error:
        raise OptionError(f"replay(record={printable(path)}): cannot be read: {error.strerror}") from None
    found = []
    for number, line in enumerate(lines, 1):
        try:
            said: Mapping[str, Any] = json.loads(line)
            found.append(RecordedBatch(**{**said, "starts": tuple(said["starts"]), "ends": tuple(said["ends"])}))
        except (ValueError, KeyError, TypeError):
            if number < len(lines):
                raise OptionError(
                    f"replay(record={printable(path)}): line {number} is not a line of bm.Listener(record=...)"
                ) from None
    return found
