"""The logs of a checkpoint that is carried over: where the clock's offsets stand among those of the sources."""

from __future__ import annotations

import pytest

import beamish as bm
from beamish.checkpoint.upgrade import _without_escapes
from beamish.fusion.groups import APART, FUSE
from beamish.script import script_rows
from beamish.spark.checkpoint.hadoop_path import HadoopPath
from beamish.spark.checkpoint.migration import _publish, _renumber, _ticks
from beamish.spark.checkpoint.stored_query import is_heartbeat
from tests.upgrades.carried import Run
from tests.upgrades.rows import CHAIN, MERGED, OF_TWO, PLAIN, SCRIPT

BEGINS = '{"tick": 0, "clock_us": 0}'
A, B, CLOCK = '{"logOffset":3}', "-", '{"tick": 4, "clock_us": 1700000000000000}'


def bound(pipeline, script):
    return APART.grouped(Run(pipeline, script_rows(pipeline.flow, script.events).schemas).flow)


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


def test_migration_moves_the_clock_source_of_fused_stages():
    apart, fused = bound(CHAIN, SCRIPT), FUSE.grouped(bound(CHAIN, SCRIPT).of)
    assert _ticks(fused, [A, CLOCK, CLOCK], before=True, now=True).of([A, CLOCK, CLOCK]) == [A, CLOCK]
    assert _ticks(apart, [A, CLOCK], before=True, now=True).of([A, CLOCK]) == [A, CLOCK, CLOCK]


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


def test_files_that_a_killed_query_left_half_written_are_not_copied(spark, tmp_path):
    of_shard = tmp_path / "state" / "0" / "0"
    of_shard.mkdir(parents=True)
    (of_shard / "2.changelog").write_text("a")
    temporary = ".3.changelog.a5a12a71-f9b9-448f-b7ec-e0c59de6aed7.TID162.tmp"
    (of_shard / temporary).write_text("b")
    (of_shard / f".{temporary}.crc").write_bytes(b"crc\0" + (512).to_bytes(4) + b"none")
    HadoopPath.of(spark, str(tmp_path / "state")).copy(HadoopPath.of(spark, str(tmp_path / "copy")))
    copied = [path.name for path in (tmp_path / "copy" / "0" / "0").iterdir() if not path.name.endswith(".crc")]
    assert copied == ["2.changelog"]


class _EndError(Exception):
    """Stands for the end of the process."""


def test_an_interrupted_migration_leaves_no_folder_that_a_query_would_begin_anew_in(spark, tmp_path, monkeypatch):
    parts, found, at = ["offsets", "commits", "sources", "metadata", "state"], [], [0]

    def until_end(original):
        def operation(self, *args):
            at[0] -= 1
            if at[0] < 0:
                raise _EndError
            return original(self, *args)

        return operation

    for name in ("make_folder", "rename", "delete"):
        monkeypatch.setattr(HadoopPath, name, until_end(getattr(HadoopPath, name)))
    for number in range(20):
        making, new = tmp_path / f"{number}.unfinished", tmp_path / f"{number}"
        for name in parts:
            (making / name).mkdir(parents=True)
            (making / name / "0").touch()
        at[0] = number
        try:
            _publish(*(HadoopPath.of(spark, str(path)) for path in (making, new)))
        except _EndError:
            found.append([name for name in parts if (new / name / "0").exists()] if new.exists() else None)
        else:
            break
    begun = [parts[:number] for number in range(1, len(parts) + 1)]
    assert [one for one in found if one is not None] == begun
    assert sorted(path.name for path in new.iterdir()) == sorted(parts)
    assert not making.exists()


@pytest.mark.parametrize(
    "folder", ["s3a://bucket/scores", "hdfs://host:8020/scores/", "abfss://a@b.host/scores", "scores"]
)
def test_a_folder_may_be_on_any_file_system(folder):
    assert _without_escapes("checkpoint", folder) == folder.rstrip("/")


@pytest.mark.parametrize("folder", ["", "carried over", "s3a://bucket/{scores}", "/scores*"])
def test_a_folder_that_spark_does_not_find_is_refused(folder):
    with pytest.raises(bm.OptionError, match="blanks"):
        _without_escapes("new_checkpoint", folder)
