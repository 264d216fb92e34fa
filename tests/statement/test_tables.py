"""GROUP BY over a declared table (docs/sql.md#tables): its latest rows are grouped, and not its changes."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.statement.users import CHANGES, UPSERTS, USERS, WATERMARK, changes

TABLES = pytest.mark.parametrize("table", [USERS, UPSERTS], ids=["versions", "upserts"])


def sql(text, table=USERS, **options):
    return bm.sql(text, event_time="ts", watermark=WATERMARK, tables={"users": table}, **options)


def shown(panes):
    """``P a 1``: a pane of the key a with the value 1."""
    return [" ".join([pane.kind[0], *map(str, [*pane.key.values(), *pane.values.values()])]) for pane in panes]


NAMES = "SELECT name, COUNT(*) AS n FROM users {} GROUP BY name {}"
RENAMED = changes((1, "a"), (1, "b"))


@pytest.mark.parametrize(
    ("table", "latest"), [(USERS, CHANGES.versions("1 day", deleted="gone", latest_only=True)), (UPSERTS, UPSERTS)]
)
def test_a_change_moves_its_row_to_another_group(table, latest):
    assert shown(sql(NAMES.format("", "EMIT CHANGES"), table).run(RENAMED)) == ["P a 1", "R a 1", "P b 1"]
    by_hand = latest.then(
        bm.Pipeline()
        .key_by("name")
        .window(bm.GlobalWindow())
        .trigger(Always())
        .on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)
        .accumulating_and_retracting()
        .accumulate(**{"COUNT(*)": Count()})
    )
    assert sql(NAMES.format("", "EMIT CHANGES"), table).pipeline == by_hand


@TABLES
def test_a_pull_query_groups_the_last_rows(table):
    assert shown(sql(NAMES.format("", ""), table).run(RENAMED)) == ["P b 1"]


@TABLES
def test_a_delete_takes_its_row_out_of_its_group(table):
    script = changes((1, "a"), (2, "a"), (1, None), (2, None), (3, None))
    assert shown(sql(NAMES.format("", "EMIT CHANGES"), table).run(script)) == [
        "P a 1",
        "R a 1",
        "P a 2",
        "R a 2",
        "P a 1",
        "R a 1",
    ]


@TABLES
def test_where_is_over_rows_of_the_table(table):
    """Filtered changes would leave user 1 at 5 points."""
    text = NAMES.format("WHERE points > 3", "EMIT CHANGES")
    assert shown(sql(text, table).run(changes((1, "a", 5), (1, "a", 1)))) == ["P a 1", "R a 1"]


def test_having_is_over_groups_of_versions():
    text = NAMES.format("", "HAVING COUNT(*) > 1 EMIT CHANGES")
    assert shown(sql(text).run(changes((1, "a"), (2, "a"), (1, "b")))) == ["P a 2", "R a 2"]


@TABLES
def test_expressions_are_computed_of_rows_that_where_keeps(table):
    text = "SELECT upper(u.name) AS name, SUM(12 / points) AS s FROM Users AS u WHERE points <> 0 GROUP BY UPPER(name) EMIT CHANGES"
    script = changes((1, "a", 3), (2, "b", 0), (1, "b", 4)).add(
        [{"ts": 9, "id": 1, "name": "x", "points": 0, "gone": True}]
    )
    assert shown(sql(text, table).run(script)) == ["P A 4.0", "R A 4.0", "P B 3.0", "R B 3.0"]


def test_keys_and_declared_values_may_be_grouped_in_any_case():
    table = CHANGES.versions("1 day", deleted="gone", values=["points"])
    text = "SELECT POINTS, SUM(ID) AS s, MAX(Points + 1) AS m FROM users GROUP BY POINTS EMIT CHANGES"
    assert shown(sql(text, table).run(changes((2, "a", 5), (3, "b", 5)))) == ["P 5 2 6", "R 5 2 6", "P 5 5 6"]


def test_a_table_of_panes_is_grouped_by_its_columns():
    totals = (
        bm.Pipeline()
        .event_time("ts", WATERMARK)
        .key_by("id")
        .window(bm.GlobalWindow())
        .trigger(Always())
        .timestamp_combiner(bm.TimestampCombiner.LATEST)
        .accumulating()
        .accumulate(total=Sum("points"))
        .then(bm.Pipeline().key_by("id").versions("1 day"))
    )
    text = "SELECT total, COUNT(*) AS n FROM users {} GROUP BY total EMIT CHANGES"
    assert shown(sql(text.format(""), totals).run(changes((1, "a", 5), (1, "a", 2)))) == ["P 5 1", "R 5 1", "P 7 1"]
    with pytest.raises(bm.SqlError, match=r"total > 1: an expression over the table users, .* of panes.*with_columns"):
        sql(text.format("WHERE total > 1"), totals)


def test_upserts_of_panes_and_of_items_are_grouped_by_their_columns():
    last = (
        bm.Pipeline()
        .event_time("ts", WATERMARK)
        .key_by("id")
        .window(bm.FixedWindows(10))
        .accumulate(total=Sum("points"))
    ).then(bm.Pipeline().key_by("id").upserts())
    text = "SELECT total, COUNT(*) AS n FROM users {} GROUP BY total EMIT CHANGES"
    script = changes((1, "a", 5), (2, "b", 5)).advance_watermark_to(10)
    assert shown(sql(text.format(""), last).run(script)) == ["P 5 2"]
    with pytest.raises(bm.SqlError, match=r"total > 1: an expression over the table users, .* of panes"):
        sql(text.format("WHERE total > 1"), last)
    with pytest.raises(bm.SqlError, match=r"total > 1: an expression over the table users, .* of items"):
        sql(text.format("WHERE total > 1"), UPSERTS.explode("total"))


def test_upserts_have_their_event_time_and_newer_rows_by_sequence():
    table = CHANGES.upserts(sequence_by="points", deleted="gone")
    script = changes((1, "a", 5), (1, "b", 7), (1, "c", 6), (2, "b", 1))
    text = "SELECT name, MAX(ts) AS last, COUNT(*) AS n FROM users GROUP BY name"
    (pane,) = sql(text, table).run(script)
    assert (pane.key, pane.values["last"], pane.values["n"]) == ({"name": "b"}, 3, 2)


def test_a_stream_is_not_joined_with_upserts():
    text = "SELECT c.id, u.name FROM clicks c ^JOIN users u ON c.id = u.id EMIT CHANGES"
    with pytest.raises(bm.SqlError, match=r"its table ends in upserts.*end it in versions") as raised:
        sql(text.replace("^", ""), UPSERTS)
    assert raised.value.column == text.index("^") + 1


def test_a_table_ends_in_versions_or_upserts():
    with pytest.raises(bm.OptionError, match="ends in versions or upserts"):
        sql(NAMES.format("", ""), CHANGES.changes())


def test_flinks_windows_over_a_table_are_refused():
    text = "SELECT COUNT(*) FROM TUMBLE(TABLE users, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end"
    for table in (USERS, UPSERTS):
        with pytest.raises(bm.SqlError, match="WINDOW over the table users"):
            bm.sql(text, tables={"users": table}, dialect="flink")


def test_a_table_of_a_changelog_is_grouped_by_its_columns():
    table = bm.Pipeline().from_changelog("diff").event_time("ts", WATERMARK).key_by("id").versions("1 day")
    script = TestStream().add([{"ts": 1, "id": 1, "name": "a", "_diff": 1}])
    script = script.add([{"ts": 2, "id": 1, "name": "b", "_diff": 1}]).add(
        [{"ts": 2, "id": 1, "name": "b", "_diff": -1}]
    )
    assert shown(sql(NAMES.format("", "EMIT CHANGES"), table).run(script)) == [
        "P a 1",
        "R a 1",
        "P b 1",
        "R b 1",
        "P a 1",
    ]
    with pytest.raises(bm.SqlError, match="a changelog: only its columns"):
        sql("SELECT upper(name) AS name, COUNT(*) AS n FROM users GROUP BY upper(name)", table)


def test_dropped_rows_are_those_of_the_grouping():
    table = CHANGES.versions("1 day").with_dropped()
    text = "SELECT name, SUM(points * 1) AS s FROM users GROUP BY name EMIT CHANGES"
    pane, dropped = sql(text, table, on_error="drop").run(changes((1, "a", 2**62), (2, "a", 2**62)))
    assert (pane.values, dropped.kind, dropped.reason) == ({"s": 2**62}, "DROPPED", "error")
    assert dropped.values["id"] == 2
    assert "points * 1" not in dropped.values


REFUSED = {
    "SELECT name, COUNT(*) FROM users ^WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY name": "WINDOW over the table users.*leave WINDOW out",
    "SELECT name, MAX(^ts) AS m FROM users GROUP BY name": r"ts: not a column of the table users.*keys \['id'\]",
    "SELECT ^gone, COUNT(*) AS m FROM users GROUP BY ^gone": "gone: not a column",
    "SELECT name, COUNT(*) AS m FROM users WHERE ^users.valid_from IS NULL GROUP BY name": "valid_from: not a column",
    "SELECT name, COUNT(*) AS m FROM users GROUP BY ^ROLLUP (name)": "ROLLUP over the table users: only rows of a stream",
    "SELECT name, COUNT(*) AS m FROM users WHERE ^name GROUP BY name": "string where a condition must stand",
    "SELECT name, MAX(^nothing + 1) AS m FROM users GROUP BY name": "there is no column 'nothing'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_at_their_place(text):
    with pytest.raises(bm.SqlError, match=REFUSED[text]) as raised:
        sql(text.replace("^", "")).run(RENAMED)
    if not any(one in text for one in ("MAX(^ts)", "valid_from")):  # columns of upserts, or of none
        with pytest.raises(bm.SqlError, match=REFUSED[text]):
            sql(text.replace("^", ""), UPSERTS).run(RENAMED)
    assert raised.value.column == text.rindex("^") + 1 - text.count("^", 0, text.rindex("^"))


def test_names_of_tables_differ_not_only_in_case():
    with pytest.raises(bm.OptionError, match="differ not only in case"):
        bm.sql(NAMES.format("", ""), event_time="ts", watermark=WATERMARK, tables={"users": USERS, "Users": USERS})


def test_a_join_names_its_table_in_any_case():
    text = "SELECT c.id, u.name FROM clicks c JOIN USERS u ON c.id = u.id EMIT CHANGES"
    script = TestStream().add([{"ts": 1, "id": 1, "name": "a", "gone": False}], input="users")
    assert shown(sql(text).run(script.add([{"ts": 2, "id": 1}], input="clicks"))) == ["P 1 a"]


def test_explain_describes_both_stages():
    words = " ".join(sql(NAMES.format("WHERE points > 3", "EMIT CHANGES")).explain().split())
    for said in (
        "computed for each row",
        "points > 3",
        "stage 1 of 2 rows a row sets what is valid for id",
        "where only rows with",
    ):
        assert said in words, words


USER = st.tuples(st.integers(0, 2), st.sampled_from([None, "a", "b"]), st.none() | st.integers(-1, 2))
BUNDLES = st.lists(st.lists(USER, max_size=3), max_size=6)


@given(
    st.sampled_from([USERS, UPSERTS]),
    BUNDLES,
    st.sampled_from(["EMIT CHANGES", "EMIT CHANGES RETRACTING", ""]),
    st.booleans(),
    st.booleans(),
)
def test_live_rows_are_those_of_the_table_grouped(declared, bundles, emit, where, having):
    script, table, groups = TestStream(), {}, defaultdict(list)
    for number, bundle in enumerate(bundles):
        rows = {user[0]: user for user in bundle}  # one change of each key and time
        script = script.add(
            [
                {"ts": number, "id": id_, "name": name, "points": points, "gone": name is None}
                for id_, name, points in rows.values()
            ]
        )
        table |= rows
    for _, name, points in table.values():
        if name is not None and (not where or (points is not None and points > 0)):
            groups[name.upper()].append(points)
    expected = {
        (name, len(of), sum(one for one in of if one is not None) if any(one is not None for one in of) else None)
        for name, of in groups.items()
        if not having or len(of) > 1
    }
    text = f"SELECT upper(name) AS name, COUNT(*) AS n, SUM(points) AS s FROM users {'WHERE points > 0' * where} GROUP BY upper(name)"
    panes = sql(f"{text} {'HAVING COUNT(*) > 1' * having} {emit}", declared).run(script)
    assert {(*pane.key.values(), *pane.values.values()) for pane in bm.live(panes)} == expected
    added = defaultdict[tuple, int](int)
    for pane in panes:
        added[*pane.key.values(), *pane.values.values()] += 1 if pane.kind == "PANE" else -1
    assert {row: count for row, count in added.items() if count} == dict.fromkeys(expected, 1)
