"""A versioned table in one step of a shard: the changes that it has read, what becomes of them, and what they were at some time.

Changes are stored in segments (``tables/segments.py``): ended ones by the end of their interval, so that whole segments expire;
open ones by a hash of their key, some 16,000 to a segment. An in-order change reads its key's open segment, and writes it and the
newest closed one.

columns of the index besides segment and rows (int64, microseconds since the epoch):
    start_us, end_us    from the least start of an interval to the greatest end
    expires_us          the greatest watermark at which an open one expires; NEVER_US: never
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.clocks import horizon_us
from beamish.contract.stored import KeyedTable, Layout, Store
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import NO_VALUE, Flags, Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kinds.versions.folding import Changes, Folded, cells_schema, fold, hash_keys
from beamish.kinds.versions.plan import TablePlan, key_columns
from beamish.tables.records import Columns, SegmentedRecords, record_table
from beamish.tables.segments import Runs, SegmentStore
from beamish.tables.timed_records import SpanPolicy, Spans
from beamish.triggers.trigger import NEVER_US


def codes_of_both(
    keys: Sequence[pa.Array], others: Sequence[pa.Array], count: int, other_count: int
) -> tuple[Groups, Groups]:
    """Number the keys of two sets of rows: equal keys have equal numbers.

    Args:
        keys, others: key columns, of the same types.
        count, other_count: numbers of rows.
    """
    both = [pa.chunked_array([one, other]).combine_chunks() for one, other in zip(keys, others, strict=True)]
    groups = factorize_rows(both, count + other_count)
    return groups[:count], groups[count:]


def find_at(code: Ints, from_us: Ints, to_us: Ints, of: Ints, time_us: Ints) -> Ints:
    """Find the interval of a key that contains a time.

    Args:
        code, from_us, to_us: int64, one per interval: its key, start and exclusive end; those of a key do not overlap.
        of, time_us: int64, one per time: its key, and the time.

    Returns:
        int64, one per time: the interval; -1: none.
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


def first_from(code: Ints, from_us: Ints, of: Ints, since_us: Ints, until_us: Ints) -> Ints:
    """Find the first start of a key in a span of time.

    Args:
        code, from_us: int64, one per start: its key and time.
        of, since_us, until_us: int64, one per span: its key and bounds, which are included.

    Returns:
        int64, one per span: the index of the start; -1: none.
    """
    if not len(code):
        return np.full(len(of), -1, dtype=np.int64)
    times = np.unique(from_us)
    place = code * (len(times) + 1) + np.searchsorted(times, from_us, side="left")
    order = np.argsort(place, kind="stable")
    wanted = of * (len(times) + 1) + np.searchsorted(times, since_us, side="left")
    at = order[np.minimum(np.searchsorted(place[order], wanted, side="left"), len(order) - 1)]
    fits = (code[at] == of) & (since_us <= from_us[at]) & (from_us[at] <= until_us)
    return np.where(fits, at, -1)


NAME = "versions"
LATEST = END_OF_TIME_US - 1
"""The time to look up a key's latest change."""
LAYOUT = Layout(NAME, ("start_us", "end_us", "expires_us"))
_FIRST_HASHED, _LAST_HASHED = -(2**62), -(2**62) + 2**32
"""The segment numbers of open changes; those of ended ones are above, since times are."""

_ALIKE = np.uint32(2**20)
"""The modulus of the hash filter: a table of this many flags."""


@attrs.frozen
class TablePolicy:
    """How a table is partitioned into segments; does not affect the output.

    Attributes:
        open_rows: approximate number of open changes per segment.
        spans: the partitioning of ended changes, and of the rows that a join stores.
    """

    open_rows: int = 16_384
    spans: SpanPolicy = SpanPolicy()


def versions_table(plan: TablePlan, policy: TablePolicy) -> KeyedTable:
    """The declaration of a versioned table."""
    none = Changes.none(cells_schema(plan))
    keys = [f"key.{name}" for name in plan.key_schema.names]
    return record_table(LAYOUT, none, keys, lambda store: VersionTable(plan, store, policy))


