"""As-of joins: what is refused, with the value, the rule and the fix."""

import pyarrow as pa

import beamish as bm
from beamish.contract.stored import DictStore
from beamish.triggers import Always
from tests.refused import CHANGE, CHANGES, ONE_ORDER, ORDERS, PLAIN, RATES, RETRACTING, TIMELESS, cases, joined, refused


def join_of(**order):
    return joined().run(ONE_ORDER.add([{"at": 1, "cur": "EUR", **order}], input="orders"))


# The error, what is written, and what the message must hold.
REFUSED = [
    ("grace negative", bm.OptionError, lambda: joined(grace=-1), ["as_of_join(grace)=-1", "not be negative"]),
    (
        "tolerance negative",
        bm.OptionError,
        lambda: joined(tolerance="-1 hour"),
        ["as_of_join(tolerance)='-1 hour'", "not be negative"],
    ),
    ("unknown how", bm.OptionError, lambda: joined(how="outer"), ["how='outer'", "'inner'", "'left'"]),
    ("wait_for is text", bm.OptionError, lambda: joined(wait_for="left"), ["wait_for='left'", "bm.LEFT_INPUT"]),
    (
        "grace above the history",
        bm.PipelineError,
        lambda: joined(grace="2 days").explain(),
        ["grace='2 days'", "'1 day'", "longer history"],
    ),
    ("table without versions", bm.PipelineError, lambda: joined(rates=CHANGES), ["rates=", ".versions('1 day')"]),
    ("table is a number", bm.PipelineError, lambda: joined(rates=3), ["rates=3", ".versions('1 day')"]),
    ("left is a number", bm.PipelineError, lambda: joined(3), ["orders=3", "must be a pipeline"]),
    (
        "inputs without a name",
        bm.PipelineError,
        lambda: bm.as_of_join(ORDERS, RATES),
        ["2 unnamed inputs", "as_of_join(orders="],
    ),
    ("one input", bm.PipelineError, lambda: bm.as_of_join(rates=RATES), ["(rates)", "two inputs", "orders=..."]),
    (
        "three inputs",
        bm.PipelineError,
        lambda: bm.as_of_join(a=ORDERS, b=RATES, c=RATES),
        ["(a, b, c)", "two inputs", "nest joins"],
    ),
    (
        "latest versions only",
        bm.PipelineError,
        lambda: joined(rates=CHANGES.versions(5, latest_only=True)).explain(),
        ["rates=", "no earlier versions", "leave latest_only out"],
    ),
    (
        "tolerance and only_updated",
        bm.PipelineError,
        lambda: joined(rates=CHANGES.versions(5, only_updated=True), tolerance=3).explain(),
        ["tolerance='3 seconds'", "only_updated", "leave one of them out"],
    ),
    (
        "accumulating",
        bm.PipelineError,
        lambda: joined().accumulating(),
        ["accumulating()", "not replace the wrong one", "accumulating_and_retracting()"],
    ),
    (
        "a trigger after a join",
        bm.PipelineError,
        lambda: joined().trigger(Always()),
        ["trigger(...) of an as-of join", "has no trigger", ".then("],
    ),
    (
        "keys after a join",
        bm.PipelineError,
        lambda: joined().key_by("cur"),
        ["key_by('cur',) of an as-of join", "on=...", ".then("],
    ),
    (
        "discarding over a left that retracts",
        bm.PipelineError,
        lambda: joined(RETRACTING, on={"team": "cur"}).explain(),
        ["discarding over orders", ".accumulating_and_retracting()"],
    ),
    (
        "a left of panes without timestamp",
        bm.PipelineError,
        lambda: joined(TIMELESS, on={"team": "cur"}).explain(),
        ["orders=", "no time to join at", "timestamp_combiner"],
    ),
    (
        "a table with the name of an output column",
        bm.PipelineError,
        lambda: bm.as_of_join(orders=ORDERS, window=RATES).explain(),
        ["window=", "the output has a column of this name", "rename the table"],
    ),
    (
        "an order's column called like the table",
        bm.ColumnError,
        lambda: join_of(Rates=3),
        ["orders=", "'Rates'", "rename yours"],
    ),
    (
        "an order's column with the name of an output column",
        bm.ColumnError,
        lambda: join_of(pane=3),
        ["orders=", "'pane'", "rename yours"],
    ),
    (
        "an input called initial",
        bm.PipelineError,
        lambda: bm.as_of_join(initial=ORDERS, b=RATES),
        ["initial", "choose"],
    ),
    ("a left with keys", bm.PipelineError, lambda: joined(CHANGES), ["orders=", "only its event_time", "on=..."]),
    ("a left without a time", bm.PipelineError, lambda: joined(bm.Pipeline()), ["orders=", ".event_time("]),
    (
        "a left that is half a pipeline",
        bm.PipelineError,
        lambda: joined(CHANGES.window(bm.FixedWindows(5))),
        ["orders=", "accumulations", ".then("],
    ),
    (
        "a table without a time",
        bm.PipelineError,
        lambda: joined(rates=bm.Pipeline().key_by("cur").versions(5)),
        ["rates=", ".event_time("],
    ),
    (
        "a table that lists what it drops",
        bm.PipelineError,
        lambda: joined(rates=RATES.with_dropped()),
        ["rates=", "with_dropped()", "call it on the join"],
    ),
    (
        "on names another key",
        bm.ColumnError,
        lambda: joined(on={"paid": "currency"}),
        ["on={'paid': 'currency'}", "['cur']", "on={'my_cur': 'cur'}"],
    ),
    ("on names too many", bm.ColumnError, lambda: joined(on=["cur", "x"]), ["on=['cur', 'x']", "['cur']"]),
    ("on names nothing", bm.ColumnError, lambda: joined(on=[]), ["on=[]", "['cur']"]),
    ("on is a number", bm.ColumnError, lambda: joined(on=3), ["on=3", "{left column: key column}"]),
    (
        "on names a column that is not there",
        bm.ColumnError,
        lambda: joined(on={"paid": "cur"}).run(ONE_ORDER.add([{"at": 1}], input="orders")),
        ["on='paid'", "no column 'paid'", "['at']"],
    ),
    (
        "keys of two types",
        bm.ColumnError,
        lambda: join_of(cur=3),
        ["orders's 'cur' is int64", "rates's 'cur' is string", "cast one of them"],
    ),
    (
        "a join after a stage",
        bm.PipelineError,
        lambda: PLAIN.then(joined()),
        ["it takes several inputs", "bm.as_of_join(name=first"],
    ),
    (
        "initial of another table",
        bm.PipelineError,
        lambda: joined().run(ONE_ORDER, initial={"prices": [CHANGE]}),
        ["{'prices': ...}", "['rates']"],
    ),
    (
        "initial of one of two tables",
        bm.PipelineError,
        lambda: bm.as_of_join(priced=joined(), users=RATES).run(ONE_ORDER, initial=[CHANGE]),
        ["['rates', 'users']", "initial={'rates': ...}"],
    ),
]


