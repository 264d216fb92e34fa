"""As-of joins: what is refused, with the value, the rule and the fix."""

import pyarrow as pa

import beamish as bm
from beamish.contract.stored import DictStore
from beamish.triggers import Always
from tests.refused import (
    CHANGE,
    CHANGES,
    ONE_ORDER,
    ORDERS,
    PLAIN,
    RATES,
    RETRACTING,
    TIMELESS,
    cases,
    join_of,
    joined,
    refused,
)

REFUSED = {
    "grace negative": lambda: joined(grace=-1),
    "tolerance negative": lambda: joined(tolerance="-1 hour"),
    "unknown how": lambda: joined(how="outer"),
    "wait_for is text": lambda: joined(wait_for="left"),
    "grace above the history": lambda: joined(grace="2 days").explain(),
    "a direction of its own": lambda: joined(direction="onward"),
    "as of another moment": lambda: joined(as_of="now"),
    "at arrival, within a tolerance": lambda: joined(as_of="arrival", tolerance=5),
    "at arrival, early": lambda: joined(as_of="arrival", early=True),
    "at arrival, retracting": lambda: joined(as_of="arrival").accumulating_and_retracting().explain(),
    "at arrival, over a left that retracts": lambda: joined(RETRACTING, on={"team": "cur"}, as_of="arrival").explain(),
    "forward without end": lambda: joined(direction="forward"),
    "forward past the history": lambda: joined(direction="forward", tolerance="20 hours", grace="5 hours").explain(),
    "nearest of nothing": lambda: joined(direction="nearest", tolerance=0, allow_exact_matches=False),
    "table without versions": lambda: joined(rates=CHANGES),
    "table is a number": lambda: joined(rates=3),
    "left is a number": lambda: joined(3),
    "inputs without a name": lambda: bm.as_of_join(ORDERS, RATES),
    "one input": lambda: bm.as_of_join(rates=RATES),
    "three inputs": lambda: bm.as_of_join(a=ORDERS, b=RATES, c=RATES),
    "latest versions only": lambda: joined(rates=CHANGES.versions(5, latest_only=True)).explain(),
    "tolerance and only_updated": lambda: joined(rates=CHANGES.versions(5, only_updated=True), tolerance=3).explain(),
    "accumulating": lambda: joined().accumulating(),
    "a trigger after a join": lambda: joined().trigger(Always()),
    "keys after a join": lambda: joined().key_by("cur"),
    "discarding over a left that retracts": lambda: joined(RETRACTING, on={"team": "cur"}).explain(),
    "a left of panes without timestamp": lambda: joined(TIMELESS, on={"team": "cur"}).explain(),
    "a table with the name of an output column": lambda: bm.as_of_join(orders=ORDERS, window=RATES).explain(),
    "an order's column called like the table": lambda: join_of(Rates=3),
    "an order's column with the name of an output column": lambda: join_of(pane=3),
    "an input called initial": lambda: bm.as_of_join(initial=ORDERS, b=RATES),
    "a left with keys": lambda: joined(CHANGES),
    "a left without a time": lambda: joined(bm.Pipeline()),
    "a left that is half a pipeline": lambda: joined(CHANGES.window(bm.FixedWindows(5))),
    "a table without a time": lambda: joined(rates=bm.Pipeline().key_by("cur").versions(5)),
    "a table that lists what it drops": lambda: joined(rates=RATES.with_dropped()),
    "on names another key": lambda: joined(on={"paid": "currency"}),
    "on names too many": lambda: joined(on=["cur", "x"]),
    "on names nothing": lambda: joined(on=[]),
    "on is a number": lambda: joined(on=3),
    "on names a column that is not there": lambda: joined(on={"paid": "cur"}).run(
        ONE_ORDER.add([{"at": 1}], input="orders")
    ),
    "keys of two types": lambda: join_of(cur=3),
    "a join after a stage": lambda: PLAIN.then(joined()),
    "initial of another table": lambda: joined().run(ONE_ORDER, initial={"prices": [CHANGE]}),
    "initial of one of two tables": lambda: bm.as_of_join(priced=joined(), users=RATES).run(
        ONE_ORDER, initial=[CHANGE]
    ),
}


@cases(REFUSED)
def test_invalid_pipelines_are_refused(name):
    refused(__file__, name, REFUSED[name])


RUNS = {
    "a longer history": joined(rates=CHANGES.versions("2 days")),
    "a longer lateness": joined(rates=CHANGES.versions("1 day")),
    "a tolerance": joined(tolerance=5),
    "a left join": joined(how="left"),
    "another mode": joined().accumulating_and_retracting(),
    "other values": joined(rates=CHANGES.versions(5, values=[])),
    "a table as it stands": joined(as_of="arrival"),
}


def open_shard(pipeline, store):
    table = pa.schema([("ts", pa.timestamp("us")), ("cur", pa.string()), ("rate", pa.int64())])
    orders = pa.schema([("at", pa.timestamp("us")), ("cur", pa.string())])
    return pipeline.flow.bind({"rates": table, "orders": orders}, shards=1).operator.open(store)


@cases(RUNS)
def test_a_checkpoint_of_another_join_is_refused(name):
    store = DictStore()
    open_shard(joined(rates=CHANGES.versions("1 day", allowed_lateness="1 hour")), store).step([None, None], None, [])
    refused(__file__, name, lambda: open_shard(RUNS[name], store))


BACK = {
    "no longer at arrival": (joined(as_of="arrival"), joined()),
    "no longer forward": (joined(direction="forward", tolerance=5), joined(tolerance=5)),
    "forward, no longer nearest": tuple(joined(direction=one, tolerance=5) for one in ("nearest", "forward")),
}


@cases(BACK)
def test_the_join_of_a_checkpoint_keeps_its_direction(name):
    store, (then, now) = DictStore(), BACK[name]
    open_shard(then, store).step([None, None], None, [])
    refused(__file__, name, lambda: open_shard(now, store))
