"""A partition whose state is another's is refused, in process and with real folders (rules/running.md#restart)."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.spark.operator import notes
from beamish.spark.operator.notes import NO_SHARD, StatePartition
from beamish.spark.rows import pack
from beamish.spark.rows.pack import partition_of, shard_ids

pytestmark = pytest.mark.usefixtures("several_partitions")

PARTITIONS = 3
SHARDS = shard_ids(8)


class Folder(DictStore):
    """The store of a partition: entries by grouping key, of which one is being called."""

    def __init__(self):
        super().__init__()
        self._statefulProcessorApiClient, self.key = self, None

    def set_implicit_key(self, key):
        (self.key,) = key

    def get(self, name):
        return super().get((self.key, name))

    def put(self, name, value):
        super().put((self.key, name), value)


class Query:
    """Runs and batches of a query; each batch calls shards in the folders of partitions."""

    def __init__(self, monkeypatch):
        self.said = {"spark.sql.shuffle.partitions": str(PARTITIONS)}
        for module in (notes, pack):
            monkeypatch.setattr(module.TaskContext, "get", lambda: self)
        monkeypatch.setattr(pack, "_first_batches", {})
        self.batches, self.runs = 0, 0
        self.start()

    def getLocalProperty(self, name):  # noqa: N802 - Spark's name
        return self.said.get(name)

    def start(self):
        self.runs += 1
        self.said["spark.jobGroup.id"] = f"run {self.runs}"

    def batch(self, folders, shards=SHARDS, stage=1):
        self.said["streaming.sql.batchId"] = str(self.batches)
        for number, folder in enumerate(folders):
            task = StatePartition(folder, folder, stage)
            for shard in shards:
                if partition_of(shard, PARTITIONS) == number:
                    folder.set_implicit_key((shard,))
                    task.enter(shard)
                    assert folder.key == shard
        self.batches += 1


@pytest.fixture
def query(monkeypatch):
    return Query(monkeypatch)


def folders():
    return [Folder() for _ in range(PARTITIONS)]


def test_exchanged_partitions_are_refused_in_the_first_batch_of_a_run(query):
    first, second, third = folders()
    query.batch([first, second, third])
    query.batch([first, second, third])
    query.start()
    with pytest.raises(
        bm.StateError,
        match=r"^shard \d+: the folder of partition 0 of 3 of stage 1 in the checkpoint has the state of partition 1 of 3 of stage 1, "
        r"written since batch 0: .* restore the folders .* start from a new one$",
    ):
        query.batch([second, first, third])
    query.batch([first, second, third])


@given(st.data())
def test_partitions_are_refused_exactly_if_one_has_the_state_of_another(data):
    with pytest.MonkeyPatch.context() as monkeypatch:
        query, before = Query(monkeypatch), folders()
        query.batch(before, data.draw(st.lists(st.sampled_from(SHARDS), unique=True)))
        for _ in range(data.draw(st.integers(0, 2))):
            query.start()
            query.batch(before, data.draw(st.lists(st.sampled_from(SHARDS), unique=True)))
        after = data.draw(st.permutations(before))
        query.start()
        wrong = any(now and now is not then for now, then in zip(after, before, strict=True))
        try:
            query.batch(after)
        except bm.StateError:
            assert wrong
        else:
            assert not wrong


def test_the_state_of_another_stage_is_refused(query):
    one = folders()
    query.batch(one, stage=2)
    query.start()
    with pytest.raises(
        bm.StateError, match=r"partition 0 of 3 of stage 1 in the .* state of partition 0 of 3 of stage 2"
    ):
        query.batch(one, stage=1)


def test_a_batch_that_runs_again_and_a_checkpoint_without_notes_go_on(query):
    one = folders()
    query.batch(one)
    for folder in one:
        folder.clear()  # the batch was not committed
    query.batches = 0
    query.batch(one)
    assert {key for folder in one for key in folder} == {(NO_SHARD, "partition")}
    for folder in one:
        folder.clear()  # written before there were notes
    query.start()
    query.batch(one)
    query.start()
    query.batch(one)


def test_shards_of_two_partitions_in_one_task_are_refused_without_notes(query):
    folder = Folder()
    folder._statefulProcessorApiClient = None
    task = StatePartition(folder, folder, 1)
    task.enter(SHARDS[0])
    other = next(shard for shard in SHARDS if partition_of(shard, PARTITIONS) != partition_of(SHARDS[0], PARTITIONS))
    with pytest.raises(bm.StateError, match=f"shard {other}: "):
        task.enter(other)  # its timer fired


def test_another_number_of_partitions_starts_over(query):
    one = folders()
    query.batch(one)
    query.said["spark.sql.streaming.internal.stateStore.partitions"] = "1"
    query.start()
    task = StatePartition(one[2], one[2], 1)
    task.enter(SHARDS[0])
    assert b'"partitions": 1' in one[2][NO_SHARD, "partition"]


def test_ids_of_shards_may_be_numpys(query):
    one = folders()
    query.batch(one, np.array(SHARDS, np.int32))
    query.start()
    query.batch(one)


def test_nothing_is_checked_outside_of_a_task():
    folder = Folder()
    for shard in SHARDS:
        StatePartition(folder, folder, 1).enter(shard)
    assert not folder


COLUMNS = {"ts": pa.timestamp("us", tz="UTC"), "team": pa.string()}
TEAMS = "abcdefgh"
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.Sessions(100))
    .accumulate(n=Count())
)


def rows(seconds):
    return [{"ts": datetime.fromtimestamp(seconds, UTC), "team": team} for team in TEAMS]


def test_exchanged_folders_are_refused_on_spark(spark, files, run_query, tmp_path):
    input_ = files(**COLUMNS).add(*rows(10)).add(*rows(20))
    run_query(PIPELINE, input_.stream(), shards=4)
    input_.add(*rows(30)).add(*rows(1000))
    state = tmp_path / "checkpoint" / "state" / "0"
    exchange(state / "0", state / "1")
    written = committed(tmp_path)
    with pytest.raises(StreamingQueryException) as stopped:
        run_query(PIPELINE, input_.stream(), shards=4)
    error = bm.errors.of(stopped.value)
    assert isinstance(error, bm.StateError)
    assert "of 2 of stage 1, written since batch 0" in str(error)
    with pytest.raises(
        bm.StateError, match=r"the folder of partition \d of 2 of operator 0 in the checkpoint has the state"
    ):
        bm.check_upgrade(spark, tmp_path / "checkpoint", PIPELINE)
    assert committed(tmp_path) == written
    exchange(state / "0", state / "1")
    panes = [pane for batch in run_query(PIPELINE, input_.stream(), shards=4) for pane in batch]
    assert sorted((pane.key["team"], pane.values["n"]) for pane in panes) == [(team, 3) for team in TEAMS]


def test_a_removed_folder_stops_the_query(spark, files, run_query, tmp_path):
    input_ = files(**COLUMNS).add(*rows(10)).add(*rows(20))
    run_query(PIPELINE, input_.stream(), shards=4)
    input_.add(*rows(30)).add(*rows(1000))
    checkpoint = tmp_path / "checkpoint"
    written = committed(tmp_path)
    shutil.rmtree(checkpoint / "state" / "0" / "1")
    with pytest.raises(StreamingQueryException) as stopped:
        run_query(PIPELINE, input_.stream(), shards=4)
    error = bm.errors.of(stopped.value)
    assert isinstance(error, bm.StateError)
    assert "the state of partition 1 of operator 0 lacks the file" in str(error)
    assert committed(tmp_path) == written


def exchange(one, other):
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def committed(tmp_path):
    return sorted(path.name for path in Path(tmp_path, "checkpoint", "commits").iterdir())
