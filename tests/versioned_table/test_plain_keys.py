"""Keys are stored equal exactly if Python finds them equal, but for NaN and clocks put back."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf, nan
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from beamish.versioned_table.plain_keys import key_as_written, stored_key, written_key

BERLIN = ZoneInfo("Europe/Berlin")
TENTH = "0.1000000000000000055511151231257827021181583404541015625"
"""The exact value of the float 0.1."""

# Within a row all are equal; of two rows none are.
EQUAL: list[list[Any]] = [
    [1, 1.0, True, Decimal(1), Decimal("1.000")],
    [0, 0.0, -0.0, False, Decimal("-0"), Decimal("0E+5"), Decimal("0E+999999")],
    ["1"],
    [b"1"],
    [""],
    [b""],
    [()],
    [frozenset()],
    ["a\0b"],
    ["a\0c"],
    ["\ud83d\ude00"],
    ["\U0001f600"],
    ["{}"],
    [0.5, Decimal("0.50")],
    [0.1, Decimal(TENTH)],
    [Decimal("0.1")],
    [-1, -1.0, Decimal(-1)],
    [2**63, 2.0**63, Decimal(2**63)],
    [2**63 - 1],
    [-(2**63), -(2.0**63)],
    [-(2**63) - 1],
    [10**16, 1e16, Decimal("1E+16")],
    [10**400, Decimal("1E+400")],
    [10**400 + 1],
    [10**5000, Decimal("1E+5000")],
    [Decimal("1E+999999999")],
    [Decimal("1E-999999999")],
    [int(1e300), 1e300],
    [inf, Decimal("Infinity")],
    [-inf, Decimal("-Infinity")],
    [nan, -nan, Decimal("NaN"), Decimal("-NaN")],
    [frozenset({nan}), frozenset({nan, float("nan")})],
    [(1, "x"), (1.0, "x"), (True, "x")],
    [(1, ("x",))],
    [(None,)],
    [frozenset({1, 2}), frozenset({2.0, True})],
    [frozenset({frozenset({1})}), frozenset({frozenset({1.0})})],
    [frozenset({(1,)})],
    [(frozenset({1, 2}),)],
    [date(2024, 1, 1)],
    [datetime(2024, 1, 1), datetime(2024, 1, 1, fold=1)],  # noqa: DTZ001 - naive on purpose
    [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 1, tzinfo=BERLIN)],
    [
        frozenset({datetime(2024, 1, 1, tzinfo=UTC)}),
        frozenset({datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))}),
    ],
    [datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), datetime(2024, 10, 27, 0, 30, tzinfo=UTC)],
    [datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)],
    [datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))],
    [datetime.min.replace(tzinfo=UTC)],
    [timedelta(days=1), timedelta(hours=24)],
    [timedelta()],
]
ALL = [(number, key) for number, row in enumerate(EQUAL) for key in row]
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.floats()
    | st.sampled_from([0.5, -0.0, 2.0, 1e300])
    | st.decimals(allow_nan=False)
    | st.text(max_size=2)
    | st.binary(max_size=2)
    | st.dates()
    | st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-5))]))
    | st.timedeltas(),
    lambda inner: st.tuples(inner) | st.tuples(inner, inner) | st.frozensets(inner, max_size=2),
    max_leaves=3,
)


def of(key):
    """The distinctions that SQLite makes: class and value."""
    with sqlite3.connect(":memory:") as connection:
        return connection.execute("SELECT typeof(?1), ?1", (stored_key(key),)).fetchone()


def holds_nan(key):
    if isinstance(key, (tuple, frozenset)):
        return any(map(holds_nan, key))
    return key != key  # noqa: PLR0124 - NaN is not


@pytest.fixture(scope="module")
def stored():
    return [(number, key, of(key)) for number, key in ALL]


def test_keys_are_stored_equal_exactly_if_they_are(stored):
    for number, key, one in stored:
        for other_number, other, another in stored:
            assert (one == another) == (number == other_number), (key, other)


@given(PLAIN, PLAIN)
@example(1.5, Decimal("1.5"))
def test_drawn_keys_are_stored_equal_exactly_if_equal_in_python(one, other):
    if not holds_nan(one) and not holds_nan(other):
        assert (of(one) == of(other)) == (one == other)


@given(PLAIN)
@example(frozenset({1, (False, float("nan"))}))
def test_a_key_is_returned_as_written(key):
    stored = stored_key(key)
    back = written_key(stored, key_as_written(key, stored))
    assert type(back) is type(key)
    assert repr(back) == repr(key) or back == key or (holds_nan(key) and of(back) == of(key))


@pytest.mark.parametrize("key", ["a", "ä", 3, -(2**63), 2.5, inf])
def test_texts_ints_and_floats_are_stored_as_they_are(key):
    assert key_as_written(key, stored_key(key)) is None


@pytest.mark.parametrize(
    "key",
    [[1], {1: 2}, {1}, object(), np.int64(1), np.float64(1.5), (1, [2]), frozenset({1j}), Decimal("sNaN"), range(3)],
)
def test_other_keys_are_refused(key):
    with pytest.raises(TypeError, match=r"^a "):
        stored_key(key)


def test_a_key_nested_too_deeply_is_refused():
    key = ()
    for _ in range(100_000):
        key = (key,)
    with pytest.raises(TypeError, match="nested too deeply"):
        stored_key(key)
