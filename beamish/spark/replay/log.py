"""The committed micro-batches of a query: clock, watermark, and the offsets of each source.

From the checkpoint's offset log, which keeps 100 batches by default, and from a record (``bm.Listener(record=...)``), which keeps all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from beamish.addresses import printable
from beamish.errors import StateError
from beamish.recording import RecordedBatch
from beamish.spark.checkpoint.entries import checkpoint_reader, state_errors
from beamish.spark.checkpoint.inspected import read_batches
from beamish.spark.checkpoint.stored_query import is_heartbeat
from beamish.watermarks import known_us

_NONE_YET = "-"
"""In the offset log, a source that has had no rows."""
Offsets = tuple[str | None, ...]
"""The position in each source, as JSON; None: none yet."""


@attrs.frozen
class PastBatch:
    """A committed micro-batch.

    Attributes:
        number: the batch's.
        clock_us: its start.
        watermark_us: Spark's watermark in it; None: there was none.
        starts, ends: the offsets of each source before and after it.
    """

    number: int
    clock_us: int
    watermark_us: int | None
    starts: Offsets
    ends: Offsets

    def heartbeat_us(self) -> int | None:
        """The clock of its heartbeats; None: it had none. Each stage has one, which may differ by the time of a reading."""
        moved = [end for start, end in zip(self.starts, self.ends, strict=True) if end is not None and start != end]
        clocks = [int(json.loads(end)["clock_us"]) for end in moved if is_heartbeat(end)]
        return max(clocks, default=0) or None


@attrs.frozen
class PastQuery:
    """The batches of a query, without a gap.

    Attributes:
        query: its id.
        batches: in order.
    """

    query: str
    batches: Sequence[PastBatch]

    @property
    def sources(self) -> list[int]:
        """The places of its sources, without heartbeats."""
        lines = list(zip(*(batch.ends for batch in self.batches), strict=True))
        return [place for place, ends in enumerate(lines) if not any(end and is_heartbeat(end) for end in ends)]

    @property
    def has_heartbeats(self) -> bool:
        """Whether the clock is in its offsets."""
        return len(self.sources) < len(self.batches[0].ends)


@attrs.frozen
class _Logged:
    clock_us: int
    watermark_us: int | None
    ends: Offsets
    starts: Offsets | None = None


@state_errors()
def past_query(spark: SparkSession, checkpoint: str, record: Iterable[RecordedBatch] = ()) -> PastQuery:
    """The batches of a query, from its checkpoint and a record of it.

    Raises:
        StateError: not the checkpoint of a query that has committed a batch, or no batch has known offsets.
    """
    folder = checkpoint.rstrip("/")
    reader = checkpoint_reader(spark).options(ignoreMissingFiles=True)
    files = reader.text(f"{folder}/offsets", wholetext=True).select("value", "_metadata.file_name")
    committed = {one.number: one for one in read_batches(spark, checkpoint) if one.committed}
    entries = {int(row.file_name): row["value"] for row in files.where(F.col("file_name").rlike(r"^\d+$")).collect()}
    query = json.loads(spark.read.text(f"{folder}/metadata", wholetext=True).collect()[0][0])["id"]
    known = {
        one.batch: _Logged(one.clock_us, one.watermark_us, one.ends, one.starts) for one in record if one.query == query
    }
    for number, batch in committed.items():
        if number in entries:
            starts = known[number].starts if number in known else None
            known[number] = _Logged(batch.clock_us, known_us(batch.watermark_us), _offsets(entries[number]), starts)
    batches = _without_gaps(known, max(committed))
    if not batches:
        raise StateError(
            f"checkpoint {printable(checkpoint)}: its log begins with batch {max(committed)}, and where that one began is in the entry "
            "of the batch before, which Spark has deleted; replay after the next batch, or keep more: "
            "spark.sql.streaming.minBatchesToRetain, bm.Listener(record=...)"
        )
    return PastQuery(query, batches)


def _offsets(entry: str) -> Offsets:
    """The offsets of an entry of the log: a version, metadata, and a line for each source."""
    return tuple(None if line == _NONE_YET else line for line in entry.rstrip("\n").split("\n")[2:])


def _without_gaps(known: Mapping[int, _Logged], last: int) -> list[PastBatch]:
    """The last batches whose starts are known."""
    found: list[PastBatch] = []
    for number in range(last, -1, -1):
        if number not in known:
            break
        one, before = known[number], known.get(number - 1)
        starts: Any = (None,) * len(one.ends) if number == 0 else before.ends if before is not None else one.starts
        if starts is None or len(starts) != len(one.ends):  # a query to which bm.migrate added heartbeats
            break
        found.append(PastBatch(number, one.clock_us, one.watermark_us, starts, one.ends))
    return found[::-1]
