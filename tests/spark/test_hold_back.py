import pytest

from tests.test_hold_back import PIPELINES, SCRIPT


@pytest.mark.parametrize("name", ["rows held back, then counted", "counts held back, then counted"])
def test_a_stage_kind_of_a_users_own_runs_as_micro_batches_with_a_restart(spark, by_key, name):
    on_spark = SCRIPT.trace_on_spark(spark, PIPELINES[name], restart_after=(1,))
    for (event, panes), (_, expected) in zip(on_spark, SCRIPT.trace(PIPELINES[name]), strict=True):
        assert by_key(panes) == by_key(expected), event
