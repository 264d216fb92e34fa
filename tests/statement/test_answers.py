"""The output of a script: EMIT CHANGES and EMIT FINAL, with WHERE, HAVING and the SELECT list."""

from datetime import UTC, datetime
from statistics import correlation

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Accumulation, Max, Sum
from beamish.testing import TestStream
from tests.statement.ksqldb import KSQLDB, TYPED


def sql(text, **options):
    return bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0), **options)


def lines(panes):
    """``R a 1``: a retraction of a with value 1."""
    return [" ".join([pane.kind[0], *map(str, pane.key.values()), *map(str, pane.values.values())]) for pane in panes]


CHECKS = """
    SELECT server, COUNT(beat) AS beats FROM checks WINDOW TUMBLING (SIZE 5 MINUTES)
    GROUP BY server HAVING COUNT(beat) < 3 EMIT {}
"""
BEATS = [(0, "a", None), (0, "b", None), (0, "c", None), (60, "a", 1), (120, "a", 1), (180, "a", 1), (200, "b", 1)]


def beats():
    script = TestStream()
    for ts, server, beat in BEATS:
        script = script.add([{"ts": ts, "server": server, "beat": beat}])
    return script.advance_watermark_to(300)


def test_final_names_servers_that_sent_too_few_beats_or_none():
    assert lines(sql(CHECKS.format("FINAL")).run(beats())) == ["P b 1", "P c 0"]


def test_changes_retract_outdated_results():
    assert lines(sql(CHECKS.format("CHANGES")).run(beats())) == [
        *("P a 0", "P b 0", "P c 0", "R a 0", "P a 1", "R a 1", "P a 2", "R a 2", "R b 0", "P b 1"),
    ]


def test_an_update_split_by_having_is_a_deletion_and_an_insertion():
    """rules/panes.md#pane-change: b's count of 0 goes and its count of 1 comes; of a's last two only the deletion is left."""
    changes = [pane.change for pane in sql(CHECKS.format("CHANGES")).run(beats())]
    assert set(changes) == {bm.PaneChange.INSERT, bm.PaneChange.DELETE}
    assert lines(bm.live(sql(CHECKS.format("CHANGES")).run(beats()))) == ["P c 0", "P b 1"]


def test_a_row_filtered_by_where_is_not_dropped():
    query = sql(
        "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 10 SECONDS) WHERE v > 1 GROUP BY k EMIT FINAL",
        with_dropped=True,
    )
    script = (
        TestStream()
        .add([{"ts": 1, "k": "a", "v": 2}, {"ts": 2, "k": "a", "v": 1}, {"ts": 3, "k": "a", "v": None}])
        .advance_watermark_to(10)
        .add([{"ts": 4, "k": "a", "v": 1}, {"ts": 5, "k": "b", "v": 9}])
    )
    final, dropped = query.run(script)
    assert (final.key, final.values) == ({"k": "a"}, {"n": 1})
    assert (dropped.kind, dropped.key, dropped.values) == ("DROPPED", {"k": "b"}, {"ts": 5, "k": "b", "v": 9})


def test_a_row_with_which_an_aggregate_raises_stops_the_query_or_is_dropped():
    text = (
        "SELECT k, SUM(v * 1) AS s FROM t WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY k HAVING SUM(v * 1) > 0 EMIT FINAL"
    )
    script = TestStream().add([{"ts": at, "k": "a", "v": v} for at, v in ((1, 2**62), (2, 2**62), (3, 1))])
    script = script.advance_watermark_to(10)
    with pytest.raises(bm.NumericOverflowError):
        sql(text).run(script)
    dropped, final = sql(text, on_error="drop").run(script)
    assert (dropped.reason, dropped.values) == ("error", {"ts": 2, "k": "a", "v": 2**62})
    assert "the sum of column 'v * 1' does not fit bigint" in dropped.message
    assert final.values == {"s": 2**62 + 1}


@attrs.frozen
class Narrow(Accumulation):
    """The greatest value as an int, of 32 bits."""

    column: str
    result_type = "int"

    def create(self):
        return 0

    def add(self, accumulator, value):
        return max(accumulator, value)

    merge = add

    def extract(self, accumulator):
        return accumulator


