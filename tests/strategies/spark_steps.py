"""Shards that are stepped as Spark steps them: with rows, when something is due, or in every batch, by their operator's cadence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.operator import Cadence, Operator, Shard
from beamish.contract.stored import Store


@attrs.define
class AsOnSpark:
    """An operator whose shards are stepped so.

    Attributes:
        operator: theirs.
    """

    operator: Operator

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operator, name)

    def open(self, store: Store) -> ShardAsOnSpark:
        return ShardAsOnSpark(self.operator, self.operator.open(store))


@attrs.define
class ShardAsOnSpark:
    """One of its shards.

    Attributes:
        operator, shard: the operator, and itself.
        sources_us: the watermark of each input so far, which Spark gives in each step.
    """

    operator: Operator
    shard: Shard
    sources_us: Sequence[int | None] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shard, name)

    def step(self, sources_us: Sequence[int | None], clock_us: int | None, payloads: Sequence[bytes]) -> pa.Table:
        before = self.sources_us or [None] * len(sources_us)
        self.sources_us = [old if now is None else now for old, now in zip(before, sources_us, strict=True)]
        takes_panes = any(relation.is_panes for relation in self.operator.takes)
        every = takes_panes or self.operator.needs_clock or self.operator.cadence is Cadence.EVERY_STEP
        due_us, known = self.shard.next_due_us, [us for us in self.sources_us if us is not None]
        is_due = due_us is not None and len(known) == len(self.sources_us) and min(known) >= due_us
        if every or payloads or is_due:
            return self.shard.step(self.sources_us, clock_us, payloads)
        return self.operator.rows([])
