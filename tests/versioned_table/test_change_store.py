"""Changes in SQLite: lookups at a time, ranges of time, and expiry."""

from __future__ import annotations

import pytest

from beamish.errors import StateError
from beamish.versioned_table.change_store import ChangeStore, Error


@pytest.fixture
def store():
    opened = ChangeStore(None)
    opened.put_all([("a", 10, None, b"1"), ("a", 20, None, b"2"), ("a", 30, None, None), ("b", 15, b"B", b"5")])
    yield opened
    opened.close()


def left(store):
    return store._connection.execute("SELECT key, at_us FROM changes ORDER BY key, at_us").fetchall()


def write_and_fail(store, first="SELECT 1"):
    with store.transaction():
        store.put(("a", 40, None, b"4"))
        store._execute(first)
        store._execute("SELECT * FROM nowhere")


def test_the_latest_change_at_a_time_is_found_with_its_end(store):
    assert [store.at("a", at_us) for at_us in (9, 10, 19, 20, 29)] == [
        None,
        (b"1", 10, 20),
        (b"1", 10, 20),
        (b"2", 20, 30),
        (b"2", 20, 30),
    ]
    assert store.at("a", 30) == store.latest("a") == (None, 30, None)
    assert store.at("c", 30) is store.latest("c") is None


def test_the_next_change_and_the_last_of_all(store):
    assert [store.next_us("a", at_us) for at_us in (9, 10, 29, 30)] == [10, 20, 30, None]
    assert store.next_us("c", 0) is None
    assert store.last_us(-1) == 30
    empty = ChangeStore(None)
    assert empty.last_us(-1) == -1
    empty.close()


@pytest.mark.parametrize(
    ("since_us", "until_us", "times"),
    [
        (0, 5, [10]),
        (0, 10, [10, 20]),
        (10, 19, [10, 20]),
        (19, 20, [10, 20, 30]),
        (20, 29, [20, 30]),
        (30, 99, [30]),
        (31, 99, [30]),
        (0, 99, [10, 20, 30]),
    ],
)
def test_range_read_includes_version_valid_at_start(store, since_us, until_us, times):
    assert [at_us for _, at_us in store.between("a", since_us, until_us)] == times


def test_versions_of_all_keys_are_those_valid_within(store):
    one, two, other = ("a", None, b"1", 10, 20), ("a", None, b"2", 20, 30), ("b", b"B", b"5", 15, None)
    assert store.versions(0, 99) == [one, two, other]
    assert store.versions(0, 14) == [one]
    assert store.versions(0, 15) == store.versions(19, 19) == [one, other]
    assert store.versions(20, 20) == store.versions(29, 99) == [two, other]
    assert store.versions(30, 99) == [other]


def test_ended_changes_and_deletes_expire(store):
    store.forget(0, 20)
    assert left(store) == [("a", 10), ("a", 20), ("a", 30), ("b", 15)]
    store.forget(20, 21)
    assert left(store) == [("a", 20), ("a", 30), ("b", 15)]
    store.forget(21, 30)
    assert left(store) == [("a", 20), ("a", 30), ("b", 15)]
    store.forget(30, 31)
    assert left(store) == [("b", 15)]


def test_a_change_replaces_one_with_the_same_key_and_time(store):
    store.put(("a", 20, b"A", None))
    assert store.at("a", 20) == (None, 20, 30)
    assert len(left(store)) == 4


def test_facts_are_stored_by_name(store):
    store.note(one=1, least=-(2**63))
    store.note(one=2)
    assert store.facts() == {"one": 2, "least": -(2**63)}


def test_a_failed_transaction_writes_nothing(store):
    with pytest.raises(Error, match="no such table"):
        write_and_fail(store)
    assert store.last_us(-1) == 30
    with store.transaction():
        store.put(("a", 40, None, b"4"))
    assert store.last_us(-1) == 40


def test_a_transaction_rolled_back_by_sqlite_raises_the_cause(store):
    with pytest.raises(Error, match="no such table"):
        write_and_fail(store, first="ROLLBACK")


def test_a_file_is_locked_and_keeps_its_journal_mode(tmp_path):
    first = ChangeStore(tmp_path / "store")
    first.put(("a", 1, None, b"1"))
    with pytest.raises(StateError, match="in use"):
        ChangeStore(tmp_path / "store")
    asked = ("journal_mode", "synchronous", "wal_autocheckpoint", "application_id", "user_version")
    said = [first._execute(f"PRAGMA {name}").fetchone()[0] for name in asked]
    assert said == ["wal", 1, 10_000, 0x6265616D, 1]
    first.close()
    second = ChangeStore(tmp_path / "store")
    assert second.latest("a") == (b"1", 1, None)
    second.close()
