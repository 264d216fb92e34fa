"""When the operator steps a shard, and which timer it sets; Spark is played by a dict and a set."""

# ruff: noqa: N802 - Spark's names
import json

import attrs
import pandas as pd
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import ABOUT, TAKES, DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.spark.operator.notes import (
    NOTE,
    About,
    ShardNote,
    new_note,
    opened,
    read_note,
    write_note,
)
from beamish.spark.operator.panes import panes_from_bytes
from beamish.spark.operator.processor import FromQuery, ShardProcessor, WakePolicy
from beamish.spark.operator.travelling import MapStore
from beamish.spark.rows.pack import NO_CLOCK, NO_INPUT

PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .accumulate(plays=Count())
)
IDLE = PIPELINE.event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout=5))


class Spark:
    """One shard's state and timers, and micro-batches in Spark's order: rows first, then the timers that are due."""

    def __init__(self, pipeline, shards=1):
        schema = pa.schema([("team", pa.string())])
        self.operator = pipeline.flow.bind({None: schema}, shards=shards).operator
        self.wakes = WakePolicy.EVERY_BATCH if self.operator.needs_clock else WakePolicy.WHEN_DUE
        self.state, self.timers, self.steps = {}, set(), []

    def getMapState(self, *named):
        self.variable = named
        return self

    def getValue(self, key):
        return self.state.get(key)

    def updateValue(self, key, value):
        self.state[key] = value

    def removeKey(self, key):
        self.state.pop(key, None)

    def registerTimer(self, ms):
        self.timers.add(ms)

    def deleteTimer(self, ms):
        self.timers.remove(ms)

    def getCurrentWatermarkInMs(self):
        return self.watermark_ms

    def getExpiryTimeInMs(self):
        return self.expiry_ms

    def batch(self, watermark_ms, *seconds, clock_us=NO_CLOCK):
        self.watermark_ms = watermark_ms
        processor = ShardProcessor(self.operator, FromQuery((True,)), self.wakes)
        processor.init(self)
        stepped, step = [], processor._step
        processor._step = lambda *arguments: stepped.append(1) or step(*arguments)
        frames = []
        if seconds or clock_us != NO_CLOCK:
            frames += processor.handleInputRows((0,), iter([self.rows(seconds, clock_us)]), self)
        for expiry_ms in sorted(ms for ms in self.timers if ms <= watermark_ms):
            self.expiry_ms = expiry_ms
            frames += processor.handleExpiredTimer((0,), timerValues=self, expiredTimerInfo=self)
            self.timers.discard(expiry_ms)
        self.steps.append(len(stepped))
        batches = panes_from_bytes(pa.RecordBatch.from_pandas(frame) for frame in frames)
        given = [row for batch in batches for row in batch.to_pylist()]
        self.numbers = [row["pane"]["sequence"] for row in given]
        return [row["plays"] for row in given]

    def rows(self, seconds, clock_us):
        n = len(seconds)
        columns = {
            "team": ["red"] * n,
            EVENT_TIME: pa.array([s * 1_000_000 for s in seconds], pa.int64()),
        }
        payloads = [payload for _, payload in self.operator.pack(0, pa.table(columns))]
        count = len(payloads) + 1
        return pd.DataFrame(
            {
                "clock_us": [clock_us] * count,
                "payload": [*payloads, None],
                "input": [NO_INPUT] * count,
                "report_us": [0] * count,
            }
        )


def test_a_shard_has_one_timer_for_its_earliest_due_time():
    spark = Spark(PIPELINE)
    spark.batch(0, 15)
    assert spark.timers == {20_000}
    spark.batch(0, 25, 5)
    assert spark.timers == {10_000}
    assert spark.batch(9_999) == []
    assert spark.steps == [1, 1, 0]
    assert spark.batch(10_000) == [1]
    assert spark.timers == {20_000}
    assert spark.batch(30_000) == [1, 1]
    assert spark.timers == set()


