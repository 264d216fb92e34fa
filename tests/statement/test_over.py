"""OVER and Top-N by ROW_NUMBER (docs/sql.md#over): what a statement means, and what it refuses."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, Mean, Sum
from beamish.testing import TestStream

OVER = "OVER (PARTITION BY card ORDER BY ts)"
ROWS = [(1, 7, 5), (4, 7, 20), (30, 8, 1), (31, 7, 2)]
SCRIPT = TestStream().add([{"ts": ts, "card": card, "x": x} for ts, card, x in ROWS]).advance_watermark_to(40)
LATER = SCRIPT.add([{"ts": 45, "card": 8, "x": 9}, {"ts": 42, "card": 8, "x": 3}]).advance_watermark_to(50)


def sql(text, **options):
    return bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0), **options)


def start(**over):
    return bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("card").over(**over)


def shown(panes):
    return [(str(pane.kind), str(pane.timing), {**pane.key, **pane.values}) for pane in panes]


MEANT = {
    "SUM(x) OVER (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW)": (
        bm.Preceding(10),
        Sum("x"),
    ),
    "COUNT(*) OVER (PARTITION BY card ORDER BY ts RANGE INTERVAL 3 SECONDS PRECEDING)": (bm.Preceding(3), Count()),
    "COUNT(*) OVER (PARTITION BY card ORDER BY ts RANGE CURRENT ROW)": (bm.Preceding(0), Count()),
    "SUM(x) OVER (PARTITION BY card ORDER BY ts ROWS 1 PRECEDING)": (bm.PrecedingRows(1), Sum("x")),
    "AVG(x) OVER (PARTITION BY card ORDER BY ts ASC ROWS BETWEEN CURRENT ROW AND CURRENT ROW)": (
        bm.PrecedingRows(0),
        Mean("x"),
    ),
    f"SUM(x) {OVER}": (bm.Unbounded(), Sum("x")),
    "SUM(x) OVER (PARTITION BY card ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)": (
        bm.Unbounded(),
        Sum("x"),
    ),
    f"LAG(x, 2, -1) {OVER}": (bm.Unbounded(), bm.Lag("x", 2, -1)),
    f"lead(x) {OVER}": (bm.Unbounded(), bm.Lead("x")),
    f"ROW_NUMBER() {OVER}": (bm.Unbounded(), bm.RowNumber()),
    f"RANK() {OVER}": (bm.Unbounded(), bm.Rank()),
    f"DENSE_RANK() {OVER}": (bm.Unbounded(), bm.DenseRank()),
    f"FIRST_VALUE(x) {OVER}": (bm.Unbounded(), bm.FirstValue("x")),
    "LAST_VALUE(x) OVER (PARTITION BY card ORDER BY ts ROWS 3 PRECEDING)": (bm.PrecedingRows(3), bm.LastValue("x")),
}


@pytest.mark.parametrize("text", MEANT)
def test_a_call_is_the_value_of_a_pipeline(text):
    frame, value = MEANT[text]
    said = sql(f"SELECT card, ts, x, {text} AS v FROM t EMIT FINAL")
    assert shown(said.run(LATER)) == shown(start(frame=frame).accumulate(v=value).run(LATER))


def test_changes_are_emitted_early_and_corrected():
    said = sql(f"SELECT card, ts, x, SUM(x) {OVER} AS v FROM t EMIT CHANGES")
    meant = (
        start(frame=bm.Unbounded())
        .trigger(bm.triggers.AfterWatermark(early=bm.triggers.Always()))
        .accumulating_and_retracting()
        .accumulate(v=Sum("x"))
    )
    assert shown(said.run(LATER)) == shown(meant.run(LATER))


def test_star_is_the_columns_of_the_rows_and_expressions_are_computed():
    said = sql(f"SELECT *, SUM(x * 2) {OVER} AS v, x + 1 AS more FROM t WHERE x > 1 EMIT FINAL")
    assert [pane.values for pane in said.run(SCRIPT)] == [
        {"ts": 1, "x": 5, "v": 10, "more": 6},
        {"ts": 4, "x": 20, "v": 50, "more": 21},
        {"ts": 31, "x": 2, "v": 54, "more": 3},
    ]


TOP = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY card ORDER BY ts) AS n FROM t)"


def test_top_n_and_deduplication_by_row_number_as_in_flink():
    first = start(frame=bm.Unbounded()).accumulate(n=bm.RowNumber()).having(pc.field("n") <= 2)
    assert shown(sql(f"SELECT * FROM {TOP} WHERE n <= 2 EMIT FINAL").run(LATER)) == shown(first.run(LATER))
    once = sql(f"SELECT card, x AS first FROM {TOP} AS s WHERE s.n = 1 AND x > 2")
    assert [(pane.key, pane.values) for pane in once.run(SCRIPT)] == [({"card": 7}, {"first": 5})]


def test_top_n_as_changes_marks_rows_that_stand_alone():
    panes = sql(f"SELECT * FROM {TOP} WHERE n <= 1 EMIT CHANGES").run(LATER)
    assert [(pane.timestamp.second, str(pane.change)) for pane in panes] == [
        (1, "INSERT"),
        (30, "INSERT"),
    ]


DEAREST = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY card ORDER BY x DESC) AS n FROM t)"


def rows_of(text):
    return [(str(pane.kind), pane.key["card"], *pane.values.values()) for pane in sql(text).run(LATER)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("x DESC, card", [(7, 9), (8, 9), (7, 5)]),
        ("x DESC, card DESC", [(8, 9), (7, 9), (8, 5)]),
        ("x ASC, card DESC", [(8, 5), (7, 5), (8, 9)]),
    ],
)
def test_each_column_of_top_n_has_a_direction(order, expected):
    rows = [{"ts": i, "card": card, "x": x} for i, (x, card) in enumerate([(9, 8), (5, 7), (9, 7), (5, 8)])]
    said = sql(
        f"SELECT card, x FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY {order}) AS n FROM t) WHERE n <= 3 EMIT CHANGES"
    )
    panes = said.run(TestStream().add(rows))
    assert [(pane.values["card"], pane.values["x"]) for pane in panes] == expected


def test_top_n_by_another_column_retracts_rows_that_leave():
    panes = rows_of(f"SELECT card, x, n FROM {DEAREST} WHERE n <= 2 EMIT CHANGES")
    assert panes == [
        ("PANE", 7, 20, 1),
        ("PANE", 7, 5, 2),
        ("PANE", 8, 1, 1),
        ("RETRACTION", 8, 1, 1),
        ("PANE", 8, 9, 1),
        ("PANE", 8, 3, 2),
    ]


@pytest.mark.parametrize("bound", ["n = 1", "n < 2", "1 >= n", "(n <= 3 AND n <= 1)", "n <= 1 AND card > 0"])
def test_the_number_is_bounded_in_any_words(bound):
    assert rows_of(f"SELECT card, x FROM {DEAREST} WHERE {bound} AND card = 7 EMIT CHANGES") == [("PANE", 7, 20)]


def test_the_last_row_of_a_key_is_the_first_by_descending_time():
    text = (
        "(SELECT card, x + 1 AS more, ROW_NUMBER() OVER (PARTITION BY card ORDER BY ts DESC) AS n FROM t WHERE x > 1)"
    )
    assert rows_of(f"SELECT * FROM {text} WHERE n = 1 EMIT CHANGES") == [("PANE", 7, 3, 1), ("PANE", 8, 10, 1)]


def test_expressions_order_and_a_final_statement_waits_for_the_end():
    text = "(SELECT card, x, ROW_NUMBER() OVER (PARTITION BY card ORDER BY ABS(x - 4)) AS n FROM t)"
    said = sql(f"SELECT card, x FROM {text} WHERE n = 1 EMIT FINAL")
    assert said.run(LATER) == []
    ended = said.run(LATER.advance_watermark_to_infinity())
    assert [(pane.key["card"], pane.values["x"]) for pane in ended] == [(7, 5), (8, 3)]


REFUSED = {
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY x DESC) AS n FROM t) WHERE ^n > 2": "such as n <= 3",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY x DESC) AS n FROM t) WHERE ^x <= 2": "such as n <= 3",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY x) AS n FROM t) WHERE n < 3 ^EMIT CHANGES EVERY 5 SECONDS": "EVERY out",
    "SELECT * FROM (SELECT *, RANK() OVER (ORDER BY ^x DESC) AS n FROM t) WHERE n <= 2": "in an inner SELECT, and WHERE n <= 3",
    "SELECT x, SUM(x) OVER (PARTITION BY card^) AS n FROM t": "expected ORDER BY and the event time",
    "SELECT ROW_NUMBER() OVER (PARTITION BY card ORDER BY ^x) AS n FROM t": "in the order of their event time, ts",
    "SELECT ROW_NUMBER() OVER (PARTITION BY card ORDER BY ^ts DESC) AS n FROM t": "LATEST_BY_OFFSET",
    "SELECT ROW_NUMBER() OVER (ORDER BY ts, card, ^x) AS n FROM t": "one column after it",
    "SELECT SUM(x) OVER (ORDER BY ts ROWS ^UNBOUNDED PRECEDING) AS n FROM t": "write RANGE, or no frame",
    "SELECT SUM(x) OVER (ORDER BY ts RANGE ^10 PRECEDING) AS n FROM t": "expected INTERVAL",
    "SELECT SUM(x) OVER (ORDER BY ts ROWS ^x PRECEDING) AS n FROM t": "a whole number of rows",
    "SELECT LAG(x) ^OVER (ORDER BY ts ROWS 1 PRECEDING) AS n FROM t": "take ROWS or RANGE out",
    "SELECT SUM(x) OVER (ORDER BY ts) AS a, SUM(x) ^OVER (ORDER BY ts ROWS 1 PRECEDING) AS b FROM t": "a statement has one",
    "SELECT SUM(x) OVER (ORDER BY ts) AS a, SUM(x) ^OVER (PARTITION BY x ORDER BY ts) AS b FROM t": "one key and one order",
    "SELECT card, ^SUM(x) AS a, RANK() OVER (ORDER BY ts) AS n FROM t": "write OVER after it",
    "SELECT card, x + 1 ^OVER (ORDER BY ts) AS n FROM t": "stands after a call",
    "SELECT ^ROW_NUMBER(x) OVER (ORDER BY ts) AS n FROM t": "takes no argument",
    "SELECT LAG(x, ^x) OVER (ORDER BY ts) AS n FROM t": "write the value itself",
    "SELECT card, ^LAG(x) AS n FROM t GROUP BY card": "LAG without OVER",
    "SELECT card, RANK() OVER (ORDER BY ts) AS n FROM t ^GROUP BY card": "GROUP BY with OVER",
    "SELECT SUM(x) OVER (ORDER BY ts) AS n FROM t ^EMIT CHANGES EVERY 5 SECONDS": "take EVERY out",
    "SELECT * FROM (^SELECT * FROM t) WHERE x > 1": "no subqueries",
    "SELECT * FROM (SELECT ROW_NUMBER() OVER (ORDER BY ts) AS n FROM t) WHERE ^x > 1": "not in the inner SELECT list",
    "SELECT n, ^x FROM (SELECT ROW_NUMBER() OVER (ORDER BY ts) AS n FROM t) WHERE n > 1": "not in the inner SELECT list",
    "^SELECT n + 1 FROM (SELECT ROW_NUMBER() OVER (ORDER BY ts) AS n FROM t) WHERE n > 1": "or names of its items",
    "SELECT * FROM (SELECT ROW_NUMBER() OVER (ORDER BY ts) AS n FROM t) ^GROUP BY n": "the outer statement only selects",
    "SELECT ROW_NUMBER() OVER (ORDER BY ts) AS ^window FROM t": "column of this name",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_mark_the_position_and_name_the_fix(text):
    at, said = text.index("^"), text.replace("^", "", 1)
    with pytest.raises(bm.SqlError, match=f"(?s){REFUSED[text]}") as raised:
        sql(said).run(SCRIPT)
    assert (raised.value.line, raised.value.column) in {(1, at + 1), (1, max(1, at))}, str(raised.value)


def test_on_error_drop_is_refused():
    with pytest.raises(bm.SqlError, match="an error stops the query"):
        sql(f"SELECT SUM(x) {OVER} AS n FROM t", on_error="drop")


def test_explain_names_frame_and_values():
    words = " ".join(sql(f"SELECT card, LAG(x) {OVER} AS b FROM t EMIT FINAL").explain().split())
    assert "one for each row, when its time is passed" in words
    assert "shown card, LAG(x) as b" in words
