"""The table after batches, in each database."""

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from threading import Event

import duckdb
import pyarrow as pa
import pytest

import beamish as bm
from beamish.errors import ColumnError, OptionError, SinkError
from beamish.kernels.upserts import SEQUENCE, Mark
from beamish.sinks.databases.batch import TableName
from beamish.sinks.databases.database import rows_of
from beamish.sinks.sql import _left
from tests.sinks.conftest import IDENTITY, SCHEMA, TIME, change, net
from tests.sinks.identities import KEYS, NESTED, check

FIRST = Mark("a query", 0)
CREATE = (
    "CREATE TABLE totals (team VARCHAR(9), window_start {time}, window_end {time}, total bigint, _sequence bigint, "
    "UNIQUE (team, window_start, window_end))"
)


def put(sink, *changes, batch=0, query="a query"):
    sink.write(net(*changes), Mark(query, batch))


def test_the_table_holds_the_last_image_of_each_identity(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1), change("red", 60, 5, 2), change("blue", 0, 7, 1))
    put(sink, change("red", 0, 2, 4), change("red", 0, 3, 5), change("blue", 0, None, 2, deleted=True), batch=1)
    assert ask("SELECT team, total, _sequence FROM totals") == [("red", 3, 5), ("red", 5, 2)]


@pytest.mark.parametrize("keep_deleted", [False, True])
def test_a_replayed_batch_changes_nothing(uri, ask, keep_deleted):
    sink = bm.sinks.sql(uri, "totals", keep_deleted=keep_deleted)
    put(sink, change("red", 0, 1, 1), change("blue", 0, 1, 1))
    again = [
        change("red", 0, 2, 3),
        change("red", 0, 2, 4, deleted=True),
        change("blue", 0, 4, 2),
        change("new", 0, 1, 1),
    ]
    put(sink, *again, batch=1)
    after = ask("SELECT * FROM totals")
    put(sink, *again, batch=1)
    assert ask("SELECT * FROM totals") == after
    assert len(after) == (3 if keep_deleted else 2)


def test_a_deleted_row_can_be_inserted_again(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1))
    put(sink, change("red", 0, 1, 2, deleted=True), batch=1)
    assert ask("SELECT * FROM totals") == []
    put(sink, change("red", 0, 9, 3), batch=2)
    assert ask("SELECT team, total FROM totals") == [("red", 9)]


def test_with_keep_deleted_an_older_batch_restores_nothing(uri, ask):
    sink = bm.sinks.sql(uri, "totals", keep_deleted=True)
    old = change("red", 0, 1, 1)
    put(sink, old)
    put(sink, change("red", 0, 1, 2, deleted=True), batch=1)
    put(sink, old, batch=2)
    assert ask("SELECT team, _deleted FROM totals") in ([("red", True)], [("red", 1)])


def test_null_is_a_key_and_the_global_window_has_null_bounds(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change(None, 0, 1, 1), change("red", None, 2, 1), change(None, None, 3, 1))
    put(sink, change(None, 0, 11, 2), change("red", None, 12, 2), change(None, None, 0, 2, deleted=True), batch=1)
    assert ask("SELECT total FROM totals") == [(11,), (12,)]


@pytest.mark.parametrize("type_", [*KEYS, None], ids=str)
def test_all_keys_of_a_type_are_rows_of_their_own(uri, type_):
    keys = [*(NESTED if type_ is None else KEYS[type_]), None]
    batches = [[(key, False) for key in keys], [(key, True) for key in keys[::2]]]
    check(bm.sinks.sql(uri, "totals"), type_, batches)


def test_a_text_with_nul_is_a_key_or_refused(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    changes = [change("a\0", 0, 1, 1), change("a", 0, 2, 2), change("a\0b", 0, 3, 3)]
    if uri.startswith("postgresql"):
        with pytest.raises(SinkError, match=r"column 'team' has a text with the character NUL.*F\.translate\('team', "):
            put(sink, *changes)
    else:
        put(sink, *changes)
        assert ask("SELECT team, total FROM totals") == [("a", 2), ("a\0", 1), ("a\0b", 3)]


TYPES = {
    "yes": (pa.bool_(), True),
    "tiny": (pa.int8(), -128),
    "small": (pa.int16(), 300),
    "whole": (pa.int32(), -(2**31)),
    "large": (pa.int64(), 2**63 - 1),
    "single": (pa.float32(), 1.5),
    "double": (pa.float64(), 0.1),
    "text": (pa.string(), "naïve 'quoted' \"twice\""),
    "bytes": (pa.binary(), b"\0\xff"),
    "day": (pa.date32(), datetime(1969, 12, 31, tzinfo=UTC).date()),
    "at": (TIME, datetime(2024, 5, 1, 10, 0, 0, 5, tzinfo=UTC)),
    "local": (pa.timestamp("us"), datetime(1900, 1, 1, 10)),  # noqa: DTZ001 - it has no zone
    "money": (pa.decimal128(38, 2), Decimal("123456789012345678901234567890123456.78")),
    'odd "name".': (pa.int64(), 1),
}


def test_values_of_all_types_are_read_back(uri, ask):
    schema = pa.schema([*SCHEMA, *((name, type_) for name, (type_, _) in TYPES.items())])
    full = change("red", 0, 1, 1) | {name: value for name, (_, value) in TYPES.items()}
    empty = change("blue", 0, 1, 1)
    sink = bm.sinks.sql(uri, "all types")
    for batch in range(2):
        sink.write(net(full, empty, schema=schema), Mark("q", batch))
    for name, (_, value) in TYPES.items():
        quoted = name.replace('"', '""')
        ((found,),) = ask(f"""SELECT "{quoted}" FROM "all types" WHERE team = 'red'""")
        if isinstance(value, Decimal):
            found = Decimal(str(found))
        if uri.startswith("sqlite") and isinstance(value, datetime):
            found = datetime.fromisoformat(found).replace(tzinfo=value.tzinfo)
        if uri.startswith("sqlite") and name == "day":
            found = datetime.fromisoformat(found).date()
        assert found == value, name
        assert ask(f"""SELECT "{quoted}" FROM "all types" WHERE team = 'blue'""") == [(None,)]


def test_a_table_of_another_query_is_refused(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1))
    with pytest.raises(SinkError, match=r"belongs to the query a query \(batch 0\), this is another.*DROP TABLE"):
        put(sink, change("red", 0, 2, 2), query="another")
    assert ask("SELECT total FROM totals") == [(1,)]
    put(bm.sinks.sql(uri, "others"), change("red", 0, 2, 2), query="another")  # a table of its own


