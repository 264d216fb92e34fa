"""bm.VersionedTable: validity, expiry, and files."""

from __future__ import annotations

import itertools
import logging
import re
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import beamish as bm
from beamish.instants import EPOCH
from beamish.versioned_table import table as versioned_table
from tests.rubbish.python_values import FAMILIES, TOGETHER

SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)


def at(seconds):
    return EPOCH + seconds * SECOND


def seconds(time):
    return None if time is None else (time - EPOCH) / SECOND


def plain(version):
    """Value, valid_from and valid_to in seconds."""
    return None if version is None else (version.value, seconds(version.valid_from), seconds(version.valid_to))


def values(versions):
    return [version.value for version in versions]


@pytest.fixture
def table():
    with bm.VersionedTable(100) as opened:
        yield opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rates.table"


def test_the_worked_example(table):
    puts = [table.put("EUR", value, ts) for value, ts in [(1, 10), (3, 30), (2, 20)]]
    assert [seconds(put.valid_to) for put in puts] == [None, None, 30]
    assert plain(table.delete("EUR", 25)) == (2, 20, 30)
    assert plain(table.get("EUR", 24)) == (2, 20, 25)
    assert table.get("EUR", 27) is None
    assert seconds(table.put("USD", 4, 125).valid_to) is None
    assert table.put("EUR", 5, 24) is None
    assert [plain(table.get("EUR", as_of)) for as_of in (24, 25, 30)] == [None, None, (3, 30, None)]
    assert table.dropped == 1


# Reads.


def test_an_empty_table_has_no_versions(table):
    assert table.stream_time is None
    assert table.oldest is None
    assert table.get("EUR") is None
    assert table.get("EUR", 5) is None
    assert table.versions("EUR") == []
    assert table.delete("EUR", 5) is None


def test_a_version_is_valid_from_its_time_until_before_the_next(table):
    table.load([("EUR", 1, 10), ("EUR", 2, 20)])
    assert table.get("EUR", at(10) - MICROSECOND) is None
    assert table.get("EUR", at(10)) == bm.Version(1, at(10), at(20))
    assert table.get("EUR", at(20) - MICROSECOND).value == 1
    assert table.get("EUR", at(20)) == bm.Version(2, at(20), None)


def test_a_read_may_lie_ahead_of_the_stream_time(table):
    table.put("EUR", 1, 10)
    assert plain(table.get("EUR", 10**9)) == (1, 10, None)
    assert table.stream_time == at(10)


def test_a_read_is_exact_as_far_back_as_the_history_to_the_microsecond(table):
    table.load([("EUR", 1, 10), ("EUR", 2, 20), ("USD", 1, 119)])
    assert table.oldest == at(19)
    assert table.get("EUR", at(19)).value == 1
    assert table.get("EUR", at(19) - MICROSECOND) is None


def test_before_oldest_only_latest_versions_are_returned(table):
    table.load([("EUR", 1, 10), ("EUR", 2, 20), ("USD", 1, 1000)])
    assert plain(table.get("EUR", 20)) == (2, 20, None)
    assert table.get("EUR", at(20) - MICROSECOND) is None


def test_a_latest_version_never_expires(table):
    table.put("EUR", 1, 10)
    table.advance_to(10**9)
    assert plain(table.get("EUR")) == (1, 10, None)
    assert plain(table.get("EUR", 10)) == (1, 10, None)


def test_versions_are_those_valid_at_any_instant_of_both_bounds_included(table):
    table.load([("EUR", 1, 10), ("EUR", 2, 20), ("EUR", None, 30), ("EUR", 3, 40)])
    assert [plain(version) for version in table.versions("EUR")] == [(1, 10, 20), (2, 20, 30), (3, 40, None)]
    assert values(table.versions("EUR", 20, 40)) == [2, 3]
    assert [plain(version) for version in table.versions("EUR", 15, 20)] == [(1, 10, 20), (2, 20, 30)]
    assert values(table.versions("EUR", at(20) - MICROSECOND, at(40) - MICROSECOND)) == [1, 2]
    assert values(table.versions("EUR", 30, 39)) == []
    assert values(table.versions("EUR", until=9)) == []
    assert values(table.versions("EUR", since=50)) == [3]
    assert values(table.versions("EUR", 15, 15)) == [1]
    assert values(table.versions("EUR", newest_first=True)) == [3, 2, 1]


