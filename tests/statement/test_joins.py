"""Joins in SQL (docs/sql.md#joins): two streams WITHIN a time, and a stream with tables."""

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import InnerJoin, LeftOuterJoin, RightOuterJoin
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, Always, Never, Repeatedly
from tests.public_names import public_names
from tests.statement.joins import CHANGED, ENRICHED, ORDERS, PAID, PAIRS, PAYMENTS, RATES, TABLES, WATERMARK


def sql(text, **options):
    return bm.sql(text, **{"event_time": "ts", "watermark": WATERMARK, "tables": TABLES, **options})


def shown(panes):
    """``P tea 4``: a pane with these values."""
    return [" ".join([pane.kind[0], *map(str, pane.values.values())]) for pane in panes]


def by_hand(window, accumulation):
    streams = {
        name: bm.Pipeline().event_time("ts", WATERMARK).key_by(key)
        for name, key in (("orders", "id"), ("payments", "oid"))
    }
    return bm.merge(**streams).window(window).accumulate(pair=accumulation)


WITHIN = "SELECT o.id FROM orders o {} JOIN payments p WITHIN {} ON o.id = p.oid {}"


@pytest.mark.parametrize(
    ("how", "within", "emit", "pipeline"),
    [
        (
            "INNER",
            "10 MINUTES",
            "EMIT CHANGES",
            by_hand(
                bm.Within("10 minutes", of="payments", after="10 minutes"),
                InnerJoin("orders", "payments", once=True),
            )
            .trigger(Always())
            .on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)
            .discarding(),
        ),
        (
            "LEFT OUTER",
            "(1 HOUR, 0 SECONDS) GRACE PERIOD 1 DAY",
            "EMIT CHANGES EVERY 5 SECONDS",
            by_hand(bm.Within("1 hour", of="payments"), LeftOuterJoin("orders", "payments"))
            .trigger(Repeatedly(AfterProcessingTime(5)))
            .on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)
            .allowed_lateness("1 day")
            .accumulating_and_retracting(),
        ),
        (
            "RIGHT",
            "(1 HOUR, 2 HOURS)",
            "EMIT FINAL",
            by_hand(
                bm.Within("2 hours", of="orders", after="1 hour"),
                RightOuterJoin("orders", "payments"),
            )
            .trigger(Never())
            .accumulating(),
        ),
    ],
)
def test_streams_within_a_time_are_merged(how, within, emit, pipeline):
    assert sql(WITHIN.format(how, within, emit)).pipeline == pipeline.allowed_lateness(
        pipeline.flow.stage.options.allowed_lateness
    )


def test_a_stream_with_a_table_is_an_as_of_join():
    text = "SELECT o.id, r.rate FROM orders o LEFT JOIN rates r ON r.currency = o.paid_in {}"
    streams = {"orders": bm.Pipeline().event_time("ts", WATERMARK), "rates": TABLES["rates"]}
    options = {"on": {"paid_in": "currency"}, "how": "left"}
    assert sql(text.format("EMIT FINAL")).pipeline == bm.as_of_join(**streams, **options, grace="1 hour")
    changes = bm.as_of_join(**streams, **options, early=True).accumulating_and_retracting()
    assert sql(text.format("EMIT CHANGES")).pipeline == changes


@pytest.mark.parametrize("emit", ["EMIT CHANGES", "EMIT FINAL", ""])
def test_a_joined_row_has_the_time_of_its_later_row(emit):
    """As ksqlDB's ROWTIME; without a match its own."""
    panes = bm.live(sql(f"SELECT o.ts, p.ts {PAIRS.format('RIGHT', emit)}").run(PAID))
    times = [(*pane.values.values(), pane.timestamp.timestamp()) for pane in panes]
    assert sorted(times, key=str) == [(1, 3, 3), (None, 20, 20), (None, 3, 3)]
    text = f"SELECT o.ts, rate FROM orders o JOIN rates r ON o.cur = r.currency {emit}"
    script = TestStream().add(RATES[:1], input="rates").add([{"ts": 10, "cur": "EUR"}], input="orders")
    (pane,) = sql(text).run(script.advance_watermark_to_infinity())
    assert (pane.values["ts"], pane.timestamp.timestamp()) == (10, 10)


