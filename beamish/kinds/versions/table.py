"""A versioned table in one step of a shard: the changes that it has read, and what becomes of them.

Changes are stored in segments (``tables/segmented.py``): those whose span has ended by that end, so that what is forgotten
goes as a whole; those that are still open by a hash of their key, some 16,000 to a segment. A change in order reads its
key's open segment, and writes that and the newest of the others.

columns of the index beside segment and rows (int64, microseconds since the epoch):
    start_us, end_us    from the least start of a span to the greatest end
    expires_us          the greatest watermark at which an open one is forgotten; NEVER_US: none ever is
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.kept import KeyedTable, Layout
from beamish.contract.store import Store
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import NO_VALUE, Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kinds.versions.changes import Changes, cells_schema, hash_keys
from beamish.kinds.versions.folding import Folded, fold
from beamish.kinds.versions.horizon import horizon_us
from beamish.kinds.versions.lookup import codes_of_both, find_at
from beamish.kinds.versions.packing import key_columns
from beamish.kinds.versions.plan import TablePlan
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented import Runs
from beamish.tables.segmented_records import Columns, SegmentedRecords, record_table
from beamish.tables.spans import SpanPolicy, Spans
from beamish.triggers.trigger import NEVER_US

NAME = "versions"
LATEST = END_OF_TIME_US - 1
"""The time at which a key's latest change counts."""
LAYOUT = Layout(NAME, ("start_us", "end_us", "expires_us"))
_FIRST_HASHED, _LAST_HASHED = -(2**62), -(2**62) + 2**32
"""The numbers of the segments of open changes; those of what has ended are above, since times are."""

_ALIKE = np.uint32(2**20)
"""Hashes are alike if they leave the same rest by this number; a table of so many flags finds them."""


@attrs.frozen
class TablePolicy:
    """How a table is cut into segments; it changes nothing in what comes out.

    Attributes:
        open_rows: about as many open changes are in a segment.
        spans: how what has ended is cut, and the rows that a join keeps.
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
        policy: how it is cut into segments.

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

    # What is read

    def _load_open(self, hashes: NDArray[np.uint32]) -> None:
        """Read the open changes of keys."""
        self.load(np.unique(self._segments_of(hashes)).tolist())

    def _segments_of(self, hashes: NDArray[np.uint32]) -> Ints:
        """The segments of open changes of keys."""
        return _FIRST_HASHED + (hashes % np.uint32(self._hashed)).astype(np.int64)

    def _of_keys(self, hashes: NDArray[np.uint32]) -> Ints:
        """Which changes in memory may be of keys: those whose hashes are alike, as indices."""
        alike = np.zeros(_ALIKE, dtype=bool)
        alike[hashes % _ALIKE] = True
        return np.flatnonzero(alike[self.records["hash"] % _ALIKE] & self.alive)

    def _load_ended(self, since_us: int, until_us: int = END_OF_TIME_US) -> None:
        """Read changes whose span reaches a time or a later one, and begins at another or before."""
        index = self.segments.index
        self.load_where(self._ended & (index["end_us"] >= since_us) & (index["start_us"] <= until_us))

    @property
    def _ended(self) -> Flags:
        """Which entries of the index are of changes whose span has ended."""
        return self.segments.index["segment"] > _LAST_HASHED

    # What happens to it

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
        """Which changes in memory are of the same keys or alike, as indices; their keys as numbers, and those of what came."""
        at = self._of_keys(arrived["hash"])
        return at, *codes_of_both(self.records.take(at).keys, arrived.keys, len(at), len(arrived))

    def _load_reached(self, arrived: Changes) -> None:
        """Read what changes reach, where they come before their key's latest."""
        at, of, other = self._codes(arrived)
        latest, least = of.greatest(self.records["from_us"][at]), other.least(arrived["from_us"])
        with_last = self.plan.signed or self.plan.options.only_updated
        before = of.occupied() & other.occupied() & (least <= latest if with_last else least < latest)
        if before.any():
            self._load_ended(int(least[before].min()))

    def find(self, keys: Sequence[pa.Array], time_us: Ints) -> tuple[Changes, Ints]:
        """What counted for keys at times.

        Args:
            keys: key columns, n rows, in the table's types.
            time_us: int64, n: microseconds since the epoch; or ``LATEST``.

        Returns:
            changes; and int64, n: which of them, deletes included; -1: none.
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

    def forget(self, watermark_us: int) -> None:
        """Forget what no read can reach any more; what has ended goes a segment at a time."""
        index = self.segments.index
        horizon = horizon_us(watermark_us, self.plan.options.history.us)
        self.drop(self._ended & (index["end_us"] < horizon))
        expired = self.segments.index["expires_us"] < watermark_us
        if expired.any():
            self.rewrite(self.segments.numbers(expired))

    def expires_us(self, changes: Changes | Columns) -> Ints:
        """The watermark above which an open change is forgotten: int64, microseconds; NEVER_US: none."""
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
        index = self.segments.index
        due = index["expires_us"][index["expires_us"] != NEVER_US].tolist()
        due += (index["end_us"][self._ended] + self.plan.options.history.us).tolist()
        return min(due) + 1 if due else None

    # What is stored

    def save(self, watermark_us: int) -> None:
        """Write what the step has changed."""
        self._adapt()
        ended_below = horizon_us(watermark_us, self.plan.options.history.us)
        self.segments.about = {"spans": self._spans.about, "hashed": self._hashed}
        self.write_back(
            self._numbers,
            lambda changes: (changes["to_us"] >= ended_below) & (self.expires_us(changes) >= watermark_us),
            self._entries,
        )

    def _adapt(self) -> None:
        """Choose how long spans are from now on; cut open changes into more segments where these hold too many."""
        index, ended = self.segments.index, self._ended
        to_us = self.records["to_us"][self.is_new]
        self._spans.adapt(to_us[to_us < END_OF_TIME_US], index["segment"][ended], index["rows"][ended])
        rows = int(index["rows"][~ended].sum())
        if rows > 2 * self._policy.open_rows * self._hashed:
            self.rewrite(self.segments.numbers(~ended))
            self._hashed = 1 << (rows // self._policy.open_rows).bit_length()

    def _numbers(self, changes: Changes) -> Ints:
        """The segment that each belongs to."""
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
