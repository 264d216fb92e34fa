"""The counts of a shard in a step: rows assigned to windows, and dropped rows (docs/sinks.md#metrics)."""

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import example, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count
from beamish.contract.drops import DROPPED, counts_of_output
from beamish.contract.operator import counts_of_step
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.triggers import AfterCount, AfterWatermark, Always

SCHEMA = pa.schema([("k", pa.int64())])
SECOND = 1_000_000
WINDOWS = [bm.FixedWindows(10), bm.Sessions(5), bm.GlobalWindow()]
bundles = st.lists(
    st.tuples(st.lists(st.one_of(st.none(), st.integers(-5, 60)), max_size=8), st.integers(0, 60)), max_size=6
)


@given(
    window=st.sampled_from(WINDOWS),
    bundles=bundles,
    listed=st.booleans(),
    finishes=st.booleans(),
    refined=st.booleans(),
)
@example(window=WINDOWS[0], bundles=[([1, None], 30), ([2, 40], 50)], listed=True, finishes=True, refined=False)
@example(window=WINDOWS[0], bundles=[([1], 30), ([2], 50)], listed=False, finishes=False, refined=True)
def test_every_row_is_counted_as_taken_or_dropped(window, bundles, listed, finishes, refined):
    trigger = AfterCount(2) if finishes else AfterWatermark(early=Always())
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("k")
        .window(window)
        .trigger(trigger, allow_data_loss=True)
        .accumulating_and_retracting()
        .accumulate(n=Count(), **({"all": Collect("k")} if listed else {}))
    )
    pipeline = pipeline.with_dropped() if listed else pipeline
    pipeline = pipeline.having(pc.field("n") > 1) if refined else pipeline
    operator, store, watermark = pipeline.flow.bind({None: SCHEMA}, shards=1).operator, DictStore(), 0
    operator.observe()
    for times, forward in bundles:
        rows = pa.table(
            {
                "k": pa.array([0] * len(times), pa.int64()),
                EVENT_TIME: pa.array([None if ts is None else ts * SECOND for ts in times], pa.int64()),
            }
        )
        shard = operator.open(store)
        before = dict(shard.dropped)
        watermark = max(watermark, forward)
        panes = shard.step([watermark * SECOND], None, [payload for _, payload in operator.pack(0, rows)])
        counts = counts_of_step(shard, panes, before, None)
        dropped = sum(counts[name] for name in DROPPED.values())
        assert counts["rows"] + dropped == len(times)
        expired = [
            time for time in times if time is not None and window == WINDOWS[0] and (time // 10 + 1) * 10 <= watermark
        ]
        if expired and not finishes:
            assert counts["max_late_by_ms"] == (watermark - min(expired)) * 1000
        if listed:
            kinds = [pane["kind"] for pane in panes["pane"].to_pylist()]
            assert dropped == kinds.count("DROPPED")
            late = [row["late_by"] for row in panes["dropped"].to_pylist() if row and row["late_by"] is not None]
            assert counts["max_late_by_ms"] == (max(late) // 1000 if late else None)
        assert counts["watermark_ms"] == watermark * 1000


def test_panes_are_counted_by_timing():
    pane = pa.array(
        [
            {"kind": kind, "timing": timing}
            for kind, timing in (
                ("PANE", "EARLY"),
                ("RETRACTION", "EARLY"),
                ("PANE", "ON_TIME"),
                ("PANE", "LATE"),
                ("PANE", "LATE"),
                ("DROPPED", "UNKNOWN"),
            )
        ]
    )
    assert counts_of_output(pa.table({"pane": pane})) == {
        "panes_early": 1,
        "panes_on_time": 1,
        "panes_late": 2,
        "retractions": 1,
    }


def test_a_retraction_of_a_missing_row_is_counted_as_dropped():
    pipeline = (
        bm.Pipeline()
        .from_changelog("diff")
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .window(bm.FixedWindows(10))
        .accumulate(all=Collect("k"))
    )
    schema = pa.schema([*SCHEMA, ("_diff", pa.int8())])
    operator = pipeline.flow.bind({None: schema}, shards=1).operator
    rows = pa.table({"k": [1, 2], "__beamish_sign": pa.array([1, -1], pa.int8()), EVENT_TIME: [SECOND, SECOND]})
    shard = operator.open(DictStore())
    panes = shard.step([None], None, [payload for _, payload in operator.pack(0, rows)])
    counts = counts_of_step(shard, panes, {}, None)
    assert (counts["rows"], counts["dropped_unmatched_removal"], counts["max_late_by_ms"]) == (1, 1, None)
