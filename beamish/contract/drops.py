"""Rows that a step drops: why, how many, and as rows of output (docs/rules/output.md#dropped-rows); and the metrics of a shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.clocks import in_range
from beamish.contract.updates import DROPPED_KIND, Block, Updates, make_block
from beamish.instants import END_OF_TIME_US, NO_TIME_US
from beamish.kernels.buffers import NO_ENTRY, NO_VALUE, Flags, Ints
from beamish.pane import DropReason, PaneKind, PaneTiming
from beamish.watermarks import NO_WATERMARK_US

_REASONS = tuple(DropReason)
(
    EXPIRED,
    WINDOW_FINISHED,
    NULL_EVENT_TIME,
    EVENT_TIME_OUT_OF_RANGE,
    NULL_NUMBER,
    NULL_KEY,
    UNMATCHED_REMOVAL,
    DUPLICATE,
    OUT_OF_RETENTION,
    JOINED_ALREADY,
    ERROR,
    SUPERSEDED,
) = range(len(_REASONS))
_LATE = (EXPIRED, JOINED_ALREADY, DUPLICATE, OUT_OF_RETENTION)
"""Reasons that depend on how late a row is, for rows without windows."""
TAKEN = -1


def why_dropped(time: pa.ChunkedArray, null_key: Flags | None, expired_below_us: int) -> Ints:
    """The drop reason of each row: int64, one per row, ``TAKEN`` if it is not dropped.

    Args:
        time: int64, microseconds; null if missing.
        null_key: bool, one per row: whether its key is null; None: null keys are allowed.
        expired_below_us: times below this are too late, microseconds.
    """
    time_us = pc.fill_null(time, 0).to_numpy()
    why = np.where(time_us < expired_below_us, EXPIRED, TAKEN)
    if null_key is not None:
        why[null_key] = NULL_KEY
    why[~in_range(time_us)] = EVENT_TIME_OUT_OF_RANGE
    why[time.is_null().to_numpy()] = NULL_EVENT_TIME
    return why


def late_by(now: int | Ints, place: Ints) -> Ints:
    """The watermark less event times in microseconds, or the reach less row numbers, saturated at 64 bits; NO_VALUE without either.

    Args:
        now: the watermark; for count windows the reach of each.
        place: int64, the event times, or row numbers.
    """
    known = (np.asarray(now) != NO_WATERMARK_US) & (place != NO_TIME_US)
    now = np.where(known, now, 0)
    return np.where(known, now - np.maximum(place, np.maximum(now, 0) - END_OF_TIME_US), NO_VALUE)


class Drops:
    """The rows that a step drops: counted by reason, and listed if the output has a column ``dropped``.

    Attributes:
        counted: number of rows dropped so far, by reason.
        updates: those that ``add`` lists.
    """

    def __init__(self, schema: pa.Schema | None, counted: dict[str, int]) -> None:
        self.counted = counted
        self._type = schema.field("dropped").type if schema is not None and "dropped" in schema.names else None
        self._listed: list[pa.Array] = []
        self._size = 0
        self.updates: list[Updates] = []

    @property
    def lists(self) -> bool:
        """Whether dropped rows are emitted."""
        return self._type is not None

    def count(self, reason: int, rows: int) -> None:
        """Count rows."""
        if rows:
            name = str(_REASONS[reason])
            self.counted[name] = self.counted.get(name, 0) + rows

    def list_rows(
        self, rows: pa.Array, reason: int | Ints, late_by_us: Ints | None = None, messages: Sequence[str] | None = None
    ) -> Ints:
        """List rows; returns their positions, for ``column``.

        Args:
            rows: n structs, the input rows.
            reason: of all or of each.
            late_by_us: int64[n]: lateness in microseconds; NO_VALUE if unknown; None: unknown for all.
            messages: the error of each.
        """
        assert self._type is not None  # noqa: S101 - asked only where they are listed
        count, number = len(rows), np.broadcast_to(np.asarray(reason, dtype=np.int64), len(rows))
        late = np.full(count, NO_VALUE) if late_by_us is None else late_by_us
        of = {
            "reason": pa.array([str(name) for name in _REASONS]).take(pa.array(number)),
            "late_by": pa.array(late, mask=late == NO_VALUE),
            "message": pa.nulls(count, pa.string()) if messages is None else pa.array(messages, pa.string()),
            "row": rows,
        }
        self._listed.append(
            pa.StructArray.from_arrays([of[field.name] for field in self._type], fields=list(self._type))
        )
        self._size += count
        return np.arange(self._size - count, self._size)

    def column(self, at: Ints) -> pa.Array:
        """The output's column ``dropped``: the listed rows at these positions; null for NO_ENTRY."""
        if not self._listed:
            return pa.nulls(len(at), self._type)
        return pa.concat_arrays(self._listed).take(pa.array(at, mask=at == NO_ENTRY))

    def add(  # noqa: PLR0917 - what is judged, then how
        self,
        why: Ints,
        time_us: Ints,
        watermark_us: int,
        keys: Mapping[str, pa.Array],
        rows: pa.Array | None,
        sizes: Ints | None = None,
        row_of: str | None = None,
        windows: Block | None = None,
    ) -> None:
        """Count rows and, if they are listed, list them.

        Args:
            why: int64[n]: the result of ``why_dropped``.
            time_us: int64[n]: their times.
            watermark_us: the watermark they were compared with.
            keys: the output's key columns, n rows.
            rows: n structs, the input rows; None: not listed.
            sizes: int64[n]: how many rows each stands for; None: one.
            row_of: their input, if there are several.
            windows: n windows, from which they are dropped; None: no windows.
        """
        at = np.flatnonzero(why != TAKEN)
        if not len(at):
            return
        for reason in np.unique(why[at]).tolist():
            self.count(reason, int((why == reason).sum() if sizes is None else sizes[why == reason].sum()))
        if rows is None:
            return
        late_by_us = np.where(np.isin(why[at], _LATE), late_by(watermark_us, time_us[at]), NO_VALUE)
        place = self.list_rows(self._of_input(rows.take(pa.array(at)), row_of), why[at], late_by_us)
        taken = pa.table({name: column.take(pa.array(at)) for name, column in keys.items()})
        of = {} if windows is None else {name: column[at] for name, column in windows.items()}
        block = make_block(len(at), kind=DROPPED_KIND, **{"windowless": True, **of})
        self.updates.append(Updates(block, taken, pa.table({}), self.column(place)))

    def _of_input(self, rows: pa.Array, name: str | None) -> pa.Array:
        """Rows of one of several inputs as one struct per input; a single input's as they are."""
        if name is None or self._type is None:
            return rows
        inputs = list(self._type.field("row").type)
        parts = [rows if field.name == name else pa.nulls(len(rows), field.type) for field in inputs]
        return pa.StructArray.from_arrays(parts, fields=inputs)


