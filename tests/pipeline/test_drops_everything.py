"""Pipelines that would drop every row of an input are refused as they are put together (rules/running.md#nothing-would-come)."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import OptionError, PaneKind, PipelineError
from beamish.accumulations import Count, LeftOuterJoin, Sum
from beamish.testing import TestStream
from beamish.triggers import Always, Never

ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
TEN = ROWS.window(bm.FixedWindows(10)).accumulating().accumulate(n=Count())
ALL = ROWS.window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(n=Count())
COUNTED = ROWS.window(bm.CountWindows(2)).accumulate(n=Count())
BOTH = ROWS.window({"all": bm.GlobalWindow(), "ten": bm.FixedWindows(10)}).trigger(Always()).accumulating()
BOTH = BOTH.accumulate(n=Count())
HELD = TEN.allowed_lateness(5).suppress(bm.UntilWindowCloses())
LAST = TEN.allowed_lateness(5).trigger(Never())
AGAIN = bm.Pipeline().key_by("user").accumulating().accumulate(n=Sum("n"))
ORDERS = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)).key_by("user")
RATES = ORDERS.versions(100)
SCRIPT = TestStream().add([{"ts": 1, "user": "ann"}, {"ts": 2, "user": "bob"}]).advance_watermark_to_infinity()

ENDING = [
    bm.FixedWindows(10),
    bm.SlidingWindows(10, 5),
    bm.Sessions(5),
    bm.CalendarWindows(days=1),
    bm.Windowings({"all": bm.GlobalWindow(), "ten": bm.FixedWindows(10)}),
]


@pytest.mark.parametrize("window", ENDING, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("first", "whose"),
    [(ALL, "their panes"), (COUNTED, "their panes"), (BOTH, "the panes of 'all'")],
    ids=["global", "rows", "several"],
)
def test_windows_that_end_over_panes_without_timestamp(first, whose, window):
    with pytest.raises(PipelineError, match=rf"so {whose} have no timestamp.*LATEST\), (take only .*, )?or use bm"):
        first.then(AGAIN.window(window))
    first.timestamp_combiner(bm.TimestampCombiner.LATEST).then(AGAIN.window(window))


@pytest.mark.parametrize("window", [bm.FixedWindows(10), bm.Within(5, of="totals")], ids=repr)
def test_a_merge_in_windows_that_end_over_panes_without_timestamp(window):
    merged = bm.merge(orders=ORDERS, totals=ALL).window(window).accumulate(pair=LeftOuterJoin("orders", "totals"))
    with pytest.raises(PipelineError, match=r"give the stage 'totals' .timestamp_combiner"):
        merged.explain()


def test_a_merge_in_the_global_window_takes_panes_without_timestamp():
    merged = bm.merge(orders=ORDERS, totals=ALL).window(bm.GlobalWindow()).trigger(Always()).discarding().with_dropped()
    merged = merged.accumulate(orders=Count().of("orders"), totals=Count().of("totals"))
    script = TestStream().add([{"at": 1, "user": "ann"}, {"at": None, "user": "ann"}], input="orders")
    script = script.add([{"ts": 1, "user": "ann"}], input="totals")
    dropped, first, second = merged.run(script)
    assert (first.values, second.values) == ({"orders": 1, "totals": 0}, {"orders": 0, "totals": 1})
    assert str(dropped.reason) == "null_event_time"  # a row of a source has a time of its own


def test_the_global_window_takes_the_panes_of_windows_of_rows():
    panes = COUNTED.then(AGAIN.window(bm.GlobalWindow()).trigger(Always())).run(SCRIPT)
    assert [(pane.key["user"], pane.values["n"]) for pane in panes if not pane.is_last] == [("ann", 1), ("bob", 1)]


def test_a_condition_chooses_nothing_where_no_windowing_ends():
    for first in (ALL, COUNTED):
        with pytest.raises(PipelineError, match="their panes have no timestamp"):
            first.then(AGAIN.window(bm.FixedWindows(10)).where(pc.field("n") > 1))


def test_the_refusal_of_some_windowings_has_the_condition_that_takes_the_others():
    with pytest.raises(PipelineError) as refused:
        BOTH.then(AGAIN.window(bm.FixedWindows(60)))
    fix = str(refused.value).partition(".where(")[2].partition("), or use")[0]
    assert fix == "pc.field('windowing').isin(['ten'])"
    minutes = AGAIN.window(bm.FixedWindows(60)).where(pc.field("windowing").isin(["ten"]))
    assert {pane.end.minute for pane in BOTH.then(minutes).run(SCRIPT)} == {1}
    orders = ORDERS.key_by("user", "shop")
    with pytest.raises(PipelineError, match="the panes of 'all' have no timestamp"):
        bm.merge(orders=orders, totals=BOTH).window(bm.FixedWindows(60)).accumulate(n=Count()).explain()
    ten = BOTH.then(bm.Pipeline().key_by("user", "windowing").where(pc.field("windowing") == "ten"))
    bm.merge(orders=orders, totals=ten).window(bm.FixedWindows(60)).accumulate(n=Count()).explain()


def test_a_condition_may_choose_among_windowings():
    minutes = AGAIN.window(bm.FixedWindows(10)).where(pc.field("windowing") == "ten")
    assert {pane.end.second for pane in BOTH.then(minutes).run(SCRIPT)} == {10}
    mixed = AGAIN.window(bm.Windowings({"all": bm.GlobalWindow(), "ten": bm.FixedWindows(10)})).with_dropped()
    panes = BOTH.then(mixed.where(pc.field("user") == "ann")).run(SCRIPT)
    dropped = [pane for pane in panes if pane.kind is PaneKind.DROPPED]
    assert {(pane.key["windowing"], str(pane.reason)) for pane in dropped} == {("ten", "null_event_time")}


TOO_LATE: dict[str, Callable[[], bm.Pipeline]] = {
    "a stage after a suppress": lambda: HELD.then(AGAIN),
    "a stage after one that keeps the windows": lambda: HELD.then(AGAIN.allowed_lateness(5)).then(AGAIN),
    "a stage after windows that fire as they expire": lambda: LAST.then(AGAIN.window(bm.FixedWindows(20))),
    "a stage after versions": lambda: HELD.then(bm.Pipeline().key_by("user").versions(5)).then(
        AGAIN.window(bm.FixedWindows(10))
    ),
    "a stage after an as-of join": lambda: bm.as_of_join(orders=HELD, rates=RATES, on="user").then(AGAIN),
    "versions": lambda: HELD.then(bm.Pipeline().key_by("user").versions(100, allowed_lateness=4)),
    "a table": lambda: bm.as_of_join(
        orders=bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)),
        rates=LAST.then(bm.Pipeline().key_by("user").versions(4)),
        on="user",
    ),
    "rows once": lambda: LAST.then(bm.Pipeline().deduplicate("n", within=5)),
}


@pytest.mark.parametrize("build", TOO_LATE.values(), ids=TOO_LATE)
def test_panes_too_late_for_the_next_stage(build):
    with pytest.raises(PipelineError, match=r"the watermark is 5 seconds past .* where it moves in small steps"):
        build()


IN_TIME: dict[str, Callable[[], bm.Pipeline]] = {
    "after one that keeps the windows": lambda: HELD.then(AGAIN.allowed_lateness(5)).then(AGAIN.allowed_lateness(5)),
    "after windows of its own": lambda: HELD.then(AGAIN.allowed_lateness(5).window(bm.FixedWindows(30))).then(AGAIN),
    "versions": lambda: HELD.then(bm.Pipeline().key_by("user").versions(5)),
    "after an as-of join with grace": lambda: bm.as_of_join(orders=HELD, rates=RATES, on="user", grace=5).then(AGAIN),
    "where windows may fall out before": lambda: LAST.retain(windows=1).then(AGAIN),
}


@pytest.mark.parametrize("build", IN_TIME.values(), ids=IN_TIME)
def test_panes_that_come_in_time_are_taken(build):
    build().explain()


@pytest.mark.parametrize(
    ("first", "gaps", "fits"),
    [
        (bm.FixedWindows(10), bm.SlidingWindows(5, 10), 5),
        (bm.FixedWindows(10, offset=3), bm.SlidingWindows(1, 5, offset=-1), 2),
        (bm.SlidingWindows(6, 4), bm.SlidingWindows(1, 2), 1),
    ],
)
def test_gaps_that_hold_the_ends_of_all_windows(first, gaps, fits):
    with pytest.raises(PipelineError, match="none of these is in a window"):
        TEN.window(first).then(AGAIN.window(gaps))
    TEN.window(first).timestamp_combiner(bm.TimestampCombiner.LATEST).then(AGAIN.window(gaps))
    TEN.window(first).then(AGAIN.window(bm.SlidingWindows(gaps.size, gaps.period, fits)))


COMPARED_WITH_NULL = [
    pc.field("user") == None,  # noqa: E711
    pc.field("user") != pc.scalar(None),
    pc.scalar(None) < pc.field("n"),
    (pc.field("n") > 3) & ~(pc.field("user") == None),  # noqa: E711
    (pc.field("n") > 3) | (pc.field("user") == None),  # noqa: E711
    (pc.field("user") == None).is_null(),  # noqa: E711
]


@pytest.mark.parametrize("condition", COMPARED_WITH_NULL, ids=str)
def test_conditions_that_compare_with_null(condition):
    for say in (ROWS.where, TEN.having, ROWS.where(pc.field("n") > 3).where):
        with pytest.raises(
            OptionError, match=r"a comparison with null is null for every row, so never true; use"
        ) as refused:
            say(condition)
        assert "drop every row" not in str(refused.value)


NEVER_TRUE = [
    pc.scalar(False),  # noqa: FBT003
    pc.scalar(None),
    pc.scalar(1) == pc.scalar(2),
]


@pytest.mark.parametrize("condition", NEVER_TRUE, ids=str)
def test_conditions_that_are_never_true(condition):
    for say in (ROWS.where, TEN.having, ROWS.where(pc.field("n") > 3).where):
        with pytest.raises(OptionError, match="would drop every row; use"):
            say(condition)


@pytest.mark.parametrize(
    "condition",
    [
        pc.field("user").is_null(),
        pc.field("user") == "x == null[string]",
        pc.field("user") == '" == null[',
        pc.field("null") > 3,
        pc.scalar(True),  # noqa: FBT003
        pc.field("pane", "timing") == "LATE",
    ],
    ids=str,
)
def test_conditions_that_may_be_true_are_taken(condition):
    ROWS.where(condition)
    TEN.having(condition)


def test_a_tolerance_in_which_no_version_can_have_begun():
    def join(**how):
        return bm.as_of_join(
            orders=bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0)), rates=RATES, on="user", **how
        )

    with pytest.raises(OptionError, match="a row would never match"):
        join(tolerance=0, allow_exact_matches=False)
    join(tolerance=0)
    join(tolerance=0.000001, allow_exact_matches=False)
