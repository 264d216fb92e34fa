"""The output of a firing: a pane, its retraction, or nothing (docs/rules/panes.md#panes)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.updates import EARLY, LATE, ON_TIME, RETRACTION_KIND, Block, make_block, sort_blocks
from beamish.kernels.buffers import NO_ENTRY, NO_VALUE, Flags, Ints, cast, plain
from beamish.kernels.order import ranks, sort_keys
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import WindowTable, naming_window
from beamish.kinds.window.step.step import Output, Step
from beamish.modes import ClosingBehavior, OnTimeBehavior
from beamish.triggers.trigger import NEVER_US, WindowIndices


def fire(step: Step, at: WindowIndices, expiring: Flags) -> None:
    """Fire windows: those whose trigger is ready, and those that expire.

    Args:
        step: the current step.
        at: open windows.
        expiring: bool, one per window: whether it fires because it expires, regardless of its trigger.
    """
    if not len(at):
        return
    table, options = step.table, step.plan.options
    order = np.lexsort((table["start_us"][at], table["end_us"][at]))
    at, expiring = at[order], expiring[order]
    options.trigger.on_fire_columns(table.trigger, at[~expiring], step.now())
    last = expiring | table.trigger.finished[at]
    timing = _timing(step, at)
    emitted = table["unemitted_rows"][at] > 0
    if options.on_time is OnTimeBehavior.FIRE_ALWAYS:
        emitted |= timing == ON_TIME
    if options.closing is ClosingBehavior.FIRE_ALWAYS:
        emitted |= last
    firing = Firing(table, at, last, timing, emitted)
    for part in step.parts:
        part.on_fire(step, firing)
    _emit(step, firing)
    firing.add_to(step.output)
    table["unemitted_rows"][at] = 0
    table["unemitted_since_us"][at] = NEVER_US
    table["pane_time_us"][at] = NO_VALUE
    table["closed"][at[last]] = True
    table["touched"][at] = True
    for part in step.parts:
        part.after_fire(step, firing)
    keeps_state = not options.discards or any(part.keeps_state for part in step.parts)
    forgets = at[last] if keeps_state else at
    table["state_at"][forgets] = _new_states(step, len(forgets))
    table["values_at"][at[last]] = NO_ENTRY


def ask(step: Step, at: WindowIndices) -> None:
    """Evaluate the triggers of open windows, and fire those that are ready."""
    ready = step.plan.options.trigger.should_fire_columns(step.table.trigger, at, step.now())
    fire(step, at[ready], np.zeros(int(ready.sum()), dtype=bool))


class Firing:
    """Windows that fire together, and their rows of output: in the order of the windows, per window as they are added.

    Attributes:
        at: the windows, by end, then start.
        last: bool, one per window: whether it is its last firing.
        timing: int8, one per window: that of its pane.
        emitted: bool, one per window: whether it emits a pane.
    """

    def __init__(
        self, table: WindowTable, at: WindowIndices, last: Flags, timing: NDArray[np.int8], emitted: Flags
    ) -> None:
        self.at, self.last, self.timing, self.emitted = at, last, timing, emitted
        self._table = table
        self._place = np.full(len(table), NO_ENTRY, dtype=np.int64)
        self._place[at] = np.arange(len(at))
        self._blocks: list[Block] = []
        self._owners: list[WindowIndices] = []

    def add(self, owners: WindowIndices, **columns: Any) -> None:
        """Add one row per owner, each one of the windows."""
        if len(owners):
            self._blocks.append(make_block(len(owners), key_at=self._table["key_at"][owners], **columns))
            self._owners.append(owners)

    def add_to(self, output: Output) -> None:
        """Add them to the output, in order."""
        if not self._blocks:
            return
        place = self._place[np.concatenate(self._owners)]
        in_order = len(self._blocks) == 1 and bool((np.diff(place) >= 0).all())
        output.add_block(self._blocks[0] if in_order else sort_blocks(self._blocks, place))


def _timing(step: Step, at: WindowIndices) -> NDArray[np.int8]:
    table, over_us = step.table, step.over_us(at)
    end = table["end_us"][at] if over_us is None else np.minimum(table["end_us"][at], over_us)
    # How far it had come when the pane's first new row came; with no new row, before this step.
    since = np.where(table["unemitted_rows"][at] > 0, table["unemitted_since_us"][at], step.progress_before(at))
    late = (table["non_early_panes"][at] > 0) | (since >= end)
    return np.where(late, LATE, np.where(step.progress(at) < end, EARLY, ON_TIME)).astype(np.int8)


def _emit(step: Step, firing: Firing) -> None:
    """Emit a pane for each window that gives one, each after the retractions of what it replaces."""
    table, options = step.table, step.plan.options
    emitted = firing.emitted
    at, timing, last = firing.at[emitted], firing.timing[emitted], firing.last[emitted]
    # A suppress adds up accumulators, and computes values as it emits panes.
    values_at = table["state_at"][at] if step.plan.adds_up else table.values.append(_extract(step, at))
    for part in step.parts:  # also for panes that are not emitted (docs/rules/panes.md#only-updated-panes)
        part.on_panes(step, firing, at)
    if options.only_updated:
        changed = ~_same_values(step, table["values_at"][at], values_at) | ~table["has_pane"][at]
        at, timing, last, values_at = at[changed], timing[changed], last[changed], values_at[changed]
    pane_time = _pane_times(step, at)
    if options.retracts:
        replaced = at[table["has_pane"][at]]
        firing.add(replaced, kind=RETRACTION_KIND, replaces=True, **last_panes(step, replaced))
    index, non_early = table["panes"][at], table["non_early_panes"][at]
    firing.add(
        at,
        start_us=table["start_us"][at],
        end_us=table["end_us"][at],
        timing=timing,
        index=index,
        on_time_index=np.where(timing == EARLY, -1, non_early),
        is_first=index == 0,
        is_last=last,
        replaces=table["has_pane"][at] if options.retracts else repeats(step.plan, index),
        has_rows=table["unemitted_rows"][at] > 0,
        pane_time_us=pane_time,
        values_at=values_at,
    )
    table["panes"][at] += 1
    table["non_early_panes"][at] += timing != EARLY
    table["timing"][at] = timing
    table["last_pane_time_us"][at] = pane_time
    table["values_at"][at] = NO_ENTRY if step.plan.adds_up else values_at
    table["has_pane"][at] = True


def _pane_times(step: Step, at: WindowIndices) -> Ints:
    """The combined timestamp of the new rows; without such a row, if windows have no last microsecond, the time of the replaced pane."""
    times: Ints = step.table["pane_time_us"][at]
    options = step.plan.options
    endless = step.plan.window.is_all_of_time or not step.plan.progress.by_watermark
    if not (options.retracts and options.combines_times and endless):
        return times
    repeats_time = (times == NO_VALUE) & step.table["has_pane"][at]
    return np.where(repeats_time, step.table["last_pane_time_us"][at], times)


def into_windows(table: WindowTable, at: WindowIndices) -> dict[str, NDArray[Any]]:
    """The windows that others merged into, as output columns."""
    return {"into_start_us": table["start_us"][at], "into_end_us": table["end_us"][at]}


def last_panes(step: Step, at: WindowIndices) -> dict[str, NDArray[Any]]:
    """The last panes of windows that have one, as output columns."""
    table = step.table
    timing, index = table["timing"][at], table["panes"][at] - 1
    return {
        "start_us": table["start_us"][at],
        "end_us": table["end_us"][at],
        "timing": timing,
        "index": index,
        "on_time_index": np.where(timing == EARLY, -1, table["non_early_panes"][at] - 1),
        "is_first": index == 0,
        "pane_time_us": table["last_pane_time_us"][at],
        "values_at": table["values_at"][at],
    }


def repeats(plan: WindowPlan, index: Ints) -> Flags:
    """Whether panes with these numbers replace earlier ones without retractions: bool, one each."""
    return (index > 0) & (not plan.options.discards) & (not plan.options.retracts)


def _extract(step: Step, at: WindowIndices) -> pa.Table:
    with naming_window(step.table, at):
        return extract(step.plan, step.table.state.take(step.table["state_at"][at]))


def extract(plan: WindowPlan, state: pa.Table) -> pa.Table:
    """The values of accumulators, in the plan's ``value_schema``."""
    columns = []
    for bound, field in zip(plan.accumulations, plan.value_schema, strict=True):
        columns.append(cast(bound.values(state), field.type))
    return pa.table(columns, schema=plan.value_schema)


