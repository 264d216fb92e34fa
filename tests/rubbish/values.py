"""Values of each of Spark's types that are hard on whoever handles them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.UTC
TEXTS = [
    "",
    " ",
    "\u0000",
    "a\u0000b",
    "é",
    "e\u0301",  # the same to a reader, not to a byte
    "ß",
    "İ",
    "\u202eright to left",
    "\ufeff",
    "\uffff",
    "\U0010ffff",
    "👩\u200d👩\u200d👧",
    "';--",
    "null",
    "NaN",
    "x" * 10_000,
]


def _ints(bits: int) -> list[Any]:
    return [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, 1]


_FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.5]
_TIMES = [
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59.999999",
    "1582-10-10T00:00:00",
    "1969-12-31T23:59:59.999999",
    "1970-01-01T00:00:00",
]
_MOMENTS = list(map(dt.datetime.fromisoformat, _TIMES))

TYPES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), _ints(8)),
    "smallint": (pa.int16(), _ints(16)),
    "int": (pa.int32(), _ints(32)),
    "bigint": (pa.int64(), _ints(64)),
    "float": (pa.float32(), [*_FLOATS, 3.4028234663852886e38, 1.401298464324817e-45]),
    "double": (pa.float64(), [*_FLOATS, 1.7976931348623157e308, 5e-324]),
    "decimal_10_2": (pa.decimal128(10, 2), [Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("0.00")]),
    "decimal_38_0": (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(1)]),
    "decimal_38_38": (
        pa.decimal128(38, 38),
        [Decimal("0." + "9" * 38), Decimal("-0." + "9" * 38), Decimal("0." + "0" * 37 + "1")],
    ),
    "string": (pa.string(), TEXTS),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff" * 3, b"\x00" * 1000]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1582, 10, 10)]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [moment.replace(tzinfo=UTC) for moment in _MOMENTS]),
    "timestamp_ntz": (pa.timestamp("us"), _MOMENTS),
    "interval": (pa.duration("us"), [dt.timedelta(0), dt.timedelta(days=-1), dt.timedelta(days=100_000_000)]),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": None, "b": None}, {"a": 1, "b": ""}, {"a": 1, "b": "\u0000"}, {"a": -(2**31), "b": "é"}],
    ),
    "array": (pa.list_(pa.float64()), [[], [None], [float("nan")], [-0.0, 0.0], [1.0, None, float("-inf")]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[], [("", None)], [("a", 2**63 - 1), ("é", -(2**63))]]),
}
"""Each type: Arrow's, and values; null is one of each besides."""
KEYS = [name for name in TYPES if name not in ("array", "map")]

ROWS_PER_KEY = 1 + max(len(values) for _, values in TYPES.values())
SECONDS = 3
"""Between two rows of a key."""


def table(key: str) -> pa.Table:
    """Rows of each key of a type: in ``ts`` the event time, in ``k`` the key, and a column of each type with all of its values."""
    key_type, keys = TYPES[key]
    # 0.0 and -0.0 are one key, whose sums would be of both
    all_keys = [*(one for one in keys[:6] if repr(one) != "0.0"), None]
    count = len(all_keys) * ROWS_PER_KEY
    start = dt.datetime(2024, 2, 29, 23, 59, 50, tzinfo=UTC)
    place = [number % ROWS_PER_KEY for number in range(count)]
    columns: dict[str, pa.Array] = {
        "ts": pa.array(
            [start + dt.timedelta(seconds=SECONDS * at + 20 * (at > 9)) for at in place], pa.timestamp("us", "UTC")
        ),
        "k": pa.array([one for one in all_keys for _ in range(ROWS_PER_KEY)], key_type),
    }
    for name, (type_, values) in TYPES.items():
        cycle = [None, *values]
        columns[f"v_{name}"] = pa.array([cycle[at % len(cycle)] if at < len(cycle) else None for at in place], type_)
    return pa.table(columns)
