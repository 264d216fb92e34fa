"""How rows find their windows: drop the expired, merge what overlaps, drop what is closed, accumulate, ask.

An *entry* is one row (or slice of rows) in one window of its own (see bundle.py); its *target* is the window of the
table that it ends up in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.engine.clocks import NO_WATERMARK_US
from beamish.engine.state import segment_numbers
from beamish.engine.windowing.bundle import Bundle, plan_keys
from beamish.engine.windowing.error_context import naming_key, naming_window
from beamish.engine.windowing.firing import last_panes
from beamish.engine.windowing.merging import group_windows
from beamish.engine.windowing.output import (
    DROPPED_KIND,
    EXPIRED,
    NO_LATENESS,
    NULL_EVENT_TIME,
    REASONS,
    RETRACTION_KIND,
    WINDOW_FINISHED,
)
from beamish.engine.windowing.trigger_tree import TriggerMerge
from beamish.engine.windowing.window_table import NO_ENTRY, NO_STAMP, WindowTable
from beamish.kernels.codes import factorize_rows, factorize_tuples, factorize_values
from beamish.kernels.groups import Groups
from beamish.modes import TimestampCombiner
from beamish.windows.option import END_OF_TIME_US

if TYPE_CHECKING:
    from beamish.engine.windowing.step import Step

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@attrs.define
class Entries:
    """Rows in windows.

    Attributes:
        row: index into the bundle.
        start_us, end_us: the window the row itself falls in.
        key_at: where its key is in the window table's pool.
    """

    row: Ints
    start_us: Ints
    end_us: Ints
    key_at: Ints

    def only(self, kept: Flags) -> Entries:
        """Those for which ``kept`` holds."""
        return Entries(self.row[kept], self.start_us[kept], self.end_us[kept], self.key_at[kept])


def add_rows(step: Step, payloads: Sequence[bytes]) -> None:
    """Put the rows of a step into their windows and ask the windows that got one."""
    bundle = Bundle.read(step.plan, payloads)
    _drop_untimed(step, bundle)
    option = step.plan.window
    own = [bundle.table[name].to_pylist() for name in option.columns]
    key_at = step.table.keys.append(bundle.keys)
    with naming_key(step.table, key_at):
        row, start, end = option.assign_columns(bundle.time_us, *own)
    entries = Entries(row, start, end, key_at[row])
    expired = step.plan.expiry_us(end) <= step.watermark_us
    _drop(step, bundle, entries.only(expired), EXPIRED)
    entries = entries.only(~expired)
    if not len(entries.row):
        return
    find = _find_merging if option.merging else _find
    target, entries = find(step, bundle, entries)
    if len(target):
        _accumulate(step, bundle, entries, target)


def _accumulate(step: Step, bundle: Bundle, entries: Entries, target: Ints) -> None:
    table = step.table
    groups = factorize_values(target)
    at = target[groups.first()]
    rows = groups.sum(bundle.rows[entries.row])
    state_at = table["state_at"][at]
    before = None
    if (state_at != NO_ENTRY).any():
        state_at = np.where(state_at == NO_ENTRY, table.state.append(step.plan.new_state), state_at)
        before = table.state.take(state_at)
    with naming_window(table, at):
        state = bundle.accumulate(entries.row, groups, before)
    table["state_at"][at] = table.state.append(state)
    table["new_rows"][at] += rows
    if step.plan.signed:
        table["held"][at] += groups.sum(bundle.signs[entries.row])
    table["new_since_us"][at] = np.minimum(table["new_since_us"][at], step.watermark_us)
    table["touched"][at] = True
    if step.plan.combines_timestamps:
        _combine_timestamps(step, bundle, entries, target)
    step.plan.options.trigger.see(table.trigger, at, rows, step.now())
    step.ask(at)


def _combine_timestamps(step: Step, bundle: Bundle, entries: Entries, target: Ints) -> None:
    in_time = step.watermark_us < step.table["end_us"][target]
    target, row = target[in_time], entries.row[in_time]
    stamp = step.table["stamp_us"]
    if step.plan.options.combiner is TimestampCombiner.EARLIEST:
        unset = target[stamp[target] == NO_STAMP]
        stamp[unset] = np.iinfo(np.int64).max
        np.minimum.at(stamp, target, bundle.first_us[row])
    else:
        np.maximum.at(stamp, target, bundle.last_us[row])


def _find(step: Step, bundle: Bundle, entries: Entries) -> tuple[Ints, Entries]:
    """The targets of entries whose windows do not merge; those of closed windows are dropped."""
    table = step.table
    index = step.state.index["segment"]
    needed = segment_numbers(step.state.span_us, entries.end_us, table.keys, entries.key_at)
    step.load(np.isin(index, np.unique(needed)))
    known = np.flatnonzero(~table["gone"])
    known_key, own_key, _ = _code_keys(step, bundle, known)
    # Known windows come first and are distinct, so theirs are the codes below their number.
    windows = _factorize_windows(
        np.concatenate([known_key, own_key[entries.row]]),
        np.concatenate([table["start_us"][known], entries.start_us]),
        np.concatenate([table["end_us"][known], entries.end_us]),
    )
    code, first = windows.of[len(known) :], windows.first()[len(known) :] - len(known)
    new = _append_windows(step, entries.start_us[first], entries.end_us[first], entries.key_at[first])
    target = np.concatenate([known, new])[code]
    closed = table["closed"][target]
    _drop(step, bundle, entries.only(closed), WINDOW_FINISHED)
    return target[~closed], entries.only(~closed)


def _find_merging(step: Step, bundle: Bundle, entries: Entries) -> tuple[Ints, Entries]:
    """The targets of entries whose windows merge: all windows of the bundle at once (RULES.md 14, 15)."""
    table, option = step.table, step.plan.window
    index = step.state.index
    overlaps = _overlap(step.state.span_us, entries, index["start_us"], index["end_us"]) | (
        not option.merges_by_overlap
    )
    step.load(overlaps)
    known = np.flatnonzero(~table["gone"])
    known_key, own_key, keys = _code_keys(step, bundle, known)
    present = np.zeros(keys, dtype=bool)
    present[own_key[entries.row]] = True
    known, known_key = known[present[known_key]], known_key[present[known_key]]
    closed = table["closed"][known]
    live, live_key = known[~closed], known_key[~closed]

    # Group the live windows of the bundle's keys with the bundle's own windows; a user's merge gets each once.
    entry_key = own_key[entries.row]
    own = one = np.arange(len(entry_key))
    if not option.merges_by_overlap:
        windows = _factorize_windows(entry_key, entries.start_us, entries.end_us)
        own, one = windows.of, windows.first()
    key = np.concatenate([live_key, entry_key[one]])
    group, start, end = group_windows(
        option,
        key,
        np.concatenate([table["start_us"][live], entries.start_us[one]]),
        np.concatenate([table["end_us"][live], entries.end_us[one]]),
    )
    groups = len(start)
    part_group, own_group = group[: len(live)], group[len(live) :]
    group_key = np.zeros(groups, dtype=np.int64)
    group_key[group] = key
    active = np.zeros(groups, dtype=bool)
    active[own_group] = True

    finished = _match(table, known[closed], known_key[closed], group_key, start, end) != NO_ENTRY
    same = _match(table, live, live_key, group_key, start, end)
    active &= ~finished
    dropped = finished[own_group][own]
    met = attrs.evolve(entries, start_us=start[own_group][own], end_us=end[own_group][own])
    _drop(step, bundle, met.only(dropped), WINDOW_FINISHED)

    made = np.flatnonzero(active & (same == NO_ENTRY))
    some_entry = np.zeros(groups, dtype=np.int64)
    some_entry[own_group] = one
    result = same.copy()
    result[made] = _append_windows(step, start[made], end[made], entries.key_at[some_entry[made]])
    parts = Groups(part_group, groups).sizes()
    merges = active & (parts > 0) & ~((parts == 1) & (same != NO_ENTRY))
    if merges.any():
        number = np.cumsum(merges) - 1
        merging = merges[part_group]
        _merge(step, TriggerMerge(live[merging], number[part_group[merging]], result[merges]))
    return result[own_group][own][~dropped], entries.only(~dropped)


def _merge(step: Step, m: TriggerMerge) -> None:
    """Windows become one: their rows, clocks and triggers; what is live of those that vanish is retracted."""
    table, options = step.table, step.plan.options
    group_state: list[pa.Array] = []
    parts_state = table.state.take(table["state_at"][m.part]).columns
    with naming_window(table, m.into):
        for bound in step.plan.accumulations:
            mine = [column.combine_chunks() for column in bound.state_of(parts_state)]
            group_state.extend(bound.accumulation.combine(m.groups, mine))
    merged = {
        "new_rows": m.sum(table["new_rows"]),
        "new_since_us": m.least(table["new_since_us"]),
        "stamp_us": _merged_timestamps(step, m),
        "asks_at_end": m.any(table["asks_at_end"]) & (table["end_us"][m.into] > step.watermark_us),
        "state_at": table.state.append(pa.table(group_state, schema=step.plan.state_schema)),
        "touched": True,
    }
    options.trigger.merge(table.trigger, m, step.now())
    table.trigger.finished[m.into] = False
    for name, column in merged.items():
        table[name][m.into] = column
    vanish = m.part != m.into[m.of]
    gone, heir = m.part[vanish], m.into[m.of][vanish]
    table["gone"][gone] = True
    table["touched"][gone] = True
    step.orphans.pass_on(gone, heir, len(table))
    if options.retracts:
        shown = table["live"][gone]
        gone, heir = gone[shown], heir[shown]
        order = np.lexsort((table["start_us"][gone], table["end_us"][gone]))
        gone, heir = gone[order], heir[order]
        panes = last_panes(step, gone)
        if options.retracts_at_merge:
            step.output.add(len(gone), kind=RETRACTION_KIND, key_at=table["key_at"][gone], **panes)
        else:
            step.orphans.add({"owner": heir, **panes})


def _merged_timestamps(step: Step, m: TriggerMerge) -> Ints:
    stamp = step.table["stamp_us"]
    if step.plan.options.combiner is TimestampCombiner.LATEST:
        return m.greatest(stamp)  # type: ignore[no-any-return]
    never = np.iinfo(np.int64).max
    least = m.least(np.where(stamp == NO_STAMP, never, stamp))
    return np.where(least == never, NO_STAMP, least)


def _append_windows(step: Step, start_us: Ints, end_us: Ints, key_at: Ints) -> Ints:
    return step.table.append({"start_us": start_us, "end_us": end_us, "key_at": key_at}, len(start_us))


def _code_keys(step: Step, bundle: Bundle, known: Ints) -> tuple[Ints, Ints, int]:
    """Codes of the keys of known windows and of the bundle's rows, and how many there are."""
    keys = step.table.keys.take(step.table["key_at"][known])
    both = [pa.chunked_array([*a.chunks, *b.chunks]) for a, b in zip(keys.columns, bundle.keys.columns, strict=True)]
    keys_of = factorize_rows(both, len(known) + len(bundle.time_us))
    return keys_of.of[: len(known)], keys_of.of[len(known) :], keys_of.count


