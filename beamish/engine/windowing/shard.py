"""A shard: some of the keys of a pipeline, step by step, between its state at rest and the panes it gives."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from beamish.engine.state import State, Store
from beamish.engine.windowing.arrival import add_rows
from beamish.engine.windowing.error_context import naming_window
from beamish.engine.windowing.step import Step
from beamish.plan import Plan


class Shard:
    """Some of the keys of a pipeline.

    Args:
        plan: the pipeline's plan.
        store: where the shard's state is kept.

    Raises:
        StateError: the state was written by another pipeline, shard count or format.
    """

    def __init__(self, plan: Plan, store: Store) -> None:
        self.plan = plan
        self._state = State.open(plan, store)

    def step(self, watermark_us: int | None, clock_us: int | None, payloads: Sequence[bytes]) -> pa.Table:
        """Advance the watermark, then the clock, then add rows; in a later stage add the rows first (RULES.md 30).

        Args:
            watermark_us, clock_us: microseconds since the epoch; None or not ahead: ignored.
            payloads: rows, as ``packing.pack`` gave them.

        Returns:
            panes, retractions and dropped rows, in the plan's ``pane_schema``.
        """
        before = self._state.clocks.step(self.plan.options.watermark, watermark_us, clock_us)
        step = Step(self.plan, self._state, *before)
        with naming_window(step.table):
            if payloads and self.plan.later:
                add_rows(step, payloads)
            step.pass_watermark()
            step.pass_clock()
            if payloads and not self.plan.later:
                add_rows(step, payloads)
        panes = step.output.table(step.table.keys, step.table.values)
        self._state.save(step.table, step.inherited_panes)
        return panes

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which a window of the shard is due; None: it has none."""
        due = self._state.index["due_us"]
        return int(due.min()) if len(due) else None

    @property
    def dropped(self) -> dict[str, int]:
        """Rows dropped so far, by reason; a row dropped from two windows counts twice."""
        return dict(self._state.dropped)
