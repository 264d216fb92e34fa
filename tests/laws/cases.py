"""The cases of the laws of test_engine_and_twin.py: one for each kind of stage and for each option that changes its output.

A case draws a pipeline and a script for it. Its output may be that of another twin than ``tests.twin.run``. A new kind of stage has
``CASES`` in its ``strategy.py``; what may differ between two layouts is read off the pipeline (tests/strategies/layouts.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import Pane
from beamish import accumulations as a
from beamish.accumulations import Collect, Count, Last, Max, Sum
from beamish.durations import Duration
from beamish.flow import Panes
from beamish.kinds.deduplicate.option import Deduplication
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Always, Never, Repeatedly
from tests.declared_options import evolve, said
from tests.kinds.changes import strategy as changes
from tests.kinds.every import strategies
from tests.kinds.refine.strategy import SHOWN, conditioned, one_of, refined
from tests.kinds.suppress import strategy as suppress
from tests.kinds.suppress.strategy import busy, busy_scripts, sessions_of_one_key, some_buffers, suppressed
from tests.kinds.versions import strategy as versions
from tests.kinds.window.strategy_of_errors import Picky, dropping, huge, picky, poisoned, poisoned_scripts
from tests.kinds.window.strategy_of_forgetting import forgetting, spans
from tests.kinds.window.strategy_of_key_watermarks import keyed as with_key_watermarks
from tests.kinds.window.strategy_of_key_watermarks import under_stages
from tests.kinds.window.strategy_of_retention import ending, meeting, retaining
from tests.kinds.window.strategy_of_rows import counted, keyed, untimed_merges
from tests.own.windows import Absorbed
from tests.seconds import S
from tests.strategies import changelogs, flows, merges
from tests.strategies.accumulations import top_rows
from tests.strategies.chains import NOT_MERGING, chains
from tests.strategies.pipelines import modes, pipelines, retracting, rows_once
from tests.strategies.scripts import dense_scripts, scripts
from tests.strategies.triggers import usual_triggers, value_triggers, waiting_triggers
from tests.strategies.windows import count_windows, merged_row_windows, sliding_windows, taking, windowings, windows
from tests.twin.run import run
from tests.twin.windowings import run_windowings

Scripts = Callable[[bm.Pipeline], st.SearchStrategy[TestStream]]


@attrs.frozen
class Case:
    """Pipelines and scripts, and how their runs are compared.

    Attributes:
        pipelines: what is run.
        scripts: a strategy of scripts for a pipeline.
        twin: gives the same panes, slowly.
        reorders: whether the order of rows in a bundle changes nothing.
        unless: errors that no row is to blame for.
    """

    pipelines: st.SearchStrategy[bm.Pipeline]
    scripts: Scripts = scripts
    twin: Callable[[bm.Pipeline, Sequence[Any]], Sequence[Pane]] = attrs.field(default=run, kw_only=True)
    reorders: bool = attrs.field(default=False, kw_only=True)
    unless: tuple[type[Exception], ...] = attrs.field(default=(), kw_only=True)


def dense(_pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Long scripts of one key."""
    return dense_scripts


# Windows

patient = st.just(bm.BoundedOutOfOrderness(0))
short = windows.filter(lambda option: not isinstance(option, bm.CalendarWindows))
sums = st.sampled_from([Count(), Sum("score")])
folds = st.sampled_from([Count(), Sum("score"), Collect("score"), Last("score")])
of_one_key: dict[str, Any] = {"watermark": patient, "keys": st.just(()), "accumulation": folds}
of_scores: dict[str, Any] = {**of_one_key, "keys": st.sampled_from([(), ("score",)])}
some_lateness = st.sampled_from([0, 5, 40])


def asking(**what: Any) -> st.SearchStrategy[bm.Pipeline]:
    """Pipelines of which a quarter may look at a value."""
    return st.integers(0, 3).flatmap(lambda number: pipelines(asks=number == 3, **what))


sessions = pipelines(
    window=meeting, trigger=st.one_of(waiting_triggers, waiting_triggers, value_triggers), lateness=some_lateness,
    watermark=patient, keys=st.just(()), accumulation=sums,
)  # fmt: skip
absorbed = pipelines(
    window=st.just(Absorbed()), trigger=waiting_triggers, lateness=st.sampled_from([5, 40]),
    watermark=patient, keys=st.just(()), accumulation=sums,
)  # fmt: skip
WINDOWS = {
    "windows": Case(asking(), reorders=True),
    "windows that retract": Case(pipelines(mode=st.just(retracting)), reorders=True),
    "windows, long scripts": Case(asking(window=short, lateness=some_lateness, **of_one_key), dense),
    "sessions, long scripts": Case(sessions, dense),
    "windows that absorb others, long scripts": Case(absorbed, dense),
}


