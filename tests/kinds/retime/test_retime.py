"""The event time of a later stage, from a column (rules/stage-rows.md#event-time-of-stages)."""

import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, First, Max, Min, Sum
from beamish.instants import END_OF_TIME_US
from beamish.kinds.retime.operator import time_us_in
from beamish.local import stages_after
from beamish.testing import TestStream
from beamish.triggers import Always

ORDERS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("order")
    .window(bm.FixedWindows(10))
    .accumulate(paid=Min("paid"), n=Count())
)
BY_PAID = bm.Pipeline().event_time("paid", bm.BoundedOutOfOrderness(10))
TENS = BY_PAID.window(bm.FixedWindows(10)).accumulate(orders=Count())


@pytest.mark.parametrize(
    ("column", "us"),
    [
        (pa.array([1, None], pa.int64()), [1_000_000, None]),
        (
            pa.array([0.5, float("nan"), -1.25, float("inf"), 1e300]),
            [500_000, None, -1_250_000, END_OF_TIME_US, END_OF_TIME_US],
        ),
        (pa.array([1_500], pa.timestamp("ms")), [1_500_000]),
        (pa.array([1_500], pa.timestamp("ns", "UTC")), [1]),
        (pa.nulls(2), [None, None]),
    ],
)
def test_times_of_columns(column, us):
    assert time_us_in(column).to_pylist() == us


def test_numbers_are_rounded_to_microseconds_as_in_scripts():
    times = [0.1, 0.7, 1234567.654321, -3.3]
    stream = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).deduplicate("ts", within=1)
    script = TestStream().add([{"ts": time} for time in times])
    us = [round(pane.timestamp.timestamp() * 1e6) for pane in stream.run(script)]
    assert us == sorted(time_us_in(pa.array(times)).to_pylist())


def test_datetimes_of_a_script_are_times():
    script = TestStream().add([{"ts": 1, "order": 1, "paid": datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)}])
    (pane,) = ORDERS.then(TENS).run(script.advance_watermark_to_infinity())
    assert (pane.start.second, pane.end.second) == (0, 10)


def test_rows_without_a_time_are_counted():
    script = TestStream().add([{"ts": 1, "order": 1, "paid": None}, {"ts": 2, "order": 2, "paid": 1e20}])
    chain = ORDERS.then(TENS)
    script = script.advance_watermark_to_infinity()
    assert chain.run(script) == []
    (_, (store,)) = list(stages_after(chain.flow, script.events))[1]
    assert json.loads(store["kind"])["dropped"] == {"null_event_time": 1, "event_time_out_of_range": 1}


def test_where_sees_the_panes_of_the_stage_before():
    late = ORDERS.trigger(Always()).allowed_lateness(50).accumulating_and_retracting()
    joined = bm.merge(
        late=late.then(BY_PAID.where(pc.field("pane", "timing") == "LATE").key_by("order")),
        rows=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("order"),
    )
    counted = joined.window(bm.GlobalWindow()).trigger(Always()).accumulate(n=Count().of("late")).accumulating()
    script = (
        TestStream()
        .add([{"ts": 1, "order": 1, "paid": 1}], input="late")
        .advance_watermark_to(10, input="late")
        .add([{"ts": 2, "order": 1, "paid": 2}], input="late")
    )
    assert [pane.values["n"] for pane in counted.run(script)] == [1]


def test_a_stage_with_a_column_as_time_may_be_over_versions_or_rolling():
    after = {
        "over": BY_PAID.key_by("order").over(bm.Preceding(5)).accumulate(sum=Sum("n")),
        "versions": BY_PAID.key_by("order").versions(5),
        "upserts": BY_PAID.key_by("n").upserts(),
        "rolling": BY_PAID.window(bm.Rolling({"s": 20}, step=10)).accumulate(sum=Sum("n")),
        "gaps": BY_PAID.fill_gaps(10, by="null", within=10),
        "duplicates": BY_PAID.deduplicate("order", within=10),
    }
    script = TestStream().add([{"ts": 1, "order": 1, "paid": 3}]).advance_watermark_to(10).advance_watermark_to(30)
    for name, stage in after.items():
        panes = ORDERS.then(stage).run(script)
        assert panes[0].timestamp.second in (3, 9, 10), name


def test_its_watermark_is_the_delay_behind():
    script = TestStream().add([{"ts": 1, "order": 1, "paid": 1}])
    chain = ORDERS.then(TENS)
    ends = [len(panes) for _, panes in script.advance_watermark_to(19).advance_watermark_to(20).trace(chain)]
    assert ends == [0, 0, 1]
    assert "10 seconds behind that of the stage before" in chain.explain()


def test_a_pipeline_has_a_repr_that_evaluates_to_it():
    names = {**vars(bm), "Min": Min, "Max": Max, "First": First, "Count": Count, "FixedWindows": bm.FixedWindows}
    chain = ORDERS.then(TENS.key_by("n"))
    assert eval(repr(chain), {**names, "AccumulationMode": bm.AccumulationMode}) == chain
    assert ".then(Pipeline().event_time('paid', BoundedOutOfOrderness('10 seconds')).key_by('n')" in repr(chain)


def test_a_key_that_is_nan_goes_to_one_shard():
    nan = [{"ts": 1, "order": value, "paid": 1} for value in (float("nan"), np.nan, -0.0, 0.0)]
    (pane,) = ORDERS.then(TENS).run(TestStream().add(nan).advance_watermark_to_infinity())
    assert pane.values["orders"] == 2
