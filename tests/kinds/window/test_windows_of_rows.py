"""Windows of rows: what happens between two runs, at the edges of 64 bits, and in words (rules/windows.md#windows-of-rows)."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import CoGroup, Collect, Count
from beamish.contract.at_rest import Asked, Keeps
from beamish.contract.stored import DictStore
from beamish.contract.updates import ROW_WINDOW
from beamish.kernels.column_names import EVENT_TIME
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always

COUNTED = (
    bm.Pipeline()
    .key_by("k")
    .window(bm.CountWindows(10))
    .trigger(AfterWatermark(late=Always()))
    .accumulating()
    .closing_behavior(bm.ClosingBehavior.FIRE_ALWAYS)
    .accumulate(n=Count())
)
TIMED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
SCHEMA = {None: pa.schema([("k", pa.string()), ("i", pa.int64()), ("ts", pa.timestamp("us"))])}


def step(pipeline, store, *keys, numbers=None, watermark_us=None):
    """A step with a row for each key; gives how often a pane was the last."""
    operator = pipeline.flow.completed.bind(SCHEMA, shards=1).operator
    times = pa.array([1_000_000] * len(keys), pa.int64())
    columns = {"k": pa.array(keys, pa.string()), "i": pa.array(numbers or range(len(keys)), pa.int64())}
    rows = pa.table({**columns, "ts": times.cast(pa.timestamp("us")), EVENT_TIME: times})
    out = operator.open(store).step([watermark_us], None, [payload for _, payload in operator.pack(0, rows)])
    return sum(row["pane"]["is_last"] for row in out.to_pylist())


def kept(pipeline, store):
    operator = pipeline.flow.completed.bind(SCHEMA, shards=1).operator
    return operator.answer(Asked(Keeps.WINDOWS)).read(store).num_rows


@pytest.mark.parametrize("late", [0, 20])
def test_shorter_lateness_expires_windows_in_the_next_step(late):
    long, short = COUNTED.allowed_lateness(rows=1000), COUNTED.allowed_lateness(rows=late)
    for first in ([], ["b"]):
        store = DictStore()
        step(long, store, *["a"] * 100)
        assert kept(long, store) == 10
        assert step(short, store, *first) == 10 - late // 10
        assert kept(short, store) == late // 10 + len(first)


@pytest.mark.dear
@pytest.mark.parametrize("window", [bm.CountSessions(1), bm.CountWindows(2, over="stream")], ids=str)
def test_evictions_expire_when_their_rows_would_be_too_late(window):
    store = DictStore()
    pipeline = COUNTED.window(window).allowed_lateness(rows=5).retain(windows=1)
    for number in range(50):
        step(pipeline, store, *[f"k{number}"] * 4, "x", "y", "z")
    noted = sum(
        pa.ipc.open_stream(value).read_all().num_rows for name, value in entries(store) if name.startswith("fallen/s")
    )
    assert noted < 10


def entries(store):
    for name in list(store):
        value = store.get(name)
        assert value is not None
        yield name, value


def test_retained_windows_are_not_repartitioned_by_their_ends():
    class Noting(DictStore):
        puts: list[str]

        def put(self, name, value):
            self.puts.append(name)
            super().put(name, value)

    store = Noting()
    store.puts = []
    pipeline = (
        TIMED.window(bm.FixedWindows(60))
        .retain(windows=3)
        .trigger(Always())
        .allowed_lateness(600)
        .accumulating()
        .accumulate(n=Count())
    )
    step(pipeline, store, *[f"k{number}" for number in range(500)])
    for _ in range(3):
        store.puts.clear()
        step(pipeline, store, "k7")
        assert sum(name.startswith("s") for name in store.puts) == 1


def test_how_late_a_row_is_fits_into_64_bits():
    pipeline = bm.Pipeline().window(bm.CountWindows(2, numbered_by="i")).with_dropped().accumulate(n=Count())
    script = TestStream().add([{"i": 2**62}]).add([{"i": -(2**62)}])
    assert [pane.late_by_rows for pane in pipeline.run(script) if pane.reason] == [2**63 - 1]


def test_explain_speaks_of_rows():
    words = " ".join(COUNTED.explain().split())
    assert "a window fires when it is full, then with every bundle of rows" in words
    assert "event time" not in words.partition("dropped")[2]
    assert "on arrival, per key" in words
    brought = TIMED.window(bm.CountWindows(5, numbered_by="i", delay=2)).accumulate(n=Count())
    words = " ".join(brought.explain().split())
    assert "rows are numbered by column i" in words
    assert "rows without a number" in words
    assert "idle_timeout" not in words
    alone = bm.Pipeline().window(bm.CountWindows(5)).accumulate(n=Count())
    assert "a single shard" not in " ".join(COUNTED.explain().split())
    assert "over all rows, in a micro-batch" in " ".join(alone.explain().split())


def test_rows_asked_for_by_names_that_are_there_twice_are_refused():
    named = (
        bm.Pipeline()
        .key_by("number")
        .window(bm.CountWindows(4))
        .trigger(Always())
        .accumulating()
        .accumulate(vs=Collect("v"))
    )
    script = TestStream().add([{"number": 3, "v": 1}])
    with pytest.raises(bm.PipelineError, match="has a column 'number' of its own"):
        named.state(script).rows()
    both = bm.merge(o=TIMED, c=TIMED).window(bm.FixedWindows(10)).trigger(Always()).accumulating()
    both = both.accumulate(y=CoGroup("o", "c"), o=Collect("j").of("c"))
    rows = TestStream().add([{"ts": 1, "k": "a", "i": 1}], input="o").add([{"ts": 1, "k": "a", "j": 2}], input="c")
    with pytest.raises(bm.PipelineError, match="an accumulation and an input have this name"):
        both.state(rows).rows(of="o")
    assert [dict(row.row) for row in both.state(rows).rows(of="c")] == [{"ts": 1, "j": 2}]


class Later(bm.WindowOption):
    """Windows that do not hold their rows."""

    def assign(self, timestamp_us, *values):
        yield timestamp_us + 100_000_000, timestamp_us + 110_000_000


def test_rows_are_found_in_windows_that_do_not_hold_them_in_a_later_stage_too():
    first = TIMED.window(Later()).trigger(Always()).accumulating_and_retracting().accumulate(n=Count())
    first = first.timestamp_combiner(bm.TimestampCombiner.EARLIEST)
    chain = first.then(bm.Pipeline().trigger(Always()).accumulating().accumulate(ns=Collect("n")))
    state = chain.state(TestStream().add([{"ts": 1, "k": "a"}, {"ts": 3, "k": "a"}]))
    assert [row.place.second for row in state.rows(0, 10, stage=2)] == [1, 3]


@pytest.mark.parametrize("more", [{}, {"b": bm.CountWindows(3)}], ids=["one", "two"])
def test_several_windowings_of_rows_give_windows_of_rows(more):
    pipeline = COUNTED.window({"a": bm.CountWindows(2), **more})
    panes = pipeline.run(TestStream().add([{"k": "x"}] * 6))
    assert {(pane.key["windowing"], pane.window) for pane in panes} == {
        *(("a", bm.RowWindow(at, at + 2)) for at in (0, 2, 4)),
        *(("b", bm.RowWindow(at, at + 3)) for at in (0, 3) if more),
    }
    gives = pipeline.flow.completed.bind(SCHEMA, shards=1).operator.gives
    assert gives.schema.field("window").type == ROW_WINDOW
