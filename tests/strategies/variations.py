"""Ways to run a pipeline in process that change nothing in what comes out."""

from typing import Any

import attrs
from hypothesis import strategies as st

from beamish.local import Variation
from beamish.tables.segment_policy import SegmentPolicy


def in_smallest_segments(operator: Any) -> Any:
    """The operator, with as many segments as can be."""
    return attrs.evolve(operator, policy=SegmentPolicy(few_segments=0, shortest_us=1))


variations = st.builds(
    Variation,
    shards=st.integers(1, 4),
    packs=st.integers(1, 3),
    round_trip=st.booleans(),
    adapt=st.just(in_smallest_segments),
)
"""Shards, packing, the way through bytes, and the smallest segments."""