def test_the_select_list_has_the_types_of_the_aggregates():
    """As on Spark, where the sum of two ints is an int."""
    text = "SELECT k, NARROW(v) + CAST(1 AS INT) AS n FROM t GROUP BY k"
    query = sql(text, aggregates={"NARROW": Narrow})
    assert query.run(TestStream().add([{"ts": 1, "k": "a", "v": 2**31 - 2}]))[0].values == {"n": 2**31 - 1}
    with pytest.raises(bm.SqlError, match="overflow"):
        query.run(TestStream().add([{"ts": 1, "k": "a", "v": 2**31 - 1}]))


def test_expressions_are_computed_before_and_after_the_pipeline():
    query = sql("""
        SELECT upper(team) AS team, SUM(points * 2) AS doubled, SUM(points) / COUNT(*) AS mean,
               length(upper(team)) + COUNT(*) AS odd, percentile(points, 0.5) AS middle
        FROM plays GROUP BY upper(team)
    """)
    rows = [
        {"ts": 1, "team": "red", "points": 2},
        {"ts": 2, "team": "Red", "points": 5},
        {"ts": 3, "team": None, "points": None},
    ]
    assert [(pane.key, pane.values) for pane in query.run(TestStream().add(rows))] == [
        ({"team": "RED"}, {"doubled": 14, "mean": 3.5, "odd": 5, "middle": 3.5}),
        ({"team": None}, {"doubled": None, "mean": None, "odd": None, "middle": None}),
    ]


def test_windowstart_and_windowend_are_timestamps():
    query = sql("""
        SELECT k, WINDOWSTART AS since, hour(WINDOWEND) AS hour, COUNT(*) AS n
        FROM t WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k EMIT FINAL
    """)
    (pane,) = query.run(TestStream().add([{"ts": 7201, "k": 1}]).advance_watermark_to_infinity())
    assert pane.values == {"since": datetime(1970, 1, 1, 2, tzinfo=UTC), "hour": 3, "n": 1}


def test_what_users_of_ksqldb_type_is_taken():
    (pane,) = sql(KSQLDB, offset="o").run(TestStream().add(TYPED).advance_watermark_to_infinity())
    assert pane.key == {"k": "a", "name": "ann"}
    assert pane.values == {
        "copy": "a",
        "KSQL_COL_0": 5,
        "KSQL_COL_1": 14,
        "e": 3,
        "l": None,
        "e2": [3, 5],
        "l2": [5, 5],
        "l2n": [5, None],
        "top": [{"sort_col": 5, "col0": "x"}, {"sort_col": 5, "col0": "x"}],
        "tops": [5, 3],
        "w": "x",
        "v": None,
        "d": 2,
        "all": [{"a": v, "b": "X"} for v in (None, 3, 5, 5, None)],
        "length": 10_000,
        "ends": 5 * 20_000,
        "most": 5,
        "after": datetime(1970, 1, 1, 0, 0, 21, tzinfo=UTC),
        "sets": [[None, 1], [3, 1], [5, 1]],
        "n": 5,
        "seen": {"x": 5},
        "fives": 2,
        "corr": 1.0,
        "flat": None,
        "listed": 18,
        "map": {"n": 5, "most": 5},
        "item": 5,
    }


def test_sessions_that_merge_have_the_values_of_their_rows_in_one_bundle():
    text = KSQLDB.replace("TUMBLING (SIZE 10 SECONDS)", "SESSION (6 SECONDS)")
    first, second, *between = sorted(
        TYPED, key=lambda row: row["ts"] not in (12, 19)
    )  # 12 and 19 are two sessions without 14
    merged = TestStream().add([first]).add([second]).add(between)
    values = [
        [pane.values for pane in sql(text, offset="o").run(script.advance_watermark_to_infinity())]
        for script in (merged, TestStream().add(TYPED))
    ]
    assert values[0] == values[1]
    assert len(values[0]) == 1
    assert values[0][0]["seen"] == {"x": len(TYPED)}


def test_a_histogram_has_the_keys_of_its_own_rows_only():
    query = sql("SELECT k, HISTOGRAM(v) AS h FROM t GROUP BY k")
    rows = [{"ts": 1, "k": k, "v": v} for k, v in (("a", "x"), ("b", "y"), ("a", "x"), ("b", None), ("c", None))]
    panes = query.run(TestStream().add(rows))
    assert [pane.values["h"] for pane in panes] == [{"x": 2}, {"y": 1}, {}]


