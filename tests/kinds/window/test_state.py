"""State at rest: what may change between two runs, what is refused, and what a step reads and writes."""

import attrs
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Last, Max, Sum
from beamish.contract.at_rest import Asked, Keeps
from beamish.contract.relation import Relation
from beamish.contract.stored import DictStore, note_takes, noted_takes
from beamish.errors import StateError
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.window.state.segments import LAYOUT
from beamish.stage_facts import stage_facts
from beamish.tables.segment_policy import SegmentPolicy
from beamish.tables.segments import SegmentStore
from beamish.triggers import AfterCount, AfterWatermark, Always, Never, Repeatedly
from tests.declared_options import evolve, said

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


def operator_of(pipeline, shards=1):
    return pipeline.flow.bind({None: SCHEMA}, shards=shards).operator


def step(pipeline, store, *rows, watermark=None, shards=1):
    operator = operator_of(pipeline, shards)
    payloads = []
    if rows:
        times, teams, scores = zip(*rows, strict=True)
        table = pa.table(
            {
                "ts": pa.array([int(time * SECOND) for time in times]).cast(SCHEMA.field("ts").type),
                "team": pa.array(teams),
                "score": pa.array(scores, SCHEMA.field("score").type),
                EVENT_TIME: pa.array([int(time * SECOND) for time in times]),
            }
        )
        payloads = [payload for _, payload in operator.pack(0, table)]
    panes = operator.open(store).step([None if watermark is None else int(watermark * SECOND)], None, payloads)
    return [
        (str(row["pane"]["kind"]), str(row["pane"]["timing"]), *(row[name] for name in said(pipeline).accumulations))
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


def test_an_empty_step_reads_no_segment():
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
    assert sorted(store) == ["index", "s2", "takes"]


def test_many_small_segments_lead_to_longer_spans():
    store = Recording()
    step(PIPELINE, store, *((60 * minute, "red", 1) for minute in range(100)))
    assert len(store) == 2 + 100
    step(PIPELINE, store, (1, "blue", 1))
    assert len(store) < 10
    panes = step(PIPELINE, store, watermark=60 * 100)
    assert panes.count(("PANE", "ON_TIME", 1)) == 101


def test_another_trigger_applies_to_existing_windows():
    store = DictStore()
    waiting = PIPELINE.trigger(Never())
    assert step(waiting, store, (1, "red", 1), (2, "red", 2)) == []
    counting = PIPELINE.trigger(Repeatedly(AfterCount(3)))
    assert step(counting, store, (3, "red", 3)) == [("PANE", "EARLY", 6)]  # the two rows before count
    assert step(PIPELINE, store, (4, "red", 4)) == []
    assert step(PIPELINE, store, watermark=60) == [("RETRACTION", "EARLY", 6), ("PANE", "ON_TIME", 10)]


def test_a_changed_trigger_reads_shards_not_yet_called():
    taken_up, before = DictStore(), DictStore()
    for store in (taken_up, before):
        step(PIPELINE.trigger(AfterWatermark(early=AfterCount(5))), store, (1, "red", 1), shards=2)
    counting = PIPELINE.trigger(Repeatedly(AfterCount(3)))
    step(counting, taken_up, (2, "red", 1), shards=2)
    facts = stage_facts({1: before, 0: taken_up})
    assert facts.plan.options.trigger == Repeatedly(AfterCount(3))
    assert [facts.asked(Asked(Keeps.WINDOWS)).read(store)["waits_for"].to_pylist() for store in (taken_up, before)] == [
        ["1 more row (2 of 3 have arrived since it began waiting)"],
        ["2 more rows (1 of 3 have arrived since it began waiting)"],
    ]


def test_a_changed_trigger_is_evaluated_at_the_end():
    store = DictStore()
    step(PIPELINE.trigger(Never()), store, (1, "red", 1))
    assert step(PIPELINE, store, watermark=60) == [("PANE", "ON_TIME", 1)]


def test_less_lateness_expires_existing_windows():
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1), watermark=0.001)
    step(PIPELINE, store, watermark=70)
    short = PIPELINE.allowed_lateness("1 minute")
    assert step(short, store, watermark=120) == []
    assert step(short, store, (1, "red", 1)) == []
    assert sorted(store) == ["index", "takes"]


def test_less_lateness_expires_windows_already_passed():
    store = DictStore()
    step(PIPELINE.trigger(Never()), store, (1, "red", 1), watermark=0.001)
    step(PIPELINE.trigger(Never()), store, watermark=130)
    short = PIPELINE.trigger(Never()).allowed_lateness("1 minute")
    assert step(short, store) == [("PANE", "ON_TIME", 1)]
    assert sorted(store) == ["index", "takes"]


