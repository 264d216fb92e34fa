"""The plan of a stage of rolling spans: its options bound to the columns and types of its input."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.instants import LATEST_US
from beamish.kernels.buffers import Ints
from beamish.kinds.rolling.totals import Totals, has_totals
from beamish.kinds.window.plan.binding import BoundAccumulation
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.tables.records import cells_of_keys
from beamish.watermarks import NO_WATERMARK_US
from beamish.windows.rolling import Rolling, Span

_FAR_US = 8 * LATEST_US
"""Beyond all times, and far from the ends of 64 bits."""
ENDLESS_US = _FAR_US
"""The distance at which a slice leaves a span without a beginning: past all boundaries."""
PAST_US = -6 * LATEST_US
"""The start of the slice that all slices of a key before its others are folded into: within each span without a beginning."""
TOTALS = "totals"
"""The stored column of totals."""
STATE = "state."
"""Before the names of stored accumulators."""
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
        forget_us: how long after its latest row a key is present; None: for ever.
    """

    of: WindowPlan
    gives: Relation
    early: bool
    is_final: bool = False
    forget_us: int | None = None

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
        return tuple(
            BoundSpan(name, enters[name], enters[name] + span.length.us if isinstance(span, Span) else ENDLESS_US)
            for name, span in each
        )

    @cached_property
    def enters_us(self) -> Sequence[int]:
        """The distances from the start of a slice to the boundaries where it enters a span."""
        return sorted({span.enters_us for span in self.spans})

    @cached_property
    def changes_us(self) -> Sequence[int]:
        """The distances from the start of a slice to the boundaries where it enters or leaves a span, and to the first."""
        leaves = {span.leaves_us for span in self.spans}
        return sorted({self.step_us, *self.enters_us, *leaves} - {ENDLESS_US})

    @cached_property
    def kept_us(self) -> int:
        """The distance from the start of a slice to the boundary where it has left all spans, but for those that it never leaves."""
        return max(self.changes_us)

    @property
    def has_lifetime(self) -> bool:
        """Whether a span has no beginning, so that slices before the others are folded into one per key."""
        return self.rolling.has_lifetime

    @cached_property
    def present(self) -> BoundSpan:
        """The boundaries at which a slice makes its key present."""
        return BoundSpan("", self.step_us, ENDLESS_US if self.has_lifetime else self.kept_us)

    def weights(self, rows: Ints) -> Ints:
        """The weights of slices in the total by which their key is present: their numbers of rows, if slices are folded."""
        return rows if self.has_lifetime else np.ones(len(rows), np.int64)

    @property
    def counts_us(self) -> int:
        """The distance from the start of a slice to the last boundary at which it counts."""
        return ENDLESS_US if self.has_lifetime else self.rolling.reach_us

    @property
    def expires_us(self) -> int | None:
        """The distance from the start of a slice to the last boundary at which it makes its key present; None: endless."""
        return self.forget_us if self.has_lifetime else self.rolling.reach_us

    def folded_until(self, watermark_us: int) -> int:
        """The last start of slices that are folded at a watermark: all boundaries that may change hold them in the same spans."""
        if not self.has_lifetime or watermark_us == NO_WATERMARK_US:
            return NO_WATERMARK_US
        return max(watermark_us, -_FAR_US) - self.lateness_us - self.kept_us

    @cached_property
    def totals(self) -> Totals:
        """The accumulations whose values are differences of totals; the others are recombined from slices."""
        return Totals([bound for bound in self.of.accumulations if has_totals(bound)])

    @cached_property
    def folded(self) -> tuple[BoundAccumulation, ...]:
        """The accumulations whose accumulators are folded: those of spans without a beginning, unless totals always suffice."""
        spans = [span for span in self.rolling.spans.values() if not isinstance(span, Span)]
        own = [bound for bound in self.of.accumulations if any(span.has(bound.name) for span in spans)]
        return (
            *(bound for bound in own if not self.totals.suffice(bound.name)),
            *self.of.in_state[len(self.of.accumulations) :],
        )

    def carried(self, totals: Ints) -> Ints:
        """Totals of keys, from which nothing leaves spans without a beginning, with carries made there."""
        if not self.has_lifetime or not self.totals.width:
            return totals
        totals, width = totals.copy(), self.totals.width
        for i, span in enumerate(self.spans):
            if span.leaves_us == ENDLESS_US:
                own = totals[:, 1 + i * width : 1 + (i + 1) * width]
                own[:] = self.totals.carried(own)
        return totals

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
        return pa.schema([*self.key_cells, *(field.with_name(STATE + field.name) for field in self.of.state_schema)])

    @cached_property
    def past_cells(self) -> pa.Schema:
        """The stored columns of the slices that are folded: keys, their totals, and accumulators."""
        totals = [(TOTALS, pa.list_(pa.int64(), self.totals.width))] if self.totals.width else []
        state = [self.of.state_schema.field(bound.first + i) for bound in self.folded for i in range(len(bound.fields))]
        return pa.schema([*self.key_cells, *totals, *(field.with_name(STATE + field.name) for field in state)])

    @property
    def totals_width(self) -> int:
        """The number of totals of a key: of its slices within the reach, of rows if that is endless, and of each span."""
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
        forgets = {"forget_after": self.forget_us} if self.has_lifetime else {}
        unset = dict.fromkeys(("where", "derived", "having", "explode"))
        return {**parts, **unset, **spec["options"], "allowed_lateness": self.lateness_us, **forgets}


def value_name(accumulation: str, span: str) -> str:
    """The output column of an accumulation over a span."""
    return f"{accumulation}_{span}"
