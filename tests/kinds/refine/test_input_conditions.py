"""Conditions of inputs: of panes, under on_error, between two runs, in words (rules/stages.md#conditions)."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Sum
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from beamish.triggers import Always

AT = bm.BoundedOutOfOrderness(0)
ORDERS = bm.Pipeline().event_time("at", AT).key_by("user")
CLICKS = bm.Pipeline().event_time("ts", AT).key_by("user")
LARGE, SMALL = pc.field("amount") > 3, pc.field("amount") < 9
SCRIPT = (
    TestStream()
    .add([{"at": 1, "user": "ann", "amount": 3}, {"at": 2, "user": "ann", "amount": 5}], input="orders")
    .add([{"ts": 2, "user": "ann"}], input="clicks")
    .advance_watermark_to(20)
)


def merged(orders=ORDERS):
    counts = {"orders": Count().of("orders"), "clicks": Count().of("clicks")}
    return bm.merge(orders=orders, clicks=CLICKS).window(bm.FixedWindows(10)).accumulate(**counts)


def joined(orders):
    return bm.as_of_join(orders=orders, rates=CLICKS.versions("1 day"))


def test_conditions_of_an_input_add_up_and_are_in_words_and_in_the_repr():
    pipeline = merged(ORDERS.where(LARGE).where(SMALL))
    (pane,) = pipeline.run(SCRIPT)
    assert pane.values == {"orders": 1, "clicks": 1}
    assert (
        "where        only rows of orders with ((amount > 3) and (amount < 9)); the others still" in pipeline.explain()
    )
    assert ".key_by('user').where(((amount > 3) and (amount < 9)))" in repr(pipeline)


def test_a_condition_may_read_a_column_that_nothing_else_reads():
    orders = [{"at": 5, "user": "ann", "amount": 1, "kind": kind} for kind in ("web", "shop")]
    rates = [{"ts": 1, "user": "ann", "rate": 2, "kind": "web"}, {"ts": 2, "user": "ann", "rate": 3, "kind": "shop"}]
    web = pc.field("kind") == "web"
    table = CLICKS.where(web).versions("1 day", values=["rate"])
    pipeline = bm.as_of_join(orders=bm.Pipeline().event_time("at", AT).where(web), rates=table)
    script = TestStream().add(rates, input="rates").add(orders, input="orders").advance_watermark_to(20)
    (pane,) = pipeline.run(script)
    assert (pane.values["kind"], pane.values["rates"]["rate"]) == ("web", 2)
    assert "only rows of orders with" in pipeline.explain()
    assert "rates with" in " ".join(pipeline.explain().split())


def test_a_condition_of_panes_may_read_their_pane():
    stage = ORDERS.window(bm.FixedWindows(10)).trigger(Always()).accumulating().accumulate(total=Sum("amount"))
    on_time = bm.Pipeline().key_by("user").where(pc.field("pane", "timing") != "EARLY")
    clicks = CLICKS.window(bm.FixedWindows(10)).accumulate(n=Count())
    all_, some = (bm.merge(orders=of, clicks=clicks).accumulate(n=Count()) for of in (stage, stage.then(on_time)))
    assert [pane.values["n"] for merge in (all_, some) for pane in merge.run(SCRIPT)] == [3, 2]
    assert repr(some).count(".then(Pipeline().key_by('user').where((FieldRef.Nested(") == 1
    table = stage.then(on_time.versions("1 hour"))
    assert "where        only rows with" in table.explain()
    assert table.run(TestStream().add([{"at": 1, "user": "ann", "amount": 3}])) == []


def test_a_row_that_fails_a_condition_of_an_input_is_dropped():
    pipeline = merged(ORDERS.where(pc.divide(pc.scalar(12), pc.field("amount") - 3) > 0)).on_error("drop")
    dropped, pane = pipeline.run(SCRIPT)
    assert (dropped.reason, dropped.values["orders"]["amount"]) == ("error", 3)
    assert pane.values == {"orders": 1, "clicks": 1}
    with pytest.raises(bm.UserFunctionError, match="restart from the same checkpoint"):
        joined(bm.Pipeline().event_time("at", AT).where(pc.divide(pc.scalar(12), pc.field("amount") - 3) > 0)).run(
            TestStream().add([{"at": 2, "user": "ann", "amount": 3}], input="orders")
        )


def opened(pipeline, store):
    columns = [("at", pa.timestamp("us")), ("ts", pa.timestamp("us")), ("user", pa.string()), ("amount", pa.int64())]
    sources = {source.name: pa.schema(columns) for source in pipeline.flow.sources}
    if pipeline.flow.sources[0].form is not None:
        sources = {name: schema.append(pa.field("__beamish_sign", pa.int8())) for name, schema in sources.items()}
    return pipeline.flow.completed.bind(sources, shards=1).operator.open(store)


CHANGELOG = bm.Pipeline().from_changelog("flink").event_time("at", AT).key_by("user")
STAYS = {
    "merge": (merged, ORDERS),
    "as-of join": (joined, bm.Pipeline().event_time("at", AT)),
    "table": (lambda orders: orders.versions("1 day"), ORDERS),
    "one input": (lambda orders: orders.window(bm.FixedWindows(10)).accumulate(n=Count()), ORDERS),
}
RETRACTED = {
    "table": (lambda orders: orders.versions("1 day"), CHANGELOG),
    "one input": (
        lambda orders: orders.window(bm.FixedWindows(10)).accumulating().accumulate(n=Count()),
        CHANGELOG,
    ),
}


@pytest.mark.parametrize(("made", "orders"), STAYS.values(), ids=STAYS)
def test_a_changed_condition_applies_from_the_next_rows_on(made, orders):
    store = DictStore()
    first = made(orders.where(LARGE))
    opened(first, store).step([None] * len(first.flow.inputs), None, [])
    opened(made(orders.where(SMALL)), store)
    opened(made(orders), store)


@pytest.mark.parametrize(("made", "orders"), RETRACTED.values(), ids=RETRACTED)
@pytest.mark.parametrize("now", [SMALL, None], ids=str)
def test_another_condition_of_rows_that_are_retracted_is_refused(made, orders, now):
    store = DictStore()
    opened(made(orders.where(LARGE)), store).step([None], None, [])
    with pytest.raises(bm.StateError, match="condition"):
        opened(made(orders if now is None else orders.where(now)), store)


def test_another_condition_of_retracted_panes_of_a_merge_is_refused():
    stage = ORDERS.window(bm.FixedWindows(10)).trigger(Always()).accumulating_and_retracting().accumulate(n=Count())

    def both(*where):
        rows = stage.then(bm.Pipeline().key_by("user").where(pc.field("n") > where[0])) if where else stage
        clicks = CLICKS.window(bm.FixedWindows(10)).accumulate(n=Count())
        return bm.merge(orders=rows, clicks=clicks).accumulate(n=Count())

    store = DictStore()
    opened(both(1), store).step([None] * 2, None, [])
    opened(both(1), store)
    for other in (both(2), both()):
        with pytest.raises(bm.StateError, match="inputs"):
            opened(other, store)


def test_a_global_total_is_joined_with_each_key():
    tens = bm.FixedWindows(10)
    each = ORDERS.window(tens).accumulate(spent=Sum("amount"))
    total = bm.Pipeline().event_time("at", AT).window(tens).accumulate(spent=Sum("amount"))
    with pytest.raises(bm.PipelineError, match=r"leave both without keys, a stage by .then\(bm.Pipeline\(\)\)"):
        bm.merge(each=each, total=total)
    shares = bm.merge(each=each.then(bm.Pipeline()), total=total).accumulate(of=InnerJoin("each", "total"))
    rows = [{"at": 1, "user": "ann", "amount": 3}, {"at": 2, "user": "bob", "amount": 5}]
    script = TestStream().add(rows, input="each").add(rows, input="total").advance_watermark_to(10)
    pairs = [pane.values["of"] for pane in shares.run(script)]
    assert [(pair["each"]["user"], pair["each"]["spent"], pair["total"]["spent"]) for pair in pairs] == [
        ("ann", 3, 8),
        ("bob", 5, 8),
    ]