@pytest.mark.parametrize("keep_deleted", [False, True])
def test_a_batch_before_the_last_is_refused(uri, keep_deleted):
    sink = bm.sinks.sql(uri, "totals", keep_deleted=keep_deleted)
    put(sink, change("red", 0, 1, 1), query="")
    put(sink, change("red", 0, 1, 1), batch=1, query="")
    with pytest.raises(SinkError, match="batch 0 comes after batch 1: two queries write it, or the checkpoint"):
        put(sink, change("red", 0, 2, 1), batch=0, query="")


def test_a_dropped_table_is_not_resumed(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1))
    with sink.database.transaction() as cursor:
        cursor.execute("DROP TABLE totals")
    with pytest.raises(SinkError, match=r"it was deleted, though batch 0 of this query was written.*sink\.rebuild"):
        put(sink, change("blue", 0, 1, 1), batch=1)
    put(sink, change("blue", 0, 1, 1), query="restarted")
    assert ask("SELECT team FROM totals") == [("blue",)]


def test_an_existing_table_may_have_more_columns(uri, ask):
    sink = bm.sinks.sql(uri, "totals", create=False)
    with pytest.raises(
        SinkError, match="_beamish_sinks, which records the owner of a table, must exist too: CREATE TABLE"
    ):
        put(sink, change("red", 0, 1, 1))
    put(bm.sinks.sql(uri, "others"), change("red", 0, 1, 1))
    with pytest.raises(SinkError, match="it does not exist, and create is False; create it: CREATE TABLE"):
        put(sink, change("red", 0, 1, 1))
    time = "TEXT" if uri.startswith("sqlite") else "timestamp with time zone"
    with sink.database.transaction() as cursor:
        cursor.execute(
            f"CREATE TABLE totals (note VARCHAR(9), total bigint, window_end {time}, window_start {time}, team VARCHAR(9), "
            "_sequence bigint, UNIQUE (team, window_start, window_end))"
        )
    put(sink, change("red", 0, 1, 1))
    put(sink, change("red", 0, 2, 2), batch=1)
    assert ask("SELECT team, total, note FROM totals") == [("red", 2, None)]
    if uri.startswith("postgresql"):
        with pytest.raises(SinkError, match=r"treats nulls as distinct.*ADD UNIQUE NULLS NOT DISTINCT"):
            put(sink, change(None, 0, 2, 2), batch=2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("team VARCHAR(9), total bigint", "it has no column 'window_start'.*ADD COLUMN"),
        (
            "team VARCHAR(9), window_start {time}, window_end {time}, total {time}, _sequence bigint",
            "column 'total' is",
        ),
        (
            "team VARCHAR(9), window_start {time}, window_end {time}, total bigint, _sequence bigint, _deleted boolean",
            "use keep_deleted=True",
        ),
    ],
)
def test_a_mismatched_table_is_rejected(uri, columns, message):
    sink = bm.sinks.sql(uri, "totals")
    time = "TEXT" if uri.startswith("sqlite") else "timestamp with time zone"
    with sink.database.transaction() as cursor:
        cursor.execute(f"CREATE TABLE totals ({columns.format(time=time)})")
    with pytest.raises(SinkError, match=message):
        put(sink, change("red", 0, 1, 1))