def _same_values(step: Step, before: NDArray[np.int64], after: NDArray[np.int64]) -> Flags:
    same = np.ones(len(after), dtype=bool)
    old, new = step.table.values.take(before), step.table.values.take(after)
    for name in new.schema.names:
        same &= _equal(old[name].combine_chunks(), new[name].combine_chunks())
    return same


def _equal(a: pa.Array, b: pa.Array) -> Flags:
    """Which entries are equal; null equals null, NaN equals NaN."""
    rank = ranks(sort_keys(plain(pa.concat_arrays([a, b]))))
    equal: Flags = rank[: len(a)] == rank[len(a) :]
    return equal


def _new_states(step: Step, windows: int) -> NDArray[np.int64]:
    one = step.table.state.append(step.plan.new_state)
    return np.repeat(one, windows)


def move_watermark(step: Step) -> None:
    """Windows whose end or expiry the watermark passes, or has passed by a reduced lateness, are evaluated, or emit their last pane and expire."""
    step.watermark_us = step.state.note.clocks.watermark_us
    if step.state.progress.load_due(step):
        fire_at_ends(step)
    step.begin_part()


def fire_at_ends(step: Step, came: WindowIndices | None = None) -> None:
    """Windows whose end or expiry is passed are evaluated, or emit their last pane and expire; those ``came`` are evaluated too."""
    table, every = step.table, np.arange(len(step.table))
    before, now = step.progress_before(every), step.progress(every)
    end = table["end_us"]
    expired = step.plan.expiry_us(end) <= now
    over_us = step.over_us(every)
    if over_us is not None:
        expired |= over_us <= now
    # Panes of a stage come in before the watermark moves, and may have merged some away
    # (docs/rules/stages.md#steps-of-later-stages).
    open_ = ~table["closed"] & ~table["gone"]
    passed = open_ & (before < end) & (end <= now)
    asked = table["asks_at_end"] & passed
    trigger = step.plan.options.trigger
    if trigger.needs_row_times:
        asked |= open_ & (trigger.due_columns(table.trigger, every) <= now)
    for part in step.parts:
        let_go = part.on_progress(step, open_ & ~expired)
        asked = asked if let_go is None else asked | let_go
    if came is not None:
        asked[came] = True
    ready = np.flatnonzero(asked & ~expired)
    ready = ready[trigger.should_fire_columns(table.trigger, ready, step.now())]
    last = np.flatnonzero(expired & open_)
    fire(step, np.concatenate([ready, last]), np.repeat([False, True], [len(ready), len(last)]))
    table["gone"][expired] = True
    table["touched"][expired | passed] = True


