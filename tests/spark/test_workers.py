"""The Python of Spark's workers, tried before a query is built."""

import sys
from types import SimpleNamespace

import pytest

import beamish as bm
from beamish.spark.runtime import workers

FINE = {"python": "/venv/bin/python", "version": [3, 11], "missing": [], "beamish": bm.__version__, "added": False}
NO_PROGRAM = """An error occurred while calling o55.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: Cannot run program "/nonexistent/python": error=2, No such file or directory
\tat java.base/java.lang.ProcessImpl.forkAndExec(Native Method)
Caused by: java.io.IOException: error=2, No such file or directory
"""
NO_PICKLE = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 1, in main
ModuleNotFoundError: No module named 'cloudpickle'
"""
MISMATCH = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11"
FIX = f'os.environ["PYSPARK_PYTHON"] = "{sys.executable}"'


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"missing": ["pyarrow", "pandas"]}, "run /venv/bin/python, which has no pyarrow, pandas; before the session"),
        ({"missing": ["beamish"]}, "run /venv/bin/python, which has no beamish; before the session"),
        ({"beamish": "0.0.1"}, f"which has beamish 0.0.1; here it is {bm.__version__}: install one of them in both"),
    ],
)
def test_missing_packages_of_workers_are_reported_in_one_line(found, words):
    said = workers.what_is_wrong({**FINE, **found}, connect=False)
    assert words in said
    assert (FIX in said) == ("missing" in found)
    assert not workers.what_is_wrong(FINE, connect=False)


def test_artifacts_of_a_connect_session_do_not_reach_streaming_queries():
    added = {**FINE, "added": True}
    assert not workers.what_is_wrong(added, connect=False)
    assert not workers.what_is_wrong(FINE, connect=True)
    said = workers.what_is_wrong(added, connect=True)
    assert "by spark.addArtifacts only" in said
    assert "start the server with PYTHONPATH=beamish.zip" in said


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MISMATCH, "another Python version than this one"),
        (NO_PROGRAM, 'cannot run Python: java.io.IOException: Cannot run program "/nonexistent/python": error=2'),
        (NO_PICKLE, "cannot run Python: ModuleNotFoundError: No module named 'cloudpickle'"),
        ("", "cannot run Python: no reason given"),
    ],
)
def test_a_worker_that_does_not_start_is_reported_in_one_line(error, words):
    said = workers.not_started(error)
    assert words in said
    assert FIX in said
    assert "ProcessBuilder" not in said


def test_workers_are_checked_once_per_session(spark, monkeypatch):
    rows = spark.readStream.format("rate").load()
    pipeline = bm.Pipeline().event_time("timestamp", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(5))
    pipeline = pipeline.accumulate(n=bm.accumulations.Count())
    monkeypatch.setattr(workers, "_tried", set())
    monkeypatch.setattr(workers, "_are_this_python", lambda _: False)
    monkeypatch.setattr(workers, "NEEDED", ("attrs", "no_such_package"))
    with pytest.raises(bm.SparkSetupError, match=r"Spark's workers run .*, which has no no_such_package; before"):
        pipeline.apply(rows)
    monkeypatch.setattr(workers, "NEEDED", ("attrs",))
    assert pipeline.apply(rows).isStreaming
    monkeypatch.setattr(workers, "_teller", None)  # it would fail if it were asked again
    assert pipeline.apply(rows).isStreaming


class Session:
    """The parts of a classic session that are used."""

    _jsparkSession = None  # noqa: N815 - PySpark's

    def __init__(self, master="local[2]", python=sys.executable):
        self.sparkContext = SimpleNamespace(master=master, pythonExec=python)


def test_workers_with_this_python_are_not_checked(monkeypatch):
    monkeypatch.setattr(workers, "_teller", None)  # it would fail if it were asked
    workers.check_workers(Session())


@pytest.mark.parametrize(
    "other",
    [{"master": "local-cluster[1,1,1024]"}, {"master": "spark://one:7077"}, {"python": "sh"}, {"python": "none"}],
)
def test_other_workers_are_checked(other):
    assert workers._are_this_python(Session())
    assert not workers._are_this_python(Session(**other))


@pytest.mark.parametrize(("installed", "asked"), [(None, True), ("0.0.1", True), (bm.__version__, False)])
def test_workers_are_checked_if_another_beamish_is_installed(monkeypatch, tmp_path, installed, asked):
    """Another version may be installed than the one that the script finds by its path."""
    if installed:
        (tmp_path / "beamish.dist-info").mkdir()
        (tmp_path / "beamish.dist-info" / "METADATA").write_text(f"Name: beamish\nVersion: {installed}\n")
    monkeypatch.setattr(workers.site, "getsitepackages", lambda: [str(tmp_path)])
    assert workers._are_this_python(Session()) != asked
