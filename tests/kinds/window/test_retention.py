"""How much of its past a key keeps: bytes, and what happens between two runs (rules/windows.md#retention)."""

import attrs
import pyarrow as pa

import beamish as bm
from beamish.accumulations import Collect, Count
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.window.state.state import State
from beamish.testing import TestStream
from beamish.triggers import Always

S = 1_000_000
PLAIN = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("k")
    .window(bm.FixedWindows(10))
    .trigger(Always())
    .allowed_lateness(1000)
    .accumulating()
    .with_dropped()
    .accumulate(n=Count())
)


def row(ts, k="a", **more):
    return {"ts": ts, "k": k, **more}


def last_ones(panes):
    return [pane.start.second for pane in panes if pane.is_last]


def test_the_byte_budget_counts_accumulators():
    pipeline = (
        PLAIN.accumulate(texts=Collect("text")).retain(bytes=1000).closing_behavior(bm.ClosingBehavior.FIRE_ALWAYS)
    )
    long = TestStream().add([row(second, text="x" * 400) for second in (1, 11, 21)])
    assert last_ones(pipeline.run(long)) == [0]
    short = TestStream().add([row(second, text="x" * 4) for second in (1, 11, 21)])
    assert last_ones(pipeline.run(short)) == []


SCHEMA = {None: pa.schema([("ts", pa.timestamp("us")), ("k", pa.string())])}


def shard(pipeline, store):
    operator = pipeline.flow.bind(SCHEMA, shards=1).operator
    return operator, operator.open(store)


def step(pipeline, store, *rows):
    operator, opened = shard(pipeline, store)
    moment = pa.timestamp("us")
    table = pa.table(
        {
            "ts": pa.array([ts * S for ts, _ in rows], moment),
            "k": [k for _, k in rows],
            EVENT_TIME: pa.array([ts * S for ts, _ in rows], pa.int64()),
        }
    )
    out = opened.step([None], None, [payload for _, payload in operator.pack(0, table)])
    return [
        (kind["kind"], kind["is_last"], window["start"].second)
        for kind, window in zip(out["pane"].to_pylist(), out["window"].to_pylist(), strict=True)
    ]


def test_a_budget_may_be_added_changed_and_removed_between_runs():
    store = DictStore()
    for second in (1, 11, 21, 31):
        assert step(PLAIN, store, (second, "a"), (second, "b")) == [("PANE", False, second // 10 * 10)] * 2
    tight = PLAIN.retain(windows=3).closing_behavior(bm.ClosingBehavior.FIRE_ALWAYS)
    # The key that gets a row drops everything over the budget; the other keeps all.
    assert step(tight, store, (32, "a")) == [("PANE", False, 30), ("PANE", True, 0)]
    tighter = PLAIN.retain(rows=1).closing_behavior(bm.ClosingBehavior.FIRE_ALWAYS)
    assert step(tighter, store, (33, "a"))[0] == ("PANE", False, 30)
    assert step(PLAIN, store, (2, "b")) == [("PANE", False, 0)]
    kept = {(row["key"]["k"], row["window"]["start"].second) for row in windows(PLAIN, store)}
    assert {start for key, start in kept if key == "b"} == {0, 10, 20, 30}
    assert ("a", 0) not in kept
    assert ("a", 30) in kept


def windows(pipeline, store):
    from beamish.contract.at_rest import Asked, Keeps

    operator, _ = shard(pipeline, store)
    return operator.answer(Asked(Keeps.WINDOWS)).read(store).to_pylist()


def test_eviction_records_expire_with_their_windows():
    script = TestStream().add([row(1), row(11)]).advance_watermark_to(1010)
    events = script.add([row(1020), row(2)]).events
    pipeline = PLAIN.retain(windows=1)
    reasons = [pane.reason for pane in pipeline.run(attrs.evolve(script, events=events)) if pane.reason]
    assert reasons == [bm.DropReason.EXPIRED]
    store = DictStore()
    _, opened = shard(pipeline, store)
    step(pipeline, store, (1, "a"), (11, "a"))
    assert any(name.startswith("fallen/s") for name in store)
    _, opened = shard(pipeline, store)
    opened.step([1010 * S], None, [])
    assert not any(name.startswith("fallen/s") for name in store)


def test_evicted_windows_stay_evicted_without_a_budget():
    store, kept = DictStore(), PLAIN.retain(windows=1)
    step(kept, store, (1, "a"), (11, "a"), (21, "a"))
    for pipeline in (PLAIN, PLAIN, kept, PLAIN):
        assert step(pipeline, store, (2, "a"), (12, "b")) == [("DROPPED", False, 0), ("PANE", False, 10)]
    _, opened = shard(PLAIN, store)
    opened.step([1020 * S], None, [])
    assert not any(name.startswith("fallen/s") for name in store)
    assert not State.open(PLAIN.flow.bind(SCHEMA, shards=1).operator.plan, store).parts


def test_retention_stores_fewer_windows():
    script = TestStream()
    for second in range(0, 100, 10):
        script = script.add([row(second)])
    assert len(PLAIN.state(script).windows()) == 10
    assert [one.window.start.second for one in PLAIN.retain(windows=2).state(script).windows()] == [20, 30]
