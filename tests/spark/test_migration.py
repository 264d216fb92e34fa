"""The logs of a checkpoint that is carried over: where the clock's offsets stand among those of the sources."""

from __future__ import annotations

import pytest

import beamish as bm
from beamish.checkpoint.upgrade import _local
from beamish.script import script_rows
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


def test_source_metadata_moves_with_source_numbers(tmp_path):
    for number in (0, 1, 2):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "log").write_text(str(number))
    flow = bound(MERGED, OF_TWO)
    goes = _ticks(flow, [A, CLOCK, B], before=True, now=False)
    _renumber(tmp_path, goes)
    assert [(tmp_path / str(number) / "log").read_text() for number in (0, 1)] == ["0", "2"]
    assert not (tmp_path / "2").exists()


@pytest.mark.parametrize("folder", ["s3://bucket/checkpoint", "hdfs://host/checkpoint", ""])
def test_a_remote_folder_is_rejected(folder):
    with pytest.raises(bm.OptionError, match="must be a folder on a file system of this process"):
        _local("checkpoint", folder)


def test_a_folder_may_be_written_as_spark_writes_it(tmp_path):
    assert _local("checkpoint", f"file://{tmp_path}") == _local("checkpoint", f"file:{tmp_path}") == tmp_path


def test_a_folder_that_spark_does_not_find_is_refused(tmp_path):
    with pytest.raises(bm.OptionError, match="blanks"):
        _local("new_checkpoint", tmp_path / "carried over")