def test_an_event_time_of_a_join_is_the_name_of_a_column():
    with pytest.raises(bm.SqlError, match=r"event_time of payments: .* must be the name of a column.*withColumn"):
        sql(WITHIN.format("", "1 MINUTE", ""), event_time={"orders": "ts", "payments": Column()})


class Column:
    """It passes for a Column of Spark's."""

    __module__ = "pyspark.sql"


@pytest.mark.parametrize("emit", ["EMIT CHANGES", "EMIT FINAL", ""])
@pytest.mark.parametrize(
    ("how", "rows"),
    [
        ("INNER", ["P tea 4"]),
        ("LEFT", ["P tea 4", "P jam None"]),
        ("RIGHT", ["P tea 4", "P None 9", "P None 5"]),
        ("FULL OUTER", ["P tea 4", "P jam None", "P None 9", "P None 5"]),
    ],
)
def test_null_keys_match_nothing_and_outer_joins_keep_them(how, rows, emit):
    panes = sql(f"SELECT item, amount {PAIRS.format(how, emit)}").run(PAID)
    assert sorted(shown(bm.live(panes))) == sorted(rows)
    retracted = {"LEFT": ["R tea None"], "FULL OUTER": ["R tea None", "R jam None"]}  # with the pane of the null key
    assert [line for line in shown(panes) if line[0] == "R"] == (
        retracted.get(how, []) if emit == "EMIT CHANGES" else []
    )


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("o.id, p.ts, o.ts AS ts, amount * 2, upper(item)", ["id", "p_ts", "ts", "KSQL_COL_0", "KSQL_COL_1"]),
        ("*", ["o_ts", "o_id", "o_item", "p_ts", "p_oid", "p_amount"]),
        ("P.*, ID", ["p_ts", "p_oid", "p_amount", "ID"]),
        ("o.ts, p.ts, item", ["o_ts", "p_ts", "item"]),
    ],
)
def test_items_are_named_as_ksqldb_names_them(items, names):
    items = items.replace("o.ts AS ts", "o.ts AS ordered")
    names = ["ordered" if name == "ts" else "ts" if name == "p_ts" and "ordered" in items else name for name in names]
    (pane,) = sql(f"SELECT {items} {PAIRS.format('', 'EMIT CHANGES')}").run(PAID)
    assert list(pane.values) == names
    assert pane.key == {}


def test_where_is_over_joined_rows_of_either_side():
    late = sql(f"SELECT item {PAIRS.format('LEFT', 'WHERE p.oid IS NULL EMIT CHANGES')}").run(PAID)
    assert shown(late) == ["P tea", "P jam", "R tea"]
    assert {str(pane.change) for pane in late} == {"INSERT", "DELETE"}
    assert (
        shown(sql(f"SELECT item {PAIRS.format('', 'WHERE o.ts < p.ts AND amount > 4 EMIT CHANGES')}").run(PAID)) == []
    )


def test_keys_may_be_expressions_and_several():
    text = "SELECT o.* FROM orders o JOIN payments p WITHIN 10 SECONDS ON (p.oid + 1 = o.id + 1 AND upper(o.item) = 'T' || p.rest) EMIT CHANGES"
    payments = [{"ts": 3, "oid": 7, "rest": "EA"}, {"ts": 3, "oid": 7, "rest": "ae"}]
    query = sql(text, with_dropped=True)
    script = TestStream().add(ORDERS, input="orders").add(payments, input="payments").advance_watermark_to(99)
    null, joined, late = query.run(script.add([{"ts": 1, "id": 7, "item": "tea"}], input="orders"))
    assert joined.values == {"o_ts": 1, "o_id": 7, "o_item": "tea"}
    assert [(pane.reason, pane.values) for pane in (null, late)] == [
        ("null_key", {"orders": ORDERS[1], "payments": None}),
        ("expired", {"orders": {"ts": 1, "id": 7, "item": "tea"}, "payments": None}),
    ]


def test_an_input_without_rows_has_the_columns_that_are_named():
    script = TestStream().add(ORDERS, input="orders")
    panes = sql(f"SELECT item, p.amount, p.oid {PAIRS.format('LEFT', 'EMIT CHANGES')}").run(script)
    assert shown(panes) == ["P tea None None", "P jam None None"]


