import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.kernels.codec import decode, encode

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(UTC) | st.just(ZoneInfo("Europe/Berlin")))
    | st.timedeltas()
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.sets(HASHABLE, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3)
    ),
    max_leaves=10,
)


def exact(value):
    """A form in which equal means equal with all types, NaN and -0.0 told by their text."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [exact(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(repr(exact(item)) for item in value)
    if isinstance(value, dict):
        return "dict", [(exact(key), exact(item)) for key, item in value.items()]
    return type(value).__name__, repr(value)


@given(VALUES)
def test_a_value_is_decoded_exactly(value):
    assert exact(decode(encode(value))) == exact(value)
    assert encode(decode(encode(value))) == encode(value)


@pytest.mark.parametrize(
    "value",
    [
        10**400,
        -(10**400),
        float("nan"),
        float("-inf"),
        -0.0,
        "\ud83d\ude00",
        "\U0001f600",
        Decimal("NaN"),
        Decimal("1E+400"),
        datetime(2024, 10, 27, 2, 30, fold=1),  # noqa: DTZ001 - naive on purpose
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, seconds=7))),
        {"m": [1]},
        {"t": (), 1: {2: frozenset({(1, date.min)})}},
        timedelta(days=-1, microseconds=1),
    ],
)
def test_odd_values_are_decoded_exactly(value):
    back = decode(encode(value))
    assert exact(back) == exact(value)
    assert getattr(back, "fold", 0) == getattr(value, "fold", 0)


def test_an_int_longer_than_python_prints_is_decoded():
    assert decode(encode(-(10**5000))) == -(10**5000)


@pytest.mark.parametrize("value", [object(), 1j, bytearray(b"x"), np.int64(1), [np.float64(1.5)], {1: range(3)}, len])
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match=r"a \w+"):
        encode(value)


def test_a_cyclic_value_is_rejected():
    loop = []
    loop.append(loop)
    with pytest.raises(TypeError, match="contains itself"):
        encode(loop)


def test_sets_of_texts_give_the_same_bytes_in_every_process():
    program = "from beamish.kernels.codec import encode; print(encode(set('beamish')))"
    told = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": str(seed), "PYTHONPATH": "."} for seed in (1, 2))
    }
    assert len(told) == 1
