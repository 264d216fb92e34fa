"""Values of each kind of type, and their order in Spark."""

import math
from datetime import UTC

import pyarrow as pa
from hypothesis import strategies as st

KINDS = {
    "bool": (pa.bool_(), st.booleans()),
    "int32": (pa.int32(), st.integers(-5, 5)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float32": (pa.float32(), st.floats(width=32)),
    "float64": (pa.float64(), st.floats()),
    "string": (pa.string(), st.text(max_size=3)),
    "binary": (pa.binary(), st.binary(max_size=3)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "short decimal": (pa.decimal128(10, 2), st.decimals(-9999, 9999, places=2)),
    "long decimal": (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2)),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.builds(lambda a, b: {"a": a, "b": b}, st.none() | st.integers(0, 2), st.none() | st.text("ab", max_size=2)),
    ),
    "array": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(0, 2), max_size=3)),
}


def order(value):
    """Spark's order as a Python sort key."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, dict):
        return (1, [order(item) for item in value.values()])
    if isinstance(value, list):
        return (1, [order(item) for item in value])
    return (1, value)
