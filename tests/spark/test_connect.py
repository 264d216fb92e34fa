import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("connect")]  # one run, beside the other session


@pytest.fixture(scope="module")
def done(warm_python):
    script = Path(__file__).with_name("connect_session.py")
    # A free port for the server, so that two of these can run side by side.
    environment = {**os.environ, "SPARK_TESTING": "1", "PYSPARK_PYTHON": warm_python or sys.executable}
    return subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_scripts_streams_and_batches_run_on_spark_connect(done):
    assert "pipeline" in done.stdout.split(), done.stderr[-3000:]


def test_changes_come_in_and_go_out_on_spark_connect(done):
    assert "changelog" in done.stdout.split(), done.stderr[-3000:]


def test_a_table_is_kept_and_a_query_counts_on_spark_connect(done):
    assert "sinks" in done.stdout.split(), done.stderr[-3000:]


def test_a_sink_asks_the_connect_server_for_its_connector(done):
    assert "connectors" in done.stdout.split(), done.stderr[-3000:]


def test_rows_come_out_once_on_spark_connect(done):
    assert "duplicates" in done.stdout.split(), done.stderr[-3000:]


def test_a_chain_runs_on_spark_connect(done):
    assert "chain" in done.stdout.split(), done.stderr[-3000:]


def test_a_merge_runs_on_spark_connect(done):
    assert "merge" in done.stdout.split(), done.stderr[-3000:]


def test_a_merge_of_stages_runs_on_spark_connect(done):
    assert "tree" in done.stdout.split(), done.stderr[-3000:]


def test_an_as_of_join_runs_on_spark_connect_and_its_table_is_read_from_the_checkpoint(done):
    assert "as_of" in done.stdout.split(), done.stderr[-3000:]


def test_the_cells_of_a_notebook_run_on_spark_connect(done):
    assert "notebook" in done.stdout.split(), done.stderr[-3000:]
