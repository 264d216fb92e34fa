"""A shard of a window stage: the order of events in a step (docs/rules/time.md#steps-and-clocks).

Panes of other stages are processed first, so that on-time panes of the stage before are on time here; then the watermark moves,
then the clock, then rows of sources are processed.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from beamish.contract.clocks import Clocks
from beamish.contract.drops import Counts
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import Store
from beamish.contract.updates import Updates
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.compatibility import check_spec
from beamish.kinds.window.state.state import State
from beamish.kinds.window.state.window_table import naming_window
from beamish.kinds.window.step.arrival import add_rows
from beamish.kinds.window.step.firing import move_clock, move_watermark, take_up_changes
from beamish.kinds.window.step.packing import about
from beamish.kinds.window.step.step import Step, exploded
from beamish.tables.segment_policy import SegmentPolicy
from beamish.watermarks import NO_WATERMARK_US, known_us


class WindowShard(Shard):
    """A shard of a window stage (see ``contract/operator.py``). A row dropped from two windows counts twice.

    Attributes:
        is_new: whether it had no state when it was opened.

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """

    def __init__(self, operator: Operator, plan: WindowPlan, store: Store, policy: SegmentPolicy) -> None:
        self.operator, self._plan = operator, plan
        self._state = State.open(plan, store, policy)
        self.is_new = self._state.segments.is_new
        if not self.is_new:
            check_spec(self._state.segments.about["spec"], plan)
        self.clocks, self.dropped, self.held = self._state.note.clocks, self._state.note.dropped, self._state.note.held
        self._counts = Counts()

    def updates(
        self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]
    ) -> Sequence[Updates]:
        self._unsaved = step = self._step(sources_us, clock_us, payloads)
        values = step.table.state if self._plan.adds_up else step.table.values
        updates = step.output.updates(step.table.keys, values)
        if self._plan.exploding is None or self._plan.suppressed:
            return updates
        return [exploded(self._plan, part) for part in updates]

    def save(self) -> None:
        self._state.note.held = self.held
        self._state.save(self._unsaved.windows, self._unsaved.progress)

    def _step(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> Step:
        plan, clocks = self._plan, self._state.note.clocks
        policies = [relation.policy for relation in plan.takes]
        before = clocks.step(policies, sources_us, clock_us, fastest=plan.options.by_fastest)
        step = Step(self._plan, self._state, *before)
        if self._plan.has_several_inputs:
            self._note_latest(payloads)
        with naming_window(step.table):
            if self._state.changed.options:
                take_up_changes(step)
            for part in step.parts:
                payloads = part.receive(step, payloads)
            panes, rows = self._split(payloads)
            if panes:
                add_rows(step, panes)
            move_watermark(step)
            move_clock(step)
            if rows:
                add_rows(step, rows)
        self._counts = Counts(step.taken, step.late_by_us)
        return step

    def _note_latest(self, payloads: Sequence[bytes]) -> None:
        """Store the latest event time of each input."""
        for of_payload in map(about, payloads):
            progress = self._state.note.clocks.inputs[of_payload["input"]]
            progress.latest_us = max(progress.latest_us, of_payload.get("latest_us", NO_WATERMARK_US))

    def _split(self, payloads: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """Split payloads into those of stages and of sources."""
        of_panes = {relation.is_panes for relation in self._plan.takes}
        if len(of_panes) == 1:
            return (payloads, []) if of_panes == {True} else ([], payloads)
        inputs = [about(payload)["input"] for payload in payloads]
        panes = [payload for payload, i in zip(payloads, inputs, strict=True) if self._plan.takes[i].is_panes]
        rows = [payload for payload, i in zip(payloads, inputs, strict=True) if not self._plan.takes[i].is_panes]
        return panes, rows

    def stand_at(self, clocks: Clocks) -> None:
        """Start at other clocks."""
        self.clocks = self._state.note.clocks = Clocks.of(attrs.asdict(clocks))

    @property
    def watermark_us(self) -> int | None:
        return known_us(self._state.progress.forwarded_us(self.clocks.watermark_us))

    @property
    def next_due_us(self) -> int | None:
        return self._state.next_due_us

    @property
    def counts(self) -> Counts:
        return attrs.evolve(self._counts, windows=self._state.segments.rows)