def test_a_shard_that_is_only_called_is_stepped_if_it_has_state():
    spark = Spark(PIPELINE, shards=3)
    called = spark.rows([], NO_CLOCK)
    spark.watermark_ms = 0

    def call(shard):
        processor = ShardProcessor(spark.operator, FromQuery((True,)), spark.wakes, about=About("{}"))
        processor.init(spark)
        assert list(processor.handleInputRows((shard,), iter([called]), spark)) == []
        return {name for (name,) in spark.state}

    assert call(5) == set()
    assert {NOTE, ABOUT} <= call(0)  # the first one, which compares the shard count in every batch
    spark.state.clear()
    write_note(MapStore(spark), 5, new_note(3))
    assert {NOTE, ABOUT} <= call(5)


def test_due_times_in_the_past_wait_for_the_next_watermark():
    forever = PIPELINE.window(bm.GlobalWindow())
    spark = Spark(forever.forget_after(100))
    spark.batch(0, 5)
    assert spark.batch(50_000, 7) == []
    spark.operator = Spark(forever.forget_after(10)).operator
    processor = ShardProcessor(spark.operator, FromQuery((True,)), spark.wakes)
    processor.init(spark)
    assert list(processor.handleInputRows((0,), iter([spark.rows([], NO_CLOCK)]), spark)) == []
    assert spark.timers == {50_001}
    assert spark.batch(50_001) == [2]
    assert spark.timers == set()


def test_schemas_of_the_state_need_no_parsing_by_spark():
    spark = Spark(PIPELINE)
    spark.batch(0, 1)
    name, *schemas = spark.variable
    assert name == "shard"
    assert [schema.simpleString() for schema in schemas] == ["struct<name:string>", "struct<value:binary>"]


def test_rows_that_come_when_a_timer_is_due_are_one_step():
    spark = Spark(PIPELINE)
    spark.batch(0, 5)
    assert spark.batch(10_000, 15) == [1]
    assert spark.steps == [1, 1]
    assert spark.timers == {20_000}


def test_under_idle_timeout_every_batch_is_one_step():
    spark = Spark(IDLE)
    spark.batch(0, 5, clock_us=1_000_000)
    spark.batch(5_000, clock_us=2_000_000)
    spark.batch(5_000, 6)
    spark.batch(5_000)
    spark.batch(6_000, clock_us=100_000_000)
    spark.batch(6_000)
    assert spark.steps == [1] * 6
    assert len(spark.timers) == 1


def test_under_idle_timeout_a_batch_without_a_heartbeat_can_close_windows():
    spark = Spark(IDLE)
    spark.batch(0, 5, clock_us=1_000_000)
    assert spark.batch(5_000, clock_us=2_000_000) == []
    assert spark.batch(5_000, clock_us=8_000_000) == []
    assert spark.batch(5_000) == [1]


def test_rows_are_numbered_on_from_batch_to_batch_and_alike_in_a_batch_that_runs_again():
    spark = Spark(PIPELINE)
    spark.batch(0, 5, 15, 25)
    assert spark.numbers == []
    assert spark.batch(20_000, 45) == [1, 1]
    assert spark.numbers == [0, 1]
    state, timers = dict(spark.state), set(spark.timers)
    spark.batch(30_000)
    assert spark.numbers == [2]
    spark.state, spark.timers = state, timers
    spark.batch(30_000)
    assert spark.numbers == [2]


def plain(state):
    """The entries of a shard without their seals."""
    return opened({name: value for (name,), (value,) in state.items()}, 0)


def test_metadata_without_a_row_count_is_read():
    spark = Spark(PIPELINE)
    spark.batch(0, 15, 25)
    note = json.loads(plain(spark.state)[NOTE])
    assert note == {"shards": 1, "timer_ms": 20_000, "rows": 0, "word": note["word"], "sums": note["sums"]}
    assert note["sums"].keys() == {"index", "takes", "s2", "s3"}
    old = json.dumps({"shards": 1, "timer_ms": 20_000}).encode()  # as before rows were counted, and values sealed
    spark.state = {(name,): (value,) for name, value in {**plain(spark.state), NOTE: old}.items()}
    assert spark.batch(0, 16) == []
    assert spark.state[NOTE,] == (old,)
    assert spark.batch(20_000) == [2]
    assert json.loads(spark.state[NOTE,][0])["rows"] == 1
    assert spark.batch(30_000) == [1]


