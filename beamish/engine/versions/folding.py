"""What changes make of a table: of what was there and what came, what is there, and which versions went and came.

It works on whole columns, over all keys at once: one sort by key and time, then comparisons of neighbours.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.engine.versions.changes import Changes
from beamish.engine.versions.order import order_of_changes
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.buffers import plain
from beamish.kernels.codes import factorize_tuples, factorize_values
from beamish.kernels.comparable import value_ranks
from beamish.kernels.groups import Groups
from beamish.kernels.order import ranks, run_starts, sort_keys
from beamish.plan.versions_plan import TablePlan


@attrs.frozen(eq=False)
class Versions:
    """Versions, by key and then by time: runs of changes.

    Attributes:
        at: int64, their last change, among those they are made of.
        code: int64, the number of their key.
        from_us, to_us: int64, microseconds: from when, and until before when they are valid.
        panes, late: int64, bool: how many panes came of them, and whether the last was LATE.
    """

    at: Ints
    code: Ints
    from_us: Ints
    to_us: Ints
    panes: Ints
    late: Flags


@attrs.frozen(eq=False)
class Folded:
    """What changes made of a table.

    Attributes:
        both: what was there, then what came.
        by_key: those of equal keys.
        value: int64, numbers in the order of their values: equal ones have the same.
        old: how many were there.
        kept: int64, those that are there now, by key and time.
        changes: these, as they are now.
        touched: bool, one per kept: whether it is another than was stored.
        then, now: the versions before (of ``both``) and after (of ``both``, through ``kept``).
        went, came: int64, which of them are taken back, and which come out.
        came_before: int64, one per ``came``: how many panes came of that version before.
    """

    both: Changes
    by_key: Groups
    value: Ints
    old: int
    kept: Ints
    changes: Changes
    touched: Flags
    then: Versions
    now: Versions
    went: Ints
    came: Ints
    came_before: Ints


def fold(
    plan: TablePlan,
    before: Changes,
    arrived: Changes,
    by_key: Groups,
    *,
    signs: Ints | None,
    late: Flags,
    latest_only: bool,
) -> Folded:
    """Fold changes into a table.

    Args:
        plan: the table's.
        before: of the keys of what arrived, all changes whose span reaches the earliest time that arrived, in any order.
        arrived: what came.
        by_key: of ``before`` and then ``arrived``: those of equal keys.
        signs: int64, one per arrived: -1 takes an equal one back; None: none does.
        late: bool, one per arrived: whether it came behind the watermark.
        latest_only: whether only versions without end come out.
    """
    both, code, old = Changes.concat([before, arrived]), by_key.of, len(before)
    value = value_ranks(both.values, len(both))
    kept, counts = _kept(both, code, value, old, signs)
    changes = both.take(kept)
    counting = np.flatnonzero(counts)
    at, own_code, own_value = kept[counting], code[kept][counting], value[kept][counting]
    from_us, sets = changes["from_us"][counting], ~changes["deletes"][counting]
    to_us = np.full(len(counting), END_OF_TIME_US, dtype=np.int64)
    follows = own_code[1:] == own_code[:-1]
    to_us[:-1][follows] = from_us[1:][follows]
    # Versions: runs of changes; the first of a key may go on with what lies before it.
    goes_on = np.zeros(len(counting), dtype=bool)
    if plan.options.only_updated:
        goes_on[1:] = follows & sets[1:] & sets[:-1] & (own_value[1:] == own_value[:-1])
    begins = np.flatnonzero(~goes_on)
    run = np.cumsum(~goes_on) - 1
    # Nothing that lies before the earliest change of a key has altered.
    unaltered = from_us < Groups(code[old:], by_key.count).least(both["from_us"][old:])[own_code]
    began_us = np.where(unaltered, changes["version_us"][counting], from_us)
    version_us = began_us[begins][run]
    ends = np.append(begins[1:], len(counting)) - 1 if len(begins) else begins
    is_version = sets[begins]
    then = _versions_before(both, code, old)
    now = Versions(ends, own_code[ends], version_us[ends], to_us[ends], *_no_panes(len(ends)))
    now = _some(now, is_version)
    # Which are as they were?
    of = np.concatenate([then.code, now.code])
    pair = factorize_tuples(
        [Groups(of, by_key.count), factorize_values(np.concatenate([then.from_us, now.from_us]))], len(of)
    )
    was = np.full(pair.count, -1, dtype=np.int64)
    was[pair.of[: len(then.code)]] = np.arange(len(then.code))
    was = was[pair.of[len(then.code) :]]
    known = was >= 0
    same = known.copy()
    same[known] = (then.to_us[was[known]] == now.to_us[known]) & (
        value[then.at[was[known]]] == own_value[now.at[known]]
    )
    shown_then = (then.to_us == END_OF_TIME_US) | (not latest_only)
    shown_now = (now.to_us == END_OF_TIME_US) | (not latest_only)
    stays = np.zeros(len(then.code), dtype=bool)
    stays[was[same]] = True
    came = shown_now & ~same
    before_panes, was_late = _no_panes(len(known))
    before_panes[known], was_late[known] = then.panes[was[known]], then.late[was[known]]
    late_keys = np.zeros(by_key.count, dtype=bool)
    late_keys[code[old:][late]] = True
    now = attrs.evolve(
        now, at=at[now.at], panes=before_panes + came, late=np.where(came, late_keys[now.code], was_late)
    )
    # What is stored of each change.
    panes_of_run, late_of_run = _no_panes(len(begins))
    panes_of_run[is_version], late_of_run[is_version] = now.panes, now.late
    columns: dict[str, NDArray[Any]] = {}
    # One that does not count has the span of the one that does, which follows it.
    whose = len(counting) - np.cumsum(counts[::-1].astype(np.int64))[::-1]
    columns["counts"] = counts
    columns["to_us"] = to_us[whose]
    columns["version_us"] = np.where(counts & ~changes["deletes"], version_us[whose], changes["from_us"])
    columns["panes"] = np.where(counts, panes_of_run[run][whose], 0)
    columns["late"] = counts & late_of_run[run][whose]
    touched = kept >= old
    for name, column in columns.items():
        touched |= column != changes[name]
    return Folded(
        both,
        by_key,
        value,
        old,
        kept,
        changes.with_columns(**columns),
        touched,
        then,
        now,
        np.flatnonzero(shown_then & ~stays),
        np.flatnonzero(came),
        before_panes[came],
    )


def _kept(both: Changes, code: Ints, value: Ints, old: int, signs: Ints | None) -> tuple[Ints, Flags]:
    """Those that are there afterwards, by key and time, and whether each is the one that counts of its key and time."""
    cells = both.cells.append_column("deletes", pa.array(both["deletes"]))
    if signs is not None:
        left = _left_over(both, code, value, np.concatenate([np.ones(old, np.int64), signs]))
        order = left[
            order_of_changes(
                cells.take(pa.array(left)), code[left], both["from_us"][left], both["step"][left], value[left]
            )
        ]
    else:
        order = order_of_changes(cells, code, both["from_us"], both["step"], value)
    counts = np.ones(len(order), dtype=bool)
    counts[:-1] = run_starts([code[order], both["from_us"][order]])[1:]
    if signs is None:
        return order[counts], counts[counts]
    return order, counts


def _left_over(both: Changes, code: Ints, value: Ints, signs: Ints) -> Ints:
    """Those that are left when each that takes back has removed an equal one; of equal ones the oldest stay."""
    sequence = sort_keys(plain(both.cells["sequence"])) if "sequence" in both.cells.schema.names else []
    equal = ranks([code, both["from_us"], *sequence, both["deletes"].astype(np.int64), value])
    count = int(equal.max(initial=-1)) + 1
    total = Groups(equal, count).sum(signs)
    adds = np.flatnonzero(signs > 0)
    adds = adds[np.lexsort([both["step"][adds], equal[adds]])]
    place = np.arange(len(adds)) - np.searchsorted(equal[adds], equal[adds], side="left")
    return adds[place < total[equal[adds]]]


def _versions_before(both: Changes, code: Ints, old: int) -> Versions:
    """The versions of what was there: the last change of each says what is known of it."""
    at = np.flatnonzero(both["counts"][:old] & ~both["deletes"][:old])
    at = at[np.lexsort([both["from_us"][at], code[at]])]
    starts = run_starts([code[at], both["version_us"][at]])
    at = at[np.append(starts[1:], True)] if len(at) else at
    return Versions(at, code[at], both["version_us"][at], both["to_us"][at], both["panes"][at], both["late"][at])


def _no_panes(count: int) -> tuple[Ints, Flags]:
    return np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)


def _some(versions: Versions, which: Flags) -> Versions:
    return Versions(*(column[which] for column in attrs.astuple(versions, recurse=False)))