def test_each_stream_may_have_an_event_time_of_its_own():
    query = sql(
        WITHIN.format("", "1 MINUTE", "EMIT CHANGES"),
        event_time={"orders": "ordered", "payments": "paid"},
        watermark={"orders": bm.BoundedOutOfOrderness(5), "payments": WATERMARK},
    )
    assert [source.event_time for source in query.pipeline.flow.sources] == ["ordered", "paid"]
    assert query == pickle.loads(pickle.dumps(query)) == eval(repr(query), public_names(bm))
    assert hash(query) == hash(pickle.loads(pickle.dumps(query)))
    with pytest.raises(bm.OptionError, match=r"names no 'payments'"):
        sql(WITHIN.format("", "1 MINUTE", ""), event_time={"orders": "ordered"})


@pytest.mark.parametrize(
    ("how", "emit", "rows"),
    [
        ("LEFT", "FINAL", ["P 7 1.2 ann", "P 8 None None"]),
        (
            "LEFT",
            "CHANGES",
            [*("P 7 1.1 None", "P 8 None None", "R 7 1.1 None", "P 7 1.2 None"), "R 7 1.2 None", "P 7 1.2 ann"],
        ),
        ("INNER", "FINAL", ["P 7 1.2 ann"]),
        ("INNER", "CHANGES", ["P 7 1.2 ann"]),
    ],
)
def test_a_row_meets_the_versions_of_its_time(how, emit, rows):
    assert shown(sql(ENRICHED.format(how=how, emit=f"EMIT {emit}")).run(CHANGED)) == rows


def test_a_table_has_its_keys_values_and_valid_from():
    text = "SELECT r.* FROM orders o JOIN rates r ON o.cur = r.currency WHERE rate > 1"
    script = TestStream().add(RATES, input="rates").add([{"ts": 10, "cur": "EUR"}], input="orders")
    (pane,) = sql(text).run(script)
    assert list(pane.values) == ["r_currency", "r_rate", "r_valid_from"]


TIMED = bm.Pipeline().event_time("ts", WATERMARK)
BUYERS = {
    "orders": TIMED.key_by("id").upserts(),
    "customers": TIMED.key_by("name").versions("1 day", deleted="gone"),
}
BOUGHT = (
    TestStream()
    .add([{"ts": 1, "name": "ann", "city": "Rome", "gone": False}], input="customers")
    .add([{"ts": 2, "id": 7, "buyer": "ann"}, {"ts": 2, "id": 8, "buyer": "bob"}], input="orders")
    .add([{"ts": 3, "id": 7, "buyer": "bob"}], input="orders")
    .add([{"ts": 4, "name": "bob", "city": "Oslo", "gone": False}], input="customers")
)
OF_TABLES = "SELECT id, c.city FROM orders o {} JOIN Customers c ON o.buyer = c.NAME {} EMIT CHANGES"


def test_two_tables_are_joined_by_any_columns():
    query = sql(OF_TABLES.format("LEFT", ""), tables=BUYERS)
    assert shown(query.run(BOUGHT)) == [
        "P 7 Rome",
        "P 8 None",
        "R 7 Rome",
        "P 7 None",
        "R 8 None",
        "R 7 None",
        "P 8 Oslo",
        "P 7 Oslo",
    ]
    by_hand = bm.table_join(
        orders=BUYERS["orders"],
        customers=TIMED.key_by("name").versions("1 day", deleted="gone", latest_only=True),
        on={"buyer": "name"},
        how="left",
    )
    assert query.pipeline == by_hand


def test_a_condition_is_over_joined_rows_of_tables_and_a_star_has_all_columns():
    inner = sql(OF_TABLES.format("", "WHERE id = 7 OR c.city = 'Rome'"), tables=BUYERS)
    assert shown(inner.run(BOUGHT)) == ["P 7 Rome", "R 7 Rome", "P 7 Oslo"]
    star = sql("SELECT * FROM orders o FULL JOIN customers c ON o.buyer = c.name EMIT CHANGES", tables=BUYERS)
    assert list(star.run(BOUGHT)[0].values) == [
        *("o_id", "o_ts", "o_buyer"),
        *("c_name", "c_city", "c_valid_from", "c_valid_to"),
    ]


