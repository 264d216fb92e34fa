"""The plan of a stage that fills gaps: bound to its input's columns and types."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.inputs import check_keys
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.durations import Duration
from beamish.errors import ColumnError
from beamish.instants import END_OF_TIME_US, LATEST_US
from beamish.kinds.gaps.option import FillBy, GapFilling
from beamish.watermarks import NO_WATERMARK_US

FILLED = "filled"
"""The output column that tells filled rows from others."""


@attrs.define(slots=False, eq=False)
class GapsPlan:
    """The bound options of such a stage.

    Attributes:
        options: its options.
        lateness: how late rows may be.
        takes: the input, with its schema.
        schema: the input columns, all of which are shuffled.
        shards: number of shards.
        gives: the output.
    """

    options: GapFilling
    lateness: Duration
    takes: Relation
    schema: pa.Schema
    shards: int
    gives: Relation

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The key columns."""
        return pa.schema([self.schema.field(name) for name in self.takes.keys])

    @cached_property
    def row_schema(self) -> pa.Schema:
        """The columns of rows in the output."""
        return row_schema(self.options, self.takes)

    @property
    def time_column(self) -> str | None:
        """The column with a row's event time, which filled rows have too; None: not a column of the output."""
        name = self.takes.event_time
        return name if isinstance(name, str) and name in self.row_schema.names else None

    @cached_property
    def carried(self) -> tuple[str, ...]:
        """The columns that filled rows take from others; their other values are null."""
        if self.options.by is FillBy.NULL:
            return ()
        others = [field for field in self.row_schema if field.name not in (*self.takes.keys, self.time_column)]
        return tuple(
            field.name for field in others if self.options.by is FillBy.LAST or pa.types.is_float64(field.type)
        )

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        return {
            "shards": self.shards,
            "keys": [f"{field.name}: {field.type}" for field in self.key_schema],
            "values": [f"{field.name}: {field.type}" for field in self.row_schema],
            "step": str(self.options.step),
            "by": str(self.options.by),
            "within": str(self.options.within),
            "offset": str(self.options.offset),
            "allowed_lateness": str(self.lateness),
        }

    def settled_us(self, cell_us: Any) -> Any:
        """The watermark at which a cell takes no more rows, at most the end of time: int64, microseconds."""
        return cell_us + min(self.options.step.us + self.lateness.us, END_OF_TIME_US - LATEST_US)

    @property
    def behind_us(self) -> int:
        """How far the forwarded watermark is behind the input's, so that filled rows are on time for the next stage."""
        step_us = self.options.step.us
        return step_us if self.options.by is not FillBy.LINEAR else self.options.within.us + step_us

    def forwarded_us(self, watermark_us: int | None) -> int | None:
        """The watermark that is forwarded."""
        if watermark_us in (None, END_OF_TIME_US):
            return watermark_us
        return max(watermark_us - self.behind_us, NO_WATERMARK_US + 1)


def row_schema(options: GapFilling, takes: Relation) -> pa.Schema:
    """The columns of rows in the output: with ``by="linear"`` numbers are doubles."""
    fields = [field for field in takes.own_columns if field.name.lower() != "timestamp"]
    kept = (*takes.keys, takes.event_time)
    return pa.schema(
        [
            field.with_type(pa.float64())
            if options.by is FillBy.LINEAR and field.name not in kept and _is_number(field.type)
            else field
            for field in fields
        ]
    )


def _is_number(type_: pa.DataType) -> bool:
    kind = pa.types
    return bool(kind.is_integer(type_) or kind.is_floating(type_) or kind.is_decimal(type_))


def make_gaps_plan(
    options: GapFilling, lateness: Duration, takes: Relation, gives: Relation, shards: int, *, with_dropped: bool
) -> GapsPlan:
    """Bind such a stage to its input (ColumnError: a column is missing, of the wrong type, or has a name that the output uses)."""
    schema = takes.columns
    check_keys(schema, takes.keys)
    own = takes.own_columns
    for name in own.names:
        if name.lower() in (*PANE_COLUMNS, FILLED) and not (name.lower() == "timestamp" and name == takes.event_time):
            raise ColumnError(f"{options.call}: the output has a column {name!r} of its own; rename yours")
    columns = [*row_schema(options, takes), (FILLED, pa.bool_()), ("window", WINDOW), ("pane", PANE)]
    columns += [("timestamp", TIMESTAMP)]
    columns += [("dropped", dropped_type(pa.struct(list(own))))] if with_dropped else []
    bound = attrs.evolve(gives, schema=pa.schema(columns))
    return GapsPlan(options, lateness, takes, schema, shards, bound)
