"""Queries continue from the Spark checkpoints of a release (docs/rules/running.md#state-format)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import attrs
import pytest

import beamish as bm
from beamish.spark.checkpoint.stored_query import read_query
from tests.agreement import differences
from tests.checkpoints.cases import CASES
from tests.checkpoints.write import ROOT, move

CHECKPOINTS = Path(__file__).parents[1] / "checkpoints"
FILES = sorted(CHECKPOINTS.glob("format*/spark-*.zip"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_a_stored_query_continues_as_if_it_had_never_stopped(spark, tmp_path, path):
    case = CASES[path.stem.removeprefix("spark-")]
    with zipfile.ZipFile(path) as kept:
        kept.extractall(tmp_path)
    move(tmp_path, ROOT, str(tmp_path))
    on_spark = case.script.trace_on_spark(spark, case.pipeline, checkpoint=tmp_path)
    new = False
    for (event, panes), (_, expected) in zip(on_spark, case.script.trace(case.pipeline), strict=True):
        new |= any(pane.change for pane in panes)  # what was written before rows said what they do does not say it
        known = expected if new else [attrs.evolve(pane, change=None) for pane in expected]
        found = differences(panes, known, case.pipeline)
        assert not found, "\n".join([repr(event), *found])
    assert new
    assert 0 in {pane.sequence for _, panes in on_spark for pane in panes if pane.change}, "a state without a counter"


@pytest.mark.deep
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_an_unchanged_pipeline_continues_a_stored_query(spark, tmp_path, path):
    pipeline = CASES[path.stem.removeprefix("spark-")].pipeline
    with zipfile.ZipFile(path) as kept:
        kept.extractall(tmp_path)
    move(tmp_path, ROOT, str(tmp_path))
    (tmp_path / "rows").mkdir()
    df = spark.readStream.schema("ts timestamp_ltz, team string, score bigint, name string").json(
        str(tmp_path / "rows")
    )
    names = [source.name for source in pipeline.flow.sources]
    given = (df,) if names == [None] else ()
    named = {} if given else dict.fromkeys(names, df)
    upgrade = bm.check_upgrade(spark, str(tmp_path / "checkpoint"), pipeline, *given, shards=2, **named)
    found = {one.what for one in upgrade.changes} - {"clock", "fused stages"}  # a script's clock is one of its sources
    assert found == set()


@pytest.mark.deep
@pytest.mark.parametrize(("begun", "fuse"), [("chain_apart", True), ("chain_fused", False)])
def test_a_stored_chain_is_migrated_to_one_operator_and_back(spark, tmp_path, begun, fuse):
    case, old, new = CASES[begun], tmp_path / "old", tmp_path / "new"
    with zipfile.ZipFile(CHECKPOINTS / f"format4/spark-{begun}.zip") as kept:
        kept.extractall(old)
    move(old, ROOT, str(old))
    new.mkdir()
    bm.migrate(spark, old / "checkpoint", new / "checkpoint", case.pipeline, shards=2, fuse=fuse)
    groups = read_query(spark, str(new / "checkpoint"), case.pipeline.flow).fuse.groups
    assert set(groups) == ({frozenset({1, 2})} if fuse else {frozenset({1}), frozenset({2})})
    on_spark = case.script.trace_on_spark(spark, case.pipeline, checkpoint=new)
    begins = len(case.before.events)
    for (event, panes), (_, expected) in [*zip(on_spark, case.script.trace(case.pipeline), strict=True)][begins:]:
        found = differences(panes, expected, case.pipeline)
        assert not found, "\n".join([repr(event), *found])
    assert any(panes for _, panes in on_spark[begins:])


def test_there_are_kept_queries():
    assert len(FILES) >= 2
