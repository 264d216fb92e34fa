"""Laws of windows of rows (rules/laws.md#law-windows-of-rows)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.accumulations import Collect, Count, Last, Sum
from beamish.durations import Duration
from beamish.kinds.deduplicate.option import Deduplication
from beamish.local import Variation
from beamish.local import run as run_varied
from beamish.tables.segment_policy import SegmentPolicy
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Default
from tests.agreement import agree, differences
from tests.cost import cost
from tests.said import evolve, said
from tests.seconds import S
from tests.strategies import merges
from tests.strategies.pipelines import pipelines, retentions
from tests.strategies.scripts import dense_scripts, scripts
from tests.strategies.windows import count_windows, merged_row_windows, row_windows

keyed = st.sampled_from([("team",), ("team",), ("team", "part"), ("part",)])
by_score = [None, None, Deduplication(("score",), None), Deduplication(("name",), Duration(20 * S))]


@st.composite
def counted(draw: st.DrawFn, /, **what: Any) -> bm.Pipeline:
    """A pipeline whose windows are of rows; some know rows again, some have no event time."""
    option = draw(what.pop("window", row_windows))
    if option.merging:
        what["keys"] = keyed
    pipeline = draw(pipelines(window=st.just(option), **what))
    once = draw(st.sampled_from(by_score))
    idle = option.numbering.idle is not None
    needs_time = idle or (once is not None and once.within is not None)
    pipeline = evolve(pipeline, deduplication=once, retention=draw(retentions))
    if not needs_time and said(pipeline).combiner is bm.TimestampCombiner.END_OF_WINDOW and draw(st.booleans()):
        pipeline = bm.Pipeline(evolve(pipeline, event_time=None, watermark=None).flow.completed)
    pipeline.flow.check()
    return pipeline


def without_time(source, names):
    return attrs.evolve(source, event_time=None, watermark=None) if source.name in names else source


@pytest.mark.of_law("law-windows-of-rows")
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_rows(data):
    pipeline = data.draw(counted())
    agree(pipeline, data.draw(scripts(pipeline)))


@pytest.mark.of_law("law-windows-of-rows")
@cost(2)
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_rows_in_long_scripts(data):
    pipeline = data.draw(
        counted(
            window=count_windows.filter(lambda option: "name" not in option.numbering.columns),
            watermark=st.just(bm.BoundedOutOfOrderness(0)),
            keys=st.just(()),
            accumulation=st.sampled_from([Count(), Sum("score"), Collect("score"), Last("score")]),
        ).filter(lambda one: said(one).deduplication is None or said(one).deduplication.columns == ("score",))
    )
    agree(pipeline, data.draw(dense_scripts))


@cost(2)
@given(st.data())
def test_engine_and_twin_give_the_same_panes_of_rows_of_merges(data):
    """Accumulations, joins, and joins that give each pair once; of some inputs no event time is known."""
    kind = data.draw(st.integers(0, 2))
    pipeline = data.draw(merges.merges(window=merged_row_windows, join=st.just(kind == 1), once=kind == 2))
    option = said(pipeline).window
    by_time = any(getattr(one, "keep_for", None) for one in said(pipeline).accumulations.values())
    if option.numbering.idle is None and not by_time and said(pipeline).combiner is bm.TimestampCombiner.END_OF_WINDOW:
        untimed = data.draw(st.sets(st.sampled_from([source.name for source in pipeline.flow.sources])))
        pipeline = bm.Pipeline(pipeline.flow.on_sources(lambda source: without_time(source, untimed)).completed)
        pipeline.flow.check()
    agree(pipeline, data.draw(merges.scripts(pipeline)))


@pytest.mark.of_law("law-windows-of-rows")
@cost(2)
@given(st.data())
def test_shards_packing_the_way_through_bytes_and_segments_change_no_pane_of_rows(data):
    pipeline = data.draw(counted())
    script = data.draw(scripts(pipeline))
    policy = SegmentPolicy(few_segments=0, shortest_us=1, shortest_rows=1, periods=1)
    how = Variation(
        shards=data.draw(st.integers(1, 4)),
        packs=data.draw(st.integers(1, 3)),
        round_trip=data.draw(st.booleans()),
        adapt=lambda operator: attrs.evolve(operator, policy=policy),
    )
    found = differences(pipeline.run(script), run_varied(pipeline.flow, script.events, how), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- as it is, + otherwise", *found])


numbers = st.integers(-6, 20)


def told(panes):
    """What panes say, but for whether they are the last: a late pane that is, is not told apart where the watermark comes after it."""
    return [
        (tuple(pane.window), pane.values, pane.kind, pane.timing, pane.index, pane.on_time_index)
        for pane in panes
        if pane.kind is not PaneKind.DROPPED
    ]


@pytest.mark.of_law("law-windows-of-rows")
@cost(2)
@given(st.data())
def test_windows_of_brought_numbers_are_windows_of_times_whose_watermark_is_the_reach(data):
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
def test_cutting_a_bundle_along_its_order_changes_no_number(data):
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