def test_versions_begin_at_oldest_and_earlier_ones_agree_with_get(table):
    table.load([("USD", 1, 5), ("GBP", 1, 9), ("EUR", 1, 10), ("GBP", None, 11), ("EUR", 2, 20), ("EUR", 3, 121)])
    assert table.oldest == at(21)
    assert values(table.versions("EUR", since=12)) == [2, 3]
    assert values(table.versions("EUR", until=20)) == []
    assert values(table.versions("USD", until=20)) == [1]
    assert values(table.versions("USD", until=4)) == []
    assert values(table.versions("GBP", 10, 10)) == []


def test_a_latest_version_is_not_returned_before_its_start(table):
    table.load([("EUR", 1, 10), ("EUR", 2, 200)])
    assert table.get("EUR", 15) is None
    assert table.versions("EUR", until=15) == []


# Writes.


def test_a_write_replaces_one_with_the_same_key_and_time(table):
    table.load([("EUR", 1, 10), ("EUR", 2, 10)])
    assert values(table.versions("EUR")) == [2]
    assert plain(table.delete("EUR", 10)) == (2, 10, None)
    assert table.versions("EUR") == []
    assert table.put("EUR", 3, 10) == bm.Validity(at(10), None)
    assert values(table.versions("EUR")) == [3]


def test_a_late_write_ends_where_the_next_change_is_be_it_a_delete(table):
    table.delete("EUR", 30)
    assert table.put("EUR", 1, 10) == bm.Validity(at(10), at(30))
    assert table.put("EUR", None, 20) == bm.Validity(at(20), at(30))
    assert [plain(version) for version in table.versions("EUR")] == [(1, 10, 20)]


def test_a_write_just_before_the_latest_ends_where_that_begins(table):
    table.put("EUR", 1, 10)
    assert table.put("EUR", 2, at(10) - MICROSECOND) == bm.Validity(at(10) - MICROSECOND, at(10))


def test_a_write_past_the_lateness_changes_nothing_moves_no_time_and_is_counted():
    with bm.VersionedTable(100, allowed_lateness=10) as table:
        table.put("EUR", 1, 50)
        assert table.put("EUR", 2, at(40)) is not None
        assert table.put("EUR", 3, at(40) - MICROSECOND) is None
        assert table.delete("EUR", at(40) - MICROSECOND) is None
        assert values(table.versions("EUR")) == [2, 1]
        assert (table.stream_time, table.dropped) == (at(50), 2)


def test_a_delete_that_is_refused_gives_nothing_though_a_read_does():
    with bm.VersionedTable(100, allowed_lateness=10) as table:
        table.load([("EUR", 1, 30), ("EUR", 2, 50)])
        assert table.delete("EUR", 35) is None
        assert table.get("EUR", 35).value == 1


def test_a_delete_of_a_missing_key_advances_time_and_outlives_earlier_writes(table):
    assert table.delete("EUR", 200) is None
    assert table.stream_time == at(200)
    assert table.put("EUR", 1, 99) is None
    assert seconds(table.put("EUR", 1, 100).valid_to) == 200
    assert table.get("EUR") is None


def test_null_empty_and_0_within_values_are_values(table):
    for ts, value in enumerate(["", 0, False, [], {}, (None,), 0.0]):
        table.put("x", value, ts)
        assert table.get("x").value == value
        assert type(table.get("x").value) is type(value)


def test_values_are_copied_in_and_out(table):
    value = {"rates": [1, 2], "at": datetime(2024, 1, 1, tzinfo=UTC)}
    table.put("EUR", value, 10)
    value["rates"].append(3)
    table.get("EUR").value["rates"].append(4)
    assert table.get("EUR").value == {"rates": [1, 2], "at": datetime(2024, 1, 1, tzinfo=UTC)}


