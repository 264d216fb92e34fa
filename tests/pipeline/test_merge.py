"""Merges: what is refused, what is printed, and what the laws do not draw."""

import pickle
from functools import partial

import pytest

import beamish as bm
from beamish import accumulations
from beamish.accumulations import CoGroup, Collect, Count, Fold, InnerJoin, LeftOuterJoin, Min, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, Always, Repeatedly
from tests.pipeline.merges import BOTH, CLICK, CLICKS, LAGGING, ORDER, ORDERS, SCRIPT
from tests.public_names import public_names
from tests.refused import cases, refused
from tests.upgrades.carried import carried

REFUSED = {
    "wait_for the left input": lambda: bm.merge(orders=ORDERS, clicks=CLICKS, wait_for=bm.LEFT_INPUT),
    "one input": lambda: bm.merge(orders=ORDERS),
    "no pipeline": lambda: bm.merge(orders=ORDERS, clicks=3),
    "no event time": lambda: (
        bm.merge(orders=ORDERS, clicks=bm.Pipeline().key_by("uid"))
        .window(bm.FixedWindows(10))
        .accumulate(n=Count())
        .explain()
    ),
    "an input with a window": lambda: bm.merge(orders=ORDERS, clicks=CLICKS.window(bm.FixedWindows(1))),
    "numbers of keys": lambda: bm.merge(orders=ORDERS, clicks=CLICKS.key_by()),
    "a reserved name": lambda: bm.merge(__beamish_a=ORDERS, b=CLICKS),
    "event_time of a merge": lambda: BOTH.event_time("at", bm.BoundedOutOfOrderness(0)),
    "key_by of a merge": lambda: BOTH.key_by("user"),
    "whose": lambda: BOTH.accumulate(s=Sum("amount")).explain(),
    "no such input": lambda: BOTH.accumulate(s=Sum("amount").of("sales")).explain(),
    "of no name": lambda: Sum("amount").of(3),
    "of of": lambda: BOTH.accumulate(n=Count().of("orders").of("clicks")).explain(),
    "of without a merge": lambda: ORDERS.window(bm.FixedWindows(1)).accumulate(n=Count().of("orders")).explain(),
    "a join beside others": lambda: BOTH.accumulate(n=Count(), pairs=InnerJoin("orders", "clicks")).explain(),
    "a join with itself": lambda: InnerJoin("orders", "orders"),
    "a join with nothing": lambda: InnerJoin("orders", None),
    "CoGroup()": CoGroup,
    "fold of sessions without merge": lambda: (
        BOTH.window(bm.Sessions(1)).accumulate(n=Fold(0, max, "amount").of("orders")).explain()
    ),
    "rows without an input": lambda: BOTH.accumulate(n=Count()).run(TestStream().add([ORDER])),
    "rows of another": lambda: BOTH.accumulate(n=Count()).run(TestStream().add([ORDER], input="sales")),
    "an input of a plain pipeline": lambda: (
        ORDERS.window(bm.FixedWindows(1)).accumulate(n=Count()).run(TestStream().add([ORDER], input="orders"))
    ),
    "a watermark of one goes back": lambda: (
        TestStream().advance_watermark_to(5, input="orders").advance_watermark_to(4)
    ),
    "a watermark that follows the clock": lambda: LAGGING.accumulate(n=Count()).run(SCRIPT),
    "no such column": lambda: BOTH.accumulate(n=Sum("page").of("orders")).run(SCRIPT),
    "sum of text": lambda: BOTH.accumulate(n=Sum("page").of("clicks")).run(SCRIPT),
    "keys of two types": lambda: BOTH.accumulate(n=Count()).run(
        SCRIPT.add([], input="orders").add([ORDER | {"user": 3}], input="orders")
    ),
    "keys of two inputs of two types": lambda: BOTH.accumulate(n=Count()).run(
        TestStream().add([ORDER], input="orders").add([CLICK | {"uid": 3}], input="clicks")
    ),
    "inputs that differ in case only": lambda: bm.merge(clicks=ORDERS, Clicks=CLICKS),
    **{
        f"an input called {name}": partial(bm.merge, **{name: ORDERS, "clicks": CLICKS})
        for name in ("df", "shards", "self")
    },
}


@cases(REFUSED)
def test_an_invalid_merge_is_rejected_with_the_rule_and_the_fix(name):
    refused(__file__, f"merge: {name}", REFUSED[name])


@pytest.mark.parametrize(
    "pipeline",
    [
        BOTH.accumulate(spent=Sum("amount").of("orders"), all_rows=Count(), rows=CoGroup("orders", "clicks")),
        LAGGING.trigger(Always()).discarding().with_dropped().accumulate(pairs=LeftOuterJoin("orders", "clicks")),
    ],
)
def test_a_merge_is_a_value(pipeline):
    from beamish import accumulations, triggers

    names = public_names(bm, triggers, accumulations)
    assert eval(repr(pipeline), names) == pipeline == pickle.loads(pickle.dumps(pipeline))
    assert hash(eval(repr(pipeline), names)) == hash(pipeline)
    assert len(pipeline.flow.inputs) == 2