@pytest.mark.dear
@pytest.mark.parametrize(
    ("uri", "declared", "message"),
    [
        ("sqlite", "team TEXT COLLATE NOCASE", "column 'team' has a collation in which different texts are equal"),
        ("sqlite", "team TEXT COLLATE RTRIM", "column 'team' has a collation"),
        ("duckdb", "team VARCHAR COLLATE NOCASE", "column 'team' has a collation"),
        ("duckdb", "price DECIMAL(5,1)", r"column 'price' is DECIMAL\(5,1\), the panes need DECIMAL\(5,2\)"),
        ("duckdb", "price DECIMAL(5,3)", r"column 'price' is DECIMAL\(5,3\)"),
        (
            "postgresql",
            "team text COLLATE one",
            "column 'team' has the collation 'one', in which different texts are equal",
        ),
        pytest.param("postgresql", "team folded", "column 'team' has the collation 'one'", marks=pytest.mark.servers),
        pytest.param(
            "postgresql",
            "price numeric(5,1)",
            r"column 'price' is numeric\(5,1\), the panes need numeric\(5,2\)",
            marks=pytest.mark.servers,
        ),
        pytest.param(
            "postgresql",
            "window_end timestamp(3) with time zone",
            r"column 'window_end' is timestamp\(3\)",
            marks=pytest.mark.servers,
        ),
    ],
    indirect=["uri"],
)
def test_a_column_that_would_change_values_is_refused(uri, declared, message):
    scheme = uri.partition(":")[0]
    time = "TEXT" if scheme == "sqlite" else "timestamp with time zone"
    decimal = "TEXT" if scheme == "sqlite" else "decimal(9,2)"
    columns = {"team": "VARCHAR(9)", "window_start": time, "window_end": time, "total": "bigint", "price": decimal}
    columns |= {SEQUENCE: "bigint", declared.partition(" ")[0]: declared.partition(" ")[2]}
    sink = bm.sinks.sql(uri, "totals")
    with sink.database.transaction() as cursor:
        if scheme == "postgresql":
            cursor.execute("CREATE COLLATION one (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
            cursor.execute("CREATE DOMAIN folded AS text COLLATE one")
        named = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
        cursor.execute(f"CREATE TABLE totals ({named}, UNIQUE (team, window_start, window_end))")
    rows = net(
        change("red", 0, 1, 1) | {"price": Decimal("1.25")}, schema=pa.schema([*SCHEMA, ("price", pa.decimal128(5, 2))])
    )
    with pytest.raises(SinkError, match=message):
        sink.write(rows, FIRST)


@pytest.mark.servers
@pytest.mark.parametrize("uri", ["postgresql"], indirect=True)
def test_postgresql_trims_no_blanks(uri):
    sink = bm.sinks.sql(uri, "totals")
    with sink.database.transaction() as cursor:
        cursor.execute(
            "CREATE TABLE totals (team varchar(2), window_start timestamptz, window_end timestamptz, total bigint, _sequence bigint, "
            "UNIQUE (team, window_start, window_end))"
        )
    put(sink, change("a ", 0, 1, 1))
    with pytest.raises(SinkError, match=r"column 'team' has a text longer than its character varying\(2\).*TYPE text"):
        put(sink, change("a  ", 0, 1, 1), batch=1)


def test_a_null_does_not_become_a_primary_key_number(tmp_path):
    sink = bm.sinks.sql(f"sqlite:///{tmp_path}/tables.db", "totals")
    with sink.database.transaction() as cursor:
        cursor.execute("CREATE TABLE totals (user INTEGER PRIMARY KEY, total INTEGER, _sequence INTEGER)")
    schema = pa.schema([("user", pa.int64()), *list(SCHEMA)[3:]])
    row = {"user": 1, "total": 1, SEQUENCE: 1, "_deleted": False}
    sink.write(net(row, schema=schema, identity=("user",)), FIRST)
    with pytest.raises(SinkError, match="key column 'user' has a null, which would become the next free number"):
        sink.write(net(row | {"user": None}, schema=schema, identity=("user",)), Mark("a query", 1))


def test_a_key_called_rowid_finds_no_other_rows(uri, ask):
    """A column of this name hides SQLite's number of a row."""
    schema = pa.schema([("rowid", pa.int64()), *SCHEMA])
    sink = bm.sinks.sql(uri, "totals")
    for batch, sequence in enumerate((1, 5)):
        rows = [
            change("red", start, sequence, sequence + place) | {"rowid": 7}
            for place, start in enumerate((0, 60, 120)[batch:])
        ]
        sink.write(net(*rows, schema=schema, identity=("rowid", *IDENTITY)), Mark("q", batch))
    assert ask("SELECT total FROM totals") == [(1,), (5,), (5,)]


def test_a_batch_without_its_predecessors_is_rejected(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    for _ in range(2):
        with pytest.raises(
            SinkError, match=r"no earlier batch is recorded for it, and batch 3.*sink\.rebuild.*empty checkpoint"
        ):
            put(sink, change("red", 0, 1, 1), batch=3)
    put(sink, change("red", 0, 1, 1))
    with sink.database.transaction() as cursor:
        cursor.execute("DELETE FROM _beamish_sinks")
    with pytest.raises(SinkError, match="it has rows of an unknown query"):
        put(sink, change("red", 0, 2, 2))
    with pytest.raises(SinkError, match="no earlier batch is recorded"):
        put(sink, change("red", 0, 2, 2), batch=1)
    assert ask("SELECT total FROM totals") == [(1,)]


def test_a_database_deleted_between_batches_is_not_recreated(tmp_path):
    for scheme in ("sqlite", "duckdb"):
        path = tmp_path / f"tables.{scheme}"
        sink = bm.sinks.sql(f"{scheme}:///{path}", "totals")
        put(sink, change("red", 0, 1, 1))
        path.unlink()
        with pytest.raises(SinkError, match="The table or its database was deleted"):
            put(sink, change("blue", 0, 1, 1), batch=1)


def test_another_batch_of_the_same_number_is_refused(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    first, other = net(change("red", 0, 1, 1)), net(change("red", 0, 9, 1), change("blue", 0, 1, 1))
    sink.write(first, Mark("a query", 0, "offsets 1"))
    sink.write(first, Mark("a query", 0, "offsets 1"))
    with pytest.raises(SinkError, match="it holds batch 0 with other rows: the checkpoint was restored"):
        sink.write(first, Mark("a query", 0, "offsets 2"))
    assert ask("SELECT team, total FROM totals") == [("red", 1)]
    sink.write(other, Mark("a query", 1, "offsets 2"))
    assert ask("SELECT team FROM totals") == [("blue",), ("red",)]


def test_marks_of_an_earlier_version_are_upgraded(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1))
    with sink.database.transaction() as cursor:
        cursor.execute("DROP TABLE _beamish_sinks")
        cursor.execute(
            "CREATE TABLE _beamish_sinks (table_name VARCHAR(255) PRIMARY KEY, query_id VARCHAR(64) NOT NULL, batch_id BIGINT NOT NULL)"
        )
        cursor.execute("INSERT INTO _beamish_sinks VALUES ('totals', 'a query', 0)")
    with pytest.raises(SinkError, match=r"ALTER TABLE .* ADD COLUMN batch_entry"):
        put(bm.sinks.sql(uri, "totals", create=False), change("red", 0, 2, 2), batch=1)
    put(sink, change("red", 0, 2, 2), batch=1)
    assert ask("SELECT batch_id, batch_entry FROM _beamish_sinks") == [(1, "")]


def test_a_batch_that_does_not_follow_the_last_is_refused(uri, ask):
    """As after the table was restored from a backup that is older than the checkpoint."""
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1))
    with pytest.raises(
        SinkError, match=r"batch 2 comes after batch 0, so .* are missing: the table was restored.*rebuild"
    ):
        put(sink, change("red", 0, 3, 3), batch=2)
    assert ask("SELECT total FROM totals") == [(1,)]
    migrated = Mark("a query", 3, previous=0)  # bm.migrate added the batches 1 and 2
    sink.write(net(change("red", 0, 2, 2)), migrated)
    sink.write(net(change("red", 0, 2, 2)), migrated)
    assert ask("SELECT total FROM totals") == [(2,)]
    with pytest.raises(SinkError, match="batch 6 comes after batch 3"):
        sink.write(net(change("red", 0, 3, 3)), Mark("a query", 6, previous=4))


