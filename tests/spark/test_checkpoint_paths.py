"""The paths stored in a checkpoint, on the local file system."""

import json

import pytest

import beamish as bm
from beamish.spark.checkpoint.hadoop_path import HadoopPath
from beamish.spark.checkpoint.migration import in_place, relocate

OLD = "hdfs://host:8020/checkpoints/scores"


def noted(folder):
    """The paths of the schemas in a checkpoint's metadata."""
    return json.loads((folder / "state/0/_metadata/v2/0").read_text().splitlines()[1])["stateSchemaFilePaths"]


@pytest.fixture
def checkpoint(tmp_path):
    place = tmp_path / "checkpoint"
    (place / "state/0/_metadata/v2").mkdir(parents=True)
    paths = [f"{OLD}/state/0/_stateSchema/default/{number}_a" for number in (0, 1)]
    file = place / "state/0/_metadata/v2/0"
    file.write_text("v2\n" + json.dumps({"stateSchemaFilePaths": paths, "operatorProperties": "{}"}))
    return place


@pytest.fixture
def path(spark):
    """A local folder as Hadoop sees it."""
    return lambda folder: HadoopPath.of(spark, str(folder))


def test_every_stored_path_is_rewritten(checkpoint, path):
    relocate(path(checkpoint), "s3a://bucket/scores")
    assert noted(checkpoint) == [f"s3a://bucket/scores/state/0/_stateSchema/default/{number}_a" for number in (0, 1)]
    assert path(checkpoint / "state/0/_metadata/v2/0").read_text().startswith("v2\n")  # its checksum holds


def test_a_moved_checkpoint_is_read_as_a_copy(checkpoint, path, tmp_path):
    with in_place(path(checkpoint), path(tmp_path / "new")) as copy:
        assert noted(tmp_path / copy.name)[0].startswith(f"{copy}/state/0/")
        assert noted(checkpoint)[0].startswith(OLD)
    assert not copy.exists()
    relocate(path(checkpoint), f"file:{checkpoint}")
    with in_place(path(checkpoint), path(tmp_path / "new")) as same:
        assert str(same) == f"file:{checkpoint}"


def test_files_without_checksums_of_spark_are_copied(path, tmp_path):
    (tmp_path / "old/state/0").mkdir(parents=True)
    for name in ("1.zip", "1.zip.crc"):
        (tmp_path / "old/state/0" / name).write_text(name)
    path(tmp_path / "old").copy(path(f"file://{tmp_path}/new"))
    assert [one.name for one in (tmp_path / "new/state/0").glob("[0-9]*")] == ["1.zip"]
    path(tmp_path / "old/state/0/1.zip").copy(path(tmp_path / "one"))
    assert (tmp_path / "one").read_text() == "1.zip"


def test_a_rename_that_is_refused_is_an_error(path, tmp_path):
    with pytest.raises(Exception, match="missing"):
        path(tmp_path / "missing").rename(path(tmp_path / "new"))


@pytest.mark.parametrize(
    ("uri", "why"), [("nowhere://host/scores", "No FileSystem for scheme"), ("a:b", "Relative path")]
)
def test_an_unknown_file_system_is_refused(path, uri, why):
    with pytest.raises(bm.OptionError, match=why):
        path(uri)