def structs(rows: pa.Table, schema: pa.Schema) -> pa.Array:
    """Columns of rows as one column of structs with this schema."""
    columns = [rows[name].combine_chunks() for name in schema.names]
    return pa.StructArray.from_arrays(columns, fields=list(schema))


PANES = {timing: f"panes_{timing.lower()}" for timing in (PaneTiming.EARLY, PaneTiming.ON_TIME, PaneTiming.LATE)}
DROPPED = {
    reason: {
        DropReason.EXPIRED: "dropped_due_to_lateness",
        DropReason.WINDOW_FINISHED: "dropped_due_to_closed_window",
        DropReason.NULL_EVENT_TIME: "dropped_no_event_time",
    }.get(reason, f"dropped_{reason}")
    for reason in DropReason
}
"""The name of each reason's count."""
COUNTED = ("rows", *PANES.values(), "retractions", *DROPPED.values(), "live_windows", "shards")
"""Metrics summed over shards."""
SKIPPED = "_beamish_skipped"
"""Prefix of the observations of sources whose records may be unusable as changes; each has a count of this name."""
BY_SHARD = ("shard", "live_windows", "next_due_ms")
"""Metrics reported per shard."""
GREATEST, LEAST = ("max_late_by_ms", "watermark_ms", "clock_ms"), ("next_due_ms",)
"""Metrics combined over shards by max, or by min."""


@attrs.frozen
class Counts:
    """Metrics of a shard's last step; None: not counted by this kind of stage.

    Attributes:
        taken: rows put into windows, once per window.
        late_by_us: how far behind the watermark the latest-arriving row was, among those dropped from windows; microseconds.
        windows: number of stored windows after the step.
    """

    taken: int | None = None
    late_by_us: int | None = None
    windows: int | None = None


def counts_of_output(table: pa.Table) -> dict[str, int]:
    """The number of panes by timing, and of retractions, in rows of output."""
    counts = dict.fromkeys([*PANES.values(), "retractions"], 0)
    if not table.num_rows:
        return counts
    pane = table["pane"].combine_chunks()
    kinds = pa.table({name: pane.field(name) for name in ("kind", "timing")}).group_by(["kind", "timing"])
    for row in kinds.aggregate([([], "count_all")]).to_pylist():
        if row["kind"] == PaneKind.PANE and row["timing"] != PaneTiming.UNKNOWN:
            counts[PANES[PaneTiming(row["timing"])]] += row["count_all"]
        elif row["kind"] == PaneKind.RETRACTION:
            counts["retractions"] += row["count_all"]
    return counts
