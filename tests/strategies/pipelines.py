"""Pipelines of one stage, and their options."""

from __future__ import annotations

from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.durations import duration
from beamish.kinds.deduplicate.option import Deduplication
from beamish.kinds.window.plan.options import Retention
from beamish.triggers import Trigger
from tests.declared_options import declared
from tests.strategies.accumulations import accumulations, fold_in_order
from tests.strategies.triggers import ASKED, triggers, value_triggers
from tests.strategies.watermarks import watermarks
from tests.strategies.windows import unit, windows

retracting = bm.AccumulationMode.ACCUMULATING_AND_RETRACTING
modes = st.sampled_from([*bm.AccumulationMode, retracting])
on_time_behaviors = st.sampled_from(list(bm.OnTimeBehavior))
closing_behaviors = st.sampled_from(list(bm.ClosingBehavior))
combiners = st.sampled_from(list(bm.TimestampCombiner))
latenesses = st.one_of(st.just(0), st.integers(0, 12), st.just(1000))
asked_accumulations = st.sampled_from([a.Count(), a.Sum("score"), a.Max("score")])
"""The input of AfterValue; rows of all scripts have a score."""
retentions = st.sampled_from(
    [None, None, Retention(windows=1), Retention(windows=2), Retention(rows=3), Retention(3, 5)]
)
late_rows = st.sampled_from([0, 0, 1, 3, 8, 1000])
key_columns = st.sampled_from([(), (), ("team",), ("team",), ("team", "part"), ("part",)])


@st.composite
def pipelines(
    draw: st.DrawFn,
    *,
    window: st.SearchStrategy[bm.WindowOption] = windows,
    mode: st.SearchStrategy[bm.AccumulationMode | None] = modes,
    trigger: st.SearchStrategy[Trigger] = triggers,
    lateness: st.SearchStrategy[float] = latenesses,
    accumulation: st.SearchStrategy[a.Accumulation] = accumulations,
    watermark: st.SearchStrategy[bm.Watermark] = watermarks,
    keys: st.SearchStrategy[tuple[str, ...]] = key_columns,
    with_dropped: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
    asks: bool = False,
    once: bool = False,
) -> bm.Pipeline:
    """Any valid pipeline.

    Args:
        asks: its trigger may look at a value, which is then accumulated too.
        once: it knows rows again.
        the rest: what its options are drawn from.
    """
    option = draw(window)
    kind = draw(mode)
    if accumulation is accumulations and not option.merging:
        accumulation = st.one_of(accumulation, accumulation, fold_in_order)
    named = draw(st.lists(accumulation, min_size=1, max_size=3))
    fires = draw(
        (st.one_of(trigger, value_triggers) if asks else trigger).filter(
            lambda one: not (option.numbering and one.needs_row_times)
        )
    )
    asked = {ASKED: draw(asked_accumulations)} if fires.asked_values else {}
    approximate = any(isinstance(one, a.ApproxCountDistinct) for one in named)  # it may say "unchanged" of a change
    retracts = kind is bm.AccumulationMode.ACCUMULATING_AND_RETRACTING
    pipeline = declared(
        event_time="ts",
        watermark=draw(watermark),
        keys=draw(keys),
        window=option,
        trigger=fires,
        allow_data_loss=True,
        allowed_lateness=duration("lateness", 0 if option.numbering else draw(lateness) * unit(option)),
        late_rows=draw(late_rows) if option.numbering else 0,
        mode=kind,
        on_time=draw(on_time_behaviors),
        closing=draw(closing_behaviors),
        combiner=draw(combiners),
        retract_merged=draw(st.sampled_from([None, *bm.RetractMerged])) if retracts and option.merging else None,
        only_updated=kind not in (None, bm.AccumulationMode.DISCARDING) and not approximate and draw(st.booleans()),
        with_dropped=draw(with_dropped),
        accumulations={f"v{i}": accumulation for i, accumulation in enumerate(named)} | asked,
        deduplication=draw(deduplications(unit(option))) if once else None,
    )
    pipeline.flow.check()
    return pipeline


@st.composite
def deduplications(draw: st.DrawFn, scale: float = 1, *, windows: bool = True) -> Deduplication:
    """Any deduplication of script rows; ``windows``: it may be per window. Times in ``scale`` seconds."""
    columns = draw(
        st.sampled_from([("score",), ("score",), ("name",), ("name", "score"), ("part", "score"), ("ratio",)])
    )
    kind = draw(st.sampled_from([None, 1, 5, 12, 1000] if windows else [1, 5, 12, 1000]))
    return Deduplication(columns, None if kind is None else duration("within", kind * scale))


@st.composite
def rows_once(draw: st.DrawFn) -> bm.Pipeline:
    """A pipeline of deduplication only."""
    once = draw(deduplications(windows=False))
    pipeline = bm.Pipeline().event_time("ts", draw(watermarks)).key_by(*draw(key_columns))
    pipeline = pipeline.deduplicate(*once.columns, within=once.within)
    return pipeline.with_dropped() if draw(st.booleans()) else pipeline