def test_a_replay_that_changes_other_rows_is_refused(uri, ask):
    """As after a source file was deleted between the sink's commit and the query's."""
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1))
    put(sink, change("red", 0, 2, 2), change("blue", 0, 2, 3), batch=1)
    for changes in (
        [change("red", 0, 2, 2)],
        [change("red", 0, 2, 2), change("blue", 60, 2, 3)],
        [change("red", 0, 2, 2), change("blue", 0, 2, 3, deleted=True)],
    ):
        with pytest.raises(SinkError, match=r"batch 1 was written before and now changes other rows, though.*rebuild"):
            put(sink, *changes, batch=1)
    assert ask("SELECT team, total FROM totals") == [("blue", 2), ("red", 2)]


@pytest.mark.parametrize("keep_deleted", [False, True])
def test_the_values_of_a_replay_replace_those_of_the_first_run(uri, ask, keep_deleted):
    """The state has the second values; between keys sequences may differ, too."""
    sink = bm.sinks.sql(uri, "totals", keep_deleted=keep_deleted)
    put(sink, change("red", 0, 1, 1), change("blue", 0, 1, 2), change(None, 0, 1, 3))
    put(sink, change("red", 0, 2, 4), change("blue", 0, 2, 5), change(None, 0, 1, 6, deleted=True), batch=1)
    put(sink, change(None, 0, 1, 4, deleted=True), change("blue", 0, 3, 5), change("red", 0, 4, 6), batch=1)
    put(sink, change("red", 0, 5, 7), batch=2)
    live = " WHERE NOT _deleted" if keep_deleted else ""
    assert ask(f"SELECT team, total, _sequence FROM totals{live}") == [("blue", 3, 5), ("red", 5, 7)]
    restart()
    put(sink, change("red", 0, 6, 8), batch=3)


def restart():
    """Forget what this process has written, as a new one."""
    _left.clear()


CHANGES_BY_OTHERS = {
    "emptied": ["DELETE FROM totals"],
    "dropped and created again": ["CREATE TABLE copy AS SELECT * FROM totals", "DROP TABLE totals", CREATE],
    "a deleted row": ["DELETE FROM totals WHERE team = 'red'"],
    "an added row": ["INSERT INTO totals (team, total, _sequence) VALUES ('green', 1, 1)"],
    "an older row": ["UPDATE totals SET _sequence = 1, total = 1 WHERE team = 'red'"],
}


@pytest.mark.parametrize("how", CHANGES_BY_OTHERS)
def test_a_table_that_others_changed_is_refused(uri, ask, how):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1), change("blue", 0, 1, 2))
    put(sink, change("red", 0, 2, 3), batch=1)
    time = "TEXT" if uri.startswith("sqlite") else "timestamp with time zone"
    with sink.database.transaction() as cursor:
        for statement in CHANGES_BY_OTHERS[how]:
            cursor.execute(statement.format(time=time))
    is_empty = not ask("SELECT * FROM totals")
    if not is_empty:  # counted after a start
        restart()
    before = ask("SELECT * FROM totals")
    with pytest.raises(
        SinkError, match=r"after batch 1 it had 2 rows, and it has .*sink\.rebuild.*accept.*: UPDATE"
    ) as refused:
        put(sink, change("blue", 0, 3, 4), batch=2)
    assert ask("SELECT * FROM totals") == before
    with sink.database.transaction() as cursor:
        cursor.execute(str(refused.value).rpartition("as it is: ")[2])
    put(sink, change("blue", 0, 3, 4), batch=2)
    put(sink, change("blue", 0, 4, 5), batch=3)
    restart()
    put(sink, change("blue", 0, 5, 6), batch=4)
    assert ask("SELECT total FROM totals WHERE team = 'blue'") == [(5,)]


def test_a_table_is_counted_once_per_process(uri, monkeypatch):
    sink, counted = bm.sinks.sql(uri, "totals"), []
    contents = type(sink.database).contents
    monkeypatch.setattr(type(sink.database), "contents", lambda *given: counted.append(1) or contents(*given))
    for batch in range(3):
        put(sink, change("red", 0, batch, batch + 1), batch=batch)
    assert not counted
    restart()
    for batch in range(3, 6):
        put(sink, change("red", 0, batch, batch + 1), batch=batch)
    assert counted == [1]


