"""Laws of windows of rows (rules/laws.md#law-windows-of-rows)."""

from __future__ import annotations

from collections import Counter

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.accumulations import Collect, Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Default
from tests.cost import cost

numbers = st.integers(-6, 20)


def told(panes):
    """The contents of panes, except whether they are the last: that differs for a late pane if the watermark comes after it."""
    return [
        (tuple(pane.window), pane.values, pane.kind, pane.timing, pane.index, pane.on_time_index)
        for pane in panes
        if pane.kind is not PaneKind.DROPPED
    ]


@pytest.mark.of_law("law-windows-of-rows")
@cost(2)
@given(st.data())
def test_windows_by_row_number_equal_time_windows_with_the_reach_as_watermark(data):
    size, period, offset = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6)), data.draw(st.integers(-2, 2))
    delay, late = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 6))
    trigger = data.draw(st.sampled_from([Default(), AfterWatermark(late=Always()), AfterWatermark(late=AfterCount(2))]))
    mode = data.draw(st.sampled_from(list(bm.AccumulationMode)))
    bundles = data.draw(st.lists(st.lists(numbers, max_size=4), max_size=8))
    if data.draw(st.booleans()):
        others = size - 1
        rows, times = bm.CountSessions(others, numbered_by="i", delay=delay), bm.Sessions(others + 2)
    else:
        rows = bm.CountWindows(size, period, offset=offset, numbered_by="i", delay=delay)
        times = bm.SlidingWindows(size, period, offset)

    def pipeline(option):
        timed = (
            bm.Pipeline()
            .event_time("ts", bm.BoundedOutOfOrderness(0))
            .key_by("k")
            .window(option)
            .trigger(trigger, allow_data_loss=True)
        )
        return timed.accumulation_mode(mode).accumulate(n=Count(), of=Collect("i"))

    by_rows, by_time, reach = TestStream(), TestStream(), None
    for bundle in bundles:
        values = [{"ts": float(number), "i": number, "k": "a"} for number in bundle]
        by_rows, by_time = by_rows.add(values), by_time.add(values)
        reach = max([*([] if reach is None else [reach]), *(number + 1 - delay for number in bundle)], default=None)
        if reach is not None:
            by_time = by_time.advance_watermark_to(reach)
    ours = pipeline(rows).allowed_lateness(rows=late).run(by_rows)
    theirs = [
        attrs.evolve(pane, window=pane.window and bm.RowWindow(*(int(bound.timestamp()) for bound in pane.window)))
        for pane in pipeline(times).allowed_lateness(late).run(by_time)
    ]
    assert told(ours) == told(theirs), (rows, bundles)


@pytest.mark.of_law("law-windows-of-rows")
@cost(2)
@given(st.data())
def test_splitting_a_bundle_in_order_changes_no_row_number(data):
    option = bm.CountWindows(
        data.draw(st.integers(1, 4)),
        data.draw(st.integers(1, 5)),
        over=data.draw(st.sampled_from(["key", "stream"])),
        order_by="i",
    )
    pipeline = bm.Pipeline().key_by("k").window(option).accumulate(of=Collect("i"))
    rows = [{"i": i, "k": key} for i, key in enumerate(data.draw(st.lists(st.sampled_from("ab"), max_size=14)))]
    whole = TestStream().add(data.draw(st.permutations(rows))).advance_watermark_to_infinity()
    cut = TestStream()
    while rows:
        size = data.draw(st.integers(1, len(rows)))
        cut, rows = cut.add(data.draw(st.permutations(rows[:size]))), rows[size:]
    shown = [
        Counter((pane.key["k"], pane.window, tuple(pane.values["of"])) for pane in pipeline.run(script))
        for script in (whole, cut.advance_watermark_to_infinity())
    ]
    assert shown[0] == shown[1], (option, cut)


@pytest.mark.of_law("law-windows-of-rows")
@cost(2)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(-5, 5)), max_size=25), st.integers(1, 6))
def test_full_windows_of_a_period_of_one_are_the_frames_of_sql(rows, size):
    pipeline = (
        bm.Pipeline().key_by("k").window(bm.CountWindows(size, 1, order_by="i")).accumulate(n=Count(), total=Sum("v"))
    )
    given_rows = [{"i": i, "k": key, "v": value} for i, (key, value) in enumerate(rows)]
    ours = [
        (pane.key["k"], pane.window.end, pane.values["n"], pane.values["total"])
        for pane in pipeline.run(TestStream().add(given_rows))
    ]
    table = pa.table({name: [row[name] for row in given_rows] for name in ("i", "k", "v")}, SCHEMA)
    frame = f"(partition by k order by i rows between {size - 1} preceding and current row)"
    database = duckdb.connect()
    database.register("rows", table)
    theirs = database.sql(
        f"select k, row_number() over (partition by k order by i), count(*) over {frame}, sum(v) over {frame} from rows"
    )
    assert Counter(ours) == Counter(theirs.fetchall())


SCHEMA = pa.schema([("i", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
