"""Rows that are changes, and what is live of a list of panes (rules/changelogs.md#input-forms): examples, and what is refused."""

from typing import Any

import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Max, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Always, Repeatedly
from tests.producers import MESSAGE, PRODUCED, TOMBSTONE, TRUNCATE, A, debezium, totals

FEED = bm.Pipeline().from_changelog("diff").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
FIRED = FEED.window(bm.FixedWindows(10)).trigger(Always()).allowed_lateness(20).with_dropped()
ROW = {"ts": 1, "team": "red", "score": 5}


def diff(by, **other):
    return {**ROW, **other, "_diff": by}


def values(panes):
    return [
        (
            str(pane.reason or pane.change),
            {name: value for name, value in pane.values.items() if name not in ("ts", "team")},
        )
        for pane in panes
    ]


def test_a_retraction_of_a_missing_row_is_dropped():
    pipeline = FIRED.accumulating().accumulate(most=Max("score"), n=Count())
    script = TestStream().add([diff(1), diff(-1, score=7)]).add([diff(-1, score=9)]).add([diff(1, score=9)])
    assert values(pipeline.run(script)) == [
        ("unmatched_removal", {"score": 7}),
        ("INSERT", {"most": 5, "n": 1}),
        ("unmatched_removal", {"score": 9}),
        ("UPDATE_AFTER", {"most": 9, "n": 2}),
    ]


def test_surplus_retractions_are_dropped():
    pipeline = FIRED.accumulating_and_retracting().accumulate(scores=Collect("score"), n=Count())
    script = TestStream().add([diff(2)]).add([diff(-3), diff(1, score=1)])
    assert values(pipeline.run(script))[1:] == [
        ("unmatched_removal", {"score": 5}),
        ("UPDATE_BEFORE", {"scores": [5, 5], "n": 2}),
        ("UPDATE_AFTER", {"scores": [1], "n": 1}),
    ]


def test_sums_detect_only_more_retractions_than_rows():
    pipeline = FIRED.accumulating().accumulate(total=Sum("score"))
    script = TestStream().add([diff(-1)]).add([diff(1)]).add([diff(-1, score=3)]).add([diff(-1)])
    assert values(pipeline.run(script)) == [
        ("unmatched_removal", {"score": 5}),
        ("INSERT", {"total": 5}),
        ("unmatched_removal", {"score": 5}),
    ], "the removal of 3 took the only row away: that it was of another one nothing can tell"


def test_a_dropped_retraction_creates_no_window():
    pipeline = FIRED.trigger(Repeatedly(AfterCount(2))).accumulating().accumulate(scores=Collect("score"))
    script = TestStream().add([diff(1)]).add([diff(-1, score=8)]).add([diff(-1, ts=15)]).advance_watermark_to_infinity()
    reasons = [pane.reason for pane in pipeline.run(script)]
    assert reasons == ["unmatched_removal", "unmatched_removal", None]


def test_a_late_removal_is_dropped_and_its_target_stays():
    pipeline = FIRED.accumulating_and_retracting().accumulate(n=Count())
    script = TestStream().add([diff(1)]).advance_watermark_to(30).add([diff(-1)])
    panes = pipeline.run(script)
    assert [pane.reason for pane in panes if pane.reason] == ["expired"]
    assert [pane.values for pane in bm.live(panes)] == [{"n": 1}]


def test_stored_panes_are_read_with_their_retractions():
    scores = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team").window(bm.FixedWindows(10))
    scores = scores.trigger(Always()).accumulating_and_retracting().accumulate(total=Sum("score"))
    script = TestStream()
    for rows in (
        [{"ts": 1, "team": "red", "score": 5}, {"ts": 2, "team": "blue", "score": 5}],
        [{"ts": 3, "team": "red", "score": 1}],
    ):
        script = script.add(rows)
    stored = [
        {
            **pane.key,
            "window": pane.window._asdict(),
            **pane.values,
            "pane": {"kind": str(pane.kind)},
            "timestamp": pane.timestamp,
        }
        for pane in scores.run(script)
    ]
    again = (
        bm.Pipeline()
        .from_panes()
        .event_time("timestamp", bm.BoundedOutOfOrderness(0))
        .key_by("total")
        .window(bm.FixedWindows(100))
        .accumulate(teams=Collect("team"), since=Max("window_start"))
    )
    panes = again.run(TestStream().add(stored).advance_watermark_to_infinity())
    assert [(pane.key["total"], pane.values["teams"]) for pane in panes] == [(5, ["blue"]), (6, ["red"])]