# Several windowings


def of_the_first(pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Scripts for the first of several windowings."""
    first, *_ = said(pipeline).window.options.values()  # type: ignore[union-attr]
    return scripts(evolve(pipeline, window=first))


@st.composite
def several(draw: st.DrawFn) -> bm.Pipeline:
    """A pipeline of several windowings."""
    base = draw(pipelines())
    return evolve(base, window=draw(windowings(said(base).window)))  # type: ignore[arg-type]


def is_accepted(pipeline: bm.Pipeline) -> bool:
    try:
        pipeline.flow.check()
    except bm.PipelineError:
        return False
    return True


def each_by_itself(pipeline: bm.Pipeline, events: Sequence[Any]) -> list[Pane]:
    """The panes of a pipeline for each windowing."""
    return [
        attrs.evolve(pane, key={**pane.key, "windowing": name})
        for name, panes in run_windowings(pipeline, events).items()
        for pane in panes
    ]


WINDOWINGS = {
    "several windowings": Case(several().filter(is_accepted), of_the_first, twin=each_by_itself),
    "suppressed windowings": Case(
        suppressed(several().filter(is_accepted), buffers=st.just(bm.Buffer())), of_the_first, twin=each_by_itself
    ),
}


# The state of windows, and its lifetime

by_score = st.sampled_from([Deduplication(("score",), within) for within in (None, Duration(3 * S), Duration(20 * S))])


def known_again(window: st.SearchStrategy[bm.WindowOption]) -> st.SearchStrategy[bm.Pipeline]:
    """Pipelines that deduplicate by score."""
    return st.builds(lambda one, by: evolve(one, deduplication=by), pipelines(window=window, **of_scores), by_score)


def long_retaining(window: st.SearchStrategy[bm.WindowOption]) -> st.SearchStrategy[bm.Pipeline]:
    kept = retaining(window=window, lateness=st.sampled_from([5, 40, 1000]), **of_scores)
    return kept.filter(lambda one: said(one).deduplication is None)


@st.composite
def forgetting_over_panes(draw: st.DrawFn) -> bm.Pipeline:
    """A stage over panes whose idle keys expire."""
    first = draw(pipelines(window=st.just(bm.FixedWindows(5)), with_dropped=st.just(False), lateness=st.just(20)))  # noqa: FBT003
    second = evolve(
        bm.Pipeline().key_by(*first.flow.takes[0].keys[:1]).window(bm.GlobalWindow()),
        accumulations={"rows": Count(), "all": Collect("v0")},
        trigger=draw(st.sampled_from([Always(), Never(), Repeatedly(AfterCount(2))])),
        mode=draw(modes.filter(lambda one: one is not bm.AccumulationMode.DISCARDING)),
        forget_after=draw(spans),
    )
    pipeline = first.then(second)
    pipeline.flow.check()
    return pipeline


long_forgetting = forgetting(
    watermark=patient,
    keys=st.just(()),
    accumulation=st.sampled_from([Count(), Sum("score"), Collect("score")]),
    once=False,
)
KEPT = {
    "duplicates": Case(pipelines(once=True)),
    "duplicates, long scripts": Case(known_again(short), dense),
    "duplicates in sessions, long scripts": Case(known_again(meeting), dense),
    "rows once": Case(rows_once()),
    "retention": Case(retaining()),
    "retention, long scripts": Case(
        long_retaining(ending.filter(lambda option: not isinstance(option, bm.CalendarWindows))), dense
    ),
    "retention of sessions, long scripts": Case(long_retaining(meeting), dense),
    "forgotten keys": Case(forgetting()),
    "forgotten keys, long scripts": Case(long_forgetting, dense),
    "forgotten keys of a stage over panes": Case(forgetting_over_panes()),
    "watermarks per key": Case(with_key_watermarks()),
    "watermarks per key, long scripts": Case(
        with_key_watermarks(
            window=short, lateness=some_lateness, **of_one_key | {"keys": st.just(("score",))}, once=False
        ),
        dense,
    ),
    "watermarks per key under a stage": Case(under_stages()),
}


# Windows of rows

by_any_score = counted(window=count_windows.filter(lambda option: "name" not in option.numbering.columns), **of_one_key)
ROWS = {
    "windows of rows": Case(counted()),
    "windows of rows by key": Case(counted(keys=keyed)),
    "windows of rows, long scripts": Case(
        by_any_score.filter(lambda one: (said(one).deduplication or Deduplication(("score",))).columns == ("score",)),
        dense,
    ),
    "windows of rows of merges": Case(untimed_merges(), merges.scripts),
}


# Several inputs, key sets, and stages over stages


@st.composite
def over_conditions(draw: st.DrawFn) -> bm.Pipeline:
    """A stage over one that leaves out rows and panes, and that may do so itself."""
    first = evolve(draw(counting.flatmap(refined)), with_dropped=False)
    signed = said(first).retracts
    window = taking(draw(NOT_MERGING), first.flow)
    mode = draw(modes.filter(lambda one: not signed or one is not bm.AccumulationMode.DISCARDING))
    more = {"more": Sum("more")} if said(first).derived else {}
    second = (
        bm.Pipeline()
        .trigger(draw(usual_triggers), allow_data_loss=True)
        .allowed_lateness(max(5, first.flow.gives.behind_us / S))
        .accumulation_mode(mode)
        .accumulate(n=Count(), total=Sum("n"), **more)
    )
    second = second if window is None else second.window(window)
    return first.then(evolve(second, where=draw(st.none() | one_of(SHOWN)), having=draw(st.none() | one_of(SHOWN))))


@st.composite
def in_key_sets(draw: st.DrawFn) -> bm.Pipeline:
    """Windows of several key sets."""
    sets = [
        bm.Rollup("team", "part"),
        bm.Cube("part", "team"),
        bm.GroupingSets("team", "part"),
        bm.GroupingSets(("team", "part"), ()),
    ]
    pipeline = draw(pipelines().filter(lambda one: not {"team", "part"} & {*one.flow.stage.asks(one.flow.takes, 0)}))
    return pipeline.key_by(draw(st.sampled_from([*sets, bm.Rollup("team")])))


counting = pipelines().map(
    lambda pipeline: evolve(pipeline, accumulations={"n": Count(), "total": Max("score"), "each": Collect("score")})
)
of_rows: dict[str, Any] = {"lefts": ("rows",), "tables": ("rows",)}
once: dict[str, Any] = {"once": True, "policy": patient}
unlisted = versions.Drawing(with_dropped=st.just(False))  # noqa: FBT003
SEVERAL_STAGES = {
    "chain": Case(chains()),
    "tree": Case(flows.flows(), flows.tree_scripts),
    "merge": Case(merges.merges(), merges.scripts),
    "join that retracts": Case(merges.merges(mode=st.just(retracting), join=st.just(True)), merges.scripts),  # noqa: FBT003
    "rows that meet": Case(merges.merges(meets=True), merges.scripts),
    "pairs once": Case(merges.merges(once=True), merges.scripts),
    "pairs once, long scripts": Case(merges.merges(**once), merges.close_rows),
    "pairs once in sessions, long scripts": Case(merges.merges(window=meeting, **once), merges.close_rows),
    "pairs once in sliding windows, long scripts": Case(
        merges.merges(window=sliding_windows, **once), merges.close_rows
    ),
    "versions": Case(versions.versions(), versions.scripts),
    "stage over versions": Case(versions.followed(versions.versions(of=unlisted)), versions.scripts),
    "as-of join of rows": Case(versions.as_of_joins(**of_rows), versions.scripts),
    "as-of join of stages and joins": Case(
        versions.as_of_joins(lefts=("panes", "join", "rows"), tables=("panes", "rows", "versions")), versions.scripts
    ),
    "as-of join at arrival": Case(versions.joins_at_arrival(), versions.scripts),
    "stage over an as-of join": Case(versions.followed(versions.as_of_joins(of=unlisted)), versions.scripts),
}
CONDITIONS = {
    "key sets": Case(in_key_sets()),
    "conditions and computed columns": Case(counting.flatmap(refined)),
    "stage over conditions": Case(over_conditions()),
    "merge under conditions": Case(merges.merges().flatmap(conditioned), merges.scripts),
    "merge in windows of rows under conditions": Case(
        merges.merges(window=merged_row_windows).flatmap(conditioned), merges.scripts
    ),
    "pairs once under conditions": Case(merges.merges(once=True).flatmap(conditioned), merges.scripts),
    "as-of join under conditions": Case(versions.as_of_joins(**of_rows).flatmap(conditioned), versions.scripts),
    "versions under conditions": Case(versions.versions(kinds=("rows",)).flatmap(conditioned), versions.scripts),
}


# Changes, suppresses, errors


def fed(pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Scripts of changes; where accumulations keep the rows of their windows, with removals of rows that never were among them."""
    feeds = changelogs.feeds(strays=changelogs.keeps(pipeline))
    return feeds.flatmap(lambda feed: changelogs.scripts(pipeline, feed))


def of_any_source(pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    return st.one_of(merges.scripts(pipeline), flows.tree_scripts(pipeline))


trees = st.booleans().flatmap(lambda root: suppressed(suppress.some_merges, root=root, buffers=some_buffers))
some_sums = st.sampled_from([a.Sum("score"), Picky(), a.Fold(0, picky, "score", operator.add)])


def dropping_in_both(chain: bm.Pipeline) -> bm.Pipeline:
    """A chain whose stages drop rows for errors."""
    (only,) = chain.flow.inputs
    assert isinstance(only, Panes)
    first = evolve(bm.Pipeline(only.flow), on_error="drop")
    return bm.Pipeline(attrs.evolve(dropping(chain).flow, inputs=(attrs.evolve(only, flow=first.flow),)))


def huge_scripts(pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    return scripts(pipeline).map(huge)


first_rows = top_rows.filter(lambda one: "cost" not in one.by)
"""By columns of changelogs too."""


def with_first_rows(pipeline: bm.Pipeline) -> st.SearchStrategy[bm.Pipeline]:
    return first_rows.map(lambda one: evolve(pipeline, accumulations={"top": one}))


UPDATES = {
    "first rows": Case(pipelines().flatmap(with_first_rows), reorders=True),
    "first rows of a changelog": Case(changelogs.pipelines().flatmap(with_first_rows), fed, reorders=True),
    "suppressed first rows": Case(suppressed(pipelines().flatmap(with_first_rows), buffers=some_buffers)),
    "changelog": Case(changelogs.pipelines(), fed, reorders=True),
    "suppressed": Case(suppressed(suppress.some_pipelines, buffers=some_buffers)),
    "suppressed sessions, long scripts": Case(suppressed(sessions_of_one_key, buffers=some_buffers), dense),
    "suppressed, firing again and again": Case(busy(some_buffers), lambda _: busy_scripts),
    "suppressed merges and trees": Case(trees, of_any_source),
    "changes": Case(changes.changes(buffers=some_buffers), changes.scripts),
}
ERRORS = {
    "errors": Case(poisoned(), poisoned_scripts),
    "errors in a chain": Case(chains().map(dropping_in_both), huge_scripts),
    "errors in a suppressed stage": Case(
        suppressed(pipelines(accumulation=some_sums).map(dropping)),
        huge_scripts,
        unless=(bm.NumericOverflowError,),  # panes that add up (rules/output.md#errors-of-panes)
    ),
}

OF_KINDS = {name: Case(*case) for kind in strategies() for name, case in getattr(kind, "CASES", {}).items()}
"""Those that a kind's own ``strategy.py`` has."""

CASES = WINDOWS | WINDOWINGS | KEPT | ROWS | SEVERAL_STAGES | CONDITIONS | UPDATES | ERRORS | OF_KINDS
AT_THE_EDGES = {
    "windows": Case(pipelines()),
    "rows once": CASES["rows once"],
    "retention": CASES["retention"],
    "forgotten keys": CASES["forgotten keys"],
    "watermarks per key": CASES["watermarks per key"],
    "chain": CASES["chain"],
    "tree": CASES["tree"],
    "pairs once": CASES["pairs once"],
    "versions": CASES["versions"],
    "gaps filled": CASES["gaps filled"],
    "upserts": CASES["upserts"],
    "joined tables": CASES["joined tables"],
    "times of a column": CASES["times of a column"],
    "as-of joins": Case(versions.as_of_joins(), versions.scripts),
    "over": CASES["over"],
    "suppressed": Case(suppressed(pipelines(), buffers=suppress.patient)),
    "suppressed, with limits": Case(suppressed(pipelines(), buffers=some_buffers)),
    "changes": Case(changes.changes(buffers=suppress.patient), changes.scripts),
    "changes, with limits": CASES["changes"],
    "anchored windows": CASES["anchored windows, usual"],
}
"""Cases that are run at the edges of time too."""
