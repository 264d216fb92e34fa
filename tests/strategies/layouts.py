"""Physical layouts that do not affect the output: shards, payloads, stored bytes, segments, idle steps, a rescale."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any
from unittest import mock

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish.contract.chain import Chain
from beamish.contract.operator import Cadence, Operator
from beamish.fusion.groups import APART, FUSE
from beamish.fusion.operator import FusedOperator
from beamish.kinds.suppress import shard as newest_shard
from beamish.kinds.table_join.rows import RowsPolicy
from beamish.kinds.upserts.images import ImagePolicy
from beamish.kinds.versions.table import TablePolicy
from beamish.kinds.window.windowings import WindowingsOperator
from beamish.local import Variation, run
from beamish.pane import Pane
from beamish.script import Event, as_step
from beamish.tables.segment_policy import SegmentPolicy
from beamish.tables.timed_records import SpanPolicy
from beamish.testing import TestStream
from tests.declared_options import stages
from tests.upgrades.carried import carried

_LEAST = {"shortest_us": 1, "shortest_apart_us": 1, "shortest_rows": 1, "periods": 1}
_RESTING = {"recent_windows": 0, "recent_batches": 1, "most_generations": 2}
SHORT = SegmentPolicy(few_segments=0, **_LEAST, **_RESTING)
GROWING = SegmentPolicy(few_segments=1, few_windows=2, many_windows=3, **_LEAST, **_RESTING)
SPANS = SpanPolicy(rows=2, first_us=1, few_spans=1)
TABLE = TablePolicy(open_rows=2, spans=SPANS)
POLICIES: dict[type[Any], list[Any]] = {
    SegmentPolicy: [SHORT, GROWING],
    SpanPolicy: [SPANS] * 2,
    TablePolicy: [TABLE] * 2,
    ImagePolicy: [ImagePolicy(keys=1), ImagePolicy(keys=2)],
    RowsPolicy: [RowsPolicy(rows=1), RowsPolicy(rows=2)],
}
"""Policies by class: the most segments possible, and numbers that grow and shrink."""


def cut(operator: Any, how: int) -> Any:
    """The operator with segments by one of the ``POLICIES``."""
    if isinstance(operator, FusedOperator):
        return FusedOperator([attrs.evolve(link, operator=cut(link.operator, how)) for link in operator.links])
    if isinstance(operator, Chain):
        return Chain(cut(operator.core, how), [cut(one, how) for one in operator.chained])
    if isinstance(operator, WindowingsOperator):
        return WindowingsOperator({name: cut(one, how) for name, one in operator.each.items()}, operator.gives)
    policy = getattr(operator, "policy", None)
    return operator if policy is None else attrs.evolve(operator, policy=POLICIES[type(policy)][how])


@attrs.frozen
class Idling:
    """An operator whose shards make an empty step after each step, which must change nothing."""

    operator: Operator

    def __getattr__(self, name: str) -> Any:
        return getattr(self.operator, name)

    def open(self, store: Any) -> IdlingShard:
        return IdlingShard(len(self.operator.takes), self.operator.open(store), store)


@attrs.frozen
class IdlingShard:
    """One of its shards."""

    inputs: int
    shard: Any
    store: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shard, name)

    def step(self, *what: Any) -> Any:
        out = self.shard.step(*what)
        stored, watermark_us = dict(self.store), self.shard.watermark_us
        assert self.shard.step([None] * self.inputs, None, []).num_rows == 0
        assert (dict(self.store), self.shard.watermark_us) == (stored, watermark_us)
        return out


@attrs.frozen
class Cut:
    """Sets one of the ``POLICIES`` in an operator."""

    how: int

    def __call__(self, operator: Operator) -> Any:
        return cut(operator, self.how)


def idle(operator: Operator) -> Any:
    """The operator with empty steps, unless the number of steps matters."""
    return Idling(operator) if operator.cadence is Cadence.WHEN_DUE else operator


@attrs.frozen
class Layout:
    """Another layout from the first step on.

    Attributes:
        variation: of the local runner.
        recent: of suppressed changes, how many slots are recent at most, and how many a segment has; None: as it is.
        order: the seed by which rows of a bundle are ordered otherwise; None: as they are.
    """

    variation: Variation
    recent: tuple[int, int] | None
    order: int | None

    def run(self, pipeline: bm.Pipeline, script: TestStream) -> Sequence[Pane]:
        events = script.events if self.order is None else reordered(script.events, random.Random(self.order))
        sizes = dict(zip(("_FEWEST", "_LARGEST"), self.recent, strict=True), _SHARE=2) if self.recent else {}
        with mock.patch.dict(vars(newest_shard), sizes):
            return run(pipeline.flow, events, self.variation)


def reordered(events: Sequence[Event], chance: random.Random) -> list[Event]:
    """Events with reordered rows."""
    return [attrs.evolve(step, rows=tuple(chance.sample(step.rows, len(step.rows)))) for step in map(as_step, events)]


@attrs.frozen
class Rescaled:
    """Another number of shards after the first events; state is migrated."""

    first: int
    shards: tuple[int, int]

    def run(self, pipeline: bm.Pipeline, script: TestStream) -> Sequence[Pane]:
        return [*chain(*carried(pipeline, pipeline, script, self.first, self.shards))]


def depends_on_shards(pipeline: bm.Pipeline) -> bool:
    """Whether a suppress has limits, which are per shard."""
    buffers = [stage.suppress.buffer for stage in stages(pipeline) if stage.suppress]
    return any(buffer.is_limited and buffer.policy is not bm.SPILL for buffer in buffers)


adapted: st.SearchStrategy[Callable[[Operator], Operator]] = st.sampled_from([Cut(0), Cut(1), idle])


@st.composite
def layouts(draw: st.DrawFn, pipeline: bm.Pipeline, script: TestStream, *, reorders: bool) -> Layout | Rescaled:
    """Any layout that does not affect the output of a pipeline."""
    alike = not depends_on_shards(pipeline)
    if alike and draw(st.integers(0, 2)) == 0:
        first = draw(st.integers(1, max(len(script.events) - 1, 1)))
        return Rescaled(first, draw(st.sampled_from([(1, 3), (3, 1), (2, 5), (4, 2), (2, 2)])))
    variation = Variation(
        shards=draw(st.sampled_from([2, 3, 1])) if alike else 1,
        packs=draw(st.integers(1, 3)),
        round_trip=draw(st.sampled_from([True, True, False])),
        adapt=draw(adapted),
        fuse=draw(st.sampled_from([APART, FUSE])),
    )
    order = draw(st.integers(0, 99)) if reorders else None
    recent = st.tuples(st.integers(0, 2), st.sampled_from([1, 3, 9]))
    return Layout(variation, draw(st.none() | recent), order)