def test_sessions_that_merged_away_are_live_unless_the_pipeline_retracts():
    visits = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.Sessions(10)).accumulate(n=Count())
    script = TestStream().add([{"ts": 0}, {"ts": 12}]).add([{"ts": 6}])

    def live(pipeline):
        return [(pane.start.second, pane.end.second, pane.values["n"]) for pane in bm.live(pipeline.run(script))]

    assert live(visits.trigger(Always()).accumulating()) == [(0, 10, 1), (12, 22, 1), (0, 22, 3)]
    assert live(visits.trigger(Always()).accumulating_and_retracting()) == [(0, 22, 3)]


def test_changes_of_a_table_are_versions_too_and_rows_of_a_join():
    rates = bm.Pipeline().from_changelog("flink").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
    orders = bm.Pipeline().from_changelog("spark").event_time("ts", bm.BoundedOutOfOrderness(0))
    joined = bm.as_of_join(
        orders=orders, rates=rates.versions("1 day"), on="team", early=True
    ).accumulating_and_retracting()
    order = {"ts": 5, "team": "red", "amount": 2}
    script = (
        TestStream()
        .add([{**ROW, "op": "+I"}], input="rates")
        .add([{**order, "_change_type": "insert"}], input="orders")
        .add([{**ROW, "op": "-U"}, {**ROW, "score": 6, "op": "+U"}], input="rates")
        .add([{**order, "_change_type": "delete"}], input="orders")
    )
    came = [(str(pane.change), pane.values["rates"]["score"]) for pane in joined.run(script)]
    assert came == [("INSERT", 5), ("UPDATE_BEFORE", 5), ("UPDATE_AFTER", 6), ("DELETE", 6)]


# Refused changelogs

STORED_PANE = {**ROW, "pane": {"kind": "RETRACTION", "timing": "EARLY", "index": 0}}
BY_TEAM = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .with_dropped()
    .accumulate(n=Count(), total=Sum("score"))
)


@pytest.mark.parametrize("name", PRODUCED)
def test_a_producers_records_lead_to_its_table(name):
    produced = PRODUCED[name]
    script = TestStream().add(produced.records).advance_watermark_to_infinity()
    panes = BY_TEAM.from_changelog(produced.format).run(script)
    assert {pane.key["team"]: tuple(pane.values.values()) for pane in panes} == totals(produced.table)


def test_a_bundle_of_tombstones_fires_nothing():
    script = TestStream().add([debezium("c", None, A)]).add([TOMBSTONE, TOMBSTONE])
    assert len(BY_TEAM.from_changelog("debezium").trigger(Always()).accumulating().run(script)) == 1


def test_a_delete_that_has_only_its_key_is_dropped_for_its_event_time():
    """PostgreSQL's REPLICA IDENTITY DEFAULT: all but the primary key is null."""
    key_only = {**dict.fromkeys(A), "team": "red"}
    script = TestStream().add([debezium("c", None, A), debezium("d", key_only, None)]).advance_watermark_to_infinity()
    dropped, pane = BY_TEAM.from_changelog("debezium").run(script)
    assert (dropped.reason, pane.values) == ("null_event_time", {"n": 1, "total": 5})


WHOLE = {"op": "u", "before": ROW, "after": ROW}


def run(format_, row):
    pipeline = bm.Pipeline().from_changelog(format_).event_time("ts", bm.BoundedOutOfOrderness(0))
    pipeline.window(bm.FixedWindows(10)).accumulate(n=Count()).run(TestStream().add([row]))


