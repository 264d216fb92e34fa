"""A shard's state at rest: what is stored between two steps."""

from beamish.engine.state.segments import DEFAULT_POLICY, SegmentPolicy
from beamish.engine.state.state import State
from beamish.engine.state.store import DictStore, Store

__all__ = ["DEFAULT_POLICY", "DictStore", "SegmentPolicy", "State", "Store"]
