"""Over stages of any frame, values, lateness and mode, over rows and over panes; scripts for them are those of tables."""

from __future__ import annotations

import operator

import attrs
from hypothesis import assume
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.triggers import AfterCount, AfterWatermark, Always
from tests.kinds.refine.strategy import COMPUTED, SHOWN, one_of
from tests.kinds.versions.strategy import (
    ANYTHING,
    Drawing,
    no,
    scripts,
    some_keys,
    source,
    spans,
    totals,
)
from tests.own.accumulations import Range
from tests.strategies.pipelines import retracting

OF_ROWS, OF_PANES = ("value", "ratio", "mark", "seq"), ("v0", "v1")
frames = st.one_of(
    st.builds(bm.Preceding, st.sampled_from([0, 1, 2, 5, 1000])),
    st.builds(bm.PrecedingRows, st.sampled_from([0, 1, 1, 3])),
    st.just(bm.Unbounded()),
)
early = st.sampled_from([AfterWatermark(early=Always()), AfterWatermark(early=AfterCount(1), late=Always())])


def counted(count: int, _row: object) -> int:
    """The function of a Fold."""
    return count + 1


def functions(columns: tuple[str, ...]) -> st.SearchStrategy[a.Accumulation]:
    """Functions of a row's place."""
    column, by = st.sampled_from(columns), st.sampled_from([1, 1, 2, 3])
    return st.one_of(
        st.builds(bm.Lag, column, by),
        st.builds(bm.Lag, st.sampled_from(columns[:1]), by, st.just(7)),
        st.builds(bm.Lead, column, by),
        st.builds(bm.FirstValue, column),
        st.builds(bm.LastValue, column),
        st.sampled_from([bm.RowNumber(), bm.Rank(), bm.DenseRank()]),
    )


def over_frame(columns: tuple[str, ...]) -> st.SearchStrategy[a.Accumulation]:
    """Accumulations of the frame."""
    column, number = st.sampled_from(columns), st.sampled_from(columns[:1])
    return st.one_of(
        st.just(a.Count()),
        st.builds(a.Count, column),
        st.builds(a.Sum, number),
        st.builds(a.Mean, number),
        st.builds(a.Max, column),
        st.builds(a.First, column),
        st.builds(a.Collect, column),
        st.builds(a.TopN, st.just(2), column),
        st.builds(a.CountDistinct, column),
        st.builds(Range, number),
        st.just(a.Fold(0, counted, merge=operator.add)),
    )


@attrs.frozen
class Over:
    """The strategies of over stages.

    Attributes:
        of: of the inputs; ``mode`` is that of the stage.
        kinds: "rows" or "panes".
        values: "functions", "frame" or both.
        lead: whether ``Lead`` may be among them.
        drops_keys: whether idle keys may be dropped.
        refined: whether it may have ``having`` and ``with_columns``.
    """

    of: Drawing = ANYTHING
    kinds: tuple[str, ...] = ("rows", "rows", "panes")
    lateness: st.SearchStrategy[float] = spans
    early: st.SearchStrategy[bool] = st.booleans()
    lead: bool = True
    drops_keys: bool = True
    refined: st.SearchStrategy[bool] = st.sampled_from([False, False, True])


@st.composite
def overs(draw: st.DrawFn, how: Over = Over()) -> bm.Pipeline:
    """Any over stage."""
    keys: tuple[str, ...] = draw(some_keys)
    columns: tuple[str, ...] = OF_ROWS
    if draw(st.sampled_from(how.kinds)) == "rows":
        before = source(draw, None, keys, how.of)
    else:
        columns = OF_PANES
        before = totals(draw, None, ("team", "part"), how.of).then(bm.Pipeline().key_by(*keys))
    (takes,) = before.flow.takes
    by = draw(st.sampled_from([None, None, columns[-1]]))
    pipeline = before.over(draw(frames), order_by=by)
    mode = retracting if takes.retracts else draw(how.of.mode)
    pipeline = pipeline.accumulation_mode(mode)
    pipeline = pipeline.allowed_lateness(max(draw(how.lateness), takes.behind_us / 1e6))
    pipeline = pipeline.trigger(draw(early)) if draw(how.early) else pipeline
    some = [functions(columns).filter(lambda one: how.lead or not isinstance(one, bm.Lead)), over_frame(columns)]
    drawn = draw(st.lists(st.one_of(*some), max_size=3))
    drawn = [draw(st.sampled_from([a.Count(), bm.RowNumber(), bm.Rank()])), *drawn]
    pipeline = pipeline.accumulate(**dict(zip(("n", "w0", "w1", "w2"), drawn, strict=False)))
    if how.drops_keys and draw(st.sampled_from([False, False, True])):
        options = pipeline.flow.stage.options
        least = options.allowed_lateness.us + options.frame.span_us
        forgetting = pipeline.forget_after((least + draw(st.sampled_from([1, 10**6, 10**7]))) / 1e6)
        try:
            forgetting.flow.check()
        except bm.PipelineError:  # it stores rows alone
            assume(False)  # noqa: FBT003
        pipeline = forgetting
    if draw(how.refined):
        pipeline = pipeline.having(draw(one_of(SHOWN)).expression)
        pipeline = pipeline.with_columns(more=draw(one_of(COMPUTED)).expression)
    pipeline = pipeline.with_dropped() if draw(how.of.with_dropped) else pipeline
    pipeline.flow.check()
    return pipeline


COLUMNS = ("score", "ratio", "name", "cost", "flag")
SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
SUMS = (
    SOURCE.window(bm.FixedWindows(3)).trigger(Always()).accumulating_and_retracting().accumulate(score=a.Sum("score"))
)
rows_of_columns = st.builds(
    lambda frame, trigger, late, one, other: (
        SOURCE.over(frame, order_by="score")
        .trigger(trigger)
        .allowed_lateness(late)
        .accumulating_and_retracting()
        .accumulate(one=one, other=other)
    ),
    frames,
    st.one_of(early, st.just(bm.triggers.Default())),
    st.sampled_from([0, 3, 20]),
    functions(COLUMNS),
    over_frame(COLUMNS),
)
of_panes = st.builds(
    lambda frame, one: (
        SUMS.then(bm.Pipeline().key_by("team").over(frame))
        .allowed_lateness(10)
        .accumulating_and_retracting()
        .accumulate(one=one, n=a.Count())
    ),
    frames,
    functions(("score",)),
)
CASES = {
    "over": (overs(), scripts),
    "over rows, counted": (
        overs(Over(of=attrs.evolve(ANYTHING, with_dropped=no), refined=no)).map(
            lambda over: over.then(
                bm.Pipeline()
                .key_by()
                .window(bm.GlobalWindow())
                .trigger(Always())
                .accumulating()
                .accumulate(n=a.Count(), all=a.Sum("n"))
            )
        ),
        scripts,
    ),
}
FLOWS = [rows_of_columns, of_panes]
