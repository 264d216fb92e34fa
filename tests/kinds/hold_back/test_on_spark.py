import beamish as bm
from beamish.testing import TestStream
from tests.kinds.hold_back.pipelines import PIPELINES, SCRIPT, SOURCE
from tests.kinds.hold_back.stage import held_back


def test_a_custom_kind_of_stage_runs_between_pipelines_with_a_restart(spark, by_key):
    pipeline = PIPELINES["counts held back, then counted"]
    on_spark = SCRIPT.trace_on_spark(spark, pipeline, restart_after=(1,), shards=2, partitions=1)
    for (event, panes), (_, expected) in zip(on_spark, SCRIPT.trace(pipeline), strict=True):
        assert by_key(panes) == by_key(expected), event


def test_state_inspect_and_check_upgrade_read_its_declared_state(spark, tmp_path):
    pipeline, first = PIPELINES["rows held back"], TestStream(SCRIPT.events[:3])
    first.trace_on_spark(spark, pipeline, checkpoint=tmp_path, shards=2, partitions=1)
    held = pipeline.state(spark, tmp_path / "checkpoint").held().orderBy("due").collect()
    expected = sorted(pipeline.state(first).held(), key=lambda one: one.due)
    assert [(row.team, row.ts, row.score, row.due) for row in held] == [
        (one.key["team"], *one.values.values(), one.due.astimezone().replace(tzinfo=None)) for one in expected
    ]
    (stage,) = bm.inspect(spark, tmp_path / "checkpoint").stages().collect()
    assert stage.watermark.timestamp() == 6
    assert bm.check_upgrade(spark, tmp_path / "checkpoint", pipeline).changes == []
    (change,) = bm.check_upgrade(spark, tmp_path / "checkpoint", held_back(6, SOURCE)).refused
    assert "written by held_back(...) with span 5000000, the pipeline now has 6000000" in change.means