def test_keys_that_are_equal_are_one_key(table):
    table.load([(1, "one", 10), (True, "two", 20), ("1", "text", 10), ((1, "x"), "pair", 10)])
    assert values(table.versions(1.0)) == ["one", "two"]
    assert table.get("1").value == "text"
    assert table.get((True, "x")).value == "pair"


def test_aware_datetimes_and_seconds_are_the_same_times(table):
    table.put("EUR", 1, datetime(2024, 1, 1, tzinfo=UTC))
    assert table.get("EUR", 1704067200).valid_from == datetime(2024, 1, 1, tzinfo=UTC)
    assert table.get("EUR", 1704067199.999999) is None


def test_the_first_and_the_last_years_are_times(table):
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    table.load([("EUR", 1, first), ("EUR", 2, last)])
    assert table.get("EUR", last) == bm.Version(2, last, None)
    assert table.oldest == last - 100 * SECOND
    with bm.VersionedTable("100000 weeks") as longest:
        longest.load([("EUR", 1, first), ("EUR", 2, first + SECOND)])
        assert longest.get("EUR", first) == bm.Version(1, first, first + SECOND)
        assert longest.oldest == first, "the nearest time that there is"


def test_advancing_moves_time_and_never_back(table):
    table.put("EUR", 1, 10)
    table.advance_to(300)
    table.advance_to(200)
    assert (table.stream_time, table.oldest) == (at(300), at(200))
    assert table.put("EUR", 2, 199) is None


@pytest.mark.parametrize("chunk", [1, 2, 10_000])
def test_load_replays_in_order_and_returns_the_number_of_refused_changes(table, monkeypatch, chunk):
    monkeypatch.setattr(versioned_table, "_CHUNK", chunk)
    changes = [("EUR", 1, 10), ("EUR", 2, 10), ("USD", 1, 200), ("EUR", 3, 99), ("EUR", 4, 100), ("USD", None, 150)]
    assert table.load(iter(changes)) == 1
    assert (table.dropped, table.stream_time) == (0, at(200))
    assert [plain(version) for version in table.versions("EUR")] == [(4, 100, None)]
    assert [plain(version) for version in table.versions("USD")] == [(1, 200, None)]
    assert table.load([("EUR", 5, 200), ("EUR", 6, 200)]) == 0
    assert [plain(version) for version in table.versions("EUR")] == [(4, 100, 200), (6, 200, None)]


@pytest.mark.parametrize("chunk", [1, 2, 10_000])
def test_load_writes_all_or_nothing(table, monkeypatch, chunk):
    monkeypatch.setattr(versioned_table, "_CHUNK", chunk)
    table.load([("EUR", 1, 10), ("EUR", 2, 20)])
    with pytest.raises(bm.OptionError, match="#2"):
        table.load([("EUR", 3, 500), ("EUR", 4, 600), ("EUR", object(), 700)])
    assert table.stream_time == at(20)
    assert values(table.versions("EUR")) == [1, 2]
    table.put("EUR", 3, 30)
    assert values(table.versions("EUR")) == [1, 2, 3]


# Expiry.


def rows(table):
    return table._store._connection.execute("SELECT key, at_us / 1000000 FROM changes ORDER BY key, at_us").fetchall()


def test_versions_that_ended_before_oldest_expire_by_segments():
    with bm.VersionedTable(100, segment=10) as table:
        table.load([("EUR", 1, 5), ("EUR", 2, 15), ("EUR", 3, 25), ("GBP", 1, 7), ("GBP", None, 12), ("USD", 1, 119)])
        assert len(rows(table)) == 6
        table.advance_to(at(120) - MICROSECOND)
        assert len(rows(table)) == 6
        table.advance_to(120)
        assert rows(table) == [("EUR", 15), ("EUR", 25), ("USD", 119)]
        table.put("USD", 2, 135)
        assert rows(table) == [("EUR", 25), ("USD", 119), ("USD", 135)]


