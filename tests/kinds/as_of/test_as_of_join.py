"""As-of joins and versioned tables as values: what they print, what they take, what they keep after a script."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

import beamish as bm
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, Repeatedly
from tests.public_names import public_names

NOW = bm.BoundedOutOfOrderness(0)
RATES = bm.Pipeline().event_time("ts", NOW).key_by("cur").versions(100, deleted="gone", sequence_by="seq")
ORDERS = bm.Pipeline().event_time("at", NOW)
SCRIPT = (
    TestStream()
    .add([{"ts": 10, "cur": "EUR", "rate": 1, "gone": False, "seq": 1}], input="rates")
    .add([{"ts": 30, "cur": "EUR", "rate": 3, "gone": False, "seq": 1}], input="rates")
    .add([{"at": 25, "paid": "EUR"}], input="orders")
    .advance_watermark_to(130)
)


def at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def join(**options):
    return bm.as_of_join(orders=ORDERS, rates=RATES, on={"paid": "cur"}, **options)


@pytest.mark.parametrize(
    "pipeline",
    [
        RATES,
        RATES.with_dropped(),
        bm.Pipeline().event_time("ts", NOW).versions("1 day", values=["rate"], allowed_lateness=0, only_updated=True),
        join(),
        join(how="left", tolerance=5, grace=3, early=True, wait_for=bm.LEFT_INPUT, allow_exact_matches=False)
        .accumulating_and_retracting()
        .with_dropped(),
        bm.as_of_join(more=join(), again=RATES, on={"paid": "cur"}),
    ],
    ids=repr,
)
def test_a_pipeline_is_a_value_that_prints_as_it_is_written(pipeline):
    names = {
        **public_names(bm),
        "bm": bm,
        "LEFT_INPUT": bm.LEFT_INPUT,
    }
    again = eval(repr(pipeline), names)
    assert again == pipeline
    assert hash(again) == hash(pipeline)
    assert pickle.loads(pickle.dumps(pipeline)) == pipeline


def test_versions_can_be_joined_with_another_table():
    accounts = bm.Pipeline().event_time("ts", NOW).key_by("account").versions(100)
    joined = bm.as_of_join(accounts=accounts, rates=RATES, on={"in_cur": "cur"}).accumulating_and_retracting()
    script = (
        TestStream()
        .add([{"ts": 20, "account": "ann", "in_cur": "EUR"}], input="accounts")
        .add([{"ts": 10, "cur": "EUR", "rate": 1, "gone": False, "seq": 1}], input="rates")
        .advance_watermark_to(30)
    )
    (pane,) = joined.run(script)
    assert pane.values["valid_from"] == at(20)
    assert pane.values["rates"] == {"rate": 1, "valid_from": at(10)}


def test_the_table_after_a_script_has_all_exact_reads():
    state = join().state(SCRIPT)
    # The watermark is 130 and the history 100: what ended before 30 is out of reach.
    assert state.versions() == [bm.StoredVersion({"cur": "EUR"}, {"rate": 3}, at(30), None)]
    assert state.versions(as_of=31) == state.versions("rates") == state.versions()
    with pytest.raises(bm.OptionError, match=r"as_of=29.*begins at 1970-01-01 00:00:30"):
        state.versions(as_of=29)
    with pytest.raises(bm.PipelineError, match="'orders'"):
        state.versions("orders")


def test_the_state_after_a_script_includes_initial_rows():
    usd = {"ts": 50, "cur": "USD", "rate": 7, "gone": False, "seq": 1}
    assert sorted(found.values["rate"] for found in join().state(SCRIPT, initial=[usd]).versions()) == [3, 7]


def test_state_of_a_pipeline_without_a_table_has_no_versions():
    plays = bm.Pipeline().event_time("ts", NOW).window(bm.FixedWindows(1)).accumulate(n=bm.accumulations.Count())
    with pytest.raises(bm.PipelineError, match="no versioned table"):
        plays.state(TestStream().add([{"ts": 1}])).versions()
    with pytest.raises(bm.PipelineError, match="is not a versioned table"):
        plays.topic_config()


def test_initial_rows_need_the_event_time():
    with pytest.raises(bm.ColumnError, match="there is no column 'ts'"):
        RATES.run(TestStream().add([{"ts": 1, "cur": "EUR", "gone": False, "seq": 1}]), initial=[{"cur": "EUR"}])


def test_a_row_of_a_null_key_is_dropped_on_arrival_or_comes_alone_when_due():
    null = SCRIPT.add([{"at": 140, "paid": None}], input="orders")
    (_, dropped) = join().with_dropped().run(null)
    assert (str(dropped.reason), dropped.values["orders"]) == ("null_key", {"at": 140, "paid": None})
    outer = join(how="left").with_dropped()
    assert len(outer.run(null)) == 1
    assert outer.run(null.advance_watermark_to(141))[-1].values["rates"] is None


@pytest.mark.parametrize(
    ("direction", "first", "time", "watermark", "change", "rates"),
    [
        ("nearest", [{"ts": 100, "rate": 1}], 105, 116, 109, [1, 1, 2]),
        ("forward", [{"ts": 100, "rate": 1}, {"ts": 101, "gone": True}], 98, 112, 103, [1]),
    ],
)
def test_a_row_is_corrected_by_versions_older_than_the_history(direction, first, time, watermark, change, rates):  # noqa: PLR0917
    """Until the watermark is the lateness and the tolerance past it (rules/joins.md#as-of-directions)."""
    table = bm.Pipeline().event_time("ts", NOW).key_by("cur").versions(10, deleted="gone")
    joined = bm.as_of_join(orders=ORDERS, rates=table, on={"paid": "cur"}, direction=direction, tolerance=5)
    rows = [{"cur": "EUR", "rate": None, "gone": False, **row} for row in (*first, {"ts": change, "rate": 2})]
    script = TestStream().add(rows[:-1], input="rates").add([{"at": time, "paid": "EUR"}], input="orders")
    script = script.advance_watermark_to(111).advance_watermark_to(watermark).add(rows[-1:], input="rates")
    panes = joined.accumulating_and_retracting().run(script)
    assert [pane.values["rates"]["rate"] for pane in panes] == rates


def test_at_arrival_a_pane_meets_the_changes_that_its_step_brings():
    counts = ORDERS.key_by("paid").window(bm.FixedWindows(10)).trigger(Repeatedly(AfterProcessingTime(1))).discarding()
    counts = counts.accumulate(n=bm.accumulations.Count())
    joined = bm.as_of_join(orders=counts, rates=RATES, on={"paid": "cur"}, how="left", as_of="arrival")
    script = TestStream().add([{"at": 5, "paid": "EUR"}], input="orders")
    rate = {"ts": 8, "cur": "EUR", "rate": 1, "gone": False, "seq": 1}
    (pane,) = joined.run(script.step([rate], input="rates", clock=1))  # the clock fires the pane
    assert pane.values["rates"] == {"rate": 1, "valid_from": at(8)}
