"""Retracting input: removals without a matching row, and windows that lost all their rows.

See docs/rules/changelogs.md#unmatched-removals and docs/rules/stages.md#retractions-as-rows.
"""

from __future__ import annotations

import pyarrow as pa

from beamish.contract.drops import UNMATCHED_REMOVAL
from beamish.contract.updates import RETRACTION_KIND
from beamish.kernels.buffers import NO_ENTRY, Flags
from beamish.kernels.groups import Groups
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_from_windows
from beamish.kinds.window.step.entries import Entries
from beamish.kinds.window.step.firing import Firing, last_panes
from beamish.kinds.window.step.step import Step
from beamish.kinds.window.step.unmatched import unmatched
from beamish.triggers.trigger import WindowIndices


class RemovalsPart(WindowPart):
    """Drops removals without a row that they remove, and retracts the panes of windows that lost all their rows."""

    @classmethod
    def of(cls, plan: WindowPlan) -> RemovalsPart | None:
        return cls() if plan.signed else None

    def refused(
        self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices, *, state: pa.Table
    ) -> Flags | None:
        held = step.table["net_rows"][at]
        lost = unmatched(step.plan, bundle, entries.row, groups, state=state, held=held, start_us=entries.start_us)
        if lost is None or not lost.any():
            return None
        drop_from_windows(step, bundle, entries.only(lost), UNMATCHED_REMOVAL)
        return lost

    def on_rows(self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
        step.table["net_rows"][at] += groups.sum(bundle.signs[entries.row])

    def on_fire(self, step: Step, firing: Firing) -> None:
        """A window without rows emits no pane; its last one is retracted."""
        table = step.table
        empty = firing.emitted & (table["net_rows"][firing.at] == 0)
        firing.emitted &= ~empty
        at = firing.at[empty]
        at = at[table["has_pane"][at]]
        if step.plan.options.retracts:
            firing.add(at, kind=RETRACTION_KIND, **last_panes(step, at))
        table["has_pane"][at] = False
        table["values_at"][at] = NO_ENTRY