def test_puts_deletes_and_loads_expire_alike():
    for move in (
        lambda table: table.put("USD", 1, 500),
        lambda table: table.delete("USD", 500),
        lambda table: table.load([("USD", 1, 500)]),
        lambda table: table.advance_to(500),
    ):
        with bm.VersionedTable(100, segment=10) as table:
            table.load([("EUR", 1, 5), ("EUR", 2, 15), ("EUR", 3, 25)])
            move(table)
            assert [row for row in rows(table) if row[0] == "EUR"] == [("EUR", 25)]


def test_a_long_load_forgets_as_it_goes_and_writes_nothing_again(monkeypatch):
    monkeypatch.setattr(versioned_table, "_CHUNK", 2)
    with bm.VersionedTable(100, segment=10) as table:
        table.load([("EUR", None, 25), ("USD", 1, 500), ("USD", 2, 501)])
        assert rows(table) == [("USD", 500), ("USD", 501)]


@pytest.mark.parametrize(
    ("history", "segment"),
    [
        ("0 seconds", "2 seconds"),
        ("5 seconds", "2 seconds"),
        ("1 minute", "20 seconds"),
        ("61 seconds", "20 seconds"),
        ("5 minutes", "1 minute"),
        ("6 minutes", "1 minute"),
        ("1 hour", "5 minutes"),
        ("61 minutes", "5 minutes"),
        ("1 day", "1 hour"),
    ],
)
def test_a_segment_is_as_long_as_the_history_has_it(history, segment):
    assert str(bm.VersionedTable(history).segment) == segment


# The whole table.


def test_a_whole_table_has_the_versions_valid_since_oldest_or_at_a_time(table):
    table.load([("USD", 1, 5), ("GBP", 1, 5), ("EUR", 1, 10), ("EUR", 2, 20), ("GBP", None, 30), ("EUR", 3, 130)])
    whole = table.to_arrow()
    assert whole.schema.field("valid_from").type == whole.schema.field("valid_to").type == pa.timestamp("us", "UTC")
    assert whole.to_pylist() == [
        {"key": "EUR", "value": 2, "valid_from": at(20), "valid_to": at(130)},
        {"key": "EUR", "value": 3, "valid_from": at(130), "valid_to": None},
        {"key": "USD", "value": 1, "valid_from": at(5), "valid_to": None},
    ]
    assert table.to_arrow(30).column("value").to_pylist() == [2, 1]
    assert table.to_arrow(130).column("value").to_pylist() == [3, 1]
    with pytest.raises(bm.OptionError, match="before oldest"):
        table.to_arrow(at(30) - MICROSECOND)


def test_an_empty_table_has_no_rows(table):
    assert table.to_arrow().num_rows == 0
    assert table.to_arrow(5).column_names == ["key", "value", "valid_from", "valid_to"]


def test_a_whole_table_has_keys_and_values_of_arrow(table):
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    table.load([((1.0, 2), {"rate": 1.5}, 10), ((3, 4), {"rate": None, "at": noon}, 10)])
    whole = table.to_arrow()
    assert whole.column("key").to_pylist() == [[1, 2], [3, 4]]
    assert whole.column("value").to_pylist() == [{"rate": 1.5, "at": None}, {"rate": None, "at": noon}]


def test_a_key_is_as_it_was_written_with_the_version(table):
    table.load([(1.0, "a", 10), (2, "b", 10), (2.5, "c", 10)])
    assert table.to_arrow().schema.field("key").type == pa.float64()
    table.load([(1, "a", 10), (2.5, None, 10)])
    assert table.to_arrow().schema.field("key").type == pa.int64()


