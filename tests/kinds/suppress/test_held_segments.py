"""Reads, writes and removals of a suppress's segments: a step touches only the ones that it needs, and leaks none."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.triggers import AfterCount, Always

S = 1_000_000
CHANGES = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").changes()
WINDOWS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("k")
    .window(bm.FixedWindows(60))
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(n=Count())
)


class Watched(DictStore):
    """A store that notes what is asked of it."""

    def __init__(self):
        super().__init__()
        self.read: list[str] = []

    def get(self, name):
        self.read.append(name)
        return super().get(name)

    def segments_read(self):
        found = {name.rpartition("/")[2] for name in self.read if name.startswith("held/")}
        self.read.clear()
        return {name for name in found if name != "index"}


def step(pipeline, store, rows=(), *, watermark=None, clock=None):
    """Run a step; returns the output as (key, kind, count)."""
    schema = {None: pa.schema([("ts", pa.timestamp("us")), ("k", pa.string())])}
    operator = pipeline.flow.bind(schema, shards=1).operator
    shard = operator.open(store)
    times = [ts * S for ts, _ in rows]
    columns = {"ts": pa.array(times, pa.timestamp("us")), "k": pa.array([k for _, k in rows], pa.string())}
    table = pa.table({**columns, EVENT_TIME: pa.array(times, pa.int64())})
    payloads = [payload for _, payload in operator.pack(0, table)]
    us = None if watermark is None else watermark * S
    out = shard.step([us], None if clock is None else clock * S, payloads)
    return sorted((row["k"], row["pane"]["kind"]) for row in out.to_pylist())


def held(store):
    return {name.rpartition("/")[2] for name in store if name.startswith("held/")} - {"index"}


@pytest.mark.parametrize(
    ("pipeline", "until"),
    [
        (CHANGES.suppress(bm.UntilTimeLimit(10, clock="event")), 30),
        (WINDOWS.suppress(bm.UntilWindowCloses()), 60),
        (WINDOWS.suppress(bm.UntilTimeLimit(5, clock="event")), 90),
    ],
    ids=["changes", "closes", "limit"],
)
def test_emitted_slots_leave_no_segment(pipeline, until):
    store = Watched()
    assert step(pipeline, store, [(1, "a"), (2, "b")]) == []
    assert held(store)
    assert {key for key, _ in step(pipeline, store, watermark=until)} == {"a", "b"}
    assert held(store) == set()


def test_a_step_without_due_slots_reads_no_segment():
    pipeline = WINDOWS.suppress(bm.UntilTimeLimit(1000, clock="event"))
    store = Watched()
    step(pipeline, store, [(1, "a"), (500, "b"), (900, "c")])
    store.segments_read()
    assert step(pipeline, store, watermark=30) == []
    assert store.segments_read() == set()


def test_closed_windows_leave_at_once_and_a_time_limit_reads_no_finished_ones():
    finished = WINDOWS.trigger(AfterCount(1), allow_data_loss=True).discarding()
    limited = finished.suppress(bm.UntilTimeLimit(1000, clock="event"))
    store = Watched()
    assert step(limited, store, [(1, "a")]) == []
    store.segments_read()
    assert step(limited, store, [(500, "b")], watermark=30) == []
    assert store.segments_read() <= {name for name in held(store) if "t" not in name} - first_segment(limited)
    closes = finished.suppress(bm.UntilWindowCloses())
    assert step(closes, Watched(), [(1, "a"), (70, "b")]) == [("a", "PANE"), ("b", "PANE")]


def test_a_finished_window_is_emitted_when_the_wait_changes_to_window_close():
    finished = WINDOWS.trigger(AfterCount(1), allow_data_loss=True).discarding()
    store = Watched()
    assert step(finished.suppress(bm.UntilTimeLimit(1000, clock="event")), store, [(1, "a")]) == []
    assert step(finished.suppress(bm.UntilWindowCloses()), store, watermark=30) == [("a", "PANE")]


def test_segments_with_and_without_retractions_are_read_together():
    pipeline = WINDOWS.allowed_lateness(10_000).suppress(bm.UntilTimeLimit(5, clock="processing"))
    store = Watched()
    assert step(pipeline, store, [(5000, "b")], clock=1) == []
    assert step(pipeline, store, clock=10) == [("b", "PANE")]
    assert step(pipeline, store, [(1, "a"), (5001, "b")], clock=11) == []
    assert len({name for name in held(store) if name.startswith("t")}) == 1
    assert len({name for name in held(store) if name.startswith("s")}) == 2
    assert step(pipeline, store, clock=20) == [("a", "PANE"), ("b", "PANE"), ("b", "RETRACTION")]


def first_segment(pipeline):
    """The segment of a window of the first minute."""
    store = Watched()
    step(pipeline, store, [(1, "a")])
    return held(store)


@pytest.mark.parametrize(
    ("buffer", "lies_apart"),
    [
        (bm.Buffer(), False),
        (bm.Buffer(max_records=1000, when_full=bm.SPILL), False),
        (bm.Buffer(max_records=1000, when_full=bm.EMIT_EARLY), True),
    ],
    ids=["no limit", "spill", "emit early"],
)
def test_changes_are_counted_at_once_only_where_a_buffer_may_be_full(buffer, lies_apart):
    pipeline = CHANGES.suppress(bm.UntilTimeLimit(1000, clock="event"), buffer=buffer)
    store = Watched()
    step(pipeline, store, [(1, "a"), (2, "b")])
    assert ("s0" not in held(store)) == lies_apart
