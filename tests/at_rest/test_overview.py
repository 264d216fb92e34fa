"""An overview counts in the shards what the list of windows has, and the first windows are those of the list."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.checkpoint.inspection import Inspection
from beamish.checkpoint.overview import Listing, batches_of, bins_of, due_bins, edges_of, overview, round_edges
from beamish.checkpoint.question import Question
from beamish.checkpoint.words import rows_of
from beamish.contract.at_rest import Asked, First, Keeps, Order, Waits
from beamish.errors import HIDDEN, HIDE_VALUES
from beamish.instants import END_OF_TIME_US
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Repeatedly
from tests.checkpoints.cases import CASES
from tests.dashboard.scripted import SECOND_US, START_US, batch, stages_of

EVERY = Asked(Keeps.WINDOWS)
KEYED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(10)).key_by("k")
MINUTES = KEYED.window(bm.FixedWindows(60)).allowed_lateness(300).accumulating().accumulate(n=Count(), total=Sum("v"))


def row(k, ts, v=1):
    return {"k": k, "ts": ts, "v": v}


def listed(stage):
    """All windows of a stage, as ``inspect`` lists them."""
    return rows_of(stage.read(stage.facts.asked(EVERY)))


def found_in(pipeline, script, log=None):
    return Inspection(
        None, "/checkpoints/x", 2, None, log or [batch(number) for number in range(3)], stages_of(pipeline, script)
    )


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_the_list(name):
    case = CASES[name]
    for stage in stages_of(case.pipeline, case.before):
        if stage.facts.plan is None:
            continue
        rows, edges = listed(stage), edges_of(stage.facts)
        bins = list(bins_of(stage.read(stage.facts.counted(edges), by_shard=True), edges)) if rows else []
        assert sum(sum(one.windows.values()) for one in bins) == len(rows) == stage.facts.windows
        assert sum(one.new_rows for one in bins) == sum(one["new_rows"] for one in rows)
        for one in bins:
            inside = [row for row in rows if _is_in(row["end"], one)]
            assert sum(one.windows.values()) == len(inside)
        assert all((row["end"] == END_OF_TIME_US) or edges[0] <= row["end"] < edges[-1] for row in rows)


def _is_in(end, one):
    return end == END_OF_TIME_US if one.start_us is None else one.start_us <= end < one.end_us


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (AfterWatermark(), {Waits.WATERMARK: 2, Waits.EXPIRY: 1}),
        (AfterWatermark(early=AfterCount(5)), {Waits.WATERMARK: 2, Waits.EXPIRY: 1}),
        (AfterWatermark(late=AfterCount(3)), {Waits.WATERMARK: 2, Waits.TRIGGER: 1}),
        (Repeatedly(AfterCount(9)), {Waits.TRIGGER: 3}),
        (AfterProcessingTime(500), {Waits.TRIGGER: 3}),
        (AfterCount(1), {Waits.EXPIRY: 3}),
    ],
)
def test_windows_wait_for_the_watermark_a_trigger_or_their_expiry(trigger, expected):
    late = [row("a", 6)] * (trigger == AfterWatermark(late=AfterCount(3)))
    script = (
        TestStream()
        .advance_processing_time_to(100)
        .add([row("a", 5), row("a", 65), row("b", 130)])
        .advance_watermark_to(62)
        .add(late)
    )
    (stage,) = stages_of(MINUTES.trigger(trigger, allow_data_loss=True), script)
    edges = edges_of(stage.facts)
    waits = Counter()
    for one in bins_of(stage.read(stage.facts.counted(edges), by_shard=True), edges):
        waits.update(one.windows)
    assert waits == expected
    rows = rows_of(stage.read(stage.facts.asked(EVERY, first=First(10))))
    for one in rows:
        assert (one["waits"] == Waits.WATERMARK) == ("watermark to reach its end" in (one["waits_for"] or ""))
    assert Counter(Waits(one["waits"]) for one in rows) == expected


def test_windows_without_an_end_are_counted_apart():
    endless = KEYED.window(bm.GlobalWindow()).trigger(Repeatedly(AfterCount(3))).accumulating().accumulate(n=Count())
    (stage,) = stages_of(endless, TestStream().add([row("a", 5), row("b", 7)]))
    edges = edges_of(stage.facts)
    (one,) = bins_of(stage.read(stage.facts.counted(edges), by_shard=True), edges)
    assert (one.start_us, one.end_us, one.windows, one.new_rows) == (None, None, {Waits.TRIGGER: 2}, 2)


def test_bins_are_as_wide_as_windows_are_apart():
    (stage,) = stages_of(MINUTES, TestStream().add([row("a", 60 * minute) for minute in (0, 1, 2, 4, 9)]))
    edges = edges_of(stage.facts)
    bins = list(bins_of(stage.read(stage.facts.counted(edges), by_shard=True), edges))
    assert edges[1] - edges[0] < 60 * SECOND_US
    assert [(one.end_us - one.start_us) // SECOND_US for one in bins] == [60] * 10
    assert [sum(one.windows.values()) for one in bins] == [1, 1, 1, 0, 1, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("order", Order)
def test_the_first_windows_are_the_first_of_the_list(order):
    rows = [row(f"key {key}", 60 * minute) for minute in range(6) for key in range(4) for _ in range(1 + key % 3)]
    (stage,) = stages_of(MINUTES, TestStream().add(rows).advance_watermark_to(150))
    every = listed(stage)
    keys = {
        Order.NEXT: lambda one: (one["end"] <= 150 * SECOND_US, one["end"], one["start"]),
        Order.LAST: lambda one: (-one["end"],),
        Order.ROWS: lambda one: (-one["new_rows"],),
        Order.PANES: lambda one: (-one["panes"],),
    }[order]
    first = rows_of(stage.read(stage.facts.asked(EVERY, first=First(7, order))))
    assert [keys(one) for one in first] == sorted(map(keys, every))[:7]
    only = rows_of(stage.read(stage.facts.asked(EVERY, first=First(100, order, Waits.EXPIRY))))
    assert len(only) == sum(one["end"] <= 150 * SECOND_US for one in every)
    known = {(one["key"]["k"], one["start"]): one for one in every}
    for one in first:
        assert {name: one[name] for name in one if name != "waits"} == known[one["key"]["k"], one["start"]]


@pytest.mark.parametrize(
    ("first", "last"), [(0, 0), (5, 5), (0, 59 * SECOND_US), (-7 * SECOND_US, 10**15), (0, 10**18), (-(10**18), 10**18)]
)
@pytest.mark.parametrize("counts_rows", [False, True])
def test_bins_are_few_and_contain_all(first, last, counts_rows):
    edges = round_edges(first, last, counts_rows=counts_rows)
    assert edges[0] <= first
    assert last < edges[-1]
    assert 2 <= len(edges) <= 41
    assert len(set(np.diff(np.array(edges, dtype=object)))) == 1


def test_a_stage_has_the_facts_of_its_summary():
    orders = KEYED.event_time("ts", bm.BoundedOutOfOrderness(0))
    merged = bm.merge(orders=orders, payments=KEYED).window(bm.FixedWindows(60)).accumulate(n=Count())
    script = (
        TestStream()
        .add([row("a", 5), row("b", 70), row("a", 300)], input="orders")
        .add([row("a", 40)], input="payments")
        .advance_watermark_to(30)
    )
    (stage,) = overview(found_in(merged, script)).stages
    assert (stage.number, stage.windows, stage.keys, stage.watermark_us) == (1, 3, ["k"], 30 * SECOND_US)
    assert [(one.name, one.holds_back, one.latest_us) for one in stage.inputs] == [
        ("orders", False, 300 * SECOND_US),
        ("payments", True, 40 * SECOND_US),
    ]
    assert stage.held_back.startswith("Input `payments` holds it back")
    assert stage.waiting(Waits.WATERMARK) == 3
    assert [(one.windows, one.keys) for one in stage.shards] == [(3, 2)]
    assert stage.size == sum(one.size for one in stage.shards) > 0
    assert stage.fires == "when the watermark reaches its end, then with every bundle of late rows"


def test_a_watermark_stands_since_the_first_batch_with_it():
    script = TestStream().add([row("a", 5)]).advance_watermark_to(30)
    log = [batch(0), batch(1, 20), batch(2, 30), batch(3, 30), batch(4, 30)]
    found = Inspection(None, "x", 4, None, log, stages_of(MINUTES, script))
    (stage,) = overview(found).stages
    assert (stage.standing.batch, stage.standing.clock_us, stage.standing.is_oldest) == (2, log[2].clock_us, False)
    moved = Inspection(None, "x", 4, None, [*log[:-1], batch(4, 31)], stages_of(MINUTES, script))
    assert overview(moved).stages[0].standing is None
    oldest = Inspection(None, "x", 4, None, log[3:], stages_of(MINUTES, script))
    assert overview(oldest).stages[0].standing.is_oldest


def test_durations_of_batches_are_unknown_in_a_copy():
    log = [batch(0), batch(1, seconds=5), batch(2, committed=False)]
    assert [one.seconds for one in batches_of(log)] == [2.0, 5.0, None]
    copied = [batch(0, seconds=10_000), batch(1, seconds=9_940)]
    assert [one.seconds for one in batches_of(copied)] == [None, None]
    assert [one.clock_us for one in batches_of(copied)] == [START_US, START_US + 60 * SECOND_US]


def test_held_updates_are_counted_by_when_they_are_due():
    held = CASES["suppress"]
    facts = overview(found_in(held.pipeline, held.before))
    (of,) = [stage.held for stage in facts.stages if stage.held is not None]
    assert of.updates
    assert sum(count for *_, count in of.due) + of.undated == of.updates
    assert not of.unknown
    times = pa.array([5, None, 7, 5], pa.timestamp("us", "UTC"))
    bins, undated = due_bins(times)
    assert (sum(count for *_, count in bins), undated) == (3, 1)
    assert due_bins(pa.array([None], times.type)) == ([], 1)


def test_an_overview_is_plain_json():
    import json

    for name, case in CASES.items():
        facts = overview(found_in(case.pipeline, case.before))
        assert json.loads(json.dumps(facts.as_json()))["batch"] == 2, name


def test_listed_windows_and_keys_explain_why():
    script = TestStream().add([row("a", 5), row("b", 70)]).advance_watermark_to(30)
    listing = Listing(found_in(MINUTES, script))
    first, second = listing.rows(1, [], First(10))
    assert (first.key, first.window, first.waits) == ({"k": "'a'"}, "[1970-01-01 00:00:00, 00:01:00)", Waits.WATERMARK)
    assert "It waits for the watermark to reach its end, 1970-01-01 00:01:00" in listing.why(1, first.question)
    assert listing.rows(1, ["k=b"], First(10)) == [second]
    assert listing.asked(1, ["k=a"], "1970-01-01T00:00:10") == Question({"k": "a"}, 10 * SECOND_US)
    with pytest.raises(bm.OptionError, match="stage 2: the checkpoint has stages 1 to 1"):
        listing.rows(2, [], First(10))
    rolling = CASES["rolling"]
    keys = Listing(found_in(rolling.pipeline, rolling.before))
    stored = keys.rows(1, [], First(10))
    assert stored[0].stored
    assert "Stored of key" in keys.why(1, stored[0].question)


def test_hidden_values_are_in_no_row_and_no_answer(monkeypatch):
    monkeypatch.setenv(HIDE_VALUES, "1")
    script = TestStream().add([row("secret of a", 5, v=987654)]).advance_watermark_to(30)
    listing = Listing(found_in(MINUTES, script))
    (first,) = listing.rows(1, [], First(10))
    assert first.key == {"k": HIDDEN}
    for question in (
        first.question,
        Question({"k": "secret of b"}),
        Question({"k": "secret of a"}, 0, 120 * SECOND_US),
    ):
        words = listing.why(1, question)
        assert "secret" not in words
        assert "987654" not in words
    rolling = CASES["rolling"]
    keys = Listing(found_in(rolling.pipeline, rolling.before))
    words = keys.why(1, keys.rows(1, [], First(10))[0].question)
    assert "(hidden): rows, in slices" in words
    assert "'red'" not in words