@given(st.lists(st.tuples(st.none() | st.integers(-9, 9), st.none() | st.integers(-9, 9)), max_size=8))
def test_a_correlation_is_that_of_the_rows_that_have_both(pairs):
    rows = [{"ts": 1, "k": "a", "x": None, "y": None}, *({"ts": 1, "k": "a", "x": x, "y": y} for x, y in pairs)]
    (pane,) = sql("SELECT k, CORRELATION(x, y) AS c FROM t GROUP BY k").run(TestStream().add(rows))
    both = [(x, y) for x, y in pairs if x is not None and y is not None]
    varied = len({x for x, _ in both}) > 1 and len({y for _, y in both}) > 1
    expected = correlation(*zip(*both, strict=True)) if varied else None
    assert pane.values["c"] == (expected if expected is None else pytest.approx(expected))


def test_structs_of_aggregates_are_no_structs_of_the_user():
    query = sql(
        "SELECT k, LATEST_BY_OFFSET(v, 2, FALSE) AS l, COLLECT_LIST(STRUCT(v)) AS s, TOPK(v, v, 1) AS t FROM r GROUP BY k",
        offset="o",
    )
    (pane,) = query.run(TestStream().add([{"ts": 1, "k": "a", "v": 7, "o": 3}]))
    assert pane.values == {"l": [7], "s": [{"v": 7}], "t": [{"sort_col": 7, "col0": 7}]}


def test_values_by_offset_are_those_of_ksqldb():
    """The last that came: neither of equal times the greatest value, nor the one of the greatest time."""
    text = """
        SELECT k, LATEST_BY_OFFSET(v) AS l, EARLIEST_BY_OFFSET(v) AS e, LATEST_BY_OFFSET(v, FALSE) AS ln, LATEST_BY_OFFSET(v, 2) AS l2,
               EARLIEST_BY_OFFSET(v, 2) AS e2, EARLIEST_BY_OFFSET(v, 2, FALSE) AS e2n, LATEST_BY_OFFSET(upper(w), 9) AS w
        FROM t GROUP BY k EMIT CHANGES
    """
    values = [(5, None, "a"), (5, 9, None), (9, 3, "c"), (5, 4, "b"), (1, None, "a")]
    rows = [{"ts": ts, "k": 1, "v": v, "w": w, "at": at} for at, (ts, v, w) in enumerate(values)]
    for script in (TestStream().add(rows), TestStream().add(rows[3:]).add(rows[:3])):
        *_, pane = sql(text, offset="AT").run(script)
        assert pane.values == {
            "l": 4, "e": 9, "ln": None, "l2": [3, 4], "e2": [9, 3], "e2n": [None, 9], "w": ["A", "C", "B", "A"],
        }  # fmt: skip


def test_values_by_offset_of_nulls_only():
    text = "SELECT k, LATEST_BY_OFFSET(v, 2) AS l, EARLIEST_BY_OFFSET(v, 2, FALSE) AS e, LATEST_BY_OFFSET(v) AS one FROM t GROUP BY k"
    rows = [{"ts": 1, "k": 1, "v": None, "at": at} for at in range(3)]
    (pane,) = sql(text, offset="at").run(TestStream().add(rows))
    assert pane.values == {"l": [], "e": [None, None], "one": None}


def test_stddev_sample_of_one_value_is_0():
    query = sql("SELECT k, STDDEV_SAMPLE(v) AS a, STDDEV(v) AS b FROM t GROUP BY k")
    rows = [{"ts": 1, "k": k, "v": v} for k, v in (("one", 3.0), ("none", None), ("two", 1.0), ("two", 3.0))]
    values = {pane.key["k"]: tuple(pane.values.values()) for pane in query.run(TestStream().add(rows))}
    assert values == {"one": (0.0, None), "none": (0.0, None), "two": (2**0.5, 2**0.5)}


def test_a_constant_may_make_the_group():
    (pane,) = sql("SELECT 1 AS k, COUNT(1) FROM t GROUP BY 1").run(TestStream().add([{"ts": 1}, {"ts": 2}]))
    assert (pane.key, pane.values) == ({"k": 1}, {"KSQL_COL_0": 2})


