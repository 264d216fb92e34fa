"""Keys of each type that a table might take for one another, and what a database gives back for them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from beamish.kernels.upserts import DELETED, SEQUENCE, Mark
from beamish.sinks.databases.batch import Batch
from beamish.sinks.databases.database import rows_of

_US = timedelta(microseconds=1)
_TIMES = [datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1), datetime(2024, 5, 1, 10)]  # noqa: DTZ001, DTZ901
_TIMES += [time + step * _US for time in _TIMES for step in (1, 10, 500_000)] + [datetime.max]  # noqa: DTZ901
KEYS = {
    pa.bool_(): [True, False],
    pa.int8(): [0, 1, -1, 127, -128],
    pa.int32(): [0, 1, 2, 2**31 - 1, -(2**31)],
    pa.int64(): [0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)],
    pa.float32(): [0.0, -0.0, 1.0, float("nan"), float("inf"), float("-inf"), 1.5, 2.0**-149],
    pa.float64(): [
        0.0,
        -0.0,
        1.0,
        float("nan"),
        float("inf"),
        float("-inf"),
        0.1,
        5e-324,
        1.7976931348623157e308,
        2.0**53,
    ],
    pa.decimal128(5, 2): [Decimal(text) for text in ("0.00", "1.00", "1.10", "-1.10", "999.99", "0.01")],
    pa.decimal128(38, 18): [Decimal(text) for text in ("0", "1", "1e-18", "12345678901234567890.123456789012345678")],
    pa.string(): [
        "",
        " ",
        "a",
        "A",
        "a ",
        " a",
        "\t",
        "é",
        "e\u0301",
        "ß",
        "ss",
        "1",
        "01",
        "1.0",
        "NaN",
        "null",
        "NULL",
        "😀",
        "'",
        '"',
    ],
    pa.binary(): [b"", b"\0", b"a", b"A", b"a\0", b"a ", b"\xff"],
    pa.date32(): [date.min, date(1969, 12, 31), date(1970, 1, 1), date.max],
    pa.timestamp("us", "UTC"): [time.replace(tzinfo=UTC) for time in _TIMES],
    pa.timestamp("us"): _TIMES,
}
"""Values by type; null is one of each."""
NESTED = [
    '{"a":1}',
    '{"a":null}',
    '{"a":"1"}',
    "[]",
    "[null]",
    "[1,2]",
    "[2,1]",
    '{"a":{"b":1.5}}',
    '{"a":"x "}',
    '{"a":"x"}',
]
"""Structs and arrays, as JSON."""


@st.composite
def changes(draw, type_=None):
    """A type and batches of changes of one column of keys of it: (key, is it deleted?)."""
    type_ = draw(st.sampled_from([*KEYS, None])) if type_ is None else type_
    keys = st.sampled_from([*(NESTED if type_ is None else KEYS[type_]), None])
    batches = st.lists(st.lists(st.tuples(keys, st.booleans()), max_size=8), min_size=1, max_size=3)
    return type_, draw(batches)


def check(sink, type_, batches):
    """After each batch the table has a row per live key, with its last value and itself."""
    live, number = {}, 0
    for place, batch in enumerate(batches):
        rows = []
        for key, deleted in batch:
            number += 1
            rows.append({"k": key, "total": number, SEQUENCE: number, DELETED: deleted})
            live[_canonical(key)] = None if deleted else number
        types = [("k", type_ or pa.string()), ("total", pa.int64()), (SEQUENCE, pa.int64()), (DELETED, pa.bool_())]
        nested = frozenset() if type_ else frozenset({"k"})
        table = pa.Table.from_pylist(rows, schema=pa.schema(types))
        sink.write(Batch.net(table, ("k",), nested), Mark("a query", place))
        with sink.database.transaction() as cursor:
            found = rows_of(cursor, f"SELECT k, total FROM {sink.table.sql}")
        assert sorted(total for _, total in found) == sorted(filter(None, live.values()))
        if type_ is not None:
            assert {_canonical(_read(key, type_)): total for key, total in found} == {
                key: total for key, total in live.items() if total
            }


def _canonical(key):
    """One value for all that are one for Spark's GROUP BY."""
    if isinstance(key, float):
        return "not a number" if key != key else key + 0.0  # noqa: PLR0124
    return key if key is None else (type(key), key)


def _read(stored, type_):
    """A key as it was given, from what a database gives."""
    if stored is None or (stored == "NaN" and pa.types.is_floating(type_)):
        return None if stored is None else float("nan")
    if pa.types.is_boolean(type_):
        return bool(stored)
    if pa.types.is_decimal(type_):
        return Decimal(str(stored))
    if isinstance(stored, str) and (pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
        stored = datetime.fromisoformat(stored)
        return (
            stored.replace(tzinfo=UTC if type_ == pa.timestamp("us", "UTC") else None)
            if pa.types.is_timestamp(type_)
            else stored.date()
        )
    return stored.astimezone(UTC) if isinstance(stored, datetime) and stored.tzinfo else stored