def test_tables_that_flink_declares_with_keys_are_joined_without_bounds_in_time():
    text = """
        CREATE TABLE orders (id INT, buyer STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED);
        CREATE TABLE customers (name STRING, city STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (name) NOT ENFORCED);
        SELECT o.id, c.city FROM orders AS o LEFT JOIN customers AS c ON o.buyer = c.name
    """
    query = bm.sql(text, dialect="flink")
    assert shown(query.run(BOUGHT))[-2:] == ["P 8 Oslo", "P 7 Oslo"]


REFUSED = {
    "SELECT o.id FROM orders o ^JOIN payments p ON o.id = p.oid": "without WITHIN.*tables=",
    "SELECT o.id FROM orders o ^JOIN rates r WITHIN 1 DAY ON o.id = r.currency": "rates is a table.*leave WITHIN out",
    "SELECT r.rate FROM rates r ^JOIN orders o ON r.id = o.id": "rates is a table, and orders a stream.*FROM orders JOIN rates",
    "SELECT r.rate FROM rates r ^JOIN names n WITHIN 1 DAY ON r.id = n.id": "WITHIN: rates is a table, whose rows have no time",
    "SELECT r.rate FROM rates r JOIN names n ON ^upper(r.id) = n.id": "tables are joined by columns: r.a = n.b",
    "SELECT r.rate FROM rates r JOIN names n ON r.id = n.id ^EMIT FINAL": "none is final: write EMIT CHANGES",
    "SELECT r.rate FROM rates r JOIN names n ON r.id = n.id ^EMIT CHANGES EVERY 1 SECOND": "each change is emitted at once",
    "SELECT r.rate FROM rates r JOIN names n ON r.id = n.id ^JOIN more m ON m.id = n.id": "a statement joins two tables",
    "SELECT o.id FROM orders o ^RIGHT OUTER JOIN rates r ON o.id = r.currency": "RIGHT JOIN: a table",
    "SELECT o.id FROM orders o JOIN payments p WITHIN 1 DAY ON o.id = p.oid ^JOIN rates r ON o.id = r.currency": "a second statement",
    "SELECT o.id FROM orders o JOIN rates r ON o.id = r.CURRENCY ^JOIN payments p WITHIN 1 DAY ON o.id = p.oid": "a second statement",
    "SELECT o.id FROM orders o ^JOIN orders p WITHIN 1 DAY ON o.id = p.id": "orders_again",
    "SELECT o.id FROM orders o JOIN payments p WITHIN 1 DAY ON ^o.id < p.oid": "ON takes equalities",
    "SELECT o.id FROM orders o JOIN payments p WITHIN 1 DAY ON ^o.id = 3": "an expression over o and one over p",
    "SELECT o.id FROM orders o JOIN payments p WITHIN 1 DAY ON ^o.id = o.oid": "an expression over o and one over p",
    "SELECT o.id FROM orders o JOIN rates r ON ^o.id = upper(r.currency)": "a table is joined by its key",
    "SELECT o.id FROM orders o ^JOIN rates r ON o.id = r.rate": "must name all keys of rates",
    "SELECT o.id FROM orders o JOIN rates r ON o.id = r.currency JOIN names n ON ^r.rate = n.id": "a table is joined by its key",
    "SELECT o.id FROM orders o JOIN rates r ON o.id = r.currency ^EMIT CHANGES EVERY 1 SECOND": "EVERY of a join with a table",
    "SELECT o.id FROM orders o JOIN payments p WITHIN ^TEN MINUTES ON o.id = p.oid": "a whole number",
    "SELECT o.id FROM orders o ^JOIN payments p WITHIN (0 DAYS, 0 DAYS) ON o.id = p.oid": "equal times only",
    "SELECT o.id FROM orders o ^CROSS JOIN payments p": "no such join",
    "SELECT o.id FROM orders o JOIN payments p WITHIN 1 DAY ^WHERE o.id = 1": "expected ON",
    "SELECT o.id, ^COUNT(*) FROM orders o JOIN rates r ON o.id = r.currency": "COUNT without GROUP BY",
    "SELECT o.id, ^now() FROM orders o JOIN rates r ON o.id = r.currency": "changes between calls",
    "SELECT o.id AS x, item AS ^x FROM orders o JOIN payments p WITHIN 1 DAY ON o.id = p.oid": "x is there twice",
    "SELECT o.id FROM orders o JOIN rates r ON o.id = r.currency ^PARTITION BY o.id": "GROUP BY",
    "SELECT o.id, COUNT(*) AS n FROM orders o JOIN rates r ON o.id = r.currency ^GROUP BY o.id": "a statement joins or groups",
    "CREATE ^STREAM s AS SELECT o.id, COUNT(*) FROM orders o JOIN rates r ON o.id = r.currency GROUP BY o.id": "only a table",
    "SELECT ^q.* FROM orders o JOIN rates r ON o.id = r.currency": "no source is called so; there are o, r",
    "SELECT ^ts FROM orders o JOIN payments p WITHIN 1 DAY ON o.id = p.oid": "ts is a column of o and of p; write o.ts",
    "SELECT o.id FROM orders o JOIN payments p WITHIN 1 DAY ON o.id = p.oid WHERE ^ts > 1": "ts is a column of o and of p",
    "SELECT o.id, ^nothing FROM orders o JOIN payments p WITHIN 1 DAY ON o.id = p.oid": "there is no column 'nothing'",
    "SELECT ^o.nothing FROM orders o JOIN payments p WITHIN 1 DAY ON o.id = p.oid": "there is no field 'nothing'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_joins_are_refused_at_their_place(text):
    said = text.replace("^", "", 1)
    with pytest.raises(bm.SqlError, match=f"(?s){REFUSED[text]}") as raised:
        sql(said).run(PAID)
    assert raised.value.column == text.index("^") + 1, str(raised.value)


@pytest.mark.parametrize("tables", [{"rates": 3}, {"rates": bm.Pipeline().key_by("k")}, ["rates"]])
def test_a_table_is_a_pipeline_that_ends_in_versions(tables):
    with pytest.raises(bm.OptionError, match="pipeline"):
        sql("SELECT k, COUNT(*) FROM t GROUP BY k", tables=tables)


def test_explain_describes_both_inputs():
    words = " ".join(
        sql(f"SELECT item, p.amount {PAIRS.format('LEFT', 'WHERE item IS NULL EMIT FINAL')}").explain().split()
    )
    for said in (
        "source the rows of payments, which are those of the DataFrame payments",
        "rows with a null in their key",
        "where panes and retractions for which item IS NULL is true are emitted",
        "shown item, p.amount; then window",
    ):
        assert said in words, words


ROWS = st.lists(st.tuples(st.integers(0, 40), st.none() | st.integers(0, 2), st.integers(0, 3)), max_size=6)
SPANS = st.tuples(st.integers(0, 9), st.integers(1, 9))


@given(ROWS, ROWS, SPANS, st.sampled_from(["inner", "left", "right"]))
def test_a_join_gives_the_rows_of_nested_loops(orders, payments, spans, how):
    before, after = spans
    pairs = [
        (order, payment)
        for order in orders
        for payment in payments
        if order[1] == payment[1] is not None and -before <= payment[0] - order[0] <= after
    ]
    expected = Counter((order[2], payment[2]) for order, payment in pairs)
    expected += Counter((one[2], None) for one in orders if how == "left" and one not in [pair[0] for pair in pairs])
    expected += Counter((None, one[2]) for one in payments if how == "right" and one not in [pair[1] for pair in pairs])
    script = TestStream()
    for at in range(6):  # in turns
        for name, rows in (("orders", orders), ("payments", payments)):
            script = script.add([{"ts": ts, "id": k, "v": v} for ts, k, v in rows[at : at + 1]], input=name)
    text = f"SELECT o.v AS o, p.v AS p FROM orders o {how} JOIN payments p WITHIN ({before} SECONDS, {after} SECONDS) ON o.id = p.id "
    for emit in ("EMIT CHANGES", "EMIT FINAL", ""):
        found = Counter[tuple]()
        for pane in sql(text + emit).run(script.advance_watermark_to_infinity()):
            found[tuple(pane.values.values())] += 1 if pane.kind == "PANE" else -1
        assert +found == expected, emit


def test_rows_of_null_keys_that_no_side_keeps_are_dropped_and_listed():
    query = sql(f"SELECT item, amount {PAIRS.format('', 'EMIT CHANGES')}", with_dropped=True)
    dropped = [pane.values for pane in query.run(PAID) if pane.reason == "null_key"]
    assert dropped == [{"orders": ORDERS[1], "payments": None}, {"orders": None, "payments": PAYMENTS[2]}]
