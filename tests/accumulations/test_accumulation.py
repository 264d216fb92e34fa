import operator
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish.accumulations
from beamish.accumulations import (
    Accumulation,
    Collect,
    CollectSet,
    CountDistinct,
    First,
    Max,
    Mean,
    Median,
    Min,
    Quantiles,
    Reduce,
    StdDev,
    Sum,
    TopN,
    Variance,
)
from beamish.errors import OptionError, PipelineError, UserFunctionError
from beamish.kernels.groups import Groups
from beamish.kernels.type_names import parsed_type
from tests.accumulations.every import EVERY, Spread
from tests.accumulations.laws import FEW, GROUPS, assert_is_a_value, assert_laws, rows_of, value, values
from tests.own.accumulations import Distinct


@attrs.frozen
class Weighted(Accumulation):
    """A weighted mean of two columns."""

    column = ("x", "weight")
    result_type = "double"

    def create(self):
        return [0.0, 0.0]

    def add(self, accumulator, value):
        x, weight = value
        return [accumulator[0] + x * weight, accumulator[1] + weight]

    def merge(self, a, b):
        return [a[0] + b[0], a[1] + b[1]]

    def extract(self, accumulator):
        return accumulator[0] / accumulator[1]


@pytest.mark.parametrize("accumulation", EVERY, ids=repr)
def test_built_in_accumulations_are_values(accumulation):
    assert_is_a_value(accumulation, vars(beamish.accumulations))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        accumulation.column = "other"


@pytest.mark.parametrize(
    "make", [Sum, Min, Mean, Variance, First, Collect, CountDistinct, Median, lambda c: TopN(1, c)]
)
@pytest.mark.parametrize("column", ["", 3, None, b"x"])
def test_a_column_is_a_name(make, column):
    with pytest.raises(OptionError, match="must be the name of a column"):
        make(column)


@pytest.mark.of_law("law-accumulators")
@FEW
@given(rows_of(st.none() | st.integers(0, 5)), st.integers(0, 30))
def test_a_users_accumulation_keeps_the_laws(rows, cut):
    expected = [sorted({row[2] for row in rows if row[1] == group} - {None}) for group in range(GROUPS)]
    assert values(Spread("x"), rows, pa.int64()) == expected
    assert_laws(Spread("x"), rows, [pa.int64()], cut)


def test_several_columns_are_passed_as_a_tuple():
    rows = [(0, 0, 1.0, 1.0), (1, 0, 4.0, 2.0)]
    assert values(Weighted(), rows, pa.float64(), pa.float64(), groups=1) == [3.0]


def test_rows_are_added_in_the_order_of_event_times():
    @attrs.frozen
    class Seen(Spread):
        def create(self):
            return []

        def add(self, accumulator, value):
            return [*accumulator, value]

        def extract(self, accumulator):
            return accumulator

    assert values(Seen("x"), [(3, 0, 1), (1, 0, 2), (2, 0, 3)], pa.int64(), groups=1) == [[2, 3, 1]]


def test_a_method_that_raises_is_named_with_its_arguments():
    with pytest.raises(UserFunctionError, match=r"Weighted\(\)\.extract\(\[0\.0, 0\.0\]\) raised ZeroDivisionError"):
        values(Weighted(), [(0, 0, 1.0, 0.0)], pa.float64(), pa.float64(), groups=1)
    with pytest.raises(UserFunctionError, match=r"\.add\(\[0\.0, 0\.0\], \(None, 1\.0\)\) raised TypeError") as raised:
        values(Weighted(), [(0, 1, None, 1.0)], pa.float64(), pa.float64())
    assert raised.value.group == 1
    assert isinstance(raised.value.__cause__, TypeError)


def test_a_subclass_must_define_its_methods_and_result_type():
    @attrs.frozen
    class Unfinished(Accumulation):
        def create(self):
            return 0

    @attrs.frozen
    class Untyped(Spread):
        result_type = ""

    with pytest.raises(PipelineError, match="does not define add"):
        Unfinished().check("x", merging=False)
    with pytest.raises(PipelineError, match="has no result type"):
        Untyped("x").check("x", merging=False)
    Spread("x").check("x", merging=True)