def test_an_aggregate_that_only_having_has_is_not_shown():
    query = sql("SELECT k FROM t GROUP BY k HAVING MAX(v) > 2")
    rows = [{"ts": 1, "k": "a", "v": 1}, {"ts": 1, "k": "b", "v": 3}]
    assert [(pane.key, pane.values) for pane in query.run(TestStream().add(rows))] == [({"k": "b"}, {})]


def test_having_that_is_null_keeps_nothing():
    query = sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING MAX(v) > 2")
    assert query.run(TestStream().add([{"ts": 1, "k": "a", "v": None}])) == []


def test_a_pull_query_takes_all_rows_of_a_script_as_one_table():
    query = sql("SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY k")
    script = TestStream().add([{"ts": 1, "k": "a"}]).advance_watermark_to(100).add([{"ts": 2, "k": "a"}])
    (pane,) = query.run(script)
    assert (pane.values, pane.is_last) == ({"n": 2}, True)


def test_late_rows_count_within_the_grace_period():
    text = "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 20 SECONDS) GROUP BY k EMIT FINAL"
    script = TestStream().add([{"ts": 1, "k": "a"}]).advance_watermark_to(10).add([{"ts": 2, "k": "a"}])
    assert lines(sql(text).run(script)) == []
    assert lines(sql(text).run(script.advance_watermark_to(30))) == ["P a 2"]


def test_every_emits_changes_by_the_clock():
    query = sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT CHANGES EVERY 10 SECONDS")
    script = TestStream().add([{"ts": 1, "k": "a"}]).add([{"ts": 2, "k": "a"}]).advance_processing_time_to(11)
    assert lines(query.run(script)) == ["P a 2"]


def test_the_pipeline_of_a_plain_text_gives_the_same_values_by_hand():
    query = sql("SELECT k, SUM(v) AS total, MAX(v) AS most FROM t WINDOW SESSION (5 SECONDS) GROUP BY k EMIT CHANGES")
    by_hand = query.pipeline
    assert by_hand == (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("k")
        .window(bm.Sessions(5, late_rows="session"))
        .trigger(bm.triggers.Always())
        .on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)
        .accumulating_and_retracting()
        .accumulate(**{"SUM(v)": Sum("v"), "MAX(v)": Max("v")})
    )
    script = (
        TestStream().add([{"ts": 0, "k": "a", "v": 1}, {"ts": 8, "k": "a", "v": 2}]).add([{"ts": 4, "k": "a", "v": 3}])
    )
    assert lines(query.run(script)) == lines(by_hand.run(script))


def test_a_columns_case_does_not_matter():
    query = sql("SELECT Team, SUM(POINTS) AS n FROM t WHERE points > 0 GROUP BY TEAM")
    (pane,) = query.run(TestStream().add([{"ts": 1, "team": "red", "points": 3}]))
    assert (pane.key, pane.values) == ({"Team": "red"}, {"n": 3})


def test_fields_of_structs_are_expressions():
    query = sql("SELECT user.name AS name, MAX(user.age) AS age FROM t GROUP BY user.name")
    (pane,) = query.run(TestStream().add([{"ts": 1, "user": {"name": "ann", "age": 7}}]))
    assert (pane.key, pane.values) == ({"name": "ann"}, {"age": 7})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("v IS DISTINCT FROM 3", False),
        ("v IS NOT DISTINCT FROM NULL", False),
        ("EXTRACT(YEAR FROM TIMESTAMP '2024-02-29 12:00:00')", 2024),
        ("TRIM(BOTH 'x' FROM s->NAME)", "ann"),
        ("SUBSTRING(s->name FROM 2 FOR 3)", "ann"),
        ("v BETWEEN 1 AND 3", True),
        ("s.NAME", "xannx"),
        ("s->deep->ER[1]", 8),
        ("upper(s->deep['er'][0] || s->Name)", "7XANNX"),
        ("m['one']", 1),
        ("m['two']", None),
    ],
)
def test_words_and_fields_may_stand_in_any_clause(expression, value):
    row = {"ts": 1, "k": "a", "v": 3, "s": {"Name": "xannx", "deep": {"er": [7, 8]}}, "m": {"one": 1}}
    texts = (
        "SELECT k, FIRST({}) AS x FROM t GROUP BY k",
        "SELECT {} AS x, COUNT(*) AS n FROM t WHERE ({}) IS NULL OR ({}) IS NOT NULL GROUP BY {}",
        "SELECT {} AS x, COUNT(*) AS n FROM t GROUP BY {} HAVING ({}) IS NULL OR ({}) IS NOT NULL",
    )
    for text in texts:
        (pane,) = sql(text.replace("{}", expression)).run(TestStream().add([row]))
        assert (pane.key | pane.values)["x"] == value, text


