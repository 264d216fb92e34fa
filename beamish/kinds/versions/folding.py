"""Folding changes into a table: the resulting changes, and which versions are new or superseded.

It works on whole columns, over all keys at once: one sort by key and time, then a comparison of adjacent rows.

The changes of a table in memory, each with its validity interval; the intervals of a key are contiguous.

columns (one entry per change; ``_us``: int64, microseconds since the epoch):
    from_us         its time
    to_us           the time of the key's next change; END_OF_TIME_US: none
    step            int64: the number of the step in which it arrived
    deletes         bool
    counts          bool: the effective one of its key and time (others are stored only if changes are retracted)
    version_us      the start of its version; its own time unless it extends a version of equal values
    panes           int64: the number of panes of that version; stored at its last change
    late            bool: whether the last pane was LATE
    hash            uint32: of its key
cells: keys as ``key.<name>``, values as ``value.<name>``, ``sequence`` if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Flags, Ints, plain
from beamish.kernels.codes import factorize_tuples, factorize_values, hash_rows
from beamish.kernels.groups import Groups
from beamish.kernels.order import ranks, run_starts, sort_keys, value_ranks
from beamish.kinds.versions.plan import TablePlan, order_of_changes
from beamish.tables.records import Records


@attrs.frozen(eq=False)
class Changes(Records):
    """Changes of a table."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {
        "from_us": ("int64", 0),
        "to_us": ("int64", END_OF_TIME_US),
        "step": ("int64", 0),
        "deletes": ("bool", False),
        "counts": ("bool", True),
        "version_us": ("int64", 0),
        "panes": ("int64", 0),
        "late": ("bool", False),
        "hash": ("uint32", 0),
    }

    @property
    def values(self) -> list[pa.Array]:
        """The value columns."""
        return self.named("value.")


def hash_keys(keys: Sequence[pa.Array], count: int) -> NDArray[np.uint32]:
    """Hash each key: the same in every process for equal keys.

    Args:
        keys: normalised key columns.
        count: number of rows.
    """
    return (hash_rows(keys, count) & np.uint64(0xFFFF_FFFF)).astype(np.uint32)


def cells_schema(plan: TablePlan) -> pa.Schema:
    """The columns of keys, values and sequence."""
    sequence = [] if plan.sequence is None else [pa.field("sequence", plan.sequence.type)]
    keys = [pa.field(f"key.{field.name}", field.type) for field in plan.key_schema]
    return pa.schema([*keys, *(pa.field(f"value.{field.name}", field.type) for field in plan.value_schema), *sequence])


@attrs.frozen(eq=False)
class Versions:
    """Versions, by key and then by time: runs of changes.

    Attributes:
        at: int64, the index of their last change.
        code: int64, the number of their key.
        from_us, to_us: int64, microseconds: the validity interval, end exclusive.
        panes, late: int64, bool: the number of their panes, and whether the last was LATE.
    """

    at: Ints
    code: Ints
    from_us: Ints
    to_us: Ints
    panes: Ints
    late: Flags


@attrs.frozen(eq=False)
class Folded:
    """The result of folding changes into a table.

    Attributes:
        both: the old changes, then the new ones.
        by_key: groups of equal keys.
        value: int64, ranks of the values.
        old: number of old changes.
        kept: int64, the changes to store, by key and time.
        changes: these, updated.
        touched: bool, one per kept: whether it differs from the stored one.
        then, now: the versions before (of ``both``) and after (of ``both``, through ``kept``).
        went, came: int64, the superseded and the new ones.
        came_before: int64, one per ``came``: how many panes that version had before.
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
        before: the changes of the arrived keys whose interval reaches the earliest arrived time, in any order.
        arrived: the new changes.
        by_key: of ``before`` and then ``arrived``, by equal keys.
        signs: int64, one per arrived: -1 retracts an equal one; None: no retractions.
        late: bool, one per arrived: whether it is behind the watermark.
        latest_only: whether only versions without end are emitted.
    """
    both, code, old = Changes.concat([before, arrived]), by_key.of, len(before)
    value = value_ranks(both.values, len(both))
    kept, counts = _kept(both, code, value, old, signs)
    earliest_us = Groups(code[old:], by_key.count).least(both["from_us"][old:])
    runs = _runs(both, kept[counts], code, value, earliest_us, joins_equal=plan.options.only_updated)
    then, now = _versions_before(both, code, old), runs.versions()
    was, same = _as_before(then, now, value, by_key.count)
    shown_then = (then.to_us == END_OF_TIME_US) | (not latest_only)
    shown_now = (now.to_us == END_OF_TIME_US) | (not latest_only)
    stays = np.zeros(len(then.code), dtype=bool)
    stays[was[same]] = True
    came = shown_now & ~same
    came_before, was_late = _no_panes(len(was))
    came_before[was >= 0], was_late[was >= 0] = then.panes[was[was >= 0]], then.late[was[was >= 0]]
    late_keys = np.zeros(by_key.count, dtype=bool)
    late_keys[code[old:][late]] = True
    now = attrs.evolve(now, panes=came_before + came, late=np.where(came, late_keys[now.code], was_late))
    changes, touched = _as_they_are_now(both, kept, counts, runs=runs, now=now, old=old)
    went = np.flatnonzero(shown_then & ~stays)
    return Folded(
        both, by_key, value, old, kept, changes, touched, then, now, went, np.flatnonzero(came), came_before[came]
    )


