"""Expiry of idle keys (rules/windows.md#forget-after): cases beyond transcripts and laws."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Never, Repeatedly
from tests.public_names import public_names

EVER = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("k")
    .window(bm.GlobalWindow())
    .trigger(Repeatedly(AfterCount(2)))
    .accumulating()
    .accumulate(n=Count())
)
SECOND = 1_000_000
SCHEMA = pa.schema([("ts", pa.float64()), ("k", pa.string())])


def operator(pipeline):
    flow = pipeline.flow.completed
    flow.check()
    return flow.bind({None: SCHEMA}, shards=1).operator


def step(pipeline, store, watermark, *rows):
    """A step of its only shard, from what is stored; gives key, count and timing of each pane."""
    one = operator(pipeline)
    table = pa.Table.from_pylist([{"ts": float(ts), "k": k, EVENT_TIME: ts * SECOND} for ts, k in rows])
    payloads = [payload for _, payload in one.pack(0, table)] if rows else []
    shard = one.open(store)
    out = shard.step([watermark * SECOND], None, payloads)
    return [(row["k"], row["n"], row["pane"]["timing"]) for row in out.to_pylist()], shard


def test_forget_after_added_to_a_checkpoint_starts_now():
    store = DictStore()
    step(EVER, store, 10, (1, "a"), (2, "b"), (3, "b"))
    forgetting = EVER.forget_after(30)
    assert step(forgetting, store, 20, (19, "c"))[0] == []
    assert step(forgetting, store, 49)[0] == [("c", 1, "ON_TIME")]
    panes, shard = step(forgetting, store, 50)
    assert sorted(panes) == [("a", 1, "ON_TIME"), ("b", 2, "ON_TIME")]
    assert shard.counts.windows == 0
    assert shard.next_due_us is None


def test_a_changed_forget_after_applies_from_the_next_watermark():
    store = DictStore()
    step(EVER.forget_after(1000), store, 10, (1, "a"), (2, "b"), (40, "c"))
    panes, _ = step(EVER.forget_after(5), store, 20)
    assert sorted(panes) == [("a", 1, "LATE"), ("b", 1, "LATE")]  # by the span of now their rows came late
    panes, shard = step(EVER.forget_after(5), store, 44)
    assert (panes, shard.counts.windows) == ([], 1)
    assert step(EVER, store, 10**6)[1].counts.windows == 1


def test_due_keys_wake_a_shard_without_rows():
    store = DictStore()
    _, shard = step(EVER.forget_after(30), store, 10, (1, "a"), (9, "b"))
    assert shard.next_due_us == 31 * SECOND
    _, shard = step(EVER.forget_after(30), store, 31)
    assert shard.next_due_us == 39 * SECOND


def test_forget_after_applies_to_global_windowings():
    both = EVER.window({"ever": bm.GlobalWindow(), "ten": bm.FixedWindows(10)}).forget_after(30)
    script = TestStream().add([{"ts": 1, "k": "a"}]).advance_watermark_to(10).advance_watermark_to(31)
    found = [[(p.key["windowing"], str(p.timing)) for p in panes] for _, panes in script.trace(both)]
    assert found == [[], [("ten", "ON_TIME")], [("ever", "ON_TIME")]]


def test_forget_after_allows_waiting_for_the_end_on_a_stream():
    flow = EVER.trigger(Never()).flow.completed
    with pytest.raises(bm.PipelineError, match="forget_after"):
        flow.stage.check_stream(flow.takes)
    flow = EVER.trigger(Never()).forget_after(30).flow.completed
    flow.stage.check_stream(flow.takes)


def test_repr_of_forget_after():
    pipeline = EVER.forget_after("30 days")
    assert ".forget_after('30 days')" in repr(pipeline)
    assert eval(repr(pipeline), public_names(bm, bm.triggers, bm.accumulations)) == pipeline
    assert "30 days past its latest row: rows in no pane yet are emitted" in " ".join(pipeline.explain().split())


KEYED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
BOUNDED = {
    "windows": (KEYED.window(bm.FixedWindows(5)).accumulate(n=Count()), "the state of a key without new rows is deleted when its last window has expired"),
    "all of time": (EVER, "no: the global window of each key is stored forever"),
    "forgotten": (EVER.forget_after("3 days"), "when the watermark is 3 days past its latest row"),
    "one of several": (EVER.window({"a": bm.GlobalWindow(), "b": bm.FixedWindows(5)}), "no: the global window"),
    "rows": (KEYED.window(bm.CountWindows(5)).accumulate(n=Count()), "no: the number of each key"),
    "idle rows": (KEYED.window(bm.CountWindows(5, idle="1 day")).accumulate(n=Count()), "1 day past its latest row"),
    "rows of the stream": (KEYED.window(bm.CountSessions(5)).accumulate(n=Count()), "its last window has expired"),
    "each once": (KEYED.deduplicate("k", within="1 hour"), "1 hour past its latest row"),
    "known in windows": (
        KEYED.window(bm.FixedWindows(5)).deduplicate("k", within="1 hour").accumulate(n=Count()),
        "its ids are stored until the watermark is 1 hour past them",
    ),
    "versions": (KEYED.versions("1 day"), "the latest version of each key is stored for ever"),
    "as of": (
        bm.as_of_join(a=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)), b=KEYED.versions("1 day")),
        "until no change can affect it",
    ),
    "changes": (KEYED.changes().suppress(bm.UntilTimeLimit(5, clock="event")), "no state is left of a slot after its last change"),
    "suppressed": (
        KEYED.window(bm.FixedWindows(5)).accumulate(n=Count()).suppress(bm.UntilWindowCloses()),
        "its last window has expired",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("pipeline", "words"), BOUNDED.values(), ids=BOUNDED)
def test_explain_describes_the_state_of_inactive_keys(pipeline, words):
    assert words in " ".join(pipeline.explain().split())