@pytest.mark.parametrize(
    ("keys", "values", "fragments"),
    [
        ([1, "a"], [1, 1], ["'key'", "int and str"]),
        (["a", b"a"], [1, 1], ["'key'", "str and bytes"]),
        (["a", "b"], [1, "x"], ["'value'", "int and str", "version 1", "version 2"]),
        (["a", "b"], [[date(2024, 1, 1)], [datetime(2024, 1, 1, tzinfo=UTC)]], ["'value'", "date and datetime"]),
        (["a", "b"], [[1], ["x"]], ["'value'", "of one type"]),
        (["a", "b"], [{"x": 1}, {2: 1}], ["'value'", "of one type"]),
        (["a", "b"], [1, 2**70], ["'value'", "of one type"]),
    ],
)
def test_values_without_a_common_type_are_rejected(table, keys, values, fragments):
    table.load([(key, value, 10) for key, value in zip(keys, values, strict=True)])
    with pytest.raises(bm.ColumnError) as refused:
        table.to_arrow()
    for fragment in fragments:
        assert fragment in str(refused.value)


@pytest.mark.parametrize("column", ["key", "value"])
def test_two_types_in_a_column_of_arrow_are_kept_or_rejected(column):
    names = [name for name in FAMILIES if name != "time" and (column == "value" or name not in ("list", "dict"))]
    for first, second in itertools.permutations(names, 2):
        one, other = FAMILIES[first].pairs[0][1], FAMILIES[second].pairs[1][1]
        if one == other:  # one key
            continue
        with bm.VersionedTable("1 day") as table:
            pair = [(one, 1), (other, 2)] if column == "key" else [("a", one), ("b", other)]
            table.load([(key, value, 10) for key, value in pair])
            if frozenset({first, second}) in TOGETHER:
                assert set(table.to_arrow()[column].to_pylist()) == {one, other}
                continue
            with pytest.raises(bm.ColumnError, match=f"column '{column}': values of different types, "):
                table.to_arrow()


@pytest.mark.parametrize("null", [pd.NaT, pd.NA, np.datetime64("NaT")], ids=repr)
def test_null_like_values_delete_and_are_refused_as_keys_and_times(table, null):
    table.put("a", 1, 10)
    table.put("a", null, 20)
    assert (table.get("a"), table.get("a", as_of=19).value) == (None, 1)
    for call in (
        lambda: table.put(null, 1, 10),
        lambda: table.get(null),
        lambda: table.delete(null, 10),
        lambda: table.versions(null),
        lambda: table.put("a", 1, null),
        lambda: table.get("a", as_of=null),
        lambda: table.load([("a", 1, 10), ("a", 1, null)]),
    ):
        with pytest.raises(bm.OptionError, match=str(null)):
            call()


def test_numbers_and_times_of_numpy_and_pandas_are_pythons(table):
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    table.put(np.int64(1), pd.Timestamp(noon), np.float64(10))
    table.put(pd.Timestamp(noon), np.float32(0.5), 10)
    assert (table.get(1).value, table.get(noon).value) == (noon, 0.5)
    assert type(table.get(1).value) is datetime
    for value in (pd.Timestamp(1, tz="UTC"), np.longdouble(1), np.datetime64(1, "ns")):
        with pytest.raises(bm.OptionError, match="put"):
            table.put("a", value, 10)
        with pytest.raises(bm.OptionError, match="put"):
            table.put(value, 1, 10)


@pytest.mark.parametrize(
    ("history", "lag_ms"), [(0, "86400000"), ("1 day", "172800000"), ("1 microsecond", "86400001"), (0.001, "86400001")]
)
def test_a_topic_keeps_all_changes_for_the_history_and_a_day(history, lag_ms):
    settings = {"cleanup.policy": "compact", "min.compaction.lag.ms": lag_ms}
    assert bm.VersionedTable(history).topic_config() == settings


# Logging.


def test_the_first_read_before_oldest_without_an_answer_is_logged(table, caplog):
    table.load([("EUR", 1, 10), ("EUR", 2, 20), ("USD", 1, 1000)])
    with caplog.at_level(logging.WARNING, "beamish"):
        table.get("EUR", 900)
        table.get("EUR", 20)
        table.versions("EUR", since=5)
        assert not caplog.records
        table.get("EUR", 15)
        table.get("EUR", 15)
        table.versions("EUR", until=15)
    assert len(caplog.records) == 1
    for fragment in ("VersionedTable('100 seconds')", "1970-01-01T00:00:15", "1970-01-01T00:15:00", "longer history"):
        assert fragment in caplog.text


