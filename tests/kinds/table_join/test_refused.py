"""Joins of changing tables: what is refused, with the value, the rule and the fix."""

import pyarrow as pa
import pyarrow.compute as pc

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.refused import PLAIN, START, TIMELESS, cases, refused

ORDERS, CUSTOMERS = START.key_by("id").upserts(), START.key_by("name").upserts()
REPLACING = PLAIN.trigger(Always()).accumulating()
HELD = START.key_by("id").changes().suppress(bm.UntilTimeLimit(5, clock="event"))


def joined(orders=ORDERS, customers=CUSTOMERS, on=None, **options):
    return bm.table_join(orders=orders, customers=customers, on={"buyer": "name"} if on is None else on, **options)


AT_ONCE = {
    "an unknown join of tables": lambda: joined(how="full"),
    "unnamed tables": lambda: bm.table_join(ORDERS, CUSTOMERS, on="id"),
    "three tables": lambda: bm.table_join(a=ORDERS, b=CUSTOMERS, c=CUSTOMERS, on="id"),
    "a table called df": lambda: bm.table_join(df=ORDERS, b=CUSTOMERS, on="id"),
    "two tables of one source": lambda: joined(bm.table_join(a=ORDERS, customers=CUSTOMERS, on={"buyer": "name"})),
    "a table of text": lambda: joined(customers="customers"),
    "a table without an event time": lambda: joined(customers=bm.Pipeline()),
    "rows that are keyed": lambda: joined(START.key_by("id")),
    "on of a number": lambda: joined(on=5),
    "on of nothing": lambda: joined(on={}),
    "on omitted over rows": lambda: bm.table_join(orders=ORDERS, customers=START),
    "a table's column twice": lambda: joined(on={"buyer": "name", "payer": "name"}),
    "a reserved column of a table": lambda: joined(on={"__beamish_n": "name"}),
    "a table called pane": lambda: bm.table_join(pane=ORDERS, customers=CUSTOMERS, on={"buyer": "name"}),
    "panes that replace others": lambda: joined(REPLACING),
    "a table of changes()": lambda: joined(HELD),
    "windows of a table join": lambda: joined().window(bm.FixedWindows(5)),
    "having of a table join": lambda: joined().having(pc.field("buyer") == "ann"),
    "a mode of a table join": joined().accumulating,
    "a condition of a table join": lambda: joined().where(pc.field("buyer") == "ann"),
    "keys of a table join": lambda: joined().key_by("buyer"),
    "a suppress of a table join": lambda: joined().suppress(bm.UntilTimeLimit(5, clock="event")),
}
TOGETHER = {
    "forget_after over panes without timestamp": lambda: joined(
        TIMELESS.accumulating_and_retracting(), on={"team": "name"}
    ).forget_after(5),
}
ROW = {"ts": 1, "id": 1, "buyer": "ann", "tags": ["a"]}
COLUMNS = {
    "a column that is missing": joined(on={"payer": "name"}),
    "columns of two types": joined(on={"id": "name"}),
    "tables on a list": joined(START, START, on={"tags": "tags"}),
    "a column of the name of an input": joined(on={"customers": "name"}),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


@cases(TOGETHER)
def test_incompatible_options_are_rejected_before_anything_runs(name):
    refused(__file__, name, lambda: TOGETHER[name]().explain())


@cases(COLUMNS)
def test_a_column_of_the_wrong_type_or_name_is_rejected(name):
    script = TestStream().add([{**ROW, "customers": "ann"}], input="orders")
    script = script.add([{"ts": 1, "name": "ann", "tags": ["a"]}], input="customers")
    refused(__file__, name, lambda: COLUMNS[name].run(script))


def test_a_checkpoint_of_another_join_is_rejected():
    fields = [("ts", pa.timestamp("us")), ("id", pa.int64()), ("buyer", pa.string()), ("name", pa.string())]
    columns = dict.fromkeys(["orders", "customers"], pa.schema(fields))

    def opened(pipeline, store):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    store = DictStore()
    opened(joined(), store).step([None, None], None, [])
    refused(__file__, "another how", lambda: opened(joined(how="left"), store))
    refused(__file__, "other columns", lambda: opened(joined(on={"name": "name"}), store))
    refused(__file__, "another span", lambda: opened(joined().forget_after("1 day"), store))
    alone = START.key_by("id").window(bm.FixedWindows(9)).accumulate(n=Count())
    flow = alone.flow.bind({None: pa.schema(fields)}, shards=1)
    refused(__file__, "a table join, then windows", lambda: flow.operator.open(store))