@attrs.frozen(eq=False)
class _Runs:
    """The effective changes, by key and time, in runs: a version, or a delete.

    Attributes:
        at: int64, one per change: its index.
        code: int64, one per change: the number of its key.
        to_us: int64, one per change: the exclusive end of its interval.
        of: int64, one per change: the number of its run.
        ends: int64, one per run: its last change.
        began_us: int64, one per run: its start.
        sets: bool, one per run: whether it is a version.
    """

    at: Ints
    code: Ints
    to_us: Ints
    of: Ints
    ends: Ints
    began_us: Ints
    sets: Flags

    def versions(self) -> Versions:
        """The runs that are versions, without their panes."""
        ends = self.ends[self.sets]
        none = _no_panes(len(ends))
        return Versions(self.at[ends], self.code[ends], self.began_us[self.sets], self.to_us[ends], *none)


def _runs(both: Changes, at: Ints, code: Ints, value: Ints, earliest_us: Ints, *, joins_equal: bool) -> _Runs:
    """Split the effective changes into runs; before a key's earliest change the earlier run continues."""
    own_code, own_value = code[at], value[at]
    from_us, sets = both["from_us"][at], ~both["deletes"][at]
    follows = own_code[1:] == own_code[:-1]
    to_us = np.full(len(at), END_OF_TIME_US, dtype=np.int64)
    to_us[:-1][follows] = from_us[1:][follows]
    goes_on = np.zeros(len(at), dtype=bool)
    if joins_equal:
        goes_on[1:] = follows & sets[1:] & sets[:-1] & (own_value[1:] == own_value[:-1])
    begins = np.flatnonzero(~goes_on)
    began_us = np.where(from_us < earliest_us[own_code], both["version_us"][at], from_us)[begins]
    ends = np.append(begins[1:], len(at))[: len(begins)] - 1
    return _Runs(at, own_code, to_us, np.cumsum(~goes_on) - 1, ends, began_us, sets[begins])


def _as_before(then: Versions, now: Versions, value: Ints, keys: int) -> tuple[Ints, Flags]:
    """The old version with the same start, int64, one per new version, -1: none; and whether it is unchanged."""
    codes = Groups(np.concatenate([then.code, now.code]), keys)
    begins = factorize_values(np.concatenate([then.from_us, now.from_us]))
    pair = factorize_tuples([codes, begins], len(codes))
    of_pair = np.full(pair.count, -1, dtype=np.int64)
    of_pair[pair.of[: len(then.code)]] = np.arange(len(then.code))
    was = of_pair[pair.of[len(then.code) :]]
    same = was >= 0
    one = was[same]
    same[same] = (then.to_us[one] == now.to_us[same]) & (value[then.at[one]] == value[now.at[same]])
    return was, same


def _as_they_are_now(
    both: Changes, kept: Ints, counts: Flags, *, runs: _Runs, now: Versions, old: int
) -> tuple[Changes, Flags]:
    """The changes to store with their intervals and versions, and whether each differs from the stored one."""
    changes = both.take(kept)
    panes, late = _no_panes(len(runs.ends))
    panes[runs.sets], late[runs.sets] = now.panes, now.late
    # An ineffective change has the interval of the effective one that follows it.
    whose = len(runs.at) - np.cumsum(counts[::-1].astype(np.int64))[::-1]
    run = runs.of[whose]
    columns: dict[str, NDArray[Any]] = {
        "counts": counts,
        "to_us": runs.to_us[whose],
        "version_us": np.where(counts & runs.sets[run], runs.began_us[run], changes["from_us"]),
        "panes": np.where(counts, panes[run], 0),
        "late": counts & late[run],
    }
    touched = kept >= old
    for name, column in columns.items():
        touched |= column != changes[name]
    return changes.with_columns(**columns), touched


def _kept(both: Changes, code: Ints, value: Ints, old: int, signs: Ints | None) -> tuple[Ints, Flags]:
    """The remaining changes, by key and time, and whether each is the effective one of its key and time."""
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
    """The changes left after each retraction has removed an equal one; among equals the oldest stay."""
    sequence = sort_keys(plain(both.cells["sequence"])) if "sequence" in both.cells.schema.names else []
    equal = ranks([code, both["from_us"], *sequence, both["deletes"].astype(np.int64), value])
    count = int(equal.max(initial=-1)) + 1
    total = Groups(equal, count).sum(signs)
    adds = np.flatnonzero(signs > 0)
    adds = adds[np.lexsort([both["step"][adds], equal[adds]])]
    place = np.arange(len(adds)) - np.searchsorted(equal[adds], equal[adds], side="left")
    return adds[place < total[equal[adds]]]


def _versions_before(both: Changes, code: Ints, old: int) -> Versions:
    """The old versions: the last change of each has its panes."""
    at = np.flatnonzero(both["counts"][:old] & ~both["deletes"][:old])
    at = at[np.lexsort([both["from_us"][at], code[at]])]
    starts = run_starts([code[at], both["version_us"][at]])
    at = at[np.append(starts[1:], True)] if len(at) else at
    return Versions(at, code[at], both["version_us"][at], both["to_us"][at], both["panes"][at], both["late"][at])


def _no_panes(count: int) -> tuple[Ints, Flags]:
    return np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