def test_names_of_one_table_have_one_mark(uri, ask):
    one, other = bm.sinks.sql(uri, "panes"), bm.sinks.sql(uri, "PANES")
    put(one)
    if uri.startswith("postgresql"):
        put(other, change("red", 0, 1, 1), query="another")
        assert len(ask("SELECT * FROM _beamish_sinks")) == 2
        return
    with pytest.raises(SinkError, match="it belongs to the query a query"):
        put(other, change("red", 0, 1, 1), query="another")
    put(other, change("red", 0, 1, 1), batch=1)
    put(one, change("red", 0, 2, 2), batch=2)
    assert ask("SELECT table_name, batch_id FROM _beamish_sinks") == [("panes", 2)]
    with one.database.transaction() as cursor:  # as an earlier version did
        cursor.execute("INSERT INTO _beamish_sinks (table_name, query_id, batch_id) VALUES ('PANES', 'another', 0)")
    with pytest.raises(SinkError, match=r"several marks for it \(.*PANES of the query another.*names of one table"):
        put(one, change("red", 0, 3, 3), batch=3)


def test_names_that_differ_by_other_letters_are_two_tables(uri, ask):
    for number, name in enumerate(("é", "É")):
        put(bm.sinks.sql(uri, name), change(f"team {number}", 0, number, 1), query=name)
    assert ask('SELECT team FROM "é"') == [("team 0",)]
    assert ask('SELECT team FROM "É"') == [("team 1",)]


@pytest.mark.parametrize("uri", ["duckdb"], indirect=True)
def test_a_schema_is_found_in_any_case(uri, ask):
    sink = bm.sinks.sql(uri, "STATS.totals")
    with sink.database.transaction() as cursor:
        cursor.execute("CREATE SCHEMA stats")
    for batch in range(2):
        put(sink, change("red", 0, batch, batch + 1), batch=batch)
    assert ask("SELECT total FROM stats.totals") == [(1,)]


@pytest.mark.servers
@pytest.mark.parametrize("uri", ["postgresql"], indirect=True)
def test_another_search_path_finds_no_other_table(uri, ask):
    def through(path, name="totals"):
        return bm.sinks.sql(f"{uri}?options=-csearch_path%3D{path}", name)

    with through("public").database.transaction() as cursor:
        for schema in ("a", "b"):
            cursor.execute(f"CREATE SCHEMA {schema}")
    put(through("a"), change("red", 0, 1, 1))
    put(through("b%2Ca"), change("red", 0, 2, 2), batch=1)  # found in a
    assert ask("SELECT batch_id FROM a._beamish_sinks") == [(1,)]
    with through("b").database.transaction() as cursor:
        cursor.execute("CREATE TABLE totals (LIKE a.totals INCLUDING ALL)")
    with pytest.raises(SinkError, match=r"table b\.totals: no earlier batch is recorded"):
        put(through("b%2Ca"), change("red", 0, 3, 3), batch=2)
    with pytest.raises(SinkError, match=r"table b\.totals: no earlier batch is recorded"):
        put(through("b"), change("red", 0, 3, 3), batch=2)
    put(through("b", "a.totals"), change("red", 0, 3, 3), batch=2)
    assert ask("SELECT total FROM a.totals") == [(3,)]


@pytest.mark.servers
@pytest.mark.parametrize("uri", ["postgresql"], indirect=True)
def test_a_mark_of_an_earlier_version_moves_beside_its_table(uri, ask):
    """It was in the first schema of the search path."""
    sink = bm.sinks.sql(f"{uri}?options=-csearch_path%3Da%2Cb", "totals")
    with sink.database.transaction() as cursor:
        for schema in ("a", "b"):
            cursor.execute(f"CREATE SCHEMA {schema}")
    put(bm.sinks.sql(uri, "b.totals"), change("red", 0, 1, 1))
    with sink.database.transaction() as cursor:
        cursor.execute("CREATE TABLE a._beamish_sinks AS SELECT table_name, query_id, batch_id FROM b._beamish_sinks")
        cursor.execute("DROP TABLE b._beamish_sinks")
    put(sink, change("red", 0, 2, 2), batch=1)
    assert ask("SELECT total FROM b.totals") == [(2,)]
    assert ask("SELECT batch_id FROM b._beamish_sinks") == [(1,)]
    assert ask("SELECT batch_id FROM a._beamish_sinks") == []


SWALLOWS = {
    "sqlite": {
        "insert": ["CREATE TRIGGER no BEFORE INSERT ON totals WHEN NEW.team = 'blue' BEGIN SELECT RAISE(IGNORE); END"],
        "delete": ["CREATE TRIGGER no BEFORE DELETE ON totals BEGIN SELECT RAISE(IGNORE); END"],
        "after": [
            "CREATE TRIGGER no AFTER INSERT ON totals WHEN NEW.team = 'blue' BEGIN DELETE FROM totals WHERE team = 'blue'; END"
        ],
    },
    "postgresql": {
        "insert": [
            "CREATE TRIGGER no BEFORE INSERT ON totals FOR EACH ROW WHEN (NEW.team = 'blue') EXECUTE FUNCTION nothing()"
        ],
        "update": ["CREATE TRIGGER no BEFORE UPDATE ON totals FOR EACH ROW EXECUTE FUNCTION nothing()"],
        "delete": ["CREATE TRIGGER no BEFORE DELETE ON totals FOR EACH ROW EXECUTE FUNCTION nothing()"],
        "rule": ["CREATE RULE no AS ON DELETE TO totals DO INSTEAD NOTHING"],
        "deferred": [
            "CREATE CONSTRAINT TRIGGER no AFTER INSERT ON totals DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.team = 'blue') EXECUTE FUNCTION remove()"
        ],
    },
}


