"""Law: a table that forgets answers as one that forgets nothing, in memory and in a file that is opened again and again."""

from __future__ import annotations

import tempfile
from datetime import timedelta
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
from tests.twin.versioned_table import Found, TableTwin

BASE_US = 1_700_000_000_000_000
TEXTS = ["a", "b", "ä"]
ODD = [1, 1.0, True, "1", b"1", 0.5, (1, "x"), (1.0, "x"), frozenset({1}), frozenset({1.0}), -0.0, 0]

spans = st.integers(0, 12)
offsets = st.integers(-25, 4)
"""Times against the stream time: some are past the history, some ahead."""
some = st.none() | offsets
cuts = st.none() | st.integers(1, 9)
numbers = st.none() | st.integers(0, 2)
"""Values of which some are equal, and deletes."""


def us(span: int) -> timedelta:
    return timedelta(microseconds=span)


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

    @rule(data=st.data(), value=numbers, offset=offsets)
    def put(self, data, value, offset):
        key, at = data.draw(self.keys), self.at(offset)
        assert read_validity(self.table.put(key, value, instant(at))) == self.twin.put(key, value, at)

    @rule(data=st.data(), offset=offsets)
    def delete(self, data, offset):
        key, at = data.draw(self.keys), self.at(offset)
        assert read(self.table.delete(key, instant(at))) == self.twin.delete(key, at)

    @rule(data=st.data(), offset=some)
    def get(self, data, offset):
        key, at = data.draw(self.keys), None if offset is None else self.at(offset)
        assert read(self.table.get(key, None if at is None else instant(at))) == self.twin.get(key, at)

    @rule(data=st.data(), one=some, other=some, newest_first=st.booleans())
    def versions(self, data, one, other, newest_first):
        if one is not None and other is not None:
            one, other = sorted((one, other))
        key = data.draw(self.keys)
        since, until = (None if offset is None else self.at(offset) for offset in (one, other))
        bounds = [None if at is None else instant(at) for at in (since, until)]
        answer = [read(version) for version in self.table.versions(key, *bounds, newest_first=newest_first)]
        expected = self.twin.versions(key, since, until)
        assert answer == (expected[::-1] if newest_first else expected)

    @rule(data=st.data())
    def load(self, data):
        drawn = data.draw(st.lists(st.tuples(self.keys, numbers, offsets), max_size=6))
        changes = [(key, value, self.at(offset)) for key, value, offset in drawn]
        assert self.table.load((key, value, instant(at)) for key, value, at in changes) == self.twin.load(changes)

    @rule(offset=offsets)
    def advance_to(self, offset):
        at = self.at(offset)
        self.table.advance_to(instant(at))
        self.twin.advance_to(at)

    @precondition(lambda self: self.is_arrow)
    @rule(offset=some)
    def to_arrow(self, offset):
        at = None if offset is None else self.at(offset)
        if at is not None and self.twin.is_past(at, self.twin.history):
            with pytest.raises(bm.OptionError, match="before oldest"):
                self.table.to_arrow(instant(at))
            return
        found: dict[Any, list[Found]] = {}
        for row in self.table.to_arrow(None if at is None else instant(at)).to_pylist():
            version = bm.Version(row["value"], row["valid_from"], row["valid_to"])
            found.setdefault(row["key"], []).append(read(version))
        assert found == self.twin.whole(at)

    @precondition(lambda self: self.path is not None)
    @rule(data=st.data(), history=spans, segment=cuts)
    def reopen(self, data, history, segment):
        self.table.close()
        self.twin.reopen(history, data.draw(st.integers(0, history)))
        self.table = self.opened(segment)

    @invariant()
    def tells_the_same_times(self):
        times = (self.twin.stream, self.twin.oldest)
        assert (self.table.stream_time, self.table.oldest) == tuple(None if at is None else instant(at) for at in times)
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


def test_a_table_answers_as_one_that_forgets_nothing():
    number = getattr(test_a_table_answers_as_one_that_forgets_nothing, "_hypothesis_internal_use_seed", None)
    machine = Tables if number is None else seed(number)(Tables)
    run_state_machine_as_test(machine, settings=settings(max_examples=120, stateful_step_count=20))


test_a_table_answers_as_one_that_forgets_nothing.is_hypothesis_test = True  # type: ignore[attr-defined] # a law to search