def test_lambdas_and_fields_both_have_arrows():
    fields = sql("SELECT k, MAX(upper(s->name)) AS x FROM t GROUP BY k").pipeline
    assert fields.flow.stage.options.accumulations == {"MAX(UPPER(s -> name))": Max("UPPER(s -> name)")}
    query = sql("SELECT k, MAX(transform(xs, x -> x + s->n)) AS x FROM t GROUP BY k")
    assert [one.sql for one in query._compiled.inputs[0].computed] == ["transform(xs, x -> x + s.n)"]


def test_an_expression_over_a_key_is_found_where_it_stands_by_itself():
    text = "SELECT a + 1 AS k, (a + 1) * 2 AS twice, COUNT(*) AS n FROM t GROUP BY a + 1"
    (pane,) = sql(text).run(TestStream().add([{"ts": 1, "a": 4}]))
    assert (pane.key, pane.values) == ({"k": 5}, {"twice": 10, "n": 1})
    with pytest.raises(bm.SqlError, match="a is neither under GROUP BY"):
        sql("SELECT a + 1 AS k, 2 * a + 1 AS other, COUNT(*) AS n FROM t GROUP BY a + 1")


@pytest.mark.parametrize("emit", ["EMIT CHANGES", "EMIT FINAL", ""])
def test_a_script_traces_a_query(emit):
    query = sql(f"SELECT k, SUM(v + 1) AS s FROM t WINDOW TUMBLING (SIZE 9 SECONDS) WHERE v > 0 GROUP BY k {emit}")
    rows = [{"ts": 1, "k": "a", "v": v} for v in (0, 4)]
    script = TestStream().add(rows).add(rows).advance_watermark_to(9)
    traced = script.trace(query)
    assert [pane for _, panes in traced for pane in panes] == query.run(script)
    assert [lines(panes) for _, panes in traced] == {
        "EMIT CHANGES": [["P a 5"], ["P a 10"], []],
        "EMIT FINAL": [[], [], ["P a 10"]],
        "": [[], [], ["P a 10"]],
    }[emit]
    assert [event for event, _ in traced][:2] == list(script.events)[:2]


SCRIPTS = st.lists(
    st.one_of(
        st.lists(
            st.tuples(st.integers(0, 60), st.sampled_from("ab"), st.none() | st.integers(0, 5)), min_size=1, max_size=4
        ),
        st.integers(0, 15),
    ),
    min_size=1,
    max_size=10,
)
QUERIES = """
    SELECT k, SUM(v) AS total, COUNT(v) + 1 AS n FROM t WINDOW {window} WHERE v IS NULL OR v <> 4 GROUP BY k {having} EMIT {emit}
"""


@given(
    drawn=SCRIPTS,
    window=st.sampled_from(
        [
            "TUMBLING (SIZE 10 SECONDS)",
            "TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 9 SECONDS)",
            "HOPPING (SIZE 10 SECONDS, ADVANCE BY 4 SECONDS, GRACE PERIOD 3 SECONDS)",
            "SESSION (7 SECONDS, GRACE PERIOD 5 SECONDS)",
        ]
    ),
    having=st.sampled_from(["", "HAVING SUM(v) > 3", "HAVING COUNT(*) BETWEEN 2 AND 3"]),
    emit=st.sampled_from(["CHANGES", "CHANGES RETRACTING", "CHANGES EVERY 2 SECONDS"]),
)
def test_the_last_change_of_a_slot_is_its_final_row(drawn, window, having, emit):
    script, watermark = TestStream(), 0
    for event in drawn:
        if isinstance(event, int):
            watermark += event
            script = script.advance_watermark_to(watermark)
        else:
            script = script.add([{"ts": ts, "k": k, "v": v} for ts, k, v in event]).advance_processing_time_by(1)
    script = script.advance_watermark_to_infinity()
    changes, final = (
        sql(QUERIES.format(window=window, having=having, emit=one)).run(script) for one in (emit, "FINAL")
    )
    live, last = ({(pane.key["k"], pane.window): pane.values for pane in panes} for panes in (bm.live(changes), final))
    assert live == last