@cases(REFUSED, "error", "call", "fragments")
def test_invalid_pipelines_are_refused(error, call, fragments):
    refused(error, call, fragments)


RUNS = [
    ("a longer history", joined(rates=CHANGES.versions("2 days")), ["history '1 day'", "'2 days'", "only shrink"]),
    (
        "a longer lateness",
        joined(rates=CHANGES.versions("1 day")),
        ["allowed_lateness '1 hour'", "'1 day'", "only shrink"],
    ),
    ("a tolerance", joined(tolerance=5), ["tolerance None", "tolerance '5 seconds'", "keep the old one"]),
    ("a left join", joined(how="left"), ["how inner", "how left", "keep the old one"]),
    ("another mode", joined().accumulating_and_retracting(), ["mode discarding", "keep the old one"]),
    ("other values", joined(rates=CHANGES.versions(5, values=[])), ["values ['rate: int64']", "values []"]),
]


def open_shard(pipeline, store):
    table = pa.schema([("ts", pa.timestamp("us")), ("cur", pa.string()), ("rate", pa.int64())])
    orders = pa.schema([("at", pa.timestamp("us")), ("cur", pa.string())])
    return pipeline.flow.bind({"rates": table, "orders": orders}, shards=1).operator.open(store)


@cases(RUNS, "second", "fragments")
def test_a_checkpoint_of_another_join_is_refused(second, fragments):
    store = DictStore()
    open_shard(joined(rates=CHANGES.versions("1 day", allowed_lateness="1 hour")), store).step([None, None], None, [])
    refused(bm.StateError, lambda: open_shard(second, store), fragments)
