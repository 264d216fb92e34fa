"""Updates: what a stage's step gives, before it is made into rows of output.

A suppress takes them up in order. Joins are not yet one row per pair, panes that discard are still accumulators, and a
window that merged away is named in the step in which it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import pyarrow as pa
from numpy.typing import NDArray

from beamish.engine.clocks import Clocks
from beamish.engine.operator import Operator, Shard
from beamish.engine.state.store import Store
from beamish.kernels.arrays import Ints
from beamish.kernels.groups import Groups

PANE_KIND, RETRACTION_KIND, DROPPED_KIND, MERGED_KIND = range(4)
"""What an update is. MERGED_KIND: its window became part of the one from ``into_start_us`` to ``into_end_us``."""

Block = dict[str, NDArray[Any]]
"""Columns of updates, one entry per update (``engine/windowing/output.py``)."""


@attrs.frozen(eq=False)
class Updates:
    """What a step gives, in order.

    Attributes:
        columns: n updates.
        keys: their key columns, n rows.
        values: what each holds, n rows: the output's values, or accumulators where panes discard.
        dropped: rows of output that were dropped; they pass at once.
    """

    columns: Block
    keys: pa.Table
    values: pa.Table
    dropped: pa.Table


class UpdatingShard(Shard, Protocol):
    """A shard whose updates can be had before they are rows of output.

    Attributes:
        clocks: where they stand.
    """

    clocks: Clocks

    def updates(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> Updates:
        """A step, as ``step`` takes it."""
        ...


class UpdatingOperator(Operator, Protocol):
    """An operator whose shards give updates to a suppress.

    Attributes:
        value_schema: what an update holds.
        adds_up: whether a later update adds to an earlier one, by ``combine``; else it replaces it.
        waits_for_pane: whether what a merged window takes back waits for its next pane.
    """

    value_schema: pa.Schema
    adds_up: bool
    waits_for_pane: bool

    def open(self, store: Store) -> UpdatingShard: ...

    def combine(self, values: pa.Table, groups: Groups) -> pa.Table:
        """The values of each group added up, where they add up."""
        ...

    def closes_us(self, end_us: Ints) -> Ints:
        """int64, microseconds: the watermark at which windows with these ends close."""
        ...

    def rows(self, updates: Updates) -> pa.Table:
        """Updates, panes and retractions only, as rows of output."""
        ...
