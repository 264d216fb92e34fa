"""Laws of the parts of window stages (kinds/window/plan/part.py): they are tested by removal."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import partial

import attrs
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.accumulations import InnerJoin
from beamish.durations import duration
from beamish.kinds.deduplicate.option import Deduplication
from beamish.kinds.window.operator import WindowOperator
from beamish.kinds.window.parts.duplicates import DuplicatesPart
from beamish.kinds.window.parts.event_time import WatermarkProgress
from beamish.kinds.window.parts.forgetting import ForgettingPart
from beamish.kinds.window.parts.key_watermarks import KeyProgress
from beamish.kinds.window.parts.match_conditions import MatchConditionsPart
from beamish.kinds.window.parts.merged_panes import MergedPanesPart
from beamish.kinds.window.parts.null_keys import NullKeysPart
from beamish.kinds.window.parts.pairs_once import PairsOncePart
from beamish.kinds.window.parts.planning import PARTS
from beamish.kinds.window.parts.removals import RemovalsPart
from beamish.kinds.window.parts.retention import RetentionPart
from beamish.kinds.window.parts.row_errors import RowErrorsPart
from beamish.kinds.window.parts.row_windows import RowProgress
from beamish.kinds.window.parts.timestamps import TimestampsPart
from beamish.kinds.window.plan.options import Retention
from beamish.local import Variation
from beamish.local import run as run_varied
from beamish.script import as_step
from tests.agreement import differences
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.strategies import changelogs
from tests.strategies.merges import merges
from tests.strategies.merges import scripts as merged_scripts
from tests.strategies.pipelines import pipelines, retentions
from tests.strategies.scripts import scripts
from tests.strategies.windows import fixed_windows, sessions

UNDECLARED = {
    RetentionPart: {"retention": None},
    RowErrorsPart: {"on_error": "fail"},
    DuplicatesPart: {"deduplication": None},
    TimestampsPart: {"combiner": bm.TimestampCombiner.END_OF_WINDOW},
    ForgettingPart: {"forget_after": None},
}
"""What is not declared where a part is not asked for."""
REASONS = {
    RetentionPart: "out_of_retention",
    PairsOncePart: "out_of_retention",
    DuplicatesPart: "duplicate",
    RemovalsPart: "unmatched_removal",
}
"""For which a part drops rows."""
EVER = duration("span", 10**9)
apart = st.one_of(fixed_windows, st.just(bm.GlobalWindow()))


def without(gone, operator):
    """An operator of a window stage whose plan lacks parts."""
    if not isinstance(operator, WindowOperator):
        return operator
    plan = attrs.evolve(operator.plan)
    plan.progress, of = operator.plan.progress, operator.plan.parts
    plan.parts = tuple(part for part in of if not isinstance(part, gone))
    return attrs.evolve(operator, plan=plan)


def run_without(gone, pipeline, script):
    return run_varied(pipeline.flow, script.events, Variation(adapt=partial(without, gone)))


@st.composite
def asking(draw):
    """A pipeline that asks for many parts."""
    pipeline = draw(pipelines(once=draw(st.booleans()), with_dropped=st.just(True)))  # noqa: FBT003
    is_all_of_time = pipeline.flow.stage.options.window.is_all_of_time
    return evolve(
        pipeline,
        retention=None if is_all_of_time else draw(retentions),
        forget_after=draw(st.sampled_from([None, duration("span", 5)])) if is_all_of_time else None,
    )


@cost(2)
@given(st.data())
def test_removing_a_part_equals_not_declaring_its_option(data):
    pipeline = data.draw(asking())
    script = data.draw(scripts(pipeline))
    gone = data.draw(st.sampled_from([(kind,) for kind in UNDECLARED] + [tuple(UNDECLARED)] * 2))
    undeclared = evolve(pipeline, **{name: value for kind in gone for name, value in UNDECLARED[kind].items()})
    found = differences(undeclared.run(script), run_without(gone, pipeline, script), undeclared)
    assert not found, "\n".join([repr(pipeline), repr(script), repr(gone), *found])


@cost(2)
@given(st.data())
def test_a_part_with_nothing_to_do_changes_nothing(data):
    pipeline = data.draw(asking())
    pipeline = evolve(
        pipeline,
        on_error=data.draw(st.sampled_from(["fail", "drop"])),
        retention=said(pipeline).retention and Retention(10**6, 10**6, 10**9),
        forget_after=said(pipeline).forget_after and EVER,
        deduplication=said(pipeline).deduplication and Deduplication(("id",)),
        combiner=bm.TimestampCombiner.END_OF_WINDOW,
    )
    events, number = [], 0
    for event in data.draw(scripts(pipeline, ends=False, nulls=False)).events:
        rows = [{**row, "id": number + i} for i, row in enumerate(as_step(event).rows)]
        number += len(rows)
        events.append(attrs.evolve(event, rows=tuple(rows)) if rows else event)
    idle = tuple(kind for kind in PARTS if kind is not MergedPanesPart)
    bare = run_varied(pipeline.flow, events, Variation(adapt=partial(without, idle)))
    found = differences(run_varied(pipeline.flow, events), bare, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(events), *found])


@cost(2)
@given(st.data())
def test_without_its_part_a_join_gives_each_pair_of_the_rows_of_one_pane(data):
    """Nothing keeps rows when a pane is out: it is a plain join under discarding."""
    pipeline = data.draw(merges(once=True, cuts=False, window=apart).filter(is_inner))
    script = data.draw(merged_scripts(pipeline))
    (join,) = said(pipeline).accumulations.values()
    plain = evolve(pipeline, accumulations={"pairs": attrs.evolve(join, once=False)})
    assert shown(run_without(PairsOncePart, pipeline, script)) == shown(plain.run(script)), f"{pipeline!r}\n{script!r}"


@cost(2)
@given(st.data())
def test_without_its_part_a_join_pairs_null_keys(data):
    """But for a full join, which reads its rows by their keys."""
    pipeline = data.draw(merges(join=st.just(True), once=data.draw(st.booleans())).filter(drops_null_keys))  # noqa: FBT003
    script = data.draw(merged_scripts(pipeline))
    (join,) = said(pipeline).accumulations.values()
    pairs = evolve(pipeline, accumulations={"pairs": attrs.evolve(join, null_keys="pair")})
    assert shown(run_without(NullKeysPart, pipeline, script)) == shown(pairs.run(script)), f"{pipeline!r}\n{script!r}"


@cost(2)
@given(st.data())
def test_without_its_part_a_join_has_no_conditions(data):
    pipeline = data.draw(merges(join=st.just(True), once=data.draw(st.booleans()), meets=data.draw(st.booleans())))  # noqa: FBT003
    script = data.draw(merged_scripts(pipeline))
    (join,) = said(pipeline).accumulations.values()
    bare = evolve(pipeline, accumulations={"pairs": attrs.evolve(join, match_if={})})
    assert shown(run_without(MatchConditionsPart, pipeline, script)) == shown(bare.run(script)), (
        f"{pipeline!r}\n{script!r}"
    )


def drops_null_keys(pipeline):
    return not all(said(pipeline).accumulations["pairs"].gives_alone)


def is_inner(pipeline):
    return isinstance(said(pipeline).accumulations["pairs"], InnerJoin) and not isinstance(
        said(pipeline).window, bm.Within
    )


@cost(2)
@given(st.data())
def test_without_removals_their_part_changes_nothing(data):
    pipeline, feed = data.draw(changelogs.pipelines()), data.draw(changelogs.feeds())
    inserts = [[change for change in bundle if change[0] is None] for bundle in feed.bundles]
    script = data.draw(changelogs.scripts(pipeline, attrs.evolve(feed, bundles=inserts)))
    found = differences(pipeline.run(script), run_without(RemovalsPart, pipeline, script), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])


@cost(2)
@given(st.data())
def test_without_its_part_panes_of_merged_windows_stay(data):
    """All panes are the same, and what is retracted is replaced."""
    pipeline = data.draw(pipelines(window=sessions, mode=st.just(bm.AccumulationMode.ACCUMULATING_AND_RETRACTING)))
    script = data.draw(scripts(pipeline))
    bare = run_without(MergedPanesPart, pipeline, script)
    assert shown(bare) == shown(pipeline.run(script)), f"{pipeline!r}\n{script!r}"
    given_ = {(repr(pane.key), pane.window, pane.index) for pane in bare if pane.kind is PaneKind.PANE}
    for pane in bare:
        assert pane.kind is not PaneKind.RETRACTION or (repr(pane.key), pane.window, pane.index + 1) in given_


def shown(panes):
    return Counter(
        repr((pane.key, pane.window, pane.values, pane.timing, pane.index, pane.timestamp))
        for pane in panes
        if pane.kind is PaneKind.PANE
    )


def test_parts_are_in_the_order_in_which_the_rules_judge_rows(root):
    text = (root / "docs" / "rules" / "output.md").read_text()
    (judged,) = re.findall(r"per row and window, in this order: ([`\w, \n]+)\.", text)
    reasons = re.findall(r"\w+", judged)
    order = [reasons.index(REASONS[kind]) for kind in PARTS if kind in REASONS]
    assert order == sorted(order)
    assert len(order) == len(REASONS)


def test_the_engine_may_import_no_part(root):
    said = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (protected,) = [
        one["protected_modules"] for one in said if one["name"].startswith("A step of windows knows no part")
    ]
    assert protected == ["beamish.kinds.window.parts.*"]
    rooms = {
        f"beamish.kinds.window.parts.{path.stem}" for path in (root / "beamish/kinds/window/parts").glob("[a-z]*.py")
    }
    of_parts = {kind.__module__ for kind in (*PARTS, WatermarkProgress, RowProgress, KeyProgress)}
    assert rooms - of_parts == {"beamish.kinds.window.parts.planning"}
