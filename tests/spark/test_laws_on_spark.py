"""Drawn pipelines, chains, merges and trees on real Spark give what the engine gives: other shard and partition counts, the
query stopped and started again from its checkpoint, also as another pipeline, with and without heartbeats
(rules/laws.md#law-on-spark, #law-changed-between-runs)."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish import accumulations as a
from beamish.kinds.suppress.stage import Suppressed
from beamish.script import Bundle
from beamish.testing import TestStream
from tests.agreement import differences
from tests.budget import SPARK_SECONDS, search
from tests.declared_options import stages
from tests.kinds.suppress.strategy import suppressed
from tests.kinds.versions import strategy as tables
from tests.laws.ledger import unordered
from tests.strategies import merges
from tests.strategies.chains import ANY_FIRST, chains
from tests.strategies.changed import changed, changed_tables
from tests.strategies.flows import flows
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import scripts
from tests.strategies.triggers import usual_triggers
from tests.upgrades.carried import in_two_runs

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("several_partitions")]

EXAMPLES = int(os.environ.get("BEAMISH_SPARK_EXAMPLES", "3"))
FEW = max(EXAMPLES // 3, 1)
"""For chains, merges and trees."""


def drawing(examples):
    """Nothing is shrunk: that would take a query for every try."""
    return settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def ends(pipeline):
    """Whether anything can be emitted before the final watermark."""
    try:
        for flow in pipeline.flow.flows:
            flow.stage.check_stream(flow.takes)
    except bm.PipelineError:
        return False
    return True


def short(script):
    return 5 <= len(script.events) <= 9


def clock_of(pipeline):
    """Whether it needs the clock."""
    limits = (flow.stage.suppress.until for flow in pipeline.flow.flows if isinstance(flow.stage, Suppressed))
    return (
        any(source.watermark.needs_clock for source in pipeline.flow.sources)
        or any(stage.trigger.needs_clock for stage in stages(pipeline))
        or any(until.by_clock for until in limits)
    )


def agree(spark, data, pipeline, script):
    how: dict[str, Any] = {
        "shards": data.draw(st.integers(1, 4)) if stages(pipeline)[0].keys else None,
        "partitions": data.draw(st.integers(1, 2)),
        "restart_after": (data.draw(st.integers(0, len(script.events) - 2)),),
        "heartbeats": None if clock_of(pipeline) else data.draw(st.booleans()),
    }
    told = "\n".join([repr(pipeline), repr(script), repr(how)])
    with TemporaryDirectory() as folder:
        panes = script.on_spark(spark, pipeline, checkpoint=folder, **how)
        upgrade = bm.check_upgrade(spark, Path(folder, "checkpoint"), pipeline)
    found = differences(pipeline.run(script), panes, pipeline)
    assert not found, "\n".join([told, "- engine, + Spark", *found])
    assert not unordered(panes), "\n".join([told, *unordered(panes)])
    assert not but_for_the_clock(upgrade.changes), f"{told}\n{upgrade}"


def but_for_the_clock(changes):
    """Scripts bring it with their rows."""
    return [one for one in changes if one.what != "clock"]


def pipelines_agree(spark, data):
    pipeline = data.draw(pipelines().filter(ends))
    script = data.draw(scripts(pipeline, least=1).filter(short))
    assume(len(pipeline.run(script)) >= 2)
    agree(spark, data, pipeline, script)


def chains_agree(spark, data, first=ANY_FIRST, kinds=1):
    chain = data.draw(chains(first=first).filter(ends))
    script = data.draw(scripts(chain, least=1).filter(short))
    assume(len({pane.kind for pane in chain.run(script)} - {PaneKind.DROPPED}) >= kinds)
    agree(spark, data, chain, script)


def merges_agree(spark, data, join=st.booleans(), panes=1):  # noqa: B008
    pipeline = data.draw(merges.merges(join=join).filter(ends))
    script = data.draw(merges.scripts(pipeline, least=1).filter(short))
    assume(sum(pane.kind is PaneKind.PANE for pane in pipeline.run(script)) >= panes)
    agree(spark, data, pipeline, script)


def trees_agree(spark, data, panes=1):
    pipeline = data.draw(flows().filter(ends))
    script = data.draw(merges.scripts(pipeline, least=1).filter(short))
    assume(sum(pane.kind is PaneKind.PANE for pane in pipeline.run(script)) >= panes)
    agree(spark, data, pipeline, script)


def suppressed_agree(spark, data, panes=1):
    """On both clocks, with updates held across a restart; without buffers, since their limits are per shard."""
    pipeline = data.draw(suppressed(pipelines() | chains(first=ANY_FIRST), buffers=st.just(bm.Buffer())).filter(ends))
    script = data.draw(scripts(pipeline, least=1).filter(short))
    assume(sum(pane.kind is not PaneKind.DROPPED for pane in pipeline.run(script)) >= panes)
    agree(spark, data, pipeline, script)


FULL = {
    "ts": 1.0,
    "team": "red",
    "part": 1.0,
    "score": 1,
    "ratio": 0.25,
    "name": "a",
    "cost": Decimal("99.99"),
    "flag": True,
    "mark": None,
}
"""A row that says the types of columns, so that both runs have the same."""
BEFORE = [FULL | {"ts": float(at), "team": f"team {at}"} for at in range(1, 7)]
"""Of other teams than the random rows, so that most shards have windows and no rows when the second run begins."""


def changed_agree(spark, data, panes=1):
    """Stopped, changed and started again."""
    keyed = pipelines(keys=st.sampled_from([("team",), ("team", "part")]), lateness=st.just(1000))
    then = data.draw(keyed.filter(ends))
    now = data.draw(changed(then, trigger=usual_triggers, always=("allowed_lateness",)).filter(ends))
    assume(clock_of(then) == clock_of(now))
    goes_on(
        spark, data, (then, now), [TestStream().add(BEFORE), data.draw(scripts(then, least=1).filter(short))], panes
    )


def tables_agree(spark, data, panes=1):
    """The same of a table or of an as-of join of rows."""
    of = tables.Drawing(policy=tables.simple)
    rows = tables.versions(of=of, kinds=("rows",)), tables.as_of_joins(of=of, lefts=("rows",), tables=("rows",))
    then = data.draw(st.one_of(*rows).filter(ends))
    before = TestStream()
    for source in then.flow.sources:  # a row whose columns have types
        keys = {tables.column(source.name, name): value for name, value in (("team", "red"), ("part", 1.0))}
        some = {"value": 1, "ratio": 0.5, "mark": "a", "seq": 1, "gone": False}
        before = before.add([{source.event_time: 0.0, **keys, **some}], input=source.name)
    script = tables.script_of(data.draw(st.integers(0, 2**40)), then, 8)
    goes_on(spark, data, (then, data.draw(changed_tables(then))), [before, script], panes, notes_columns=False)


def goes_on(spark, data, then_and_now, scripts, panes, *, notes_columns=True):
    """The second run begins in the second script, with rows: with them all shards learn of the change.

    Args:
        notes_columns: whether the checkpoint has those of its input.
    """
    (then, now), events = then_and_now, [event for script in scripts for event in script.events]
    least = len(scripts[0].events)
    begins = [at for at, event in enumerate(events) if at >= least and isinstance(event, Bundle) and event.rows]
    assume(begins)
    first, script = data.draw(st.sampled_from(begins)), attrs.evolve(TestStream(), events=tuple(events))
    _, after = in_two_runs(then, now, script, first)
    assume(sum(pane.kind is not PaneKind.DROPPED for pane in after) >= panes)
    how = {"shards": data.draw(st.integers(1, 4)), "partitions": data.draw(st.integers(1, 2))}
    with TemporaryDirectory() as folder:
        attrs.evolve(script, events=events[:first]).on_spark(spark, then, checkpoint=folder, **how)
        if notes_columns:
            refused = but_for_the_clock(bm.check_upgrade(spark, Path(folder, "checkpoint"), now).refused)
            assert not refused, f"{then!r}\n{now!r}\n{script!r}\n{refused}"
        for batch in Path(folder, "panes").iterdir():
            batch.unlink()  # of the run before, whose columns may be others
        came = script.on_spark(spark, now, checkpoint=folder, **how)
    found = differences(after, came, now)
    lines = [repr(then), repr(now), f"{first} of {script!r}", repr(how), "- engine, + Spark", *found]
    assert not found, "\n".join(lines)


@pytest.mark.of_law("law-sequence", "law-on-spark")
@drawing(EXAMPLES)
@given(data=st.data())
def test_random_pipelines_on_spark_agree_with_the_engine(spark, data):
    pipelines_agree(spark, data)


@pytest.mark.deep
@pytest.mark.of_law("law-on-spark")
@drawing(FEW)
@given(data=st.data())
def test_random_chains_on_spark_agree_with_the_engine(spark, data):
    """With a first stage that retracts, and retractions of the second."""
    chains_agree(spark, data, pipelines(accumulation=st.just(a.Count()), mode=st.just(retracting)), kinds=2)


@pytest.mark.deep
@pytest.mark.of_law("law-on-spark")
@drawing(FEW)
@given(data=st.data())
def test_random_merges_on_spark_agree_with_the_engine(spark, data):
    merges_agree(spark, data, st.just(False), panes=2)  # noqa: FBT003


@pytest.mark.deep
@pytest.mark.of_law("law-on-spark")
@drawing(FEW)
@given(data=st.data())
def test_random_joins_on_spark_agree_with_the_engine(spark, data):
    merges_agree(spark, data, st.just(True), panes=2)  # noqa: FBT003


@pytest.mark.deep
@drawing(FEW)
@given(data=st.data())
def test_random_trees_on_spark_agree_with_the_engine(spark, data):
    trees_agree(spark, data, panes=2)


@pytest.mark.deep
@drawing(FEW)
@given(data=st.data())
def test_random_suppressed_stages_on_spark_agree_with_the_engine(spark, data):
    suppressed_agree(spark, data, panes=2)


@pytest.mark.of_law("law-changed-between-runs")
@drawing(EXAMPLES)
@given(data=st.data())
def test_random_changes_between_runs_on_spark_agree_with_the_engine(spark, data):
    changed_agree(spark, data, panes=2)


@pytest.mark.deep
@pytest.mark.of_law("law-changed-between-runs")
@drawing(FEW)
@given(data=st.data())
def test_random_changes_of_tables_on_spark_agree_with_the_engine(spark, data):
    tables_agree(spark, data, panes=2)


LAWS = {
    "pipelines": pipelines_agree,
    "chains": chains_agree,
    "merges": merges_agree,
    "trees": trees_agree,
    "suppressed": suppressed_agree,
    "changed": changed_agree,
    "tables": tables_agree,
}


@pytest.mark.deep
@pytest.mark.parametrize("law", LAWS)
def test_no_counterexample_is_found_on_spark(spark, law):
    @drawing(4)
    @given(data=st.data())
    def drawn(data):
        LAWS[law](spark, data)

    search(drawn, SPARK_SECONDS / len(LAWS))
