"""Changes of a pipeline's last stage in a later run (rules/running.md#restart, rules/tables.md#as-of-joins-restart)."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import assume
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Accumulation, ApproxCountDistinct
from beamish.contract.stage import Stage
from beamish.durations import Duration, duration
from beamish.kinds.as_of.stage import AsOfStage
from beamish.kinds.deduplicate.option import Deduplication
from beamish.kinds.versions.stage import VersionsStage
from beamish.source import Source
from beamish.triggers import Trigger
from tests.declared_options import evolve, said, takes_back, versions_of
from tests.kinds.refine.strategy import TAKEN, one_of
from tests.kinds.window.strategy_of_key_watermarks import key_watermarks
from tests.seconds import S
from tests.strategies.accumulations import accumulations
from tests.strategies.pipelines import (
    closing_behaviors,
    late_rows,
    latenesses,
    on_time_behaviors,
    retentions,
)
from tests.strategies.triggers import triggers
from tests.strategies.windows import unit

spans = st.sampled_from([None, 2, 5, 20])


@st.composite
def changed(
    draw: st.DrawFn,
    pipeline: bm.Pipeline,
    *,
    trigger: st.SearchStrategy[Trigger] = triggers,
    accumulation: st.SearchStrategy[Accumulation] = accumulations,
    ids: st.SearchStrategy[tuple[str, ...]] | None = None,
    always: tuple[str, ...] = (),
) -> bm.Pipeline:
    """The pipeline with one to three allowed changes.

    Args:
        trigger, accumulation: strategies of another trigger and an added accumulation.
        ids: columns for deduplication; None: unchanged.
        always: changes that are always included.
    """
    then = said(pipeline)
    # Approximate values are compared as numbers, so not in panes from before they existed.
    exact = accumulation.filter(lambda one: not isinstance(one, ApproxCountDistinct))
    ways: dict[str, st.SearchStrategy[Any]] = {
        "trigger": trigger,
        "on_time": on_time_behaviors,
        "closing": closing_behaviors,
        "with_dropped": st.booleans(),
        "retention": retentions,
        "accumulations": exact.map(lambda more: {**then.accumulations, "more": more}),
    }
    if then.merges or any(map(takes_back, then.inputs)):
        del ways[
            "accumulations"
        ]  # accumulations of a merge name their input; retracted rows were never added to a new one
    if all(isinstance(one, Source) and one.form is None and one.name is None for one in then.inputs):
        ways["where"] = st.none() | one_of(TAKEN)
    if then.deduplication is None and ids is not None:
        within = st.sampled_from([None, 1, 5, 12, 1000]).map(lambda by: by and Duration(by * S))
        ways["deduplication"] = st.builds(Deduplication, ids, within)
    if then.window and then.window.numbering:
        ways["late_rows"] = late_rows
    else:
        scale = unit(then.window)
        ways["allowed_lateness"] = latenesses.map(lambda by: duration("lateness", by * scale))
    if then.window and then.window.is_all_of_time:
        ways["forget_after"] = spans.map(lambda by: None if by is None else Duration(by * S))
    by_rows = (
        isinstance(then.watermark, bm.BoundedOutOfOrderness) and then.watermark.max_future is None
    )  # else it needs the clock
    if then.key_watermark is not None or (by_rows and then.keys and then.window and not then.window.numbering):
        ways["key_watermark"] = key_watermarks(then.window)
    if then.retracts and then.window and then.window.merging:
        ways["retract_merged"] = st.sampled_from([None, *bm.RetractMerged])
    if not then.discards:
        ways["only_updated"] = st.booleans()
    names = draw(st.lists(st.sampled_from(sorted(ways)), min_size=1, max_size=3, unique=True))
    now = evolve(pipeline, **{name: draw(ways[name]) for name in sorted({*names, *always})})
    assume(checked(now))
    return now


@st.composite
def changed_tables(draw: st.DrawFn, pipeline: bm.Pipeline) -> bm.Pipeline:
    """The table or the as-of join with allowed changes (rules/tables.md#as-of-joins-restart)."""
    table, join = versions_of(pipeline.flow.stage)
    assert table is not None
    history = draw(shrunk(table.history))
    late = draw(shrunk(min(table.allowed_lateness, history)))
    table = attrs.evolve(table, history=history, allowed_lateness=late)
    listed = draw(st.booleans())
    stage: Stage
    if join is None:
        stage = VersionsStage(attrs.evolve(table, with_dropped=listed))
    else:
        grace = draw(st.sampled_from([join.grace, *(Duration(by * S) for by in (0, 1, 2, 5, 20))]))
        stage = AsOfStage(attrs.evolve(join, grace=grace, with_dropped=listed), table)
    now = bm.Pipeline(attrs.evolve(pipeline.flow, stage=stage))
    assume(checked(now))
    return now


def shrunk(span: Duration) -> st.SearchStrategy[Duration]:
    """The duration, or a shorter one."""
    shorter = (Duration(by * S) for by in (0, 1, 2, 5, 10))
    return st.sampled_from([span, *(one for one in shorter if one < span)])


def checked(pipeline: bm.Pipeline) -> bool:
    """Whether its checks pass."""
    try:
        pipeline.flow.check()
    except bm.BeamishError:
        return False
    return True