def test_an_object_accumulator_is_stored_by_dump_and_load():
    rows = [(0, 0, 3), (1, 0, 5), (2, 0, 3), (3, 1, 1)]
    assert values(Distinct("x"), rows, pa.int64(), groups=3) == [2, 1, 0]
    assert_laws(Distinct("x"), rows, [pa.int64()], 2)

    @attrs.frozen
    class Kept(Distinct):
        dump = Accumulation.dump

    @attrs.frozen
    class Broken(Distinct):
        def load(self, dumped):
            raise KeyError("no such sketch")

    @attrs.frozen
    class Whole(Distinct):
        dump = Accumulation.dump
        load = Accumulation.load

    with pytest.raises(PipelineError, match="defines load without dump"):
        Kept("x").check("n", merging=False)
    with pytest.raises(UserFunctionError, match=r"Broken.*\.load\(\[3\]\) raised KeyError.*no such sketch"):
        value(Broken("x"), [3], pa.int64())
    with pytest.raises(
        UserFunctionError, match=r"a tests\.own\.accumulations\.Sketch.*define dump\(self, accumulator\)"
    ):
        value(Whole("x"), [3], pa.int64())


def test_a_result_of_another_type_is_rejected():
    @attrs.frozen
    class Wrong(Spread):
        result_type = "bigint"

        def extract(self, accumulator):
            return 1.5

    with pytest.raises(UserFunctionError, match=r"extract returned 1\.5, which is not of its result type, int64"):
        value(Wrong("x"), [1], pa.int64())


@pytest.mark.parametrize(
    ("words", "type_"),
    [
        ("BIGINT", pa.int64()),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("array<array<string>>", pa.list_(pa.list_(pa.string()))),
        ("map<string,double>", pa.map_(pa.string(), pa.float64())),
        ("struct<a: int, `b c`: timestamp>", pa.struct([("a", pa.int32()), ("b c", pa.timestamp("us", "UTC"))])),
        ("struct<>", pa.struct([])),
    ],
)
def test_result_types_are_spark_types(words, type_):
    assert parsed_type("x", words) == type_


@pytest.mark.parametrize(
    "words", ["", "list", "array<", "array<int>>", "decimal(10", "struct<a>", "bigint!", "map<int>", int, pa.int64()]
)
def test_invalid_type_names_are_rejected(words):
    with pytest.raises(OptionError, match="is not a Spark type"):
        parsed_type("Fold(result_type)", words)


@pytest.mark.parametrize(
    "made",
    [
        pa.chunked_array([[1, 2], [3]]).combine_chunks(),
        pa.array([1, 2, 3]).slice(1),
        pa.array([None, None], pa.int64()),
        pa.array([Decimal("1.5")]),
        pa.nulls(2),
    ],
)
@pytest.mark.parametrize("kind", [Sum, Mean, Variance, StdDev, Median, Quantiles])
def test_numeric_accumulations_accept_every_column_layout(kind, made):
    accumulation = kind("x")
    accumulation.check_types("x", [made.type])
    zeros = np.zeros(len(made), np.int64)
    state = accumulation.reduce([made], zeros, Groups(zeros, 2))
    result = accumulation.extract_columns(state, [made.type])
    assert result.type == accumulation.value_type([made.type])
    assert result.to_pylist()[1] is None


def test_wide_and_dictionary_layouts_are_accepted():
    for type_ in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())):
        column = pa.array(["b", "a", None], pa.string()).cast(type_)
        for accumulation, expected in ((Max("x"), "b"), (CollectSet("x"), ["a", "b"]), (First("x"), "b")):
            times = np.arange(3)
            state = accumulation.reduce([column], times, Groups(np.zeros(3, np.int64), 1))
            assert accumulation.extract_columns(state, [type_]).to_pylist() == [expected]


def test_built_ins_on_columns_load_no_pandas():
    program = """
import sys
import numpy as np, pyarrow as pa
from beamish.accumulations import *
from beamish.kernels.buffers import column_of
from beamish.kernels.groups import Groups
x = column_of(np.array([1, 2, 2]))
for a in (Count(), Sum("x"), Mean("x"), Max("x"), Variance("x"), First("x"), Collect("x"), CollectSet("x"),
          CountDistinct("x"), ApproxCountDistinct("x"), TopN(1, "x"), TopNByKey(1, "x", "x"), Quantiles("x"), Median("x")):
    columns = [x for _ in a.inputs]
    state = a.reduce(columns, np.arange(3), Groups(np.array([0, 1, 1]), 3))
    a.extract_columns(a.combine(Groups(np.array([0, 0, 1]), 2), state), [x.type for _ in a.inputs])
print("pandas" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_extracted_values_are_plain_python():
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    assert value(Collect("x"), [moment], pa.timestamp("us", "UTC")) == [moment]
    assert value(Reduce(operator.or_, "x"), [1, 6], pa.int32()) == 7


@pytest.mark.parametrize(("column", "inputs"), [(None, None), ("x", ("x",)), (["x", "y"], ("x", "y"))])
def test_the_columns_of_an_accumulation_follow_from_its_column(column, inputs):
    class Own(Accumulation):
        pass

    own = Own()
    own.column = column
    assert own.inputs == inputs
