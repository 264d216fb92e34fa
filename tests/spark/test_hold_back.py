from tests.test_hold_back import PIPELINES, SCRIPT


def test_a_stage_kind_of_a_users_own_runs_as_micro_batches_before_and_after_a_pipeline_with_a_restart(spark, by_key):
    pipeline = PIPELINES["counts held back, then counted"]
    on_spark = SCRIPT.trace_on_spark(spark, pipeline, restart_after=(1,))
    for (event, panes), (_, expected) in zip(on_spark, SCRIPT.trace(pipeline), strict=True):
        assert by_key(panes) == by_key(expected), event