def test_another_lateness_leaves_triggers_as_they_are():
    """The second row after the end fires, though the first one came before the change."""
    store = DictStore()
    late = PIPELINE.trigger(AfterWatermark(late=AfterCount(2)))
    step(late, store, (1, "red", 1), watermark=0.001)
    assert step(late, store, watermark=70) == [("PANE", "ON_TIME", 1)]
    longer = late.allowed_lateness("2 hours")
    assert step(longer, store, (2, "red", 2)) == []
    assert step(longer, store, (3, "red", 4)) == [("RETRACTION", "ON_TIME", 1), ("PANE", "LATE", 7)]


def test_an_added_accumulation_starts_empty():
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1))
    more = PIPELINE.accumulate(rows=Count(), best=Max("score"))
    assert step(more, store, (2, "red", 5), watermark=60) == [
        ("PANE", "ON_TIME", 1, 0, None),  # the first row came before they were there
        ("RETRACTION", "ON_TIME", 1, 0, None),
        ("PANE", "LATE", 6, 1, 5),
    ]


def test_only_updated_can_be_enabled_later():
    store = DictStore()
    plain = PIPELINE.trigger(AfterWatermark(early=Always(), late=Always()))
    step(plain, store, (1, "red", 1))
    updated = plain.only_updated_panes()
    assert step(updated, store, (2, "red", 0)) == []
    assert step(updated, store, (2, "red", 1)) == [("RETRACTION", "EARLY", 1), ("PANE", "EARLY", 2)]


def test_only_updated_enabled_later_has_no_old_values():
    """So the next pane comes, also one of null where the one before was not."""
    store = DictStore()
    last = PIPELINE.accumulating()._with(accumulations={"total": Last("score", ignore_nulls=False)})
    last = last.trigger(AfterWatermark(early=Always(), late=Always()))
    assert step(last, store, (1, "red", 1)) == [("PANE", "EARLY", 1)]
    updated = last.only_updated_panes()
    assert step(updated, store, (2, "red", None)) == [("PANE", "EARLY", None)]
    assert step(updated, store, (3, "red", None)) == []


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("window", PIPELINE.window(bm.FixedWindows("2 minutes"))),
        ("keys", PIPELINE.key_by("team", "score")),
        ("mode", PIPELINE.accumulating()),
        ("timestamp combiner", PIPELINE.timestamp_combiner(bm.TimestampCombiner.EARLIEST)),
        ("accumulation", PIPELINE._with(accumulations={"total": Max("score")})),
    ],
)
def test_incompatible_state_is_rejected_unchanged(what, other):
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
    monkeypatch.setattr("beamish.tables.notes.FORMAT", 5)
    with pytest.raises(bm.StateError, match="state format 4, this version of beamish writes 5"):
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
    assert operator_of(PIPELINE).open(store).dropped == {"expired": 1}


def test_state_is_read_without_the_pipeline_that_wrote_it():
    store = DictStore()
    assert SegmentStore(store, LAYOUT).index["segment"].tolist() == []
    step(PIPELINE, store, (1, "red", 1), (2, "red", 2), (61, "blue", 3))
    step(PIPELINE, store, (3, "red", 4), watermark=60)
    found = SegmentStore(store, LAYOUT)
    assert found.index["segment"].tolist() == [2, 1]
    assert found.index["windows"].tolist() == [1, 1]
    assert found.index["due_us"].tolist() == [2 * MINUTE, 61 * MINUTE]
    assert (found.about["format"], found.about["clocks"]["watermark_us"]) == (4, MINUTE)
    segment = found.read(1).to_pylist()
    assert [{name: row[name] for name in SHOWN} for row in segment] == [
        {
            "start_us": 0,
            "end_us": MINUTE,
            "unemitted_rows": 0,
            "panes": 2,
            "non_early_panes": 2,
            "key.team": "red",
            "state.total.0": 7,
            "live.total": 7,
        }
    ]
    with pytest.raises(bm.StateError, match="lists entry 's7'"):
        found.read(7)


SHOWN = ("start_us", "end_us", "unemitted_rows", "panes", "non_early_panes", "key.team", "state.total.0", "live.total")


def test_inherited_panes_are_read_without_the_pipeline_that_wrote_them():
    sessions = PIPELINE.window(bm.Sessions("10 seconds")).retract_merged(bm.RetractMerged.WITH_NEXT_PANE)
    sessions = sessions.trigger(Repeatedly(AfterCount(2)))
    store = DictStore()
    step(sessions, store, (1, "red", 1), (2, "red", 1))
    assert step(sessions, store, (11, "red", 1)) == []
    segments = SegmentStore(store, LAYOUT)
    (number,) = segments.numbers(segments.index["inherited_panes"] > 0)
    (pane,) = segments.read_companions(number).to_pylist()
    assert (pane["owner"], pane["start_us"], pane["end_us"], pane["live.total"]) == (0, SECOND, 12 * SECOND, 2)
    assert step(sessions, store, (3, "red", 1)) == [("RETRACTION", "EARLY", 2), ("PANE", "EARLY", 4)]


