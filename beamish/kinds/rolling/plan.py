"""The plan of a stage of rolling spans: its options bound to the columns and types of its input."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import attrs
import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.instants import LATEST_US
from beamish.kernels.buffers import Ints
from beamish.kinds.rolling.totals import Totals, has_totals
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.tables.records import cells_of_keys
from beamish.watermarks import NO_WATERMARK_US
from beamish.windows.rolling import Rolling

_FAR_US = 8 * LATEST_US
"""Beyond all times, and far from the ends of 64 bits."""
TOTALS = "totals"
"""The stored column of totals."""
TIME = "time"
"""The output column with the boundary of a row."""


@attrs.frozen
class BoundSpan:
    """A span: a slice that starts at ``a`` counts at the boundaries from ``a + enters_us`` until before ``a + leaves_us``.

    Attributes:
        name: its name.
        enters_us, leaves_us: microseconds.
    """

    name: str
    enters_us: int
    leaves_us: int


@attrs.define(slots=False, eq=False)
class RollingPlan:
    """The bound options of a stage of rolling spans.

    Attributes:
        of: its rows in windows of a step each: slices.
        gives: its output, without its schema.
        early: whether rows are emitted for the first boundary past the watermark.
        is_final: whether the input is complete, as in a batch: of the rows of a key the last one stays.
    """

    of: WindowPlan
    gives: Relation
    early: bool
    is_final: bool = False

    @property
    def rolling(self) -> Rolling:
        """The window option."""
        return cast("Rolling", self.of.window)

    @property
    def history(self) -> bool:
        """Whether there is a row per key and boundary."""
        return self.rolling.keep == "history"

    @property
    def retracts(self) -> bool:
        """Whether rows are retracted."""
        return self.of.options.retracts

    @property
    def step_us(self) -> int:
        """The distance of boundaries."""
        return self.rolling.step.us

    @property
    def lateness_us(self) -> int:
        """How far past a boundary its values may change."""
        return self.of.options.allowed_lateness.us

    @cached_property
    def spans(self) -> tuple[BoundSpan, ...]:
        """The spans, in order."""
        step_us, each = self.step_us, self.rolling.spans.items()
        enters = {name: step_us + span.offset.us for name, span in each}
        return tuple(BoundSpan(name, enters[name], enters[name] + span.length.us) for name, span in each)

    @cached_property
    def enters_us(self) -> Sequence[int]:
        """The distances from the start of a slice to the boundaries where it enters a span."""
        return sorted({span.enters_us for span in self.spans})

    @cached_property
    def changes_us(self) -> Sequence[int]:
        """The distances from the start of a slice to the boundaries where it enters or leaves a span, and to the first."""
        leaves = {span.leaves_us for span in self.spans}
        return sorted({self.step_us, *self.enters_us, *leaves})

    @cached_property
    def kept_us(self) -> int:
        """The distance from the start of a slice to the boundary where it has left all spans."""
        return max(span.leaves_us for span in self.spans)

    @cached_property
    def totals(self) -> Totals:
        """The accumulations whose values are differences of totals; the others are recombined from slices."""
        return Totals([bound for bound in self.of.accumulations if has_totals(bound)])

    # Boundaries

    def boundary(self, watermark_us: int) -> int:
        """The last boundary that a watermark has reached."""
        return watermark_us - (watermark_us - self.rolling.offset.us) % self.step_us

    def next_boundary(self, watermark_us: int) -> int | None:
        """The first boundary past a watermark; None: beyond all times, or no watermark yet."""
        if watermark_us == NO_WATERMARK_US or watermark_us >= LATEST_US:
            return None
        return self.boundary(watermark_us) + self.step_us

    def first_open(self, watermark_us: int) -> int:
        """The first boundary whose values may still change at a watermark."""
        if watermark_us == NO_WATERMARK_US:
            return NO_WATERMARK_US
        return self.boundary(max(watermark_us, -_FAR_US) - self.lateness_us) + self.step_us

    def is_frozen(self, boundary_us: Ints, watermark_us: int | Ints) -> Any:
        """Whether the values at boundaries may change no more: bool, one each."""
        if isinstance(watermark_us, int):
            watermark_us = max(watermark_us, -_FAR_US)
        return boundary_us <= watermark_us - self.lateness_us

    # Columns

    @cached_property
    def key_cells(self) -> pa.Schema:
        """The key columns, as stored."""
        return cells_of_keys(self.of.key_schema)

    @cached_property
    def slice_cells(self) -> pa.Schema:
        """The stored columns of slices: keys and accumulators."""
        return pa.schema([*self.key_cells, *(field.with_name(f"state.{field.name}") for field in self.of.state_schema)])

    @property
    def totals_width(self) -> int:
        """The number of totals of a key: of its slices within the reach, and of each span."""
        return 1 + len(self.spans) * self.totals.width

    @cached_property
    def standing_cells(self) -> pa.Schema:
        """The stored columns of the totals of keys."""
        return pa.schema([*self.key_cells, (TOTALS, pa.list_(pa.int64(), self.totals_width))])

    @cached_property
    def value_schema(self) -> pa.Schema:
        """The values of a row, by accumulation and span."""
        return pa.schema(
            [
                (value_name(bound.name, span.name), bound.accumulation.value_type(bound.types))
                for bound in self.of.accumulations
                for span in self.spans
                if self.rolling.spans[span.name].has(bound.name)
            ]
        )

    @cached_property
    def row_cells(self) -> pa.Schema:
        """The stored columns of emitted rows: keys and values."""
        return pa.schema([*self.key_cells, *(field.with_name(f"value.{field.name}") for field in self.value_schema)])

    @cached_property
    def schema(self) -> pa.Schema:
        """The output."""
        dropped = [("dropped", dropped_type(self.of.row_type))] if self.of.options.lists_dropped else []
        own = [("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP), *dropped]
        return pa.schema([*self.of.key_schema, (TIME, TIMESTAMP), *self.value_schema, *own])

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The parts that may not change under a checkpoint."""
        spec = self.of.spec
        parts = {what: spec[what] for what in ("shards", "inputs", "keys", "reads")}
        return {**parts, "explode": None, **spec["options"], "allowed_lateness": self.lateness_us}


def value_name(accumulation: str, span: str) -> str:
    """The output column of an accumulation over a span."""
    return f"{accumulation}_{span}"
