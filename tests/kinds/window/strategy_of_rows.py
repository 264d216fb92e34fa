"""Pipelines in count windows, with and without event time."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish.durations import Duration
from beamish.kinds.deduplicate.option import Deduplication
from beamish.source import Source
from tests.declared_options import evolve, said
from tests.seconds import S
from tests.strategies.merges import merges
from tests.strategies.pipelines import pipelines, retentions
from tests.strategies.windows import merged_row_windows, row_windows
from tests.twin.run import numbering_of

keyed = st.sampled_from([("team",), ("team",), ("team", "part"), ("part",)])
by_score = [None, None, Deduplication(("score",), None), Deduplication(("name",), Duration(20 * S))]


@st.composite
def counted(draw: st.DrawFn, /, **what: Any) -> bm.Pipeline:
    """A pipeline in count windows; some deduplicate, some have no event time."""
    option = draw(what.pop("window", row_windows))
    if option.merging:
        what["keys"] = keyed
    pipeline = draw(pipelines(window=st.just(option), **what))
    once = draw(st.sampled_from(by_score))
    idle = option.numbering.idle is not None
    needs_time = idle or (once is not None and once.within is not None)
    pipeline = evolve(pipeline, deduplication=once, retention=draw(retentions))
    if not needs_time and said(pipeline).combiner is bm.TimestampCombiner.END_OF_WINDOW and draw(st.booleans()):
        pipeline = bm.Pipeline(evolve(pipeline, event_time=None, watermark=None).flow.completed)
    pipeline.flow.check()
    return pipeline


@st.composite
def untimed_merges(draw: st.DrawFn) -> bm.Pipeline:
    """Accumulations, joins, and joins that give each pair once; of some inputs no event time is known."""
    kind = draw(st.integers(0, 2))
    pipeline = draw(merges(window=merged_row_windows, join=st.just(kind == 1), once=kind == 2))
    numbering = numbering_of(pipeline.flow)
    by_time = any(getattr(one, "keep_for", None) for one in said(pipeline).accumulations.values())
    if numbering.idle is None and not by_time and said(pipeline).combiner is bm.TimestampCombiner.END_OF_WINDOW:
        untimed = draw(st.sets(st.sampled_from([source.name for source in pipeline.flow.sources])))
        pipeline = bm.Pipeline(pipeline.flow.on_sources(lambda source: without_time(source, untimed)).completed)
        pipeline.flow.check()
    return pipeline


def without_time(source: Source, names: set[str | None]) -> Source:
    return attrs.evolve(source, event_time=None, watermark=None) if source.name in names else source
