"""A versioned table in one step of a shard: the changes that it has read, and what becomes of them.

Changes are stored in segments (``state/segment_store.py``): those whose span has ended by that end, so that what is
forgotten goes as a whole; those that are still open by a hash of their key, some 16,000 to a segment. A change in order
reads its key's open segment, and writes that and the newest of the others.

columns of the index beside segment and rows (int64, microseconds since the epoch):
    start_us, end_us    from the least start of a span to the greatest end
    expires_us          the greatest watermark at which an open one is forgotten; NEVER_US: none ever is
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.engine.state.segment_store import SegmentStore
from beamish.engine.state.spans import SpanPolicy, Spans
from beamish.engine.state.store import Store
from beamish.engine.versions.changes import Changes, cells_schema
from beamish.engine.versions.folding import Folded, fold
from beamish.engine.versions.horizon import horizon_us
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.codes import factorize_rows, hash_rows
from beamish.kernels.groups import Groups
from beamish.plan.versions_plan import TablePlan
from beamish.triggers.trigger import NEVER_US

NAME = "versions"
_FIRST_HASHED, _LAST_HASHED = -(2**62), -(2**62) + 2**32
"""The numbers of the segments of open changes; those of what has ended are above, since times are."""
_NEW = 2**62
"""Stands for the segment of changes that are in none."""


@attrs.frozen
class TablePolicy:
    """How a table is cut into segments; it changes nothing in what comes out.

    Attributes:
        open_rows: about as many open changes are in a segment.
        spans: how what has ended is cut.
    """

    open_rows: int = 16_384
    spans: SpanPolicy = SpanPolicy()


@attrs.define(eq=False)
class _Loaded:
    """Changes in memory.

    Attributes:
        changes: those read from segments, and new ones.
        segment: int64, the segment that each was read from; ``_NEW``: none.
        alive: bool, whether each is still so.
    """

    changes: Changes
    segment: Ints
    alive: Flags


class VersionTable:
    """A versioned table in one step.

    Args:
        plan: the table's.
        store: the shard's.
        policy: how it is cut into segments.

    Attributes:
        plan: the table's.
        schema: the columns of keys, values and sequence.
    """

    def __init__(self, plan: TablePlan, store: Store, policy: TablePolicy) -> None:
        self.plan, self._policy = plan, policy
        self._segments = SegmentStore(store, NAME, ("start_us", "end_us", "expires_us"))
        self.schema = cells_schema(plan)
        about = self._segments.about
        self._spans = Spans.of(policy.spans, about.get("spans"))
        self._segments_of_open: int = about.get("hashed", 1)
        self._begin()

    def _begin(self) -> None:
        self._read: set[int] = set()
        self._dirty: set[int] = set()
        self._parts: list[_Loaded] = []

    # What is in memory

    def _all(self) -> _Loaded:
        """All that is in memory as one."""
        if not self._parts:
            self._parts = [_Loaded(Changes.none(self.schema), np.empty(0, np.int64), np.empty(0, dtype=bool))]
        if len(self._parts) > 1:
            self._parts = [
                _Loaded(
                    Changes.concat([part.changes for part in self._parts]),
                    np.concatenate([part.segment for part in self._parts]),
                    np.concatenate([part.alive for part in self._parts]),
                )
            ]
        return self._parts[0]

    def _load(self, numbers: Iterable[int]) -> None:
        for number in self._segments.known(numbers):
            if number not in self._read:
                self._read.add(number)
                changes = Changes.of_stored(self._segments.read(number))
                count = len(changes)
                self._parts.append(_Loaded(changes, np.full(count, number), np.ones(count, dtype=bool)))

    def _load_open(self, keys: Sequence[pa.Array], count: int) -> None:
        """Read the open changes of keys."""
        self._load(np.unique(self._hashed(keys, count)).tolist())

    def _hashed(self, keys: Sequence[pa.Array], count: int) -> Ints:
        """The segments of open changes of keys."""
        hashes = hash_rows(keys, count) % np.uint64(self._segments_of_open)
        return _FIRST_HASHED + hashes.astype(np.int64)

    def _load_ended(self, since_us: int, until_us: int = END_OF_TIME_US) -> None:
        """Read changes whose span reaches a time or a later one, and begins before another."""
        index = self._segments.index
        ended = index["segment"] > _LAST_HASHED
        wanted = ended & (index["end_us"] >= since_us) & (index["start_us"] <= until_us)
        self._load(self._segments.numbers(wanted))

    # What happens to it

    def take_in(
        self,
        cells: pa.Table,
        time_us: Ints,
        deletes: Flags,
        step: int,
        signs: Ints | None,
        late: Flags,
        *,
        latest_only: bool,
    ) -> Folded:
        """Take changes in.

        Args:
            cells: their keys, values and sequence, n rows.
            time_us: int64, n: microseconds since the epoch.
            deletes: bool, n: whether each deletes.
            step: the number of this step.
            signs: int64, n: -1 takes an equal one back; None: none does.
            late: bool, n: whether each came behind the watermark.
            latest_only: whether only versions without end come out.
        """
        arrived = Changes.new(
            cells, from_us=time_us, version_us=time_us, deletes=deletes, step=np.full(len(time_us), step)
        )
        keys = arrived.keys
        self._load_open(keys, len(arrived))
        self._load_reached(keys, arrived)
        loaded = self._all()
        of, suffix = self._reached(loaded, keys, time_us)
        before = loaded.changes.take(suffix)
        by_key = Groups(np.concatenate([of.of[: len(loaded.alive)][suffix], of.of[len(loaded.alive) :]]), of.count)
        folded = fold(self.plan, before, arrived, by_key, signs, late, latest_only=latest_only)
        gone = np.ones(len(suffix), dtype=bool)
        stored = folded.kept[~folded.touched]
        gone[stored] = False
        self._dirty.update(np.unique(loaded.segment[suffix[gone]]).tolist())
        loaded.alive[suffix[gone]] = False
        new = folded.changes.take(folded.touched)
        self._parts.append(_Loaded(new, np.full(len(new), _NEW), np.ones(len(new), dtype=bool)))
        return folded

    def _load_reached(self, keys: Sequence[pa.Array], arrived: Changes) -> None:
        """Read what the changes of keys reach, where they come before the key's latest."""
        loaded = self._all()
        count = len(loaded.alive)
        of = _codes(loaded.changes.keys, keys, count, len(arrived))
        latest = Groups(of.of[:count][loaded.alive], of.count).greatest(loaded.changes["from_us"][loaded.alive])
        least = Groups(of.of[count:], of.count).least(arrived["from_us"])
        is_known = Groups(of.of[:count][loaded.alive], of.count).occupied()
        strictly = self.plan.signed or self.plan.options.only_updated
        before = is_known & (least <= latest if strictly else least < latest)
        if before.any():
            self._load_ended(int(least[before].min()))

    def _reached(self, loaded: _Loaded, keys: Sequence[pa.Array], time_us: Ints) -> tuple[Groups, Ints]:
        """The keys of what is loaded and then of what came, and which of what is loaded it reaches."""
        count = len(loaded.alive)
        of = _codes(loaded.changes.keys, keys, count, len(time_us))
        least = Groups(of.of[count:], of.count).least(time_us)
        return of, np.flatnonzero(loaded.alive & (loaded.changes["to_us"] >= least[of.of[:count]]))

    def find(self, keys: Sequence[pa.Array], time_us: Ints) -> tuple[Changes, Ints]:
        """What counted for keys at times.

        Args:
            keys: key columns, n rows, in the table's types.
            time_us: int64, n: microseconds since the epoch.

        Returns:
            changes; and int64, n: which of them, -1 where there is none, deletes included.
        """
        if not len(time_us):
            return Changes.none(self.schema), np.empty(0, np.int64)
        self._load_open(keys, len(time_us))
        self._load_ended(int(time_us.min()) + 1, int(time_us.max()))
        loaded = self._all()
        at = np.flatnonzero(loaded.alive & loaded.changes["counts"])
        changes = loaded.changes.take(at)
        of = _codes(changes.keys, keys, len(at), len(time_us))
        return changes, find_at(of.of[: len(at)], changes["from_us"], changes["to_us"], of.of[len(at) :], time_us)

    def forget(self, watermark_us: int) -> None:
        """Forget what no read can reach any more; segments that nothing else asks for go as a whole."""
        index = self._segments.index
        horizon = horizon_us(watermark_us, self.plan.options.history.us)
        ended = index["segment"] > _LAST_HASHED
        gone = ended & (index["end_us"] < horizon)
        if gone.any():
            dead = set(self._segments.numbers(gone))
            for part in self._parts:
                part.alive &= ~np.isin(part.segment, list(dead))
            self._dirty -= dead
            self._read |= dead
            self._segments.remove(gone)
        expired = self._segments.index["expires_us"] < watermark_us
        if expired.any():
            numbers = self._segments.numbers(expired)
            self._load(numbers)
            self._dirty.update(numbers)

    def is_forgotten(self, changes: Changes, watermark_us: int) -> Flags:
        """Which changes no read can reach any more: bool, one per change."""
        ended = changes["to_us"] < horizon_us(watermark_us, self.plan.options.history.us)
        return ended | (self._expires_us(changes) < watermark_us)

    def _expires_us(self, changes: Changes) -> Ints:
        """The watermark above which an open change is forgotten; NEVER_US: none."""
        history, tolerance = self.plan.options.history.us, self.plan.tolerance_us
        is_open, deletes = changes["to_us"] == END_OF_TIME_US, changes["deletes"]
        expires = np.where(is_open & deletes, changes["from_us"] + history, NEVER_US)
        if tolerance is not None:
            least = np.minimum(changes["from_us"], NEVER_US - 1 - history - tolerance)
            expires = np.where(is_open & ~deletes, least + history + tolerance, expires)
        return expires

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which something is forgotten; None: nothing is."""
        index = self._segments.index
        ended = index["segment"] > _LAST_HASHED
        history = self.plan.options.history.us
        due = [int(us) for us in index["expires_us"][index["expires_us"] != NEVER_US]]
        due += [int(us) + history for us in index["end_us"][ended]]
        return min(due) + 1 if due else None

    # What is stored

    def save(self, watermark_us: int) -> None:
        """Write the segments in which something is another than it was, and the index."""
        self._adapt()
        target = self._targets(self._all())
        new = self._all().segment == _NEW
        self._dirty |= set(np.unique(target[new & self._all().alive]).tolist())
        self._dirty |= set(
            np.unique(target[np.isin(self._all().segment, list(self._dirty)) & self._all().alive]).tolist()
        )
        before = len(target)
        self._load(sorted(self._dirty))
        loaded = self._all()
        if len(loaded.alive) > before:
            target = self._targets(loaded)
        written = loaded.alive & np.isin(target, list(self._dirty)) & ~self.is_forgotten(loaded.changes, watermark_us)
        rows = np.flatnonzero(written)
        rows = rows[np.lexsort([loaded.changes["from_us"][rows], target[rows]])]
        changes, target = loaded.changes.take(rows), target[rows]
        numbers, starts = np.unique(target, return_index=True)
        bounds = [*starts.tolist(), len(rows)]
        stored, expires = changes.stored(), self._expires_us(changes)
        for number, start, end in zip(numbers.tolist(), bounds, bounds[1:], strict=False):
            own = slice(start, end)
            finite = expires[own][expires[own] != NEVER_US]
            columns = {
                "start_us": int(changes["from_us"][own].min()),
                "end_us": int(changes["to_us"][own].max()),
                "expires_us": int(finite.max()) if len(finite) else NEVER_US,
            }
            self._segments.write(number, stored.slice(start, end - start), columns)
        for number in self._dirty - set(numbers.tolist()):
            self._segments.write(number, stored.slice(0, 0), {})
        self._segments.about = {"spans": self._spans.about, "hashed": self._segments_of_open}
        self._segments.save()
        self._begin()

    def _adapt(self) -> None:
        """Choose how long spans are from now on; cut open changes into more segments where these hold too many."""
        index, loaded = self._segments.index, self._all()
        is_open = index["segment"] <= _LAST_HASHED
        to_us = loaded.changes["to_us"][loaded.segment == _NEW]
        self._spans.adapt(to_us[to_us < END_OF_TIME_US], index["segment"][~is_open], index["rows"][~is_open])
        rows = int(index["rows"][is_open].sum())
        if rows > 2 * self._policy.open_rows * self._segments_of_open:
            self._load(self._segments.numbers(is_open))
            self._dirty |= {number for number in self._read if number <= _LAST_HASHED}
            self._segments_of_open = 1 << (rows // self._policy.open_rows).bit_length()

    def _targets(self, loaded: _Loaded) -> Ints:
        """The segment that each belongs to."""
        changes = loaded.changes
        target = self._spans.number(changes["to_us"])
        is_open = np.flatnonzero(changes["to_us"] == END_OF_TIME_US)
        if len(is_open):
            own = changes.take(is_open)
            target[is_open] = self._hashed(own.keys, len(own))
        return target


def _codes(keys: Sequence[pa.Array], others: Sequence[pa.Array], count: int, other_count: int) -> Groups:
    """Numbers of keys that are in two places: equal ones have the same."""
    both = [pa.chunked_array([one, other]).combine_chunks() for one, other in zip(keys, others, strict=True)]
    return factorize_rows(both, count + other_count)


def find_at(code: Ints, from_us: Ints, to_us: Ints, of: Ints, time_us: Ints) -> Ints:
    """Which span of a key a time falls into.

    Args:
        code, from_us, to_us: int64, one per span: its key, and from when until before when it is; those of a key do not
            overlap.
        of, time_us: int64, one per time: its key, and the time.

    Returns:
        int64, one per time: the span; -1: none.
    """
    if not len(code):
        return np.full(len(of), -1, dtype=np.int64)
    times = np.unique(from_us)
    place = code * (len(times) + 1) + np.searchsorted(times, from_us, side="left") + 1
    order = np.argsort(place, kind="stable")
    wanted = of * (len(times) + 1) + np.searchsorted(times, time_us, side="right")
    at = np.searchsorted(place[order], wanted, side="right") - 1
    found = order[np.maximum(at, 0)]
    fits = (at >= 0) & (code[found] == of) & (from_us[found] <= time_us) & (time_us < to_us[found])
    return np.where(fits, found, -1)
