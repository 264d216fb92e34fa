"""GROUP BY ROLLUP, CUBE and GROUPING SETS in both dialects (docs/sql.md, docs/rules/key-sets.md)."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import CountDistinct, Sum
from beamish.testing import TestStream
from beamish.triggers import Always, Never

T = "CREATE TABLE t (k STRING, x INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND); "
TUMBLE = "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)"


def sql(text, **options):
    return bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0), **options)


def flink(text):
    return bm.sql(T + text, dialect="flink")


def shown(panes):
    return [(pane.kind[0], *pane.key.values(), *pane.values.values()) for pane in panes]


SETS = {
    "ROLLUP (upper(a), b)": ["ab", "a", ""],
    "CUBE (upper(a), b)": ["ab", "a", "b", ""],
    "GROUPING SETS ((b), (upper(a), b), ())": ["b", "ab", ""],
    "GROUPING SETS (b, upper(a))": ["b", "a"],
    "upper(a), ROLLUP (b)": ["ab", "a"],
    "ROLLUP ((upper(a), b))": ["ab", ""],
    "ROLLUP (upper(a)), CUBE (t.b)": ["ab", "a", "b", ""],
    "GROUPING SETS (ROLLUP (upper(a)), b, (upper(a), (b)))": ["a", "", "b", "ab"],
    "GROUPING SETS ((upper(a), b))": ["ab"],
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {"a": st.sampled_from(["x", "X", "y", None]), "b": st.sampled_from(["p", "q", None]), "v": st.integers(-2, 3)}
    ),
    max_size=4,
)


def expected(rows, sets, bits, *, having):
    """The groups of each set, by hand: a, b, the three numbers of the set, and the aggregates."""
    groups = {}
    for row in rows:
        values = {"a": None if row["a"] is None else row["a"].upper(), "b": row["b"]}
        for names in sets:
            key = tuple(values[name] if name in names else None for name in "ab")
            id_ = int("".join("01"[name not in names] for name in bits), 2)
            numbers = (id_, int("b" not in names), 2 * ("b" not in names) + ("a" not in names))
            groups.setdefault((*key, *numbers), []).append(row)
    return {
        (*key, len(of), sum(row["v"] for row in of), len({row["b"] for row in of} - {None}))
        for key, of in groups.items()
        if not having or key[3] == 1 or len(of) > 1
    }


@given(st.sampled_from([*SETS]), st.lists(ROWS, max_size=4), st.sampled_from(["", "EMIT CHANGES"]), st.booleans())
def test_groups_are_those_of_each_set(clause, bundles, emit, having):
    bits = "".join(dict.fromkeys("".join(SETS[clause])))
    script = TestStream()
    for ts, bundle in enumerate(bundles):
        script = script.add([{"ts": ts, **row} for row in bundle])
    query = sql(
        "SELECT upper(a) AS a, b, GROUPING_ID() AS level, GROUPING(b) AS no_b, grouping_id(t.b, UPPER(a)) AS swapped, COUNT(*) AS n, "
        f"SUM(v) AS s, COUNT(DISTINCT b) AS bs FROM t GROUP BY {clause} {'HAVING GROUPING(b) = 1 OR COUNT(*) > 1' * having} {emit}"
    )
    panes = bm.live(query.run(script))
    rows = [row for bundle in bundles for row in bundle]
    names = ("a", "b", "level", "no_b", "swapped", "n", "s", "bs")
    found = [tuple({**pane.key, **pane.values}[name] for name in names) for pane in panes]
    assert len(found) == len(set(found))
    assert set(found) == expected(rows, SETS[clause], bits, having=having)


def test_a_rollup_is_a_pipeline_of_key_sets():
    query = sql("SELECT k, GROUPING_ID() AS id, COUNT(DISTINCT k) AS ks FROM t GROUP BY ROLLUP (k) EMIT CHANGES")
    assert query.pipeline == (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by(bm.GroupingSets(("key of (k)",), ()))
        .window(bm.GlobalWindow())
        .trigger(Always())
        .on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)
        .accumulating()
        .accumulate(**{"COUNT(DISTINCT k)": CountDistinct("k")})
    )
    assert pickle.loads(pickle.dumps(query)) == query
    assert "each row is in the groups of" in " ".join(query.explain().split())
    panes = query.run(TestStream().add([{"ts": 1, "k": "a"}, {"ts": 1, "k": None}]))
    assert [pane.key for pane in panes] == [{"k": "a", "id": 0}, {"k": None, "id": 1}, {"k": None, "id": 0}]


def test_without_its_set_a_total_is_retracted():
    """A total and a group of nulls look alike, so neither may replace the other."""
    query = sql("SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k) EMIT CHANGES")
    panes = query.run(TestStream().add([{"ts": 1, "k": None}, {"ts": 1, "k": "a"}]).add([{"ts": 2, "k": None}]))
    assert {pane.kind for pane in panes} == {"PANE", "RETRACTION"}
    assert sorted(shown(bm.live(panes)), key=str) == [("P", "a", 1), ("P", None, 2), ("P", None, 3)]


def test_windows_and_the_event_time_as_a_key():
    rows = TestStream().add([{"ts": 1, "k": "a"}, {"ts": 61, "k": "a"}, {"ts": 61, "k": "b"}])
    text = "SELECT k, GROUPING(k) AS total, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY ROLLUP (k) EMIT FINAL"
    panes = sql(text).run(rows.advance_watermark_to(120))
    assert shown(panes) == [
        ("P", "a", 0, 1),
        ("P", None, 1, 1),
        ("P", "a", 0, 1),
        ("P", None, 1, 2),
        ("P", "b", 0, 1),
    ]
    panes = sql("SELECT ts, MAX(ts) AS last, COUNT(*) AS n FROM t GROUP BY ROLLUP (ts)").run(rows)
    assert sorted(pane.values["n"] for pane in panes) == [1, 2, 3]
    assert all(pane.values["last"] is not None for pane in panes)


def test_keys_may_be_fields_and_have_dots():
    text = "SELECT s.x, s.x * 1.5 AS y, GROUPING_ID(s.x, s.x * 1.5) AS id, SUM(s.x) AS n FROM t GROUP BY CUBE (s.x, s.x * 1.5)"
    panes = sql(text).run(TestStream().add([{"ts": 1, "s": {"x": 2}}]))
    assert sorted((pane.key["id"], pane.values["n"]) for pane in panes) == [(0, 2), (1, 2), (2, 2), (3, 2)]
    text = "SELECT s.x, COUNT(*) AS n FROM t GROUP BY ROLLUP (s)"
    panes = sql(text.replace("SELECT", "SELECT s,")).run(TestStream().add([{"ts": 1, "s": {"x": 2}}]))
    assert sorted(str(pane.values["x"]) for pane in panes) == ["2", "None"]


def test_the_empty_set_alone_is_one_group():
    (pane,) = sql("SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS (())").run(
        TestStream().add([{"ts": 1}, {"ts": 2}])
    )
    assert (pane.key, pane.values) == ({}, {"n": 2})


def test_a_dropped_row_has_its_own_columns():
    text = "SELECT k, GROUPING_ID() AS id, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY ROLLUP (k) EMIT FINAL"
    script = TestStream().advance_watermark_to(20).add([{"ts": 1, "k": "a"}])
    panes = sql(text, with_dropped=True).run(script)
    assert [(pane.kind, pane.key, pane.values) for pane in panes] == [
        ("DROPPED", {"k": key, "id": id_}, {"ts": 1, "k": "a"}) for key, id_ in (("a", 0), (None, 1))
    ]


def test_a_column_grouping_id_of_the_rows_is_marked_at_its_place():
    text = "SELECT k, COUNT(*) AS n FROM t GROUP BY ROLLUP (k)"
    with pytest.raises(bm.SqlError, match="'grouping_id' of its own; rename yours") as raised:
        sql(text).run(TestStream().add([{"ts": 1, "k": 1, "grouping_id": 1}]))
    assert raised.value.column == text.index("ROLLUP") + 1


BY_WINDOWS = {
    "window_start, window_end, ROLLUP (k, x)": [("k", "x"), ("k",), ()],
    "CUBE (k), window_start, window_end, window_time": [("k",), ()],
    "GROUPING SETS ((window_start, window_end, k), (window_start, window_end))": [("k",), ()],
    "GROUPING SETS ((window_start, k), (t.window_start)), window_end": [("k",), ()],
}


@pytest.mark.parametrize("clause", BY_WINDOWS)
def test_flinks_sets_are_of_windows(clause):
    query = flink(f"SELECT k, window_end, SUM(x) AS s FROM {TUMBLE} t GROUP BY {clause}")
    sets = bm.GroupingSets(*(tuple(f"key of ({name})" for name in one) for one in BY_WINDOWS[clause]))
    rows = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("5 seconds")).key_by(sets)
    windows = rows.window(bm.FixedWindows("1 minute")).trigger(Never()).accumulating()
    assert query.pipeline == windows.accumulate(**{"SUM(x)": Sum("x")})
    panes = query.run(
        TestStream().add([{"ts": 1, "k": "a", "x": 1}, {"ts": 2, "k": "b", "x": 2}]).advance_watermark_to(60)
    )
    assert {(pane.key["k"], pane.values["s"]) for pane in panes} == {("a", 1), ("b", 2), (None, 3)}


def test_windows_of_one_set_have_no_key_sets():
    query = flink(f"SELECT COUNT(*) AS n FROM {TUMBLE} GROUP BY GROUPING SETS ((window_start, window_end))")
    plain = flink(f"SELECT COUNT(*) AS n FROM {TUMBLE} GROUP BY window_start, window_end")
    assert query.pipeline == plain.pipeline


def test_flinks_other_groups_have_sets_too():
    rows = TestStream().add([{"ts": 1, "k": "a", "x": 1}]).add([{"ts": 2, "k": "b", "x": 2}])
    query = flink("SELECT k, GROUPING(k), COUNT(*) FROM t GROUP BY ROLLUP (k)")
    assert shown(bm.live(query.run(rows))) == [("P", "a", 0, 1), ("P", "b", 0, 1), ("P", None, 1, 2)]
    query = flink(
        "SELECT k, SUM(x) AS s FROM t GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), ROLLUP (k) HAVING GROUPING(k) = 1"
    )
    assert shown(query.run(rows.advance_watermark_to(60))) == [("P", None, 3)]
    numbered = flink(
        "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS n FROM (SELECT window_start, "
        f"window_end, k, SUM(x) AS s FROM {TUMBLE} GROUP BY window_start, window_end, ROLLUP (k))) WHERE n <= 2"
    )
    panes = numbered.run(rows.advance_watermark_to(60))
    assert [{**pane.key, **pane.values}["s"] for pane in panes] == [3, 2]