def test_a_value_that_was_damaged_or_is_of_another_shard_is_refused():
    spark, other = Spark(PIPELINE), Spark(PIPELINE)
    for each in (spark, other):
        each.batch(0, 15, 25)
    for name in set(spark.state) - {(TAKES,)}:  # which a step does not read
        good, (foreign,) = spark.state[name], other.state[name]
        for wrong in (foreign, good[0][:-1], good[0][:10] + b"?" + good[0][11:], good[0] + b"?", b""):
            if name != (NOTE,) or wrong != foreign:  # a note is accepted, and then nothing else is this shard's
                spark.state[name] = (wrong,)
                with pytest.raises(bm.StateError, match=f"entry '{name[0]}' of shard 0 is not what was written"):
                    spark.batch(30_000)
        spark.state[name] = good
    spark.state[NOTE,] = other.state[NOTE,]
    with pytest.raises(bm.StateError, match="'index' of shard 0"):
        spark.batch(30_000)


def test_a_value_of_an_earlier_batch_and_a_lost_one_are_refused():
    spark = Spark(PIPELINE)
    spark.batch(0, 15, 25)
    early = dict(spark.state)
    spark.batch(5_000, 16, 26)
    late = dict(spark.state)
    for name in ("index", "s2"):
        for wrong in (early, {}):
            spark.state = (
                {**late, (name,): wrong[name,]} if wrong else {at: of for at, of in late.items() if at != (name,)}
            )
            with pytest.raises(
                bm.StateError, match=f"entry '{name}' of shard 0 .*{'earlier batch' if wrong else 'lost'}"
            ):
                spark.batch(20_000)
    spark.state = {**late, (NOTE,): early[NOTE,]}
    with pytest.raises(bm.StateError, match=r"'index' of shard 0 .* an earlier batch"):
        spark.batch(20_000)
    spark.state = dict(late)
    assert spark.batch(20_000) == [2]


def test_a_lost_entry_is_noticed_where_all_of_a_shard_is_read():
    spark = Spark(PIPELINE)
    spark.batch(0, 15, 25)
    del spark.state["s2",]
    with pytest.raises(bm.StateError, match=r"'s2' of shard 0 is not what was written .it was lost"):
        plain(spark.state)
    entries = {name: value for (name,), (value,) in spark.state.items()}
    assert "s2" not in opened(entries, 0, asked=lambda name: name != "s2")
    del entries[NOTE]
    with pytest.raises(bm.StateError, match=r"'spark' of shard 0 .*it was lost"):
        opened(entries, 0)


def test_a_note_of_a_later_version_is_refused():
    store = DictStore()
    write_note(store, 0, attrs.evolve(new_note(1), word=None))
    store[NOTE] = json.dumps({**json.loads(store[NOTE]), "colour": "blue"}).encode()
    with pytest.raises(bm.StateError, match=r"metadata 'colour', which this version .* use the version that wrote it"):
        read_note(store, 0, 1)


def test_another_number_of_shards_is_refused_before_anything_is_written():
    spark = Spark(PIPELINE, shards=2)
    spark.batch(0, 5)
    before = dict(spark.state)
    spark.operator = Spark(PIPELINE, shards=3).operator
    with pytest.raises(bm.StateError, match="has 2 shards, the pipeline is applied with 3"):
        spark.batch(0, 5)
    assert spark.state == before


def test_a_description_is_stored_again_only_when_changed():
    store, puts = DictStore(), []
    store.put = lambda name, value: puts.append((name, value))
    note = About("one").kept(store, About("one").kept(store, ShardNote(3)))
    assert (note.shards, len(puts)) == (3, 1)
    again = About("two").kept(store, note)
    assert puts == [(ABOUT, b"one"), (ABOUT, b"two")]
    assert again != note
