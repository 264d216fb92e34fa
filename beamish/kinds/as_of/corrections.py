"""Corrections: emitted rows whose match was altered by a change of the table."""

from __future__ import annotations

import numpy as np

from beamish.contract.pane_columns import EARLY, LATE, PANE_KIND, RETRACTION_KIND
from beamish.instants import LATEST_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kinds.as_of.joined import Joined, Matches
from beamish.kinds.as_of.left_rows import LeftRows
from beamish.kinds.as_of.matching import met, read_us
from beamish.kinds.as_of.plan import AsOfPlan
from beamish.kinds.versions.folding import Folded
from beamish.kinds.versions.lookup import codes_of_both, find_at
from beamish.tables.timed_records import TimedRecords


def corrected(plan: AsOfPlan, kept: TimedRecords[LeftRows], folded: Folded, due_below_us: int) -> list[Joined]:
    """Correct emitted rows.

    Args:
        plan: the join's.
        kept: emitted rows that may be corrected.
        folded: the result of folding changes into the table.
        due_below_us: rows at times below this are due.

    Returns:
        the retractions, and the corrected rows.
    """
    both, old = folded.both, folded.old
    since_us = folded.by_key[old:].least(both["from_us"][old:])
    at = kept.between(int(both["from_us"][old:].min()), LATEST_US)
    if not len(at):
        return []
    rows = kept.records.take(at)
    # Their keys by their numbers in the table; unchanged keys are left out.
    known, of = codes_of_both(both.keys, rows.keys, len(both), len(rows))
    code_of = np.full(known.count, -1, dtype=np.int64)
    code_of[known.of] = folded.by_key.of
    code = code_of[of.of]
    concerned = np.flatnonzero((code >= 0) & (read_us(plan, rows) >= since_us[code]))
    at, rows, code = at[concerned], rows.take(concerned), code[concerned]
    if not len(at):
        return []
    time_us = read_us(plan, rows)
    before = both.take(np.flatnonzero(both["counts"][:old]))
    codes_before = folded.by_key.of[:old][both["counts"][:old]]
    then = met(plan, rows, before, find_at(codes_before, before["from_us"], before["to_us"], code, time_us))
    counting = folded.changes["counts"]
    changes = folded.changes.take(counting)
    codes_now = folded.by_key.of[folded.kept][counting]
    now = met(plan, rows, changes, find_at(codes_now, changes["from_us"], changes["to_us"], code, time_us))
    values_then = folded.value[:old][both["counts"][:old]]
    differs = _differs(then, now, values_then, folded.value[folded.kept][counting])
    other = rows.by_panes(np.flatnonzero(differs))
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


def _differs(then: Matches, now: Matches, values_then: Ints, values_now: Ints) -> Flags:
    """Whether the match of rows changed: bool, one per row."""
    some_then, some_now = then.at >= 0, now.at >= 0
    differs: Flags = some_then != some_now
    both = some_then & some_now
    one, other = then.at[both], now.at[both]
    moved = then.changes["version_us"][one] != now.changes["version_us"][other]
    differs[both] = moved | (values_then[one] != values_now[other])
    return differs