PLAIN = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
NO_DATAFRAME: Any = 3
REFUSED = {
    "no format": (bm.OptionError, lambda: bm.Pipeline().from_changelog("avro"), ["format='avro'", "'debezium'"]),
    "upserts": (bm.OptionError, lambda: bm.Pipeline().from_changelog("upsert"), [".upserts(...)"]),
    "no column": (bm.ColumnError, lambda: run("spark", ROW), ["'_change_type'", "'score'"]),
    "no envelope": (bm.ColumnError, lambda: run("debezium", ROW), ["'op'", "payload.*"]),
    "another word": (bm.ScriptError, lambda: run("flink", {**ROW, "op": "X"}), ["op='X'", "UPDATE_AFTER"]),
    "half a difference": (bm.ScriptError, lambda: run("diff", diff(0.5)), ["_diff=0.5", "whole number"]),
    "another op": (bm.ScriptError, lambda: run("debezium", {**WHOLE, "op": "x"}), ["op='x'", "c, r, u, d"]),
    "a truncation": (bm.ScriptError, lambda: run("debezium", TRUNCATE), ["op='t'", "skipped.operations=t"]),
    "a message": (bm.ScriptError, lambda: run("debezium", MESSAGE), ["op='m'", "IS DISTINCT FROM 'm'"]),
    "an image without an op": (bm.ScriptError, lambda: run("debezium", {**WHOLE, "op": None}), ["op=None"]),
    "flattened records": (
        bm.ColumnError,
        lambda: run("debezium", {**ROW, "__op": "d", "__deleted": "true"}),
        ["ExtractNewRecordState", ".upserts("],
    ),
    "Iceberg's words": (
        bm.ScriptError,
        lambda: run("spark", {**ROW, "_change_type": "INSERT"}),
        ["'INSERT'", "insert, "],
    ),
    "no image": (
        bm.ScriptError,
        lambda: run("debezium", {**WHOLE, "before": None}),
        ["REPLICA IDENTITY FULL", ".upserts("],
    ),
    "sessions": (
        bm.PipelineError,
        lambda: FEED.window(bm.Sessions(5)).accumulate(n=Count()).explain(),
        ["over a changelog", "do not merge"],
    ),
    "discarding": (
        bm.PipelineError,
        lambda: FIRED.discarding().accumulate(n=Count()).explain(),
        ["discarding over a changelog", "accumulating()"],
    ),
    "of a stage": (
        bm.PipelineError,
        lambda: bm.merge(a=PLAIN, b=PLAIN).from_changelog(),
        ["from_changelog(format='spark')", "bm.merge(orders="],
    ),
    "twice": (bm.PipelineError, FEED.from_panes, ["from_panes() after from_changelog(format='diff')", "one of them"]),
    "and changes": (
        bm.PipelineError,
        FEED.changes,
        ["changes() after from_changelog(format='diff')", "upserts by key"],
    ),
    "after changes": (bm.PipelineError, PLAIN.changes().from_panes, ["from_panes() and changes()", "upserts by key"]),
    "no panes": (
        bm.ColumnError,
        lambda: (
            bm.Pipeline()
            .from_panes()
            .event_time("ts", bm.BoundedOutOfOrderness(0))
            .window(bm.FixedWindows(1))
            .accumulate(n=Count())
            .run(TestStream().add([ROW]))
        ),
        ["from_panes()", "'pane'"],
    ),
    "panes as plain rows": (
        bm.PipelineError,
        lambda: PLAIN.window(bm.FixedWindows(9)).accumulate(n=Count()).run(TestStream().add([STORED_PANE])),
        ["event_time('ts') over a table of panes", "bm.Pipeline().from_panes()", "df.drop('pane')"],
    ),
    "live of a part": (
        bm.OptionError,
        lambda: bm.live(
            FIRED.accumulating_and_retracting()
            .accumulate(n=Count())
            .run(TestStream().add([diff(1)]).add([diff(1)]))[1:]
        ),
        ["RETRACTION", "from the first one, in order"],
    ),
    "live of numbers": (bm.ColumnError, lambda: bm.live([3]), ["live([3, ...])", "pipeline.run(script)"]),
    "live of a number": (bm.OptionError, lambda: bm.live(NO_DATAFRAME), ["live(3)", "DataFrame of panes"]),
    "a changelog of a list": (
        bm.OptionError,
        lambda: bm.changelog(NO_DATAFRAME),
        ["changelog(3)", "DataFrame of panes"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_changelogs_are_rejected_with_the_fix(name):
    error, call, fragments = REFUSED[name]
    with pytest.raises(error) as caught:
        call()
    for fragment in fragments:
        assert fragment in str(caught.value), f"{fragment!r} is not in: {caught.value}"
