"""The logs of a checkpoint that is carried over: where the clock's offsets stand among those of the sources."""

from __future__ import annotations

import pytest

import beamish as bm
from beamish.checkpoint.upgrade import _without_escapes
from beamish.script import script_rows
from beamish.spark.checkpoint.hadoop_path import HadoopPath
from beamish.spark.checkpoint.migration import _renumber, _ticks
from beamish.spark.checkpoint.stored_query import is_heartbeat
from tests.upgrades.carried import Run
from tests.upgrades.rows import CHAIN, MERGED, OF_TWO, PLAIN, SCRIPT

BEGINS = '{"tick": 0, "clock_us": 0}'
A, B, CLOCK = '{"logOffset":3}', "-", '{"tick": 4, "clock_us": 1700000000000000}'


def bound(pipeline, script):
    return Run(pipeline, script_rows(pipeline.flow, script.events).schemas).flow


@pytest.mark.parametrize(
    ("flow", "sources", "with_clock"),
    [
        (bound(PLAIN, SCRIPT), [A], [A, BEGINS]),
        (bound(MERGED, OF_TWO), [A, B], [A, B, BEGINS]),
        (bound(CHAIN, SCRIPT), [A], [A, BEGINS, BEGINS]),
    ],
    ids=["one input", "a merge", "a chain"],
)
def test_migration_moves_the_clock_source(flow, sources, with_clock):
    comes = _ticks(flow, sources, before=False, now=True)
    assert comes.of(sources) == with_clock
    assert is_heartbeat(BEGINS)
    had = [CLOCK if line == BEGINS else line for line in with_clock]
    assert _ticks(flow, had, before=True, now=False).of(had) == sources
    assert _ticks(flow, had, before=True, now=True).of(had) == had


def test_migration_adds_no_clock_of_unknown_position():
    with pytest.raises(bm.StateError, match="has 3 sources, the pipeline 1 inputs"):
        _ticks(bound(PLAIN, SCRIPT), [A, A, A], before=False, now=True)


def test_source_metadata_moves_with_source_numbers(spark, tmp_path):
    for number in (0, 1, 2):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "log").write_text(str(number))
    flow = bound(MERGED, OF_TWO)
    goes = _ticks(flow, [A, CLOCK, B], before=True, now=False)
    _renumber(HadoopPath.of(spark, str(tmp_path)), goes)
    assert [(tmp_path / str(number) / "log").read_text() for number in (0, 1)] == ["0", "2"]
    assert not (tmp_path / "2").exists()


@pytest.mark.parametrize(
    "folder", ["s3a://bucket/scores", "hdfs://host:8020/scores/", "abfss://a@b.host/scores", "scores"]
)
def test_a_folder_may_be_on_any_file_system(folder):
    assert _without_escapes("checkpoint", folder) == folder.rstrip("/")


@pytest.mark.parametrize("folder", ["", "carried over", "s3a://bucket/{scores}", "/scores*"])
def test_a_folder_that_spark_does_not_find_is_refused(folder):
    with pytest.raises(bm.OptionError, match="blanks"):
        _without_escapes("new_checkpoint", folder)
