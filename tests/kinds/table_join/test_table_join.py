"""Joins of changing tables: values of all types, equal rows, changelogs, panes without a time, and what is stored (rules/joins.md#changing-tables)."""

import math
import pickle
from collections import Counter
from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import DropReason, PaneChange, PaneKind, accumulations, triggers
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.laws.counting import work_of_last_step
from tests.public_names import public_names

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
ORDERS = START.key_by("order").upserts(deleted="gone")
CUSTOMERS = START.key_by("name").upserts()
JOINED = bm.table_join(orders=ORDERS, customers=CUSTOMERS, on={"buyer": "name"})
EVERY = bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting()


def order(number, buyer, ts=1, **values):
    return {"ts": ts, "order": number, "buyer": buyer, "gone": False, **values}


def customer(name, city, ts=1):
    return {"ts": ts, "name": name, "city": city}


def script_of(*bundles):
    """Bundles of the one input and the other, by their names."""
    script = TestStream()
    for bundle in bundles:
        for name, rows in bundle.items():
            script = script.add(rows, input=name)
    return script


def changes(pipeline, script):
    """Each change, the order and the city."""
    return [
        (
            str(pane.change),
            pane.values["orders"] and pane.values["orders"]["order"],
            pane.values["customers"] and pane.values["customers"]["city"],
        )
        for pane in pipeline.run(script)
        if pane.kind is not PaneKind.DROPPED
    ]


@pytest.mark.parametrize(
    "pipeline",
    [
        JOINED,
        bm.table_join(orders=START, customers=CUSTOMERS, on="name", how="outer"),
        JOINED.forget_after("1 day").with_dropped(),
        bm.table_join(pairs=JOINED, cities=START.key_by("city").upserts(), on={"customers.city": "city"}, how="left"),
        JOINED.then(EVERY.key_by("buyer").accumulate(n=Count())),
    ],
    ids=["plain", "outer", "options", "nested", "then"],
)
def test_a_pipeline_is_a_value_that_prints_as_it_is_written(pipeline):
    again = eval(repr(pipeline), {**public_names(bm, triggers, accumulations), "bm": bm})
    assert again == pipeline
    assert hash(again) == hash(pipeline)
    assert pickle.loads(pickle.dumps(pipeline)) == pipeline


def test_a_row_has_the_joined_columns_a_struct_for_each_input_and_the_later_time():
    (pane,) = JOINED.run(
        script_of({"orders": [order(7, "ann", 5, price=1.5)], "customers": [customer("ann", "Rome", 3)]})
    )
    assert pane.key == {"buyer": "ann"}
    assert pane.values == {
        "orders": {"order": 7, "ts": 5, "buyer": "ann", "price": 1.5},
        "customers": {"name": "ann", "ts": 3, "city": "Rome"},
    }
    assert (pane.change, pane.window, pane.timestamp) == (PaneChange.INSERT, None, datetime.fromtimestamp(5, UTC))
    assert (pane.timing, pane.index, pane.is_first, pane.is_last) == ("UNKNOWN", 0, True, False)


def test_only_pairs_of_changed_rows_are_emitted():
    script = script_of(
        {"customers": [customer("ann", "Rome"), customer("bob", "Oslo")]},
        {"orders": [order(number, "ann") for number in range(50)]},
        {"orders": [order(7, "bob", 2)]},
    )
    assert changes(JOINED, script)[50:] == [("DELETE", 7, "Rome"), ("INSERT", 7, "Oslo")]


def test_a_change_and_its_reverse_in_one_bundle_emit_nothing():
    script = script_of({"customers": [customer("ann", "Rome")]}, {"orders": [order(7, "ann")]})
    again = script.add([order(7, "bob", 2), order(7, "ann", 3)], input="orders").add(
        [order(7, "ann", 3)], input="orders"
    )
    assert changes(JOINED, again)[1:] == [("DELETE", 7, "Rome"), ("INSERT", 7, "Rome")]  # at a later time


def test_equal_rows_are_counted():
    feed = bm.Pipeline().from_changelog("flink").event_time("ts", bm.BoundedOutOfOrderness(0))
    joined = bm.table_join(orders=feed, customers=START, on={"buyer": "name"}, how="left").with_dropped()
    row = {"ts": 1, "order": 7, "buyer": "ann"}
    script = script_of(
        {"orders": [{"op": "+I", **row}, {"op": "+I", **row}]},
        {"customers": [customer("ann", "Rome"), customer("ann", "Rome")]},
        {"orders": [{"op": "-D", **row}]},
        {"orders": [{"op": "-D", **row}, {"op": "-D", **row}]},
    )
    found = [Counter(changes_of(panes)) for _, panes in script.trace(joined)]
    assert found == [
        {("INSERT", None): 2},
        {("DELETE", None): 2, ("INSERT", "Rome"): 4},
        {("DELETE", "Rome"): 2},
        {("DELETE", "Rome"): 2, (str(DropReason.UNMATCHED_REMOVAL), None): 1},
    ]


def changes_of(panes):
    for pane in panes:
        city = pane.values["customers"] and pane.values["customers"]["city"]
        yield str(pane.reason if pane.kind is PaneKind.DROPPED else pane.change), city


@pytest.mark.parametrize(
    "value",
    [math.nan, -0.0, None, "é", [1, None], {"x": math.nan, "y": None}, datetime(2024, 5, 1, tzinfo=UTC), True],
    ids=repr,
)
def test_a_row_with_values_of_any_type_is_found_again(value):
    table = START.key_by("order").upserts()
    joined = bm.table_join(orders=table, customers=CUSTOMERS, on={"buyer": "name"}, how="left")
    rows = [{"ts": 1, "order": 7, "buyer": "ann", "v": value}, {"ts": 2, "order": 7, "buyer": "bob", "v": value}]
    script = script_of({"orders": rows[:1]}, {"customers": [customer("ann", "Rome")]}, {"orders": rows[1:]})
    assert [change for change, _, _ in changes(joined, script)] == ["INSERT", "DELETE", "INSERT", "DELETE", "INSERT"]