def test_explain_names_the_inputs_that_hold_the_watermark_back():
    idle = CLICKS.event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout=5))
    said = bm.merge(orders=ORDERS, clicks=idle).window(bm.FixedWindows(10)).accumulate(n=Count()).explain()
    words = " ".join(said.split())
    assert "watermark the minimum of the inputs' watermarks. orders: the maximum event time so far" in words
    assert "It is undefined until every input has one" in words
    assert "; when rows of orders stop, it stops, since there is no idle_timeout" in words


def test_explain_and_repr_tell_that_the_fastest_input_counts():
    fastest = bm.merge(orders=ORDERS, clicks=CLICKS, wait_for=bm.FASTEST_INPUT)
    counts = fastest.window(bm.FixedWindows(10)).accumulate(n=Count())
    assert eval(repr(counts), {**public_names(bm, accumulations), "bm": bm}) == counts
    words = " ".join(counts.explain().split())
    assert "watermark the maximum of the inputs' watermarks" in words
    assert "Rows of slower inputs are late where it has passed the end of their window" in words
    assert "holds it back" not in counts.why(SCRIPT, window=0, key={"user": "ann"})


def test_windows_that_several_stages_have_kept_are_the_same_windows():
    counts = CLICKS.window(bm.FixedWindows(10)).accumulate(n=Count())
    once = ORDERS.window(bm.FixedWindows(10)).accumulate(spent=Sum("amount"))
    twice = once.then(bm.Pipeline().key_by("user").accumulate(spent=Sum("spent")))
    thrice = twice.then(bm.Pipeline().key_by("user").accumulate(spent=Sum("spent")))
    for orders in (once, twice, thrice):
        pairs = bm.merge(orders=orders, clicks=counts).accumulate(pairs=InnerJoin("orders", "clicks"))
        assert [pane.values for pane in pairs.run(SCRIPT)] == [{"pairs": {"orders": {"spent": 5}, "clicks": {"n": 1}}}]


def test_an_input_without_any_row_is_one_without_columns():
    pipeline = BOTH.accumulate(
        spent=Sum("amount").of("orders"), clicks=Collect("page").of("clicks"), least=Min("x").of("clicks")
    )
    script = TestStream().add([ORDER], input="orders").advance_watermark_to_infinity()
    assert [pane.values for pane in pipeline.run(script)] == [{"spent": 5, "clicks": [], "least": None}]
    assert pipeline.with_dropped().run(script) == pipeline.run(script)
    joined = BOTH.accumulate(pairs=LeftOuterJoin("orders", "clicks"))
    assert [pane.values for pane in joined.run(script)] == [
        {"pairs": {"orders": {"at": 1, "amount": 5}, "clicks": None}}
    ]
    swapped = BOTH.accumulate(pairs=LeftOuterJoin("clicks", "orders"))
    assert swapped.run(script) == []


def test_a_null_key_joins_as_every_key_does_on_request():
    script = (
        TestStream()
        .add([ORDER | {"user": None}, ORDER], input="orders")
        .add([CLICK | {"uid": None}], input="clicks")
        .advance_watermark_to_infinity()
    )
    assert BOTH.accumulate(pairs=InnerJoin("orders", "clicks")).run(script) == []
    panes = BOTH.accumulate(pairs=InnerJoin("orders", "clicks", null_keys="pair")).run(script)
    assert [(pane.key, pane.values["pairs"]["clicks"]["page"]) for pane in panes] == [({"user": None}, "a")]


def test_a_merge_with_a_clock_and_a_lagging_input_follows_both():
    pipeline = LAGGING.trigger(Repeatedly(AfterProcessingTime(3))).discarding().accumulate(n=Count())
    script = (
        TestStream()
        .add([ORDER], input="orders")
        .advance_processing_time_to(3)
        .add([CLICK], input="clicks")
        .advance_watermark_to(20, input="orders")
        .advance_processing_time_to(14)
    )
    assert [(pane.values["n"], pane.timing.value) for pane in pipeline.run(script)] == [(1, "EARLY"), (1, "ON_TIME")]


def test_a_stage_after_a_join_takes_its_rows():
    joined = BOTH.trigger(Always()).accumulating_and_retracting().accumulate(pairs=LeftOuterJoin("orders", "clicks"))
    rows = joined.then(bm.Pipeline().key_by().trigger(Always()).accumulating().accumulate(rows=Count()))
    script = TestStream().add([ORDER, ORDER], input="orders").add([CLICK] * 3, input="clicks")
    assert [pane.values["rows"] for pane in rows.run(script)] == [2, 6]


def test_another_wait_for_applies_from_the_next_step_of_a_later_run():
    def counts(wait_for):
        merged = bm.merge(orders=ORDERS, clicks=CLICKS, wait_for=wait_for)
        return merged.window(bm.FixedWindows(10)).accumulate(n=Count())

    script = TestStream().add([ORDER], input="orders").add([CLICK], input="clicks").advance_watermark_to(5)
    script = script.advance_watermark_to(15, input="orders").advance_watermark_to(9, input="clicks")
    least, greatest = counts(bm.BOTH_INPUTS), counts(bm.FASTEST_INPUT)
    assert [len(panes) for panes in carried(least, greatest, script, 4, (2, 3))] == [0, 1]
    assert [len(panes) for panes in carried(greatest, least, script, 4, (2, 3))] == [1, 0]
