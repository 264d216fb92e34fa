"""A statement of SQL on Spark: streams, batches, and what Spark says against an expression."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import beamish as bm
from tests.statement.joins import CHANGED, ENRICHED, PAID, PAIRS, TABLES
from tests.statement.ksqldb import KSQLDB, TYPED
from tests.statement.users import UPSERTS, USERS, changes

pytestmark = pytest.mark.spark

TIMES = pa.timestamp("us", tz="UTC")
VIEWS = """
    SELECT upper(region) AS region, COUNT(*) AS views, SUM(price * amount) AS spent, SUM(amount) / COUNT(*) AS each_time,
           percentile(amount, 0.5) AS half, WINDOWSTART AS since
    FROM pageviews AS p WINDOW TUMBLING (SIZE 10 SECONDS) WHERE p.price > 0 GROUP BY upper(region)
    {having} {emit}
"""
SPARKS = """
    select upper(region) as region, count(*) as views, sum(price * amount) as spent, sum(amount) / count(*) as each_time,
           percentile(amount, 0.5) as half, window.start as since
    from {{rows}} where price > 0 group by upper(region), window(ts, '10 seconds') {having}
"""
ROWS = [
    [(1, "eu", 2.0, 3), (2, "us", 1.0, 1), (12, "eu", 5.0, 1)],
    [(13, "eu", 1.5, 2), (3, "EU", 2.5, 4), (90, "eu", -1.0, 1), (14, None, 1.0, 7)],
    [(25, "us", 1.0, 2), (26, "us", 0.0, 9), (21, "eu", 1.0, None)],
    [(44, "eu", 1.0, 1)],
    [(2, "eu", 1.0, 1), (45, "eu", 1.0, 1)],  # the first is too late
]


def rows(batch):
    return [
        {"ts": datetime.fromtimestamp(ts, UTC), "region": region, "price": price, "amount": amount}
        for ts, region, price, amount in batch
    ]


def sql(text, **options):
    return bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness("12 seconds"), **options)


@pytest.fixture
def events(files):
    made = files(ts=TIMES, region=pa.string(), price=pa.float64(), amount=pa.int64())
    for batch in ROWS:
        made.add(*rows(batch))
    return made


@pytest.fixture
def run(tmp_path):
    """Run a query over all there is; gives its rows, batch by batch, in the order in which they count."""

    def run(query, df):
        found = []

        def keep(batch, _):
            found.extend(sorted(batch.collect(), key=lambda row: (row["pane"]["index"], row["pane"]["kind"])))

        stream = query.apply(df).writeStream.foreachBatch(keep).trigger(availableNow=True)
        stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
        return found

    return run


def shown(row):
    """The columns of the SELECT list."""
    return tuple(
        value for name, value in row.asDict().items() if name not in ("window", "pane", "timestamp", "dropped")
    )


def in_order(rows):
    return sorted(rows, key=repr)


def test_emit_final_agrees_with_sparks_group_by_window(spark, events, run):
    found = run(sql(VIEWS.format(having="", emit="EMIT FINAL")), events.stream())
    assert all(row["pane"]["kind"] == "PANE" and row["pane"]["is_last"] for row in found)
    batch = spark.read.parquet(str(events.folder)).where("not (ts = timestamp_seconds(2) and region = 'eu')")
    expected = spark.sql(SPARKS.format(having=""), rows=batch.where("ts < timestamp_seconds(30)"))
    assert in_order(map(shown, found)) == in_order(map(tuple, expected.collect()))


def test_changes_of_a_stream_add_up_to_sparks_groups(spark, events, run):
    having = "HAVING COUNT(*) < 2"
    found = run(sql(VIEWS.format(having=having, emit="EMIT CHANGES")), events.stream())
    live = {}
    for row in found:
        slot = row["region"], row["window"]
        if row["pane"]["kind"] == "PANE":
            live[slot] = shown(row)
        else:
            assert live.pop(slot) == shown(row)
    batch = spark.read.parquet(str(events.folder)).where("not (ts = timestamp_seconds(2) and region = 'eu')")
    expected = spark.sql(SPARKS.format(having=having), rows=batch)
    assert in_order(live.values()) == in_order(map(tuple, expected.collect()))


@pytest.mark.parametrize("emit", ["", "EMIT FINAL", "EMIT CHANGES"])
def test_a_batch_agrees_with_sparks_group_by(spark, events, emit):
    batch = spark.read.parquet(str(events.folder))
    found = batch.transform(sql(VIEWS.format(having="HAVING COUNT(*) > 1", emit=emit)))
    assert found.columns == ["region", "views", "spent", "each_time", "half", "since", "window", "pane", "timestamp"]
    expected = spark.sql(SPARKS.format(having="HAVING COUNT(*) > 1"), rows=batch)
    assert [field.dataType for field in found.schema][:6] == [field.dataType for field in expected.schema]
    assert in_order(map(shown, found.collect())) == in_order(map(tuple, expected.collect()))


def test_a_statement_adds_no_pass_of_python_to_its_pipeline(events):
    query = sql(VIEWS.format(having="HAVING COUNT(*) > 1", emit="EMIT FINAL"))
    by_hand = events.stream().selectExpr("*", "upper(region) as `UPPER(region)`", "price * amount as `price * amount`")
    assert passes(query.apply(events.stream())) == passes(query.pipeline.apply(by_hand)) > 0


def passes(df):
    plan = df._jdf.queryExecution().analyzed().toString()
    return plan.count("MapInArrow") + plan.count("TransformWithState")


def test_scripts_and_batches_give_the_same(spark, events):
    query = sql(VIEWS.format(having="HAVING SUM(amount) > 1", emit=""))
    script = bm.testing.TestStream()
    for batch in ROWS:
        script = script.add(rows(batch))
    ours = [(*pane.key.values(), *pane.values.values()) for pane in query.run(script)]
    theirs = spark.read.parquet(str(events.folder)).transform(query).collect()
    assert in_order(ours) == in_order(tuple(utc(value) for value in shown(row)) for row in theirs)


def test_what_users_of_ksqldb_type_gives_on_spark_what_a_script_gives(spark):
    query = bm.sql(KSQLDB, event_time="ts", watermark=bm.BoundedOutOfOrderness(0), offset="o")
    (pane,) = query.run(bm.testing.TestStream().add(TYPED).advance_watermark_to_infinity())
    rows = [(row["ts"], row["k"], (row["s"]["name"],), row["v"], row["w"], row["o"]) for row in TYPED]
    df = spark.createDataFrame(rows, "ts long, k string, s struct<Name string>, v long, w string, o long")
    (found,) = df.selectExpr("timestamp_seconds(ts) as ts", "k", "s", "v", "w", "o").transform(query).collect()
    theirs = {
        name: utc(value) for name, value in found.asDict(recursive=True).items() if name in pane.key | pane.values
    }
    assert theirs == pane.key | pane.values


@pytest.mark.parametrize(
    ("query", "script"),
    [
        (
            sql("SELECT upper(k) AS k, SUM(v + 1) AS s FROM t WHERE v > 0 GROUP BY upper(k) EMIT CHANGES"),
            bm.testing.TestStream().add([{"ts": 1, "k": "a", "v": v} for v in (0, 4)]).advance_watermark_to(9),
        ),
        (sql("SELECT item, p.amount " + PAIRS.format("LEFT", "EMIT CHANGES")), PAID),
    ],
)
def test_a_script_runs_a_query_as_micro_batches(spark, query, script):
    assert in_order(script.on_spark(spark, query, shards=2, partitions=1)) == in_order(query.run(script))


def utc(value):
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def test_dropped_rows_are_unchanged(events, run):
    query = sql(VIEWS.format(having="HAVING 10 / COUNT(*) > 100", emit="EMIT FINAL"), with_dropped=True)
    (row,) = run(query, events.stream())
    assert row["pane"]["kind"] == "DROPPED"
    assert (row["region"], row["views"], row["each_time"]) == ("EU", None, None)
    assert row["dropped"]["row"].asDict().keys() == {"ts", "region", "price", "amount"}


def test_column_names_are_case_insensitive(spark, events):
    query = sql("SELECT pageviews.Region, MAX(`PRICE`) AS most FROM shop.pageviews GROUP BY REGION")
    found = spark.read.parquet(str(events.folder)).transform(query)
    assert found.columns == ["Region", "most", "window", "pane", "timestamp"]
    assert {(row["Region"], row["most"]) for row in found.collect()} == {
        ("eu", 5.0),
        ("us", 1.0),
        ("EU", 2.5),
        (None, 1.0),
    }


def test_fields_of_structs_are_expressions(spark):
    df = spark.sql(
        "select timestamp_seconds(1) as ts, named_struct('name', 'ann', 'age', 7, 'at', map('x', 1)) as user, 7 as n"
    )
    query = sql("""
        SELECT user.name AS name, SUM(user->AGE) AS age, MAX(user->at['x']) AS x, SUM(n) AS n FROM t
        WHERE user->age IS NOT DISTINCT FROM n AND SUBSTRING(user->name FROM 1 FOR 1) = 'a'
        GROUP BY user.name HAVING SUM(n) IS DISTINCT FROM 8
    """)
    script = bm.testing.TestStream().add([{"ts": 1, "user": {"name": "ann", "age": 7, "at": {"x": 1}}, "n": 7}])
    (pane,) = query.run(script)
    (row,) = df.transform(query).collect()
    assert (row["name"], row["age"], row["x"], row["n"]) == ("ann", 7, 1, 7)
    assert shown(row) == (*pane.key.values(), *pane.values.values())


def test_a_pull_query_asks_no_stream(events):
    with pytest.raises(bm.SqlError, match=r"no EMIT.*for a stream set the emitted rows: EMIT CHANGES"):
        sql("SELECT region, COUNT(*) AS n FROM p GROUP BY region").apply(events.stream())


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("SELECT city, COUNT(*) AS n FROM p GROUP BY city", 44, "there is no column 'city'"),
        ("SELECT region, SUM(pric) AS n FROM p GROUP BY region", 20, "there is no column 'pric'"),
        ("SELECT region, SUM(region) AS n FROM p GROUP BY region", 16, "'region' is string, and must be a number"),
        ("SELECT ARRAY[price] AS x, COUNT(*) AS n FROM p GROUP BY ARRAY[price]", 57, "cannot be a key"),
        ("SELECT region, MAX(region -> x) AS n FROM p GROUP BY region", 20, "Spark rejects this"),
        ("SELECT region, SUM(pric + 1) AS n FROM p GROUP BY region", 20, "UNRESOLVED_COLUMN"),
        ("SELECT region, COUNT(*) AS n FROM p WHERE pric > 1 GROUP BY region", 43, "UNRESOLVED_COLUMN"),
        ("SELECT region, COUNT(*) AS n FROM p WHERE price GROUP BY region", 43, "DATATYPE_MISMATCH"),
        (
            "SELECT region, shout(COUNT(*)) AS n FROM p GROUP BY region",
            16,
            "SHOUT: an unknown function; the nearest that is known is HOUR;.*aggregates=",
        ),
        (
            "SELECT region, MAX(array_length(region)) AS n FROM p GROUP BY region",
            20,
            "Spark writes this function of ksqlDB as SIZE",
        ),
        ("SELECT region, COUNT(*) AS n FROM p GROUP BY region HAVING char(COUNT(*), 1) = 'a'", 60, "WRONG_NUM_ARGS"),
    ],
)
def test_spark_errors_have_a_position(spark, events, text, column, says):
    with pytest.raises(bm.SqlError, match=says) as raised:
        sql(text).apply(spark.read.parquet(str(events.folder)))
    assert (raised.value.line, raised.value.column) == (1, column)


def test_a_column_called_as_an_expression_is_refused(spark, events):
    df = spark.read.parquet(str(events.folder)).selectExpr("*", "1 as `price * amount`")
    with pytest.raises(bm.SqlError, match=r"the rows have a column 'price \* amount'"):
        sql("SELECT region, SUM(price * amount) AS n FROM p GROUP BY region").apply(df)


def test_explain_of_a_dataframe_lists_its_types(spark, events):
    said = sql("SELECT region, SUM(price * amount) AS n FROM p GROUP BY region").explain(
        spark.read.parquet(str(events.folder))
    )
    assert "SUM(price * amount) double" in " ".join(said.split())


JOINS = [
    ("SELECT *, amount + o.id AS s " + PAIRS.format("INNER", "WHERE item <> 'x' {}"), PAID),
    ("SELECT item, p.amount, p.ts " + PAIRS.format("LEFT", "{}"), PAID),
    ("SELECT item, upper(item) AS u, p.oid " + PAIRS.format("RIGHT", "WHERE o.id IS NULL {}"), PAID),
    (ENRICHED.replace("{how}", "LEFT").replace("{emit}", "{}"), CHANGED),
]
COLUMNS = {
    "orders": "ts long, id long, item string, cur string",
    "payments": "ts long, oid long, amount long",
    "rates": "ts long, currency string, rate double, gone boolean",
    "names": "ts long, id long, name string",
}


def of_script(script, name):
    """The rows of an input of a script."""
    return [row for event in script.events if event.input == name for row in getattr(event, "rows", ())]


@pytest.mark.parametrize(("text", "script"), JOINS)
def test_a_join_of_batches_gives_what_a_script_gives(spark, text, script):
    query = bm.sql(text.format(""), event_time="ts", watermark=bm.BoundedOutOfOrderness(0), tables=TABLES)
    panes = query.run(script)
    frames = {
        source.name: spark.createDataFrame(
            [{**dict.fromkeys(used(script, source.name)), **row} for row in of_script(script, source.name)],
            ", ".join(
                field for field in COLUMNS[source.name].split(", ") if field.split()[0] in used(script, source.name)
            ),
        ).withColumn("ts", F.timestamp_seconds("ts"))
        for source in query.pipeline.flow.sources
    }
    found = query.apply(**frames)
    assert found.columns == [*panes[0].values, "window", "pane", "timestamp"]
    theirs = [tuple(map(seconds, (*shown(row), row["timestamp"]))) for row in found.collect()]
    assert in_order(theirs) == in_order((*pane.values.values(), seconds(pane.timestamp)) for pane in panes)


def used(script, name):
    return list(dict.fromkeys(column for row in of_script(script, name) for column in row))


def seconds(value):
    return int(value.replace(tzinfo=UTC).timestamp()) if isinstance(value, datetime) else value


def test_a_join_of_streams_gives_what_a_script_gives(spark, files, tmp_path):
    text = "SELECT item, p.amount, o.ts " + PAIRS.format("LEFT", "EMIT CHANGES")
    query = bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0))
    columns = {"orders": ["id", "item"], "payments": ["oid", "amount"]}
    made = files(ts=TIMES, of=pa.string(), id=pa.int64(), item=pa.string(), oid=pa.int64(), amount=pa.int64())
    empty = dict.fromkeys(["id", "item", "oid", "amount"])
    for name in columns:
        rows = of_script(PAID, name)
        made.add(*({**empty, **row, "of": name, "ts": datetime.fromtimestamp(row["ts"], UTC)} for row in rows))
    streams = {name: made.stream().where(f"of = '{name}'").select("ts", *names) for name, names in columns.items()}
    found = []
    stream = query.apply(**streams).writeStream
    stream = stream.foreachBatch(lambda batch, _: found.extend(batch.collect())).trigger(availableNow=True)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    timed = [(row["pane"]["kind"], tuple(map(seconds, (*shown(row), row["timestamp"])))) for row in found]
    live = [row for kind, row in timed if kind == "PANE"]
    for kind, row in timed:
        if kind == "RETRACTION":
            live.remove(row)
    expected = [(*pane.values.values(), seconds(pane.timestamp)) for pane in bm.live(query.run(PAID))]
    assert in_order(live) == in_order(expected)


def test_errors_in_a_join_have_a_position(spark):
    query = bm.sql("SELECT o.nothing " + PAIRS.format("", ""), event_time="ts", watermark=bm.BoundedOutOfOrderness(0))
    orders = spark.sql("select timestamp_seconds(1) as ts, 7 as id, 'tea' as item")
    payments = spark.sql("select timestamp_seconds(1) as ts, 7 as oid, 4 as amount")
    with pytest.raises(bm.SqlError, match="nothing") as raised:
        query.apply(orders=orders, payments=payments)
    assert raised.value.column == 8
    with pytest.raises(bm.PipelineError, match=r"apply\(payments="):
        query.apply(orders=orders)
    assert "of payments" in query.explain(orders=orders, payments=payments)


def test_key_sets_are_those_of_spark(spark, events, run):
    """Also over a stream, where a total without its set is retracted."""
    text = """
        SELECT upper(region) AS region, amount, GROUPING(amount) AS g, GROUPING_ID(upper(region), amount) AS id, COUNT(*) AS n,
               COUNT(DISTINCT region) AS regions, SUM(amount) AS s
        FROM {} GROUP BY {} HAVING GROUPING(amount) = 1 OR COUNT(*) > 1
    """
    batch = spark.read.parquet(str(events.folder))
    for by in (
        "ROLLUP (upper(region), amount)",
        "GROUPING SETS (amount, CUBE (upper(region)), (upper(region), amount))",
    ):
        ids = "upper(region), amount" if by.startswith("R") else "amount, upper(region)"
        asked = text.replace("upper(region), amount) AS id", f"{ids}) AS id")
        expected = spark.sql(asked.format("{rows}", by), rows=batch)
        assert in_order(map(shown, batch.transform(sql(asked.format("t", by))).collect())) == in_order(
            map(tuple, expected.collect())
        )
    text = "SELECT amount, COUNT(*) AS n FROM {} GROUP BY ROLLUP (amount) {}"
    rows_ = [(row["pane"]["kind"], shown(row)) for row in run(sql(text.format("t", "EMIT CHANGES")), events.stream())]
    live = [row for kind, row in rows_ if kind == "PANE"]
    for row in [row for kind, row in rows_ if kind == "RETRACTION"]:
        live.remove(row)
    assert in_order(live) == in_order(map(tuple, spark.sql(text.format("{rows}", ""), rows=batch).collect()))


@pytest.mark.parametrize("table", [USERS, UPSERTS], ids=["versions", "upserts"])
def test_a_grouped_table_gives_what_a_script_gives(spark, files, run, table):
    """docs/sql.md#tables: of a stream, and of a batch."""
    text = "SELECT upper(name) AS name, SUM(ID + 0) AS s, COUNT(*) AS n FROM Users u WHERE u.points > 0 GROUP BY upper(name) {}"
    script = changes(
        (1, "a", 3), (2, "b", 4), (1, "b", 5), (2, "b", 0), (3, "a", 1), (3, None), (1, "c", 1), (4, "B", 2)
    )
    made = files(ts=TIMES, id=pa.int64(), name=pa.string(), points=pa.int64(), gone=pa.bool_())
    for event in script.events:
        made.add(*({**row, "ts": datetime.fromtimestamp(row["ts"], UTC)} for row in event.rows))

    def query(emit):
        return sql(text.format(emit), tables={"users": table})

    live = [tuple((pane.key | pane.values).values()) for pane in bm.live(query("EMIT CHANGES").run(script))]
    assert live == [("C", 1, 1), ("B", 4, 1)]
    found = run(query("EMIT CHANGES"), made.stream())
    rows = [shown(row) for row in found if row["pane"]["kind"] == "PANE"]
    for row in found:
        if row["pane"]["kind"] == "RETRACTION":
            rows.remove(shown(row))
    assert in_order(rows) == in_order(live)
    batch = spark.read.parquet(str(made.folder))
    assert in_order(map(shown, batch.transform(query("")).collect())) == in_order(live)
    with pytest.raises(bm.SqlError, match="DATATYPE_MISMATCH") as raised:
        sql("SELECT name, SUM(id * 1) AS s FROM users WHERE id GROUP BY name", tables={"users": table}).apply(batch)
    assert raised.value.column == 48


def test_two_tables_of_a_batch_are_joined(spark):
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
    tables = {"orders": source.key_by("id").upserts(), "customers": source.key_by("name").versions("1 day")}
    at = datetime(2024, 5, 1, tzinfo=UTC)
    orders = spark.createDataFrame([(7, "ann", at), (8, "bob", at)], "id int, buyer string, ts timestamp")
    customers = spark.createDataFrame([("ann", "Rome", at)], "name string, city string, ts timestamp")
    text = "SELECT id, upper(c.city) AS city, c.name FROM orders o LEFT JOIN customers c ON o.buyer = c.name WHERE o.id > 0"
    found = sql(text, tables=tables).apply(orders=orders, customers=customers).collect()
    assert in_order((row.id, row.city, row.name) for row in found) == [(7, "ROME", "ann"), (8, None, None)]
