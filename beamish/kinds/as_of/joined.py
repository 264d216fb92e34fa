"""Rows with the version that they meet, as updates; and what changes of the table correct."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.updates import EARLY, LATE, PANE_KIND, RETRACTION_KIND, Updates, make_block, timestamp_column
from beamish.instants import LATEST_US
from beamish.kernels.buffers import Flags, Ints
from beamish.kernels.order import ranks, sort_order, value_ranks
from beamish.kinds.as_of.left_rows import LeftRows
from beamish.kinds.as_of.plan import TABLE, AsOfPlan
from beamish.kinds.versions.folding import Changes, Folded
from beamish.kinds.versions.plan import null_key
from beamish.kinds.versions.table import codes_of_both, find_at
from beamish.tables.timed_records import TimedRecords


@attrs.frozen(eq=False)
class Matches:
    """The matches of rows.

    Attributes:
        changes: changes of the table.
        at: int64, one per row: the index of its match; -1: no match.
    """

    changes: Changes
    at: Ints

    def take(self, rows: Ints | Flags) -> Matches:
        """A subset."""
        return Matches(self.changes, self.at[rows])


@attrs.frozen(eq=False)
class Joined:
    """Output rows: panes, or retractions, of rows of the left input.

    Attributes:
        kind: PANE_KIND or RETRACTION_KIND.
        rows: as they were when emitted: ``panes`` counts this one, ``timing`` is its.
        matches: their matches.
        is_last: bool, one per row.
        of: int64, one per row: a number shared by a row's retraction and pane; equal rows are emitted in its order.
    """

    kind: int
    rows: LeftRows
    matches: Matches
    is_last: Flags
    of: Ints


def joined_updates(plan: AsOfPlan, parts: Sequence[Joined]) -> list[Updates]:
    """Updates by time, a row's retraction right before its pane; empty if there are no rows."""
    parts = [part for part in parts if len(part.rows)]
    if not parts:
        return []
    rows = LeftRows.concat([part.rows for part in parts])
    kind = np.concatenate([np.full(len(part.rows), part.kind) for part in parts])
    of = np.concatenate([part.of for part in parts])
    order = sort_order([ranks(rows.order()), of, (kind == PANE_KIND).astype(np.int64)])
    rows, kind = rows.take(order), kind[order]
    of, is_pane = of[order], kind == PANE_KIND
    pairs = (of[:-1] == of[1:]) & ~is_pane[:-1] & is_pane[1:]
    timing, index = rows["timing"], rows["panes"] - 1
    later = np.where(timing == EARLY, -1, rows["later_panes"] - 1)
    block = make_block(
        len(order),
        kind=kind.astype(np.int8),
        timing=timing,
        start_us=rows["start_us"],
        end_us=rows["end_us"],
        windowless=rows["windowless"],
        index=index,
        on_time_index=later,
        is_first=index == 0,
        is_last=np.concatenate([part.is_last for part in parts])[order],
        pane_time_us=rows["time_us"],
        replaces=np.append(pairs, False) | np.append(False, pairs),
    )
    values = {name: rows.cells[f"left.{name}"].combine_chunks() for name in plan.left_names}
    matches = [match_column(plan, part.matches) for part in parts]
    values[str(plan.takes[TABLE].name)] = pa.concat_arrays(matches).take(pa.array(order))
    return [Updates(block, pa.table({}), pa.table(values))]


def match_column(plan: AsOfPlan, matches: Matches) -> pa.Array:
    """Matches as structs; null without a match."""
    changes, at = matches.changes, matches.at
    nothing = at < 0
    rows = pa.array(at, mask=nothing)
    columns = [changes.cells[f"value.{field.name}"].combine_chunks().take(rows) for field in plan.table.value_schema]
    from_us = changes["version_us"][at] if len(changes) else np.zeros(len(at), np.int64)
    columns.append(timestamp_column(from_us, nothing))
    return pa.StructArray.from_arrays(columns, fields=list(plan.match_type), mask=pa.array(nothing))


def read_us(plan: AsOfPlan, rows: LeftRows) -> Ints:
    """The times at which the table is read for rows, microseconds."""
    return rows["time_us"] if plan.options.allow_exact_matches else rows["time_us"] - 1


def match_rows(plan: AsOfPlan, rows: LeftRows, changes: Changes, at: Ints) -> Matches:
    """The matches of rows.

    Args:
        plan: the join's.
        rows: n rows.
        changes: of the table.
        at: int64, n: the index of the change that was valid at the time each row reads; -1: none.
    """
    fits = (at >= 0) & ~null_key(rows.cells)
    of = at[fits]
    meets = ~changes["deletes"][of]
    if plan.table.tolerance_us is not None:
        meets &= rows["time_us"][fits] - changes["version_us"][of] <= plan.table.tolerance_us
    found = np.full(len(at), -1, dtype=np.int64)
    found[fits] = np.where(meets, of, -1)
    return Matches(changes, found)


