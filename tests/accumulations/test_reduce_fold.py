import operator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Fold, Reduce
from beamish.errors import OptionError, PipelineError, UserFunctionError
from beamish.kernels.groups import Groups
from tests.accumulations.laws import FEW, GROUPS, assert_laws, columns_of, rows_of, value, values

INTS = rows_of(st.none() | st.integers(-100, 100))


def append(items, item):
    items.append(item)
    return items


def test_reduce_ignores_nulls_and_gives_null_for_nothing():
    assert value(Reduce(max, "x"), [1, None, 5, 3], pa.int64()) == 5
    assert value(Reduce(max, "x"), [None], pa.int64()) is None
    assert value(Reduce(max, "x"), [None], pa.null()) is None


@pytest.mark.of_law("law-accumulators")
@FEW
@given(INTS, st.integers(0, 30))
def test_reduce_keeps_the_laws(rows, cut):
    expected = [[row[2] for row in rows if row[1] == group and row[2] is not None] for group in range(GROUPS)]
    assert values(Reduce(operator.add, "x"), rows, pa.int64()) == [sum(there) if there else None for there in expected]
    assert_laws(Reduce(operator.add, "x"), rows, [pa.int64()], cut)


def test_a_function_that_raises_is_named_with_its_arguments_and_group():
    with pytest.raises(UserFunctionError, match=r"Reduce\(fn=.*\)\.fn\(1, 0\) raised ZeroDivisionError") as raised:
        values(Reduce(operator.floordiv, "x"), [(0, 2, 1), (1, 2, 0)], pa.int64())
    assert raised.value.group == 2
    assert "no data was lost" in str(raised.value)


def test_a_reduced_value_of_another_type_is_refused():
    with pytest.raises(UserFunctionError, match=r"returned 1\.5, which is not of its result type, int64"):
        value(Reduce(lambda a, b: (a + b) / 2, "x"), [1, 2], pa.int64())


def test_fold_calls_in_the_order_of_event_time_and_value():
    rows = [(2, 0, "c"), (1, 0, "b"), (1, 0, None), (1, 0, "a")]
    assert values(Fold([], append, "x", result_type="array<string>"), rows, pa.string(), groups=2) == [
        [None, "a", "b", "c"],
        [],
    ]


def test_fold_does_not_change_its_initial_value():
    fold = Fold([], append, "x", result_type="array<bigint>")
    assert value(fold, [1], pa.int64()) == [1]
    assert value(fold, [2], pa.int64()) == [2]
    assert fold.initial == []


def test_fold_without_a_column_takes_the_row_as_a_dict():
    rows = pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": None}])
    fold = Fold("", lambda text, row: f"{text}{row['a']}{row['b']};")
    assert fold.inputs is None
    state = fold.reduce([rows], np.array([2, 1]), Groups(np.array([0, 0]), 1))
    assert fold.extract_columns(state, [rows.type]).to_pylist() == ["2None;1x;"]


def test_fold_without_merge_continues_from_the_old_accumulator():
    fold = Fold(0, lambda total, item: total * 10 + item, "x")
    first, times, groups = columns_of([(1, 0, 1), (2, 0, 2)], pa.int64(), groups=2)
    state = fold.reduce(first, times, groups)
    more, times, groups = columns_of([(0, 0, 3), (1, 1, 4)], pa.int64(), groups=2)
    state = fold.add_rows(state, more, times, groups)
    assert fold.extract_columns(state, [pa.int64()]).to_pylist() == [123, 4]
    assert not fold.preaggregates


def test_fold_without_merge_keeps_untouched_accumulators():
    fold = Fold(0, operator.add, "x")
    columns, times, groups = columns_of([(1, 0, 1), (2, 1, 2)], pa.int64(), groups=2)
    state = fold.reduce(columns, times, groups)
    assert fold.extract_columns(fold.combine(Groups(np.array([2, 0]), 3), state), []).to_pylist() == [2, 0, 1]
    with pytest.raises(PipelineError, match="merge="):
        fold.combine(Groups(np.array([0, 0]), 1), state)


def test_fold_without_merge_is_rejected_for_merging_windows():
    fold = Fold(0, operator.add, "x")
    fold.check("total", merging=False)
    with pytest.raises(PipelineError, match="give merge="):
        fold.check("total", merging=True)
    Fold(0, operator.add, "x", merge=operator.add).check("total", merging=True)


@pytest.mark.of_law("law-accumulators")
@FEW
@given(rows_of(st.integers(-100, 100)), st.integers(0, 30))
def test_fold_with_merge_keeps_the_laws(rows, cut):
    fold = Fold(0, operator.add, "x", merge=operator.add)
    assert fold.preaggregates
    assert values(fold, rows, pa.int64()) == [sum(row[2] for row in rows if row[1] == group) for group in range(GROUPS)]
    assert_laws(fold, rows, [pa.int64()], cut)


@pytest.mark.parametrize(("initial", "type_"), [(0, "bigint"), (True, "boolean"), (0.0, "double"), ("", "string")])
def test_the_result_type_is_inferred_from_the_initial_value(initial, type_):
    assert Fold(initial, max, "x").result_type == type_


def test_fold_checks_its_arguments():
    with pytest.raises(OptionError, match="result_type='array<string>'"):
        Fold([], append, "x")
    with pytest.raises(OptionError, match="is not a Spark type"):
        Fold([], append, "x", result_type="list[str]")
    with pytest.raises(OptionError, match="cannot be stored in the checkpoint"):
        Fold(object(), append, "x", result_type="bigint")
    with pytest.raises(OptionError, match="must be a function"):
        Fold(0, None, "x")
    with pytest.raises(OptionError, match="must be a function"):
        Reduce("max", "x")


def test_an_accumulator_that_cannot_be_stored_is_reported():
    with pytest.raises(UserFunctionError, match=r"Fold\(.*builtins.object.*build it of None, bool") as raised:
        values(Fold(0, lambda _, __: object(), "x"), [(0, 3, 1)], pa.int64())
    assert raised.value.group == 3


def test_folds_are_hashable_with_any_initial_value():
    folds = [Fold([], append, "x", result_type="array<bigint>") for _ in range(2)]
    assert hash(folds[0]) == hash(folds[1])


def test_a_raising_lambda_needs_a_new_checkpoint():
    with pytest.raises(bm.UserFunctionError, match=r"module-level function.*begin a new checkpoint"):
        _reduce(lambda a, b: a / b)
    with pytest.raises(bm.UserFunctionError, match="fix it and restart from the checkpoint"):
        _reduce(operator.truediv)


def _reduce(function):
    rows = [{"ts": 1, "v": 1}, {"ts": 2, "v": 0}]
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))
    pipeline.accumulate(r=Reduce(function, "v")).run(bm.testing.TestStream().add(rows).advance_watermark_to(10))
