"""Rows that a stage without windows does not take: why, how many, and as rows of output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.contract.event_times import in_range
from beamish.contract.pane_columns import DROPPED_KIND, make_block, pane_column
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.pane import DropReason
from beamish.watermarks import NO_WATERMARK_US

_NAMES = (
    DropReason.NULL_EVENT_TIME,
    DropReason.EVENT_TIME_OUT_OF_RANGE,
    DropReason.NULL_KEY,
    DropReason.EXPIRED,
    DropReason.JOINED_ALREADY,
    DropReason.DUPLICATE,
    DropReason.OUT_OF_RETENTION,
)
NULL_EVENT_TIME, EVENT_TIME_OUT_OF_RANGE, NULL_KEY, EXPIRED, JOINED_ALREADY, DUPLICATE, OUT_OF_RETENTION = range(
    len(_NAMES)
)
_LATE = (EXPIRED, JOINED_ALREADY, DUPLICATE, OUT_OF_RETENTION)
"""It matters how late they came."""
TAKEN = -1


def why_dropped(time: pa.ChunkedArray, null_key: Flags | None, expired_below_us: int) -> Ints:
    """Why each row is dropped: int64, one per row, ``TAKEN`` if it is not.

    Args:
        time: int64, microseconds; null where there is none.
        null_key: bool, one per row: whether it has no key; None: it needs none.
        expired_below_us: times below it are too late, microseconds.
    """
    time_us = pc.fill_null(time, 0).to_numpy()
    why = np.where(time_us < expired_below_us, EXPIRED, TAKEN)
    if null_key is not None:
        why[null_key] = NULL_KEY
    why[~in_range(time_us)] = EVENT_TIME_OUT_OF_RANGE
    why[time.is_null().to_numpy()] = NULL_EVENT_TIME
    return why


@attrs.define(eq=False)
class Drops:
    """What a step drops.

    Attributes:
        schema: of the output; with a column ``dropped`` the rows are listed.
        tables: what is listed so far.
    """

    schema: pa.Schema
    tables: list[pa.Table] = attrs.Factory(list)

    @property
    def lists(self) -> bool:
        """Whether rows come out."""
        return "dropped" in self.schema.names

    def add(
        self,
        rows: pa.Table,
        why: Ints,
        time_us: Ints,
        watermark_us: int,
        *,
        keys: Mapping[str, pa.Array],
        row_of: str | None,
        counted: dict[str, int],
    ) -> None:
        """Count rows and, where they are listed, list them.

        Args:
            rows: n rows; ``rows``: how many each stands for (without it one), ``row``: the original ones.
            why: int64, n: as ``why_dropped`` says.
            time_us: int64, n: their times.
            watermark_us: that they were judged by.
            keys: the output's key columns, n rows.
            row_of: the input that they are of, where there are several.
            counted: number of rows dropped so far, by reason.
        """
        at = np.flatnonzero(why != TAKEN)
        if not len(at):
            return
        sizes = rows["rows"].to_numpy() if "rows" in rows.schema.names else np.ones(len(why), np.int64)
        for reason in np.unique(why[at]).tolist():
            name = str(_NAMES[reason])
            counted[name] = counted.get(name, 0) + int(sizes[why == reason].sum())
        if self.lists:
            late = np.isin(why[at], _LATE) & (watermark_us != NO_WATERMARK_US)
            late_by_us = np.zeros(len(at), dtype=np.int64)
            if late.any():
                late_by_us[late] = _late_by_us(watermark_us, time_us[at][late])
            late_by = pa.array(late_by_us, mask=~late)
            own = rows["row"].combine_chunks().take(pa.array(at))
            taken = {name: column.take(pa.array(at)) for name, column in keys.items()}
            self.tables.append(_table(self.schema, taken, why[at], late_by, _of_input(self.schema, own, row_of)))


def _late_by_us(watermark_us: int, time_us: Ints) -> Ints:
    """How far the watermark is past times, microseconds; at most to the end of time."""
    return watermark_us - np.maximum(time_us, max(watermark_us - END_OF_TIME_US, NO_WATERMARK_US))


def _table(schema: pa.Schema, keys: Mapping[str, pa.Array], why: Ints, late_by: pa.Array, rows: pa.Array) -> pa.Table:
    count = len(why)
    reasons = pa.array([str(name) for name in _NAMES]).take(pa.array(why))
    dropped = pa.StructArray.from_arrays([reasons, late_by, rows], fields=list(schema.field("dropped").type))
    block = make_block(count, kind=DROPPED_KIND)
    columns: dict[str, pa.Array] = {**keys, "pane": pane_column(block), "dropped": dropped}
    return pa.table([_column(columns, field, count) for field in schema], schema=schema)


def _of_input(schema: pa.Schema, rows: pa.Array, name: str | None) -> pa.Array:
    """Rows of one of several inputs as one struct per input; of one input as they are."""
    if name is None:
        return rows
    inputs = list(schema.field("dropped").type.field("row").type)
    parts = [rows if field.name == name else pa.nulls(len(rows), field.type) for field in inputs]
    return pa.StructArray.from_arrays(parts, fields=inputs)


def _column(columns: Mapping[str, pa.Array], field: pa.Field, count: int) -> pa.Array:
    return columns[field.name] if field.name in columns else pa.nulls(count, field.type)


def concat(schema: pa.Schema, tables: Sequence[pa.Table]) -> pa.Table:
    """Tables of one schema as one."""
    return pa.concat_tables([schema.empty_table(), *tables])
