"""Updates: what a stage's step gives, before it is made into rows of output.

A suppress takes them up in order. Joins are not yet one row per pair, panes that discard are still accumulators, and a
window that merged away is named in the step in which it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.operator import Operator, Shard
from beamish.contract.pane_columns import MERGED_KIND, Block
from beamish.contract.store import Store
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.groups import Groups
from beamish.kernels.order import Key


@attrs.frozen(eq=False)
class Updates:
    """What a step gives, in order.

    Attributes:
        columns: n updates (``pane_columns.py``), with their timestamps as ``pane_time_us``.
        keys: their key columns, n rows.
        values: what each holds, n rows: the output's values, or accumulators where panes discard.
        dropped: rows of output that were dropped; they pass at once.
        since_us: int64[n], microseconds since the epoch: since when each counts as held; None: since its timestamp.
    """

    columns: Block
    keys: pa.Table
    values: pa.Table
    dropped: pa.Table
    since_us: Ints | None = None

    def without_merges(self) -> Updates:
        """Panes and retractions only."""
        kept = self.columns["kind"] != MERGED_KIND
        if kept.all():
            return self
        rows = pa.array(np.flatnonzero(kept))
        columns = {name: column[kept] for name, column in self.columns.items()}
        return attrs.evolve(self, columns=columns, keys=self.keys.take(rows), values=self.values.take(rows))


class UpdatingShard(Shard, Protocol):
    """A shard whose updates can be had before they are rows of output.

    Attributes:
        held: the ``name`` of the suppress that the state was written under, and how many ``updates`` it holds; None: there
            never was one.
    """

    @property
    def held(self) -> Mapping[str, Any] | None: ...

    def updates(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> Updates:
        """A step, as ``step`` takes it; nothing is written before ``save``."""
        ...

    def save(self, held: Mapping[str, Any]) -> None:
        """Write what the step has changed, and what is held after it."""
        ...


class UpdatingOperator(Operator, Protocol):
    """An operator whose shards give updates to a suppress.

    Attributes:
        key_schema: the key columns of updates.
        value_schema: what an update holds.
        adds_up: whether a later update adds to an earlier one, by ``combine``; else it replaces it.
        waits_for_pane: whether what a merged window takes back waits for its next pane.
        keeps_newest: whether updates are changes, of which the newest counts by ``newest_keys``, and not panes of a window.
    """

    key_schema: pa.Schema
    value_schema: pa.Schema
    adds_up: bool
    waits_for_pane: bool
    keeps_newest: bool = False

    def open(self, store: Store) -> UpdatingShard: ...

    def combine(self, values: pa.Table, groups: Groups) -> pa.Table:
        """The values of each group added up, where they add up."""
        ...

    def newest_keys(self, time_us: Ints, deletes: Flags, values: pa.Table) -> tuple[list[Key], list[Key]]:
        """Sort keys (``kernels/order.py``) of changes: the greatest is the newest; asked if it ``keeps_newest``.

        Args:
            time_us: int64[n], their event times.
            deletes: bool[n], whether they delete.
            values: n rows.

        Returns:
            those that come before the order of steps, and those that come after it.
        """
        return [], []

    def replaces_unseen(self, columns: Block) -> Flags:
        """Whether panes may stand for others that came out before and are not taken back: bool, one per update."""
        ...

    def closes_us(self, end_us: Ints) -> Ints:
        """int64, microseconds: the watermark at which windows with these ends close."""
        ...

    def shard_of(self, keys: pa.Table) -> int:
        """The number of the shard that a key, one row, belongs to."""
        ...

    def rows(self, updates: Updates) -> pa.Table:
        """Updates, panes and retractions only, as rows of output."""
        ...