def evaluate(step: Step, came: WindowIndices) -> None:
    """Evaluate windows with new rows; expired ones emit their last pane, and their state is deleted."""
    table, over_us = step.table, step.over_us(came)
    over = np.zeros(len(came), dtype=bool) if over_us is None else over_us <= step.progress(came)
    ready, last = came[~over], came[over]
    ready = ready[step.plan.options.trigger.should_fire_columns(table.trigger, ready, step.now())]
    fire(step, np.concatenate([ready, last]), np.repeat([False, True], [len(ready), len(last)]))
    table["gone"][last] = True
    table["touched"][last] = True


def move_clock(step: Step) -> None:
    """Evaluate windows whose target the processing-time clock has reached."""
    step.clock_us = step.state.note.clocks.clock_us
    if step.clock_us > step.clock_before_us and step.plan.options.trigger.needs_clock:
        step.load(step.state.index["wake_us"] <= step.clock_us)
        open_ = np.flatnonzero(~step.table["closed"] & ~step.table["gone"])
        wake = step.plan.options.trigger.wakes_at_columns(step.table.trigger, open_)
        ask(step, open_[wake <= step.clock_us])


def take_up_changes(step: Step) -> None:
    """The trigger or the lateness changed since the state was written: another trigger starts as if the rows arrived now."""
    if step.state.changed.trigger:
        table = step.table
        waiting = np.flatnonzero(~table["closed"])
        table["asks_at_end"][waiting] = True
        waiting = waiting[table["unemitted_rows"][waiting] > 0]
        step.plan.options.trigger.on_rows_columns(table.trigger, waiting, table["unemitted_rows"][waiting], step.now())
    if not step.state.progress.by_watermark:  # later steps load only the windows that rows pass in them
        fire_at_ends(step)
