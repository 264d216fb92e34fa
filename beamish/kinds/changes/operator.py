"""The operator of a changes stage: upserts and deletes as updates for a suppress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.kept import Note
from beamish.contract.operator import Operator, Shard
from beamish.contract.pane_columns import Block
from beamish.contract.store import Store
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.order import Key
from beamish.kinds.changes.order import newest_keys
from beamish.kinds.changes.packing import pack_changes
from beamish.kinds.changes.plan import ChangesPlan
from beamish.kinds.changes.shard import ChangesShard, replaces


@attrs.define(slots=False, eq=False)
class ChangesOperator(Operator):
    """A changes stage bound to its data (see ``contract/operator.py``).

    Attributes:
        plan: the stage's plan.
    """

    plan: ChangesPlan
    keeps_newest = True

    def __attrs_post_init__(self) -> None:
        plan = self.plan
        self.takes, self.gives, self.shards, self.identity = (plan.takes,), plan.gives, plan.shards, plan.identity
        self.moves_by([plan.takes.policy])

    def pack(self, number: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
        return pack_changes(self.plan, rows)

    def notes(self) -> Sequence[Note]:
        return [ChangesShard.note(self.identity, "changes()")]

    def open(self, store: Store) -> Shard:
        return ChangesShard(self, self.plan, store)

    def closes_us(self, end_us: Ints) -> Ints:
        grace = 0 if self.plan.grace is None else self.plan.grace.us
        return np.where(
            end_us > END_OF_TIME_US - grace, END_OF_TIME_US, np.minimum(end_us, END_OF_TIME_US - grace) + grace
        )

    def newest_keys(self, time_us: Ints, deletes: Flags, values: pa.Table) -> tuple[list[Key], list[Key]]:
        return newest_keys(self.plan, time_us, deletes, values)

    def replaces_unseen(self, columns: Block) -> Flags:
        return replaces(columns["kind"])
