"""The paths that a checkpoint notes of itself, without Spark."""

import json

import pytest

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
    file.with_name(".0.crc").write_bytes(b"\xff a checksum that no longer holds")
    return place


def test_every_stored_path_is_rewritten(checkpoint):
    relocate(checkpoint, "s3a://bucket/scores")
    assert noted(checkpoint) == [f"s3a://bucket/scores/state/0/_stateSchema/default/{number}_a" for number in (0, 1)]
    assert not list(checkpoint.rglob("*.crc"))


def test_a_moved_checkpoint_is_read_as_a_copy(checkpoint, tmp_path):
    with in_place(checkpoint, tmp_path / "new") as copy:
        assert noted(copy)[0].startswith(f"file:{copy}/state/0/")
        assert noted(checkpoint)[0].startswith(OLD)
    assert not copy.exists()
    relocate(checkpoint, f"file:{checkpoint}")
    with in_place(checkpoint, tmp_path / "new") as same:
        assert same == checkpoint