def test_versions_before_oldest_without_an_answer_are_logged_once_a_table(caplog):
    for _ in range(2):
        with bm.VersionedTable(100) as table:
            table.put("USD", 1, 1000)
            table.versions("EUR", until=15)
    assert len(caplog.records) == 2


# Closing.


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.put("EUR", 1, 10),
        lambda table: table.delete("EUR", 10),
        lambda table: table.get("EUR"),
        lambda table: table.versions("EUR"),
        lambda table: table.load([]),
        lambda table: table.advance_to(10),
        lambda table: table.to_arrow(),
        lambda table: table.topic_config(),
        lambda table: table.__enter__(),
    ],
)
def test_a_call_after_close_is_refused(call):
    table = bm.VersionedTable(100)
    table.put("EUR", 1, 10)
    table.close()
    table.close()
    with pytest.raises(bm.ClosedError, match=r"VersionedTable\('100 seconds'\) is closed; open it again"):
        call(table)
    with ThreadPoolExecutor(1) as other, pytest.raises(bm.ClosedError):
        other.submit(table.get, "EUR").result(timeout=60)
    assert (table.stream_time, table.oldest, table.dropped) == (at(10), at(-90), 0)


def test_a_context_closes_its_table_even_where_it_fails(path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), bm.VersionedTable(100, path=path) as table:
            table.put("EUR", 1, 1 / 0)
    with pytest.raises(bm.ClosedError):
        table.get("EUR")


# Files.


def reopened(path, history=100, **options):
    return bm.VersionedTable(history, path=path, **options)


def test_a_reopened_file_continues(path):
    with reopened(path) as table:
        table.load([("EUR", 1, 10), ("EUR", 2, 20)])
        table.advance_to(50)
        assert table.put("EUR", 1, -60) is None
    with reopened(str(path)) as table:
        assert (table.stream_time, table.oldest, table.dropped) == (at(50), at(-50), 0)
        assert values(table.versions("EUR")) == [1, 2]
        table.put("EUR", 3, 60)
    with reopened(path) as table:
        assert values(table.versions("EUR")) == [1, 2, 3]
        assert table.stream_time == at(60)
    assert [file.name for file in path.parent.iterdir()] == [path.name], "nothing lies beside a closed file"


def test_with_a_longer_history_oldest_waits_for_time_to_catch_up(path):
    with reopened(path, 10) as table:
        table.load([("EUR", 1, 10), ("EUR", None, 20), ("EUR", 2, 100)])
    with reopened(path, 50) as table:
        assert table.oldest == at(90)
        assert table.put("EUR", 3, 89) is None, "it would seem to be valid after 20"
        assert table.get("EUR", 60) is None
        assert table.put("EUR", 3, 90) is not None
        table.advance_to(140)
        assert table.oldest == at(90)
    with reopened(path, 1000) as table:
        assert table.oldest == at(90)
        table.advance_to(1091)
        assert table.oldest == at(91)


def test_with_a_shorter_history_oldest_moves_at_once_and_not_back(path):
    with reopened(path, 100) as table:
        table.load([("EUR", 1, 10), ("EUR", 2, 20), ("EUR", 3, 100)])
    with reopened(path, 10) as table:
        assert table.oldest == at(90)
        assert values(table.versions("EUR")) == [2, 3]
        assert table.get("EUR", 15) is None
    with reopened(path, 100) as table:
        assert table.oldest == at(90)


def test_a_file_in_use_is_refused_and_not_touched(path):
    with reopened(path) as table:
        table.put("EUR", 1, 10)
        with pytest.raises(bm.StateError, match=r"in use.*close"):
            reopened(path)
        table.put("EUR", 2, 20)
        assert values(table.versions("EUR")) == [1, 2]
    reopened(path).close()