@pytest.mark.parametrize(
    ("uri", "how"),
    [
        pytest.param(scheme, how, marks=[pytest.mark.servers] if scheme == "postgresql" else [], id=f"{scheme}-{how}")
        for scheme, hows in SWALLOWS.items()
        for how in hows
    ],
    indirect=["uri"],
)
def test_a_row_that_the_table_swallows_is_noticed(uri, ask, how):
    scheme = uri.partition(":")[0]
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1), change("white", 0, 1, 1))
    with sink.database.transaction() as cursor:
        if scheme == "postgresql":
            body = "$$ BEGIN {} RETURN NULL; END $$ LANGUAGE plpgsql"
            cursor.execute(f"CREATE FUNCTION nothing() RETURNS trigger AS {body.format('')}")
            cursor.execute(
                f"CREATE FUNCTION remove() RETURNS trigger AS {body.format('DELETE FROM totals WHERE team = NEW.team;')}"
            )
        for statement in SWALLOWS[scheme][how]:
            cursor.execute(statement)
    before = ask("SELECT * FROM totals")
    rows = [change("red", 0, 2, 2), change("blue", 0, 1, 3), change("white", 0, 1, 4, deleted=True)]
    with pytest.raises(
        SinkError, match=r"of a batch of 3 changes \d rows were not stored and \d not deleted, though .* a trigger"
    ):
        put(sink, *rows, batch=1)
    assert ask("SELECT * FROM totals") == before


@pytest.mark.parametrize("clause", ["IGNORE", "REPLACE", "FAIL", "ROLLBACK"])
@pytest.mark.parametrize(
    ("constraint", "row", "message"),
    [
        ("UNIQUE (total) ON CONFLICT {}", change("white", 0, 2, 3), "UNIQUE constraint failed: totals.total"),
        ("CHECK (total > 0) ON CONFLICT {}", change("white", 0, 0, 3), "CHECK constraint failed: total > 0"),
        ("", change("white", 0, None, 3), "NOT NULL constraint failed: totals.total"),
    ],
)
def test_a_conflict_clause_of_a_table_neither_ignores_nor_replaces_rows(tmp_path, clause, constraint, row, message):
    uri = f"sqlite:///{tmp_path}/tables.db"
    sink, total = bm.sinks.sql(uri, "totals"), "total INTEGER"
    if constraint:
        constraint = f", {constraint.format(clause)}"
    else:
        total = f"total INTEGER NOT NULL ON CONFLICT {clause} DEFAULT 7"
    with sink.database.transaction() as cursor:
        cursor.execute(
            f"CREATE TABLE totals (team TEXT, window_start TEXT, window_end TEXT, {total}, _sequence INTEGER, "
            f"UNIQUE (team, window_start, window_end){constraint})"
        )
    put(sink, change("red", 0, 1, 1), change("blue", 0, 2, 2))
    with pytest.raises(SinkError, match=rf"{message}; nothing of the batch was written"):
        put(sink, change("green", 0, 9, 3), row, batch=1)
    with sink.database.transaction() as cursor:
        assert rows_of(cursor, "SELECT team, total FROM totals ORDER BY total") == [("red", 1), ("blue", 2)]


@pytest.mark.parametrize(
    ("uri", "statement", "message"),
    [
        ("sqlite", "CREATE VIEW totals AS SELECT 1 AS team", "it is a view"),
        ("duckdb", "CREATE VIEW totals AS SELECT 1 AS team", "it is a view"),
        ("sqlite", "CREATE TABLE totals (team TEXT PRIMARY KEY) WITHOUT ROWID", "it is declared WITHOUT ROWID"),
        ("sqlite", "CREATE VIRTUAL TABLE totals USING fts5(team)", "it is a virtual table"),
        pytest.param("postgresql", "CREATE VIEW totals AS SELECT 1 AS team", "it is a view", marks=pytest.mark.servers),
        pytest.param(
            "postgresql",
            "CREATE MATERIALIZED VIEW totals AS SELECT 1 AS team",
            "it is a materialized view",
            marks=pytest.mark.servers,
        ),
    ],
    indirect=["uri"],
)
def test_a_view_or_a_table_without_row_ids_is_refused(uri, statement, message):
    sink = bm.sinks.sql(uri, "totals")
    with sink.database.transaction() as cursor:
        cursor.execute(statement)
    with pytest.raises(SinkError, match=message):
        put(sink, change("red", 0, 1, 1))


def test_a_rowid_table_with_a_primary_key_is_accepted(tmp_path, request):
    for number, key in enumerate(("TEXT PRIMARY KEY", "INTEGER PRIMARY KEY", "TEXT UNIQUE")):
        sink = bm.sinks.sql(f"sqlite:///{tmp_path}/{number}.db", "totals")
        with sink.database.transaction() as cursor:
            cursor.execute(f"CREATE TABLE totals (team {key})")
            sink.database.check_kind(cursor, sink.table)


@pytest.mark.servers
@pytest.mark.parametrize("uri", ["postgresql"], indirect=True)
def test_a_message_of_postgresql_shows_no_row(uri):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1))
    with sink.database.transaction() as cursor:
        cursor.execute("ALTER TABLE totals ADD note text CHECK (total < 100), ADD other int NOT NULL DEFAULT 4711")
    with pytest.raises(SinkError, match="violates check constraint") as refused:
        put(sink, change("secret", 0, 100, 2), batch=1)
    assert "secret" not in str(refused.value)
    assert "4711" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("state", ["23502", "23505"])