def _another_table():
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("x", pa.int64())])) as writer:
        writer.write_table(pa.table({"x": [1]}))
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("name", ["index", "s1"])
@pytest.mark.parametrize("stored", [b"", None, b"no Arrow at all", _another_table()])
def test_damaged_bytes_are_reported_with_their_entry(name, stored):
    store = DictStore()
    step(PIPELINE, store, (1, "red", 1))
    store[name] = store[name][: len(store[name]) // 2] if stored is None else stored
    with pytest.raises(bm.StateError, match=f"entry '{name}' is not what was written .*restore the checkpoint"):
        step(PIPELINE, store, (2, "red", 1))


@pytest.mark.parametrize(
    ("segments", "windows", "span"),
    [
        (16, 16, MINUTE),  # few segments are never too many
        (32, 64, 8 * MINUTE),  # 32 segments of 2 windows, as many of 16 would be
        (32, 32 * 16, MINUTE),
        (32, 32 * 64 + 1, MINUTE),  # never below the least
    ],
)
def test_spans_get_longer_for_small_segments(segments, windows, span):
    policy = SegmentPolicy(few_segments=16, few_windows=16, many_windows=64)
    plan = operator_of(PIPELINE).plan
    assert (
        policy.next_span_us(
            policy.least_span_us(plan.window.period_us, plan.options.lateness, counts_rows=False),
            MINUTE,
            segments,
            windows,
        )
        == span
    )


def test_spans_get_shorter_for_large_segments():
    policy = SegmentPolicy(few_windows=16, many_windows=64)
    plan = operator_of(PIPELINE).plan
    assert policy.least_span_us(plan.window.period_us, plan.options.lateness, counts_rows=False) == MINUTE
    assert (
        policy.next_span_us(
            policy.least_span_us(plan.window.period_us, plan.options.lateness, counts_rows=False), 100 * MINUTE, 10, 641
        )
        == 20 * MINUTE
    )
    assert (
        policy.next_span_us(
            policy.least_span_us(plan.window.period_us, plan.options.lateness, counts_rows=False),
            100 * MINUTE,
            1,
            10_000,
        )
        == MINUTE
    )
    assert (
        policy.next_span_us(
            policy.least_span_us(plan.window.period_us, plan.options.lateness, counts_rows=False),
            policy.longest_us,
            1000,
            1000,
        )
        == policy.longest_us
    )


def reduced(function):
    return PIPELINE.accumulate(most=bm.accumulations.Reduce(function, "score"))


def test_another_lambda_is_rejected_and_the_same_text_is_not():
    store = DictStore()
    step(reduced(lambda a, b: max(b, a)), store, (1, "red", 5))
    step(reduced(lambda a, b: max(b, a)), store, (2, "red", 6))
    with pytest.raises(bm.StateError, match="written with accumulation most=Reduce"):
        step(reduced(lambda a, b: min(b, a)), store, (3, "red", 7))


def test_a_new_argument_with_a_default_keeps_checkpoints():
    store = DictStore()
    step(PIPELINE, store, (1, "red", 5))

    @attrs.frozen
    class Sum(bm.accumulations.Sum):  # as a later version of it may be
        ignore_zeros: bool = False

    Sum.__qualname__, Sum.__module__ = "Sum", bm.accumulations.Sum.__module__
    later = evolve(PIPELINE, accumulations={"total": Sum("score")})
    step(later, store, (2, "red", 6))
    with pytest.raises(
        bm.StateError,
        match=r"written with accumulation total=Sum\(column='score'\) of score int64.*now has .*ignore_zeros=True",
    ):
        step(evolve(later, accumulations={"total": Sum("score", ignore_zeros=True)}), store, (3, "red", 7))


NAMED = PIPELINE.window({"minute": bm.FixedWindows("1 minute"), "hour": bm.FixedWindows("1 hour")})


@pytest.mark.parametrize(("then", "now"), [(PIPELINE, NAMED), (NAMED, PIPELINE)])
def test_named_and_unnamed_windowings_reject_each_others_state(then, now):
    store = DictStore()
    step(then, store, (1, "red", 5))
    before = dict(store)
    with pytest.raises(bm.StateError, match="windows would be lost; keep"):
        step(now, store, (2, "red", 6))
    assert store == before


def test_state_of_a_stage_with_another_number_of_inputs_is_refused():
    store, one = DictStore(), Relation(event_time="ts", schema=pa.schema([("ts", pa.int64())]))
    note_takes(store, [one])
    assert noted_takes([store], [one]) == [one]
    with pytest.raises(StateError, match="stage has 1 inputs, the pipeline's has 2"):
        noted_takes([store], [one, one])
