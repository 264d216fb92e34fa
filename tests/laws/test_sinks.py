"""Laws of databases (beamish/sinks/databases/database.py), for those that are a file; in SQLite for most draws, which is quick."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

import beamish as bm
from beamish.kernels.upserts import Mark
from beamish.sinks.sql import SqlSink, marked
from tests.cost import cost
from tests.sinks.conftest import change, net
from tests.sinks.identities import changes, check

rows = st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([0, 60, None]), st.integers(0, 9), st.booleans())
batches = st.lists(st.lists(rows, max_size=6), max_size=4)
schemes = st.sampled_from(["sqlite"] * 7 + ["duckdb"])
files = cost(3)  # each opens its file a dozen times


@files
@given(schemes, batches, st.booleans())
def test_after_a_batch_the_table_holds_of_each_identity_the_row_with_the_greatest_sequence(scheme, drawn, keep_deleted):
    with new_table(scheme, keep_deleted=keep_deleted) as sink:
        live, number = {}, 0
        for batch, changes in enumerate(drawn):
            for team, start, total, deleted in changes:
                live[team, start] = None if deleted else total
            put(sink, batch, changes, number)
            number += len(changes)
            expected = [(team, start is None, total) for (team, start), total in live.items() if total is not None]
            assert held(sink) == sorted(expected, key=repr)
            with sink.database.transaction() as cursor:
                table = sink.database.resolve(cursor, sink.table)
                last = marked(cursor, sink.database, table, [], exists=True).last
                assert last.contents == sink.database.contents(cursor, table)


@files
@given(schemes, batches, st.booleans())
def test_a_batch_that_is_written_again_or_was_rolled_back_changes_nothing(scheme, drawn, keep_deleted):
    with new_table(scheme, keep_deleted=keep_deleted) as sink:
        number = 0
        for batch, changes in enumerate(drawn):
            before = held(sink) if batch else []
            break_off(sink, batch, changes, number)
            assert not batch or held(sink) == before
            put(sink, batch, changes, number)
            after = held(sink)
            put(sink, batch, changes, number)
            assert held(sink) == after
            number += len(changes)


@files
@given(schemes, changes())
@example(
    "sqlite", (pa.int32(), [[(1, False), (2, False), (None, False)], [(2, False), (None, False)]])
)  # a null key was a number
@example("sqlite", (pa.float64(), [[(None, False), (float("nan"), False)]]))
def test_two_identities_are_two_rows_of_each_type(scheme, drawn):
    with new_table(scheme, keep_deleted=False) as sink:
        check(sink, *drawn)


@contextmanager
def new_table(scheme: str, *, keep_deleted: bool) -> Iterator[SqlSink]:
    with tempfile.TemporaryDirectory() as folder:
        yield bm.sinks.sql(f"{scheme}:///{folder}/totals.db", "totals", keep_deleted=keep_deleted)


def put(sink: SqlSink, batch: int, changes, number: int) -> None:
    numbered = [
        change(team, start, total, number + place, deleted=deleted)
        for place, (team, start, total, deleted) in enumerate(changes)
    ]
    sink.write(net(*numbered), Mark("a query", batch))


def break_off(sink: SqlSink, batch: int, changes, number: int) -> None:
    """Put a batch up to its first statement; the transaction ends there."""
    kind = type(sink.database)
    statements = kind.merge

    def merge(*arguments, **options):
        yield from list(statements(*arguments, **options))[:1]
        raise InterruptedError

    kind.merge = merge  # type: ignore[method-assign]
    try:
        put(sink, batch, changes, number)
    except InterruptedError:
        pass
    finally:
        kind.merge = statements  # type: ignore[method-assign]


def held(sink: SqlSink):
    with sink.database.transaction() as cursor:
        where = " WHERE NOT _deleted" if sink.keep_deleted else ""
        cursor.execute(f"SELECT team, window_end IS NULL, total FROM totals{where}")
        return sorted(((team, bool(whole), total) for team, whole, total in cursor.fetchall()), key=repr)
