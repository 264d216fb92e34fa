"""Values of users' functions as columns of the declared type: kept, or refused; never changed."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Fold
from beamish.kernels.python_columns import typed_value
from beamish.kernels.type_names import parsed_type
from beamish.testing import TestStream
from tests.rubbish.python_values import NULLS

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
NAIVE = NOON.replace(tzinfo=None)
DAY = NOON.date()
SCRIPT = TestStream().add([{"ts": 1, "v": 1}]).advance_watermark_to_infinity()


def result(value, type_):
    fold = Fold(None, lambda _, __: value, "v", result_type=type_)
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))
    (pane,) = pipeline.accumulate(f=fold).run(SCRIPT)
    return pane.values["f"]


KEPT = [
    (DAY, "date"),
    (NOON, "timestamp"),
    (NAIVE, "timestamp_ntz"),
    (Decimal(2), "bigint"),
    (2, "double"),
    (Decimal("1.5"), "decimal(5,1)"),
    ([DAY, None], "array<date>"),
    ({"a": NOON}, "struct<a: timestamp>"),
    ({"a": DAY}, "map<string, date>"),
]
CHANGED = [
    (NOON, "date"),
    (3, "date"),
    (5, "timestamp"),
    (NAIVE, "timestamp"),
    (DAY, "timestamp"),
    (NOON, "timestamp_ntz"),
    (1.0, "bigint"),
    (Decimal("1.5"), "bigint"),
    (Decimal("NaN"), "bigint"),
    ([NOON], "array<date>"),
    ([[1.5]], "array<array<int>>"),
    ({"a": 5}, "struct<a: timestamp>"),
    ({"a": NOON}, "map<string, date>"),
    (3, "map<string, date>"),
]


@pytest.mark.parametrize(("value", "type_"), KEPT)
def test_a_value_of_the_declared_type_is_kept(value, type_):
    found = result(value, type_)
    assert (dict(found) if type_.startswith("map") else found) == value


@pytest.mark.parametrize(("value", "type_"), CHANGED)
def test_a_value_that_the_declared_type_would_change_is_refused(value, type_):
    with pytest.raises(bm.UserFunctionError, match="is not of its result type"):
        result(value, type_)


@pytest.mark.parametrize("type_", ["date", "timestamp", "bigint", "string", "struct<a: date>"])
def test_null_like_values_are_null(type_):
    as_list = parsed_type("test", f"array<{type_}>")
    values = [typed_value([null], as_list) for null in NULLS]
    assert pa.array(values, as_list).to_pylist() == [[None]] * len(NULLS)


def test_scalars_of_numpy_are_pythons():
    assert typed_value({"a": np.int64(1)}, pa.struct([("a", pa.int8())])) == {"a": 1}
    assert typed_value(np.datetime64("2024-01-01"), pa.date32()) == DAY
