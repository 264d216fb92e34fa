"""Law: a table that forgets answers as one that forgets nothing, in memory and in a file that is opened again and again."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import beamish as bm
from beamish.instants import instant, instant_us
from tests.cost import cost
from tests.versioned_table.twin import Found, TableTwin

BASE_US = 1_700_000_000_000_000
TEXTS = ["a", "ä"]
ODD = [1, 1.0, True, "1", b"1", 0.5, (1, "x"), (1.0, "x"), frozenset({1}), frozenset({1.0}), -0.0, 0]

spans = st.integers(0, 8)
ASKED = range(-10, 2)
"""Times against the stream time: some are past the history, some ahead."""
cuts = st.none() | st.integers(1, 4)
numbers = st.none() | st.integers(0, 2)
"""Values of which some are equal, and deletes."""


def us(span: int) -> timedelta:
    return timedelta(microseconds=span)


def when(at: int | None) -> datetime | None:
    return None if at is None else instant(at)


def read_validity(valid: bm.Validity | bm.Version | None) -> tuple[int, int | None] | None:
    if valid is None:
        return None
    return instant_us("from", valid.valid_from), None if valid.valid_to is None else instant_us("to", valid.valid_to)


def read(version: bm.Version | None) -> Found | None:
    return None if version is None else (version.value, *read_validity(version))  # type: ignore[misc]


class Tables(RuleBasedStateMachine):
    """A table beside its twin; times are some microseconds about the stream time."""

    @initialize(data=st.data(), history=spans, is_file=st.booleans(), has_odd_keys=st.booleans())
    def open(self, data, history, is_file, has_odd_keys):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "table" if is_file else None
        self.keys = st.sampled_from(ODD if has_odd_keys else TEXTS)
        self.is_arrow = not has_odd_keys
        self.twin = TableTwin(history, data.draw(st.integers(0, history)))
        self.table = self.opened(data.draw(cuts))

    def opened(self, segment):
        return bm.VersionedTable(
            us(self.twin.history),
            path=self.path,
            allowed_lateness=us(self.twin.lateness),
            segment=None if segment is None else us(segment),
        )

    def teardown(self):
        if hasattr(self, "table"):
            self.table.close()
            self.folder.cleanup()

    def at(self, offset: int) -> int:
        return (BASE_US if self.twin.stream is None else self.twin.stream) + offset

    @property
    def times(self) -> st.SearchStrategy[int]:
        """Times of writes: about as many are past the lateness as are ahead."""
        return st.integers(self.at(-self.twin.lateness - 2), self.at(2))

    @rule(data=st.data(), value=numbers)
    def put(self, data, value):
        key, at = data.draw(self.keys), data.draw(self.times)
        assert read_validity(self.table.put(key, value, instant(at))) == self.twin.put(key, value, at)

    @rule(data=st.data())
    def delete(self, data):
        key, at = data.draw(self.keys), data.draw(self.times)
        assert read(self.table.delete(key, instant(at))) == self.twin.delete(key, at)

    @rule(data=st.data())
    def load(self, data):
        changes = data.draw(st.lists(st.tuples(self.keys, numbers, self.times), max_size=8))
        assert self.table.load((key, value, instant(at)) for key, value, at in changes) == self.twin.load(changes)

    @rule(data=st.data())
    def advance_to(self, data):
        at = data.draw(self.times)
        self.table.advance_to(instant(at))
        self.twin.advance_to(at)

    @rule(data=st.data(), newest_first=st.booleans())
    def ask(self, data, newest_first):
        key, times = data.draw(self.keys), [None, *(self.at(offset) for offset in ASKED)]
        for since in times:
            assert read(self.table.get(key, when(since))) == self.twin.get(key, since)
            for until in times:
                if since is None or until is None or since <= until:
                    answer = self.table.versions(key, when(since), when(until), newest_first=newest_first)
                    expected = self.twin.versions(key, since, until)
                    assert list(map(read, answer)) == (expected[::-1] if newest_first else expected)

    @precondition(lambda self: self.is_arrow)
    @rule()
    def to_arrow(self):
        for at in (None, *(self.at(offset) for offset in ASKED)):
            if at is not None and self.twin.is_past(at, self.twin.history):
                with pytest.raises(bm.OptionError, match="before oldest"):
                    self.table.to_arrow(when(at))
            else:
                assert self.whole(at) == self.twin.whole(at)

    def whole(self, at: int | None) -> dict[Any, list[Found | None]]:
        found: dict[Any, list[Found | None]] = {}
        for row in self.table.to_arrow(when(at)).to_pylist():
            version = bm.Version(row["value"], row["valid_from"], row["valid_to"])
            found.setdefault(row["key"], []).append(read(version))
        return found

    @precondition(lambda self: self.path is not None)
    @rule(data=st.data(), history=spans, segment=cuts)
    def reopen(self, data, history, segment):
        self.table.close()
        self.twin.reopen(history, data.draw(st.integers(0, history)))
        self.table = self.opened(segment)

    @invariant()
    def tells_the_same_times(self):
        times = (self.twin.stream, self.twin.oldest)
        assert (self.table.stream_time, self.table.oldest) == tuple(map(when, times))
        assert self.table.dropped == self.twin.dropped

    @invariant()
    def keeps_nothing_of_a_segment_that_is_past(self):
        if self.twin.oldest is None:
            return
        due = self.twin.oldest - self.twin.oldest % self.table.segment.us
        rows = self.table._store._connection.execute(
            "SELECT key, at_us, value FROM changes ORDER BY key, at_us"
        ).fetchall()
        assert all(at >= due for _, at, value in rows if value is None), "a delete"
        assert all(after[1] >= due for row, after in pairwise(rows) if row[0] == after[0]), "a version that has ended"


def test_a_table_equals_one_without_expiry():
    number = getattr(test_a_table_equals_one_without_expiry, "_hypothesis_internal_use_seed", None)
    machine = Tables if number is None else seed(number)(Tables)
    run_state_machine_as_test(machine, settings=settings(cost(0.5), stateful_step_count=20))


test_a_table_equals_one_without_expiry.is_hypothesis_test = True  # type: ignore[attr-defined] # a law to search