class VersionTable(SegmentedRecords[Changes]):
    """A versioned table in one step.

    Args:
        plan: the table's.
        store: the shard's.
        policy: how it is partitioned into segments.

    Attributes:
        plan: the table's.
        schema: the columns of keys, values and sequence.
    """

    def __init__(self, plan: TablePlan, store: Store, policy: TablePolicy) -> None:
        self.plan, self._policy = plan, policy
        self.schema = cells_schema(plan)
        super().__init__(SegmentStore(store, LAYOUT), Changes.none(self.schema))
        about = self.segments.about
        self._spans = Spans.of(policy.spans, about.get("spans"))
        self._hashed: int = about.get("hashed", 1)

    def _load_open(self, hashes: NDArray[np.uint32]) -> None:
        """Load the open changes of keys."""
        self.load(np.unique(self._segments_of(hashes)).tolist())

    def _segments_of(self, hashes: NDArray[np.uint32]) -> Ints:
        """The segment numbers of open changes of keys."""
        return _FIRST_HASHED + (hashes % np.uint32(self._hashed)).astype(np.int64)

    def _of_keys(self, hashes: NDArray[np.uint32]) -> Ints:
        """Candidate changes in memory by key hashes, as indices."""
        alike = np.zeros(_ALIKE, dtype=bool)
        alike[hashes % _ALIKE] = True
        return np.flatnonzero(alike[self.records["hash"] % _ALIKE] & self.alive)

    def _load_ended(self, since_us: int, until_us: int = END_OF_TIME_US) -> None:
        """Load changes whose interval overlaps a range of times."""
        index = self.segments.index
        self.load_where(self._ended & (index["end_us"] >= since_us) & (index["start_us"] <= until_us))

    @property
    def _ended(self) -> Flags:
        """Which entries of the index are segments of ended changes."""
        return self.segments.index["segment"] > _LAST_HASHED

    def take_in(
        self,
        cells: pa.Table,
        time_us: Ints,
        *,
        deletes: Flags,
        step: int,
        signs: Ints | None,
        late: Flags,
        latest_only: bool,
    ) -> Folded:
        """Fold changes in.

        Args:
            cells: their keys, values and sequence, n rows.
            time_us: int64, n: microseconds since the epoch.
            deletes: bool, n: whether each deletes.
            step: the number of this step.
            signs: int64, n: -1 retracts an equal one; None: no retractions.
            late: bool, n: whether each is behind the watermark.
            latest_only: whether only versions without end are emitted.
        """
        keys = key_columns(cells)
        steps, hashes = np.full(len(time_us), step), hash_keys(keys, len(time_us))
        arrived = Changes.new(cells, from_us=time_us, version_us=time_us, deletes=deletes, step=steps, hash=hashes)
        self._load_open(hashes)
        self._load_reached(arrived)
        at, of, other = self._codes(arrived)
        reached = other.occupied()[of.of] & (self.records["to_us"][at] >= other.least(time_us)[of.of])
        suffix = at[reached]
        folded = fold(
            self.plan,
            self.records.take(suffix),
            arrived,
            of[reached].followed_by(other),
            signs=signs,
            late=late,
            latest_only=latest_only,
        )
        gone = np.ones(len(suffix), dtype=bool)
        gone[folded.kept[~folded.touched]] = False
        self.remove(suffix[gone])
        self.add(folded.changes.take(folded.touched))
        return folded

    def _codes(self, arrived: Changes) -> tuple[Ints, Groups, Groups]:
        """Candidate changes in memory, as indices; the numbers of their keys, and of the new changes."""
        at = self._of_keys(arrived["hash"])
        return at, *codes_of_both(self.records.take(at).keys, arrived.keys, len(at), len(arrived))

    def _load_reached(self, arrived: Changes) -> None:
        """Load the changes that out-of-order changes affect."""
        at, of, other = self._codes(arrived)
        latest, least = of.greatest(self.records["from_us"][at]), other.least(arrived["from_us"])
        with_last = self.plan.signed or self.plan.options.only_updated
        before = of.occupied() & other.occupied() & (least <= latest if with_last else least < latest)
        if before.any():
            self._load_ended(int(least[before].min()))

    def find(self, keys: Sequence[pa.Array], time_us: Ints) -> tuple[Changes, Ints]:
        """Look up the changes of keys valid at times.

        Args:
            keys: key columns, n rows, in the table's types.
            time_us: int64, n: microseconds since the epoch; or ``LATEST``.

        Returns:
            changes; and int64, n: the index of each match, deletes included; -1: none.
        """
        hashes = hash_keys(keys, len(time_us))
        self._load_open(hashes)
        earlier = time_us[time_us < LATEST]
        if len(earlier):
            self._load_ended(int(earlier.min()) + 1, int(earlier.max()))
        at = self._of_keys(hashes)
        changes = self.records.take(at[self.records["counts"][at]])
        of, other = codes_of_both(changes.keys, keys, len(changes), len(time_us))
        return changes, find_at(of.of, changes["from_us"], changes["to_us"], other.of, time_us)

    def find_around(
        self, keys: Sequence[pa.Array], time_us: Ints, since_us: Ints, until_us: Ints
    ) -> tuple[Changes, Ints, Ints]:
        """Look up the changes of keys valid at times, and the first versions that begin in spans.

        Args:
            keys: key columns, n rows, in the table's types.
            time_us: int64, n: microseconds since the epoch.
            since_us, until_us: int64, n: likewise, bounds included, not before ``time_us``.

        Returns:
            changes; and int64, n each: the index of the one valid at the time, deletes included, and of the first version; -1: none.
        """
        hashes = hash_keys(keys, len(time_us))
        self._load_open(hashes)
        if len(time_us):
            self._load_ended(int(time_us.min()), int(until_us.max()))
        at = self._of_keys(hashes)
        changes = self.records.take(at[self.records["counts"][at]])
        of, other = codes_of_both(changes.keys, keys, len(changes), len(time_us))
        valid = find_at(of.of, changes["from_us"], changes["to_us"], other.of, time_us)
        sets = np.flatnonzero(~changes["deletes"])
        first = first_from(of.of[sets], changes["from_us"][sets], other.of, since_us, until_us)
        return changes, valid, np.where(first >= 0, sets[first], -1) if len(sets) else first

    def forget(self, watermark_us: int) -> None:
        """Drop changes that no read can reach; ended ones by whole segments."""
        index = self.segments.index
        horizon = horizon_us(watermark_us, self.plan.kept_us)
        self.drop(self._ended & (index["end_us"] < horizon))
        expired = self.segments.index["expires_us"] < watermark_us
        if expired.any():
            self.rewrite(self.segments.numbers(expired))

    def expires_us(self, changes: Changes | Columns) -> Ints:
        """The watermark above which an open change expires: int64, microseconds; NEVER_US: never."""
        kept, tolerance = self.plan.kept_us, self.plan.tolerance_us
        is_open, deletes = changes["to_us"] == END_OF_TIME_US, changes["deletes"]
        expires = np.where(is_open & deletes, changes["from_us"] + kept, NEVER_US)
        if tolerance is not None:
            least = np.minimum(changes["from_us"], NEVER_US - 1 - kept - tolerance)
            expires = np.where(is_open & ~deletes, least + kept + tolerance, expires)
        return expires

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which something expires; None: nothing does."""
        index = self.segments.index
        due = index["expires_us"][index["expires_us"] != NEVER_US].tolist()
        due += (index["end_us"][self._ended] + self.plan.kept_us).tolist()
        return min(due) + 1 if due else None

    def save(self, watermark_us: int) -> None:
        """Write the changes of the step."""
        self._adapt()
        ended_below = horizon_us(watermark_us, self.plan.kept_us)
        self.segments.about = {"spans": self._spans.about, "hashed": self._hashed}
        self.write_back(
            self._numbers,
            lambda changes: (changes["to_us"] >= ended_below) & (self.expires_us(changes) >= watermark_us),
            self._entries,
        )

    def _adapt(self) -> None:
        """Choose the span of segments from now on; split overfull segments of open changes."""
        index, ended = self.segments.index, self._ended
        to_us = self.records["to_us"][self.is_new]
        self._spans.adapt(to_us[to_us < END_OF_TIME_US], index["segment"][ended], index["rows"][ended])
        rows = int(index["rows"][~ended].sum())
        if rows > 2 * self._policy.open_rows * self._hashed:
            self.rewrite(self.segments.numbers(~ended))
            self._hashed = 1 << (rows // self._policy.open_rows).bit_length()

    def _numbers(self, changes: Changes) -> Ints:
        """The segment of each change."""
        target = self._spans.number(changes["to_us"])
        is_open = changes["to_us"] == END_OF_TIME_US
        target[is_open] = self._segments_of(changes["hash"][is_open])
        return target

    def _entries(self, changes: Columns, runs: Runs) -> Mapping[str, Ints]:
        expires = self.expires_us(changes)
        finite = runs.greatest(np.where(expires == NEVER_US, NO_VALUE, expires))
        return {
            "start_us": runs.least(changes["from_us"]),
            "end_us": runs.greatest(changes["to_us"]),
            "expires_us": np.where(finite == NO_VALUE, NEVER_US, finite),
        }