def _factorize_windows(key: Ints, start_us: Ints, end_us: Ints) -> Groups:
    """Groups of equal windows, of keys that are numbers, in order of first appearance."""
    keys = Groups(key, int(key.max(initial=-1)) + 1)
    return factorize_tuples([keys, factorize_values(start_us), factorize_values(end_us)], len(key))


def _match(  # noqa: PLR0917 - two lists of windows, each as columns
    table: WindowTable, known: Ints, known_key: Ints, key: Ints, start_us: Ints, end_us: Ints
) -> Ints:
    """For each of some windows the known one equal to it, or NO_ENTRY; both are distinct."""
    windows = _factorize_windows(
        np.concatenate([known_key, key]),
        np.concatenate([table["start_us"][known], start_us]),
        np.concatenate([table["end_us"][known], end_us]),
    )
    code = windows.of[len(known) :]
    found = code < len(known)
    match = np.full(len(key), NO_ENTRY, dtype=np.int64)
    match[found] = known[code[found]]
    return match


def _overlap(rough: int, entries: Entries, start_us: Ints, end_us: Ints) -> Flags:
    """Which of some spans may overlap an entry's window, whose start is taken only roughly."""
    start = np.unique(entries.start_us // rough) * rough
    end = start + rough + int((entries.end_us - entries.start_us).max())
    before = np.searchsorted(start, end_us, side="left")
    overlaps: Flags = (before > 0) & (end[np.maximum(before, 1) - 1] > start_us)
    return overlaps


def _drop_untimed(step: Step, bundle: Bundle) -> None:
    _count_dropped(step, NULL_EVENT_TIME, bundle.untimed_rows)
    rows = bundle.untimed
    if step.plan.options.with_dropped and rows.num_rows:
        step.output.add(
            rows.num_rows,
            kind=DROPPED_KIND,
            key_at=step.table.keys.append(plan_keys(step.plan, rows)),
            windowless=True,
            reason=NULL_EVENT_TIME,
            row_at=step.output.add_dropped_rows(rows),
        )


def _drop(step: Step, bundle: Bundle, entries: Entries, reason: int) -> None:
    """Drop entries: count them and, if asked for, list them with the window they were dropped from."""
    _count_dropped(step, reason, int(bundle.rows[entries.row].sum()))
    if step.plan.options.with_dropped and len(entries.row):
        time = bundle.time_us[entries.row]
        # At the end of time a row before the epoch is later than 64 bits can say.
        late_by = step.watermark_us - np.maximum(time, 0) - np.minimum(time, 0) * (step.watermark_us < END_OF_TIME_US)
        rows = bundle.table.take(pa.array(entries.row))
        step.output.add(
            len(entries.row),
            kind=DROPPED_KIND,
            key_at=entries.key_at,
            start_us=entries.start_us,
            end_us=entries.end_us,
            reason=reason,
            late_by_us=NO_LATENESS if step.watermark_us == NO_WATERMARK_US else late_by,
            row_at=step.output.add_dropped_rows(rows),
        )


def _count_dropped(step: Step, reason: int, rows: int) -> None:
    if rows:
        name = str(REASONS[reason])
        step.state.dropped[name] = step.state.dropped.get(name, 0) + rows