def test_only_details_with_a_key_are_shown(state):
    detail = "Failing row contains (a\nb, 5)." if state == "23502" else "Key (team)=(a) already exists."
    error = RuntimeError(f"INTEGRITY: ERROR:  it violates\nDETAIL:  {detail}\n. SQLSTATE: {state}")
    error.sqlstate, error.details = state, [("PG_DIAG_MESSAGE_DETAIL", detail.encode())]
    said = bm.sinks.sql("postgresql://here/db", "totals").database.words(error)
    assert (detail in said) == (state == "23505")
    assert "it violates" in said


def test_a_table_of_the_first_version_with_a_nan_key_is_refused(tmp_path):
    """It stored NaN as null, which the text 'NaN' does not find."""
    schema = pa.schema([("price", pa.float64()), *list(SCHEMA)[3:]])
    rows = [{"price": price, "total": 1, SEQUENCE: 1, "_deleted": False} for price in (float("nan"), 1.5)]
    batches = [
        net(*(row | {SEQUENCE: number} for row in rows), schema=schema, identity=("price",)) for number in (1, 2)
    ]
    for number, fix in enumerate((r"run (UPDATE \S+ SET \S+ = 'NaN' WHERE \S+ IS NULL)", r"null, (ALTER .*)")):
        sink = bm.sinks.sql(f"sqlite:///{tmp_path}/{number}.db", "totals")
        sink.write(batches[0], FIRST)
        with sink.database.transaction() as cursor:  # as version 8f02d71
            cursor.execute("UPDATE totals SET price = NULL WHERE price = 'NaN'")
            cursor.execute("CREATE TABLE marks AS SELECT table_name, query_id, batch_id FROM _beamish_sinks")
            cursor.execute("DROP TABLE _beamish_sinks")
            cursor.execute("ALTER TABLE marks RENAME TO _beamish_sinks")
        with pytest.raises(
            SinkError, match="key column 'price' has nulls, and an earlier version of beamish wrote NaN as null"
        ) as refused:
            sink.write(batches[1], Mark("a query", 1))
        with sink.database.transaction() as cursor:
            for statement in re.search(fix, str(refused.value))[1].split("; "):
                cursor.execute(statement)
        sink.write(batches[1], Mark("a query", 1))
        with sink.database.transaction() as cursor:
            found = rows_of(cursor, "SELECT price, _sequence FROM totals")
        expected = [(1.5, 2), ("NaN", 2)] if number == 0 else [(1.5, 2), ("NaN", 2), (None, 1)]
        assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "stats.a\0b", "_beamish_sinks", "stats._BEAMISH_STAGE"])
def test_names_that_no_database_reads_are_refused(name):
    with pytest.raises(OptionError, match=r"without the character NUL|are tables of the sink"):
        bm.sinks.sql("duckdb:///a.db", name)


def test_a_column_name_with_nul_is_refused(uri):
    with pytest.raises(ColumnError, match=r"column 'a.x00b': a name must be Unicode text without the character NUL"):
        bm.sinks.sql(uri, "totals").database.check(TableName(None, "totals"), ["a\0b"])


@pytest.mark.dear
@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_queries_write_their_tables_of_one_file_side_by_side(tmp_path, scheme):
    """In SQLite a transaction that began by reading was refused where another one was writing; in DuckDB one overwrote the other's."""
    uri = f"{scheme}:///{tmp_path}/tables.db"

    def write(table):
        for batch in range(40):
            put(bm.sinks.sql(uri, table), change("red", batch, batch, batch + 1), batch=batch)

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, ["one", "other"]))
    with bm.sinks.sql(uri, "one").database.transaction() as cursor:
        assert rows_of(cursor, "SELECT (SELECT count(*) FROM one), (SELECT count(*) FROM other)") == [(40, 40)]


CONNECT = {
    "sqlite": partial(sqlite3.connect, timeout=30),
    "duckdb": duckdb.connect,
}


@pytest.mark.dear  # writes many batches
@pytest.mark.parametrize("scheme", CONNECT)
def test_a_file_is_used_in_the_same_process_while_it_is_written(tmp_path, scheme):
    """Two copies of SQLite, or two instances of DuckDB, in one process destroyed it."""
    path = tmp_path / "tables.db"
    sink = bm.sinks.sql(f"{scheme}:///{path}", "totals")
    put(sink, change("red", 0, 0, 1))
    with closing(CONNECT[scheme](path)) as database:
        database.execute("CREATE TABLE notes (n INTEGER)")
        database.commit()
    done, written = Event(), 0

    def use():
        nonlocal written
        with closing(CONNECT[scheme](path)) as database:
            while not done.is_set():
                ((rows,),) = database.execute("SELECT count(*) FROM totals").fetchall()
                assert rows % 20 == 1
                database.execute("INSERT INTO notes VALUES (1)")
                database.commit()
                written += 1

    with ThreadPoolExecutor() as pool:
        using = pool.submit(use)
        try:
            for batch in range(1, 40):
                put(sink, *(change("red", 60 * (20 * batch + row), 1, 2) for row in range(20)), batch=batch)
        finally:
            done.set()
        using.result()
    with closing(CONNECT[scheme](path)) as database:
        counts = "SELECT (SELECT count(*) FROM totals), (SELECT count(*) FROM notes)"
        assert database.execute(counts).fetchall() == [(39 * 20 + 1, written)]