def nearer(before: Matches, after: Ints, time_us: Ints) -> Ints:
    """The nearer of two matches of each row by their starts; if both are equally near, the earlier.

    Args:
        before: those valid at the rows' times.
        after: int64, the first that begins then or later, of the same changes; -1: none.
        time_us: int64, the rows' times.
    """
    changes, has = before.changes, (before.at >= 0, after >= 0)
    if not len(changes):
        return after
    begins_us = changes["version_us"]
    is_nearer = time_us - begins_us[before.at] <= begins_us[after] - time_us
    return np.where(has[0] & (~has[1] | is_nearer), before.at, after)


def other_matches(plan: AsOfPlan, kept: TimedRecords[LeftRows], folded: Folded) -> tuple[Ints, Matches, Matches]:
    """The emitted rows that changes may give another match, as indices, and their matches before and now.

    Args:
        plan: the join's.
        kept: emitted rows that may be corrected.
        folded: the result of folding changes into the table.
    """
    both, old = folded.both, folded.old
    since_us = folded.by_key[old:].least(both["from_us"][old:])
    at = kept.between(int(both["from_us"][old:].min()), LATEST_US)
    rows = kept.records.take(at)
    # Their keys by their numbers in the table; unchanged keys are left out.
    known, of = codes_of_both(both.keys, rows.keys, len(both), len(rows))
    code_of = np.full(known.count, -1, dtype=np.int64)
    code_of[known.of] = folded.by_key.of
    code = code_of[of.of]
    concerned = np.flatnonzero((code >= 0) & (read_us(plan, rows) >= since_us[code]))
    at, rows, code = at[concerned], rows.take(concerned), code[concerned]
    time_us = read_us(plan, rows)
    before = both.take(np.flatnonzero(both["counts"][:old]))
    codes_before = folded.by_key.of[:old][both["counts"][:old]]
    then = match_rows(plan, rows, before, find_at(codes_before, before["from_us"], before["to_us"], code, time_us))
    counting = folded.changes["counts"]
    changes = folded.changes.take(counting)
    codes_now = folded.by_key.of[folded.kept][counting]
    now = match_rows(plan, rows, changes, find_at(codes_now, changes["from_us"], changes["to_us"], code, time_us))
    return at, then, now


def corrected(
    plan: AsOfPlan, kept: TimedRecords[LeftRows], at: Ints, *, then: Matches, now: Matches, due_below_us: int
) -> list[Joined]:
    """Correct emitted rows.

    Args:
        plan: the join's.
        kept: emitted rows that may be corrected.
        at: int64, the indices of some; those whose match differs are corrected.
        then, now: their matches before the last changes, and after them.
        due_below_us: rows at times below this are due.

    Returns:
        the retractions, and the corrected rows.
    """
    if not len(at):
        return []
    rows = kept.records.take(at)
    other = rows.by_panes(np.flatnonzero(_differs(then, now)))
    at, rows, then, now = at[other], rows.take(other), then.take(other), now.take(other)
    taken, number = np.flatnonzero(rows["shown"]), np.arange(len(rows))
    never_last = np.zeros(len(rows), dtype=bool)
    back = Joined(RETRACTION_KIND, rows.take(taken), then.take(taken), never_last[taken], number[taken])
    shows = (now.at >= 0) | (plan.options.how == "left")
    is_due = (rows["time_us"] < due_below_us) | (rows["timing"] != EARLY)  # a longer grace does not un-emit rows
    timing = np.where(shows, np.where(is_due, LATE, EARLY), rows["timing"]).astype(np.int8)
    rows = rows.with_columns(
        panes=rows["panes"] + shows,
        later_panes=rows["later_panes"] + (shows & is_due),
        timing=timing,
        shown=shows,
    )
    kept.remove(at)
    kept.add(rows)
    return [back, Joined(PANE_KIND, rows.take(shows), now.take(shows), never_last[shows], number[shows])]


def _differs(then: Matches, now: Matches) -> Flags:
    """Whether the match of rows changed: bool, one per row."""
    some_then, some_now = then.at >= 0, now.at >= 0
    differs: Flags = some_then != some_now
    both = some_then & some_now
    (one, of_one), (other, of_other) = (np.unique(matches.at[both], return_inverse=True) for matches in (then, now))
    changes = Changes.concat([then.changes.take(one), now.changes.take(other)])
    values, begins_us = value_ranks(changes.values, len(changes)), changes["version_us"]
    of_other = of_other + len(one)
    differs[both] = (begins_us[of_one] != begins_us[of_other]) | (values[of_one] != values[of_other])
    return differs
