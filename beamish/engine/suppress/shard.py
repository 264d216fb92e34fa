"""A shard of a suppressed stage."""

from __future__ import annotations

from beamish.engine.operator import Shard
from beamish.engine.state.store import Store
from beamish.engine.updates import UpdatingOperator
from beamish.suppress import Suppress


class SuppressShard(Shard):
    """A stage's shard, and what is held of its updates."""

    def __init__(self, inner: UpdatingOperator, suppress: Suppress, store: Store) -> None:
        self._inner = inner.open(store)
