"""State at rest: what may change between two runs, what is refused, and what a step reads and writes."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.engine.state import DictStore
from beamish.engine.windowing.packing import pack
from beamish.engine.windowing.shard import Shard
from beamish.kernels.reserved import EVENT_TIME
from beamish.plan import make_plan
from beamish.triggers import AfterCount, AfterWatermark, Always, Never, Repeatedly

SECOND = 1_000_000
MINUTE = 60 * SECOND
SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("team", pa.string()), ("score", pa.int64())])
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows("1 minute"))
    .trigger(AfterWatermark(late=Always()))
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .accumulate(total=Sum("score"))
)


class Recording(DictStore):
    """A store that remembers which names were read and written."""

    def __init__(self):
        self.read, self.written, self.removed = [], [], []

    def get(self, name, default=None):
        self.read.append(name)
        return super().get(name, default)

    def put(self, name, value):
        self.written.append(name)
        super().put(name, value)

    def remove(self, name):
        self.removed.append(name)
        super().remove(name)

    def forget(self):
        self.read, self.written, self.removed = [], [], []


def step(pipeline, store, *rows, watermark=None, shards=1):
    plan = make_plan(pipeline.options, SCHEMA, shards=shards)
    payloads = []
    if rows:
        times, teams, scores = zip(*rows, strict=True)
        table = pa.table(
            {
                "ts": pa.array([int(time * SECOND) for time in times]).cast(SCHEMA.field("ts").type),
                "team": pa.array(teams),
                "score": pa.array(scores),
                EVENT_TIME: pa.array([int(time * SECOND) for time in times]),
            }
        )
        payloads = [payload for _, payload in pack(plan, table)]
    panes = Shard(plan, store).step(None if watermark is None else watermark * SECOND, None, payloads)
    return [
        (str(row["pane"]["kind"]), str(row["pane"]["timing"]), *(row[name] for name in pipeline.options.accumulations))
        for row in panes.to_pylist()
    ]


def test_a_step_reads_and_writes_only_the_segments_it_touches():
    store = Recording()
    for minute in range(10):
        step(PIPELINE, store, (60 * minute + 1, "red", 1))
    assert len([name for name in store if name.startswith("s")]) == 10
    store.forget()
    step(PIPELINE, store, (60 * 4 + 2, "red", 1))
    assert sorted(store.read) == ["index", "s5"]
    assert sorted(store.written) == ["index", "s5"]


def test_a_step_that_concerns_nothing_reads_no_segment():
    store = Recording()
    step(PIPELINE, store, (1, "red", 1), watermark=5)
    store.forget()
    assert step(PIPELINE, store, watermark=30) == []
    assert (store.read, store.written) == (["index"], ["index"])


def test_expiry_removes_segments_whole():
    store = Recording()
    step(PIPELINE, store, (1, "red", 1), (61, "red", 2))
    store.forget()
    step(PIPELINE, store, watermark=60 + 3600)
    assert store.removed == ["s1"]
    assert sorted(store) == ["index", "s2"]


def test_many_segments_of_few_windows_are_cut_longer():
    store = Recording()
    step(PIPELINE, store, *((60 * minute, "red", 1) for minute in range(100)))
    assert len(store) == 1 + 100
    step(PIPELINE, store, (1, "blue", 1))
    assert len(store) < 10
    panes = step(PIPELINE, store, watermark=60 * 100)
    assert panes.count(("PANE", "ON_TIME", 1)) == 101


def test_another_trigger_takes_effect_on_windows_that_are_there():
    store = DictStore()
    waiting = PIPELINE.trigger(Never())
    assert step(waiting, store, (1, "red", 1), (2, "red", 2)) == []
    counting = PIPELINE.trigger(Repeatedly(AfterCount(3)))
    assert step(counting, store, (3, "red", 3)) == [("PANE", "EARLY", 6)]  # the two rows before count
    assert step(PIPELINE, store, (4, "red", 4)) == []
    assert step(PIPELINE, store, watermark=60) == [("RETRACTION", "EARLY", 6), ("PANE", "ON_TIME", 10)]


def test_a_trigger_that_waits_for_the_end_is_asked_there_though_the_one_before_was_not():
    store = DictStore()
    step(PIPELINE.trigger(Never()), store, (1, "red", 1))
    assert step(PIPELINE, store, watermark=60) == [("PANE", "ON_TIME", 1)]


def test_less_lateness_expires_windows_that_are_there():
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1), watermark=0.001)
    step(PIPELINE, store, watermark=70)
    short = PIPELINE.allowed_lateness("1 minute")
    assert step(short, store, watermark=120) == []
    assert step(short, store, (1, "red", 1)) == []
    assert sorted(store) == ["index"]


def test_a_further_accumulation_counts_from_then_on():
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1))
    more = PIPELINE.accumulate(rows=Count(), best=Max("score"))
    assert step(more, store, (2, "red", 5), watermark=60) == [
        ("PANE", "ON_TIME", 1, 0, None),  # the first row came before they were there
        ("RETRACTION", "ON_TIME", 1, 0, None),
        ("PANE", "LATE", 6, 1, 5),
    ]


def test_only_updated_panes_may_be_said_later():
    store = DictStore()
    plain = PIPELINE.trigger(AfterWatermark(early=Always(), late=Always()))
    step(plain, store, (1, "red", 1))
    updated = plain.only_updated_panes()
    assert step(updated, store, (2, "red", 0)) == []
    assert step(updated, store, (2, "red", 1)) == [("RETRACTION", "EARLY", 1), ("PANE", "EARLY", 2)]


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("window", PIPELINE.window(bm.FixedWindows("2 minutes"))),
        ("keys", PIPELINE.key_by("team", "score")),
        ("mode", PIPELINE.accumulating()),
        ("timestamp combiner", PIPELINE.timestamp_combiner(bm.TimestampCombiner.EARLIEST)),
        ("accumulations", PIPELINE.accumulate(total=Max("score"))),
    ],
)
def test_what_would_be_misread_is_refused_and_nothing_is_changed(what, other):
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1))
    before = dict(store)
    with pytest.raises(bm.StateError, match=f"written with {what}"):
        step(other, store, (2, "red", 1))
    assert store == before


def test_another_shard_count_is_refused():
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1))
    with pytest.raises(bm.StateError, match="shards 1, the pipeline now has 2"):
        step(PIPELINE, store, (2, "red", 1), shards=2)


def test_another_format_is_refused(monkeypatch):
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1))
    monkeypatch.setattr("beamish.engine.state.compatibility.FORMAT", 4)
    with pytest.raises(bm.StateError, match="state format 3, this version of beamish writes 4"):
        step(PIPELINE, store, (2, "red", 1))


def test_a_segment_that_is_missing_is_an_error_not_an_empty_one():
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1))
    store.remove("s1")
    with pytest.raises(bm.StateError, match="restore the checkpoint"):
        step(PIPELINE, store, (2, "red", 1))


def test_dropped_rows_are_counted_without_with_dropped():
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1))
    step(PIPELINE, store, (1, "red", 1), watermark=3660)
    plan = make_plan(PIPELINE.options, SCHEMA, shards=1)
    assert Shard(plan, store).dropped == {"expired": 1}