def test_a_file_of_something_else_is_refused_and_not_changed(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE changes (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(bm.StateError, match="another SQLite database"):
        reopened(path)
    assert path.read_bytes() == before


def test_a_file_of_another_format_is_refused(path):
    reopened(path).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 2")
    other.close()
    with pytest.raises(bm.StateError, match=r"format 2, .* format 1; open it with the version that wrote it"):
        reopened(path)


def test_a_file_that_is_not_a_database_is_rejected(path):
    path.write_text("EUR,1.08\n" * 1000)
    with pytest.raises(bm.StateError, match="not a versioned table; give another path"):
        reopened(path)


def test_an_invalid_path_is_rejected(tmp_path):
    with pytest.raises(bm.StateError, match=r"cannot be opened.*folder must exist"):
        reopened(tmp_path / "nowhere" / "table")
    with pytest.raises(bm.StateError, match="cannot be opened"):
        reopened(tmp_path)


def test_an_empty_file_becomes_a_table(path):
    path.touch()
    with reopened(path) as table:
        table.put("EUR", 1, 10)
    with reopened(path) as table:
        assert table.get("EUR").value == 1


def test_sqlite_errors_become_state_errors(path):
    with reopened(path, segment=1) as table:
        table.put("EUR", 1, 10)
        table._store._execute("CREATE TRIGGER no BEFORE INSERT ON facts BEGIN SELECT raise(ABORT, 'disk full'); END")
        with pytest.raises(bm.StateError, match="disk full; this call wrote nothing"):
            table.put("EUR", 2, 500)
        assert (table.stream_time, values(table.versions("EUR"))) == (at(10), [1])
        with pytest.raises(bm.StateError, match="disk full"):
            table.advance_to(500)
        assert table.stream_time == at(10)
        table._store._execute("DROP TRIGGER no")
        assert table.put("EUR", 2, 500) is not None
        assert table.get("EUR", 400).value == 1


WRITER = """
import itertools, sys
import beamish as bm
table = bm.VersionedTable("0.05 seconds", path=sys.argv[1], segment="0.01 seconds")
for i in itertools.count():
    if i % 10:
        table.put(f"key{i % 7}", i, i / 1000)
    else:
        table.load([(f"key{i % 7}", i, i / 1000), ("other", i, i / 1000)])
    print(i, flush=True)
"""


def test_a_killed_process_loses_no_completed_write(path):
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True) as writer:
        for _ in range(300):
            assert writer.stdout.readline()
        with pytest.raises(bm.StateError, match="in use"):
            reopened(path, 0.05)
        writer.kill()
        answered = 300 + len(writer.stdout.read().splitlines())
    with reopened(path, 0.05) as table:
        assert round(seconds(table.stream_time) * 1000) in {answered - 1, answered}, "the last may not have been told"
        for i in range(answered - 49, answered):
            assert table.get(f"key{i % 7}", at(i / 1000)).value == i
            assert table.get("other", at(i / 1000)).value == i - i % 10


def test_threads_may_share_a_table(table):
    def write(key):
        for ts in range(200):
            table.put(key, ts, ts / 1000)

    threads = [threading.Thread(target=write, args=(key,)) for key in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [values(table.versions(key)) for key in "abc"] == [list(range(200))] * 3


# Words.


def test_a_table_shows_how_it_was_opened(path):
    assert repr(bm.VersionedTable("1 day")) == "VersionedTable('1 day')"
    with bm.VersionedTable(100, path=path, allowed_lateness=10, segment=5) as table:
        assert repr(table) == (
            f"VersionedTable('100 seconds', path={str(path)!r}, allowed_lateness='10 seconds', segment='5 seconds')"
        )
        assert (str(table.history), str(table.segment)) == ("100 seconds", "5 seconds")


def test_versions_are_values():
    one = bm.Version(1, at(10), None)
    assert one == bm.Version(1, at(10), None)
    assert one != bm.Version(1, at(10), at(20))
    assert eval(repr(one), {"Version": bm.Version, "datetime": __import__("datetime")}) == one
    assert len({bm.Validity(at(10), None), bm.Validity(at(10), None)}) == 1
    with pytest.raises(bm.OptionError, match=re.escape("Version(value=None)")):
        bm.Version(None, at(10), None)