def test_an_open_transaction_of_the_same_process_loses_nothing(tmp_path):
    """DuckDB: what was committed between its begin and its commit was overwritten."""
    sink = bm.sinks.sql(f"duckdb:///{tmp_path}/tables.db", "totals")
    put(sink, change("red", 0, 1, 1))
    with closing(duckdb.connect(tmp_path / "tables.db")) as database:
        database.begin()
        database.execute("CREATE TABLE another (n INTEGER)")
        put(sink, change("blue", 0, 1, 1), batch=1)
        database.commit()
        assert database.execute("SELECT team FROM totals ORDER BY team").fetchall() == [("blue",), ("red",)]


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    for scheme in ("sqlite", "duckdb"):
        with pytest.raises(SinkError, match=r"the folder '.*/none' does not exist; create it first"):
            put(bm.sinks.sql(f"{scheme}:///{tmp_path}/none/a.db", "totals"), change("red", 0, 1, 1))


def test_a_failed_batch_writes_nothing(uri, ask):
    sink = bm.sinks.sql(uri, "totals")
    put(sink, change("red", 0, 1, 1))
    broken = bm.sinks.sql(uri, "totals")
    statements = type(broken.database).merge

    def merge(*arguments, **options):
        yield from statements(*arguments, **options)
        yield "SELECT nothing FROM nowhere"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(broken.database), "merge", merge)
        with pytest.raises(SinkError, match="nothing of the batch was written"):
            put(broken, change("red", 0, 2, 2), change("blue", 0, 1, 1), batch=1)
    assert ask("SELECT team, total FROM totals") == [("red", 1)]
    put(sink, change("red", 0, 2, 2), change("blue", 0, 1, 1), batch=1)
    assert ask("SELECT team, total FROM totals") == [("blue", 1), ("red", 2)]


def test_a_type_that_no_database_has_is_refused(uri):
    schema = pa.schema([*SCHEMA, ("took", pa.duration("us"))])
    with pytest.raises(ColumnError, match="column 'took' is duration"):
        bm.sinks.sql(uri, "totals").write(net(change("red", 0, 1, 1), schema=schema), FIRST)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uri": "mysql://here/db"}, "uri='mysql://here/db': must be a text such as 'postgresql://"),
        ({"uri": "sqlite://:memory:"}, "must name a file"),
        ({"uri": "duckdb::memory:"}, "an in-memory database would be lost"),
        ({"uri": 3}, "uri=3: must be a text"),
        ({"table": ""}, "table='': must be a name"),
        ({"table": "a.b.c"}, "must be a name such as"),
        ({"table": 'a."b'}, "must be a name such as"),
        ({"table": "a.b"}, "SQLite has no schemas"),
        ({"keep_deleted": 1}, "keep_deleted=1"),
    ],
)
def test_options_that_break_a_rule_are_refused_at_once(options, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        bm.sinks.sql(**({"uri": "sqlite:///a.db", "table": "totals"} | options))


def test_a_driver_that_is_not_installed_is_named_with_the_line_that_installs_it(monkeypatch, tmp_path):
    sink = bm.sinks.sql(f"duckdb:///{tmp_path}/a.db", "totals")
    monkeypatch.setattr(type(sink.database), "driver", "driver_nowhere")
    words = r"DuckDB is not installed .*: pip install 'duckdb>=1.4' .*the extra 'duckdb'."
    with pytest.raises(SinkError, match=words):
        put(sink, change("red", 0, 1, 1))


def test_a_password_is_not_shown():
    assert "secret" not in repr(bm.sinks.sql("postgresql://ann:secret@127.0.0.1/db", "totals"))


def test_a_sink_is_a_value():
    import pickle

    sink = bm.sinks.sql("sqlite:///a.db", '"by.hour"')
    assert pickle.loads(pickle.dumps(sink)) == sink
    assert sink.table.name == "by.hour"


def test_a_table_in_a_schema_is_found_there_and_its_mark_beside_it(uri, ask):
    if uri.startswith("sqlite"):
        with pytest.raises(OptionError, match="SQLite has no schemas"):
            bm.sinks.sql(uri, "stats.totals")
        return
    sink = bm.sinks.sql(uri, 'stats."by.team"')
    with pytest.raises(SinkError, match=r"(?s)'stats' does not exist; create it: CREATE SCHEMA \"stats\""):
        put(sink, change("red", 0, 1, 1))
    with sink.database.transaction() as cursor:
        cursor.execute("CREATE SCHEMA stats")
    for batch in range(2):
        put(sink, change("red", 0, 1, 1), change("red", 0, batch, batch + 2), batch=batch)
    assert ask('SELECT team, total FROM stats."by.team"') == [("red", 1)]
    assert ask("SELECT table_name, batch_id FROM stats._beamish_sinks") == [("by.team", 1)]


def test_special_column_names_are_quoted(uri, ask):
    names = ["select", "a b", 'quo"te', "Größe", "order"]
    schema = pa.schema([*((name, pa.int64()) for name in names), *SCHEMA])
    row = change("red", 0, 1, 1) | {name: number for number, name in enumerate(names)}
    sink = bm.sinks.sql(uri, "odd names")
    for sequence in (1, 2):
        rows = net(row | {SEQUENCE: sequence}, schema=schema, identity=(*names, *IDENTITY))
        sink.write(rows, Mark("q", sequence - 1))
    assert ask('SELECT "select", "a b", "quo""te", "Größe", "order", _sequence FROM "odd names"') == [
        (0, 1, 2, 3, 4, 2)
    ]