def test_values_are_joined_as_keys_are_grouped():
    joined = bm.table_join(a=START, b=START, on={"x": "y"})
    script = script_of({"a": [{"ts": 1, "x": -0.0}, {"ts": 1, "x": math.nan}, {"ts": 1, "x": None}]})
    panes = joined.run(script.add([{"ts": 2, "y": 0.0}, {"ts": 2, "y": math.nan}, {"ts": 2, "y": None}], input="b"))
    assert sorted(map(repr, (pane.key["x"] for pane in panes))) == ["0.0", "nan"]


def test_rows_of_several_columns_and_of_nested_fields_are_joined():
    joined = bm.table_join(a=START, b=START, on={"who.name": "name", "day": "date"})
    script = script_of(
        {"a": [{"ts": 1, "who": {"name": "ann", "age": 5}, "day": 1}]},
        {"b": [{"ts": 1, "name": "ann", "date": 1}, {"ts": 1, "name": "ann", "date": 2}]},
    )
    (pane,) = joined.run(script)
    assert pane.key == {"who.name": "ann", "day": 1}
    assert pane.values["a"] == {"ts": 1, "who": {"name": "ann", "age": 5}, "day": 1}


def test_panes_without_a_time_are_joined_and_so_is_a_stage_after():
    totals = START.key_by("buyer").window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting()
    joined = bm.table_join(totals=totals.accumulate(euros=Sum("euros")), customers=CUSTOMERS, on={"buyer": "name"})
    by_city = joined.then(EVERY.key_by("customers.city").accumulate(euros=Sum("totals.euros")))
    script = script_of(
        {"customers": [customer("ann", "Rome"), customer("bob", "Rome")]},
        {"totals": [{"ts": 1, "buyer": "ann", "euros": 5}, {"ts": 1, "buyer": "bob", "euros": 2}]},
        {"totals": [{"ts": 1, "buyer": "ann", "euros": 1}]},
        {"customers": [customer("ann", "Oslo", 2)]},
    )
    assert {pane.timestamp for pane in joined.run(script)} == {None}
    assert [(pane.key["customers.city"], pane.values["euros"]) for pane in bm.live(by_city.run(script))] == [
        ("Rome", 2),
        ("Oslo", 6),
    ]


def test_a_row_that_a_condition_of_its_input_leaves_out_is_in_no_pair():
    joined = bm.table_join(
        orders=ORDERS.then(bm.Pipeline().where(pc.field("order") > 1)),
        customers=START.where(pc.field("city") != "Rome"),
        on={"buyer": "name"},
        how="outer",
    )
    script = script_of(
        {"orders": [order(1, "ann"), order(2, "ann")]},
        {"customers": [customer("ann", "Rome"), customer("ann", "Oslo")]},
    )
    assert changes(joined, script) == [("INSERT", 2, None), ("DELETE", 2, None), ("INSERT", 2, "Oslo")]


def test_a_value_expires_with_its_rows_of_both_inputs():
    joined = JOINED.forget_after(10).with_dropped()
    script = script_of({"customers": [customer("ann", "Rome")]}, {"orders": [order(7, "ann", 5)]})
    expired = script.advance_watermark_to(15)
    assert joined.state(script.advance_watermark_to(14)).keys(key="ann", stage=3)
    assert joined.state(expired).keys(key="ann", stage=3) == []
    assert changes(joined, expired.add([order(8, "ann", 20)], input="orders")) == [("INSERT", 7, "Rome")]
    gone = expired.add([{**order(7, "ann", 21), "gone": True}], input="orders")
    assert [pane.reason for pane in joined.run(gone) if pane.kind is PaneKind.DROPPED] == [DropReason.UNMATCHED_REMOVAL]


def test_the_state_of_a_value_has_the_rows_of_both_inputs():
    script = script_of(
        {"customers": [customer("ann", "Rome", 3)]}, {"orders": [order(7, "ann", 5), order(8, "ann", 6)]}
    )
    orders, customers = JOINED.forget_after(10).state(script).keys(key="ann", stage=3)
    assert (orders.stored, orders.entries, orders.due.second) == ("rows of orders", 2, 16)
    assert (customers.stored, customers.entries, customers.values) == ("rows of customers", 1, "ts=3, city='Rome'")


def test_a_change_of_one_of_many_rows_of_a_value_reads_few_of_them():
    """A popular value: its rows are in many segments, of which a change of one row reads its own."""

    def entries(many):
        script = script_of(
            {"customers": [customer("ann", "Rome")]},
            {"orders": [order(number, "ann") for number in range(many)]},
            {"orders": [order(3, "ann", 2)]},
        )
        return work_of_last_step(JOINED, script.events)[0]

    few, many = entries(6_000), entries(60_000)
    assert many <= few + 4


def test_explain_tells_pairs_state_and_lifetime():
    words = " ".join(JOINED.forget_after("1 day").explain().split())
    assert "pairs of orders and customers with buyer = name" in words
    assert "until the watermark is 1 day past the latest of its value" in words
    left = bm.table_join(orders=ORDERS, customers=CUSTOMERS, on={"buyer": "name"}, how="left")
    assert "a row of orders without a match comes with null" in " ".join(left.explain().split())
