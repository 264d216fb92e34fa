"""A watermark per key (rules/key-watermarks.md#watermark-per-key): cases beyond transcripts and laws."""

import pyarrow as pa

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.testing import TestStream
from tests.kinds.window.windowings import of_windowing

TENS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("k")
    .window(bm.FixedWindows(10))
    .watermark_per_key(0, at_most=60)
    .accumulate(n=Count())
)
SECOND = 1_000_000
SCRIPT = (
    TestStream()
    .add([{"ts": 1, "k": "slow"}, {"ts": 31, "k": "fast"}])
    .advance_watermark_to(31)
    .add([{"ts": 2, "k": "slow"}, {"ts": 42, "k": "fast"}])
    .advance_watermark_to(42)
)


def shown(panes):
    return [(pane.key["k"], pane.start.second, pane.values["n"]) for pane in panes]


def step(store, watermark, *rows):
    """A step of the only shard, from what is stored; its panes as key and count, and the watermark that it forwards."""
    flow = TENS.flow.completed
    operator = flow.bind({None: pa.schema([("ts", pa.float64()), ("k", pa.string())])}, shards=1).operator
    table = pa.Table.from_pylist([{"ts": float(ts), "k": k, EVENT_TIME: ts * SECOND} for ts, k in rows])
    payloads = [payload for _, payload in operator.pack(0, table)] if rows else []
    shard = operator.open(store)
    out = shard.step([watermark * SECOND], None, payloads)
    return [(row["k"], row["n"]) for row in out.to_pylist()], shard.watermark_us


def test_a_key_is_stored_while_it_is_ahead_and_the_next_stage_follows_the_bound():
    store = DictStore()
    assert step(store, 100, (150, "fast"), (45, "slow")) == ([], 40 * SECOND)
    assert step(store, 209) == ([("slow", 1)], 149 * SECOND)
    assert any(name.startswith("key_watermarks/s") for name in store)
    assert step(store, 210) == ([], 150 * SECOND)
    assert not any(name.startswith("key_watermarks/s") for name in store)


def test_why_names_the_watermark_of_the_key():
    waits = TENS.why(SCRIPT, key="slow")
    assert "its key's watermark to reach its end, 1970-01-01 00:00:10: 8 seconds to go" in waits
    assert "The watermark of its key is at 1970-01-01 00:00:02." in waits
    assert "The watermark is at 1970-01-01 00:00:42." in waits
    gone = TENS.why(SCRIPT, key="fast", window=30)
    assert "no row has been added to it, or it has expired" in gone


def test_a_row_from_the_future_moves_no_key_under_max_future():
    patient = TENS.event_time("ts", bm.BoundedOutOfOrderness(0, max_future=5))
    script = (
        TestStream()
        .step([{"ts": 7, "k": "a"}], watermark=0, clock=2)
        .step([{"ts": 18, "k": "a"}], clock=12)
        .step([], clock=13)
    )
    assert shown(TENS.run(script)) == [("a", 0, 1)]
    assert shown(patient.run(script)) == []
    assert shown(patient.run(script.step([{"ts": 17, "k": "a"}], clock=14).step([]))) == [("a", 0, 1)]


def test_each_of_several_windowings_follows_the_keys():
    both = {"tens": bm.FixedWindows(10), "visits": bm.Sessions(5)}
    panes = TENS.window(both).run(SCRIPT.advance_watermark_to(75))
    for name, window in both.items():
        alone = TENS.window(window).run(SCRIPT.advance_watermark_to(75))
        assert shown(of_windowing(panes, name)) == shown(alone) != []
