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
_ALONE = [None, -0.0, -0.0, -0.0, -0.0]
"""As the last of a float's: there is a fixed window in which -0.0 is all there is."""
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
    "float": (pa.float32(), [*_FLOATS, 3.4028234663852886e38, 1.401298464324817e-45, *_ALONE]),
    "double": (pa.float64(), [*_FLOATS, 1.7976931348623157e308, 5e-324, *_ALONE]),
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
    """Rows of each key of a type: in ``ts`` the event time, in ``k`` the key, and a column of each type with all of its values.

    0.0 and -0.0 are one key, to which 0.0 brings one row without values: with all of them the sums would be too great.
    """
    key_type, keys = TYPES[key]
    by_words = {repr(one): one for one in [*keys, None]}
    zero = by_words.pop("0.0", None)
    start = dt.datetime(2024, 2, 29, 23, 59, 50, tzinfo=UTC)
    rows = [
        (one, at, start + dt.timedelta(seconds=SECONDS * at + 20 * (at > 9)))
        for one in by_words.values()
        for at in range(ROWS_PER_KEY)
    ]
    if zero is not None:
        rows.append((zero, ROWS_PER_KEY, start + dt.timedelta(seconds=1)))
    columns: dict[str, pa.Array] = {
        "ts": pa.array([ts for _, _, ts in rows], pa.timestamp("us", "UTC")),
        "k": pa.array([one for one, _, _ in rows], key_type),
    }
    for name, (type_, values) in TYPES.items():
        cycle = [None, *values]
        columns[f"v_{name}"] = pa.array([cycle[at] if at < len(cycle) else None for _, at, _ in rows], type_)
    return pa.table(columns)
