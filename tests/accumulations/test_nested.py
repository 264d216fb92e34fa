"""Accumulations that keep values, over nested types, compared with plain Python."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, CollectSet, CountDistinct, First, Last, Max, Min, TopN, TopNByKey
from beamish.accumulations.base.retractable import retractable
from beamish.kernels.buffers import cast
from beamish.kernels.groups import Groups
from beamish.testing import TestStream
from tests.accumulations.kinds import order
from tests.accumulations.laws import FEW, GROUPS
from tests.accumulations.stored import stored
from tests.kernels.nested import TYPES, values_of


def distinct(values):
    return [value for i, value in enumerate(values) if not i or order(value) != order(values[i - 1])]


def collected(rows):
    return [row[2] for row in sorted(rows, key=lambda row: (row[0], order(row[2])))]


def ordered(rows):
    return sorted((row[2] for row in rows), key=order)


def best_keys(rows):
    best = {}
    for _, _, value in rows:
        best[repr(order(value))] = value
    return [{"key": value, "value": value} for value in sorted(best.values(), key=order, reverse=True)[:2]]


CASES = [
    (Collect("x"), collected),
    (CollectSet("x"), lambda rows: distinct(ordered(rows))),
    (CountDistinct("x"), lambda rows: len(distinct(ordered(rows)))),
    (TopN(2, "x"), lambda rows: ordered(rows)[::-1][:2]),
    (TopNByKey(2, "x", "x"), best_keys),
    (Min("x"), lambda rows: next(iter(ordered(rows)), None)),
    (Max("x"), lambda rows: next(iter(ordered(rows)[::-1]), None)),
    (First("x", ignore_nulls=True), lambda rows: next(iter(collected(rows)), None)),
    (Last("x", ignore_nulls=True), lambda rows: next(iter(collected(rows)[::-1]), None)),
]


@st.composite
def bundles(draw):
    """A strategy: a type, and bundles of rows of (event time, group, value)."""
    type_ = draw(TYPES)
    row = st.tuples(st.integers(0, 3), st.integers(0, GROUPS - 1), values_of(type_))
    return type_, draw(st.lists(st.lists(row, max_size=6), max_size=3))


def columns(rows, type_):
    padded = pa.array([row[2] for row in [*rows, *rows, *rows]], type_)
    times, group = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    return padded.slice(len(rows), len(rows)), times, Groups(group, GROUPS)


@pytest.mark.parametrize(("accumulation", "expected"), CASES, ids=lambda case: getattr(case, "__name__", repr(case)))
@FEW
@given(bundles())
def test_nested_values_are_those_of_plain_python_over_several_bundles(accumulation, expected, drawn):
    type_, parts = drawn
    state = accumulation.reduce(*asked(accumulation, [], type_))
    for rows in parts:
        state = through(accumulation.add_rows(state, *asked(accumulation, rows, type_)))
    # Merged as sessions are: groups 1 and 2 become one, of entries that do not lie in order.
    merged = accumulation.combine(Groups(np.array([3, 0, 0, 1]), GROUPS), [column.take(BACKWARDS) for column in state])
    everything = [row for rows in parts for row in rows if row[2] is not None]

    def of(groups):
        return expected([row for row in everything if row[1] in groups])

    assert told(accumulation, state, type_) == [of([group]) for group in range(GROUPS)]
    assert told(accumulation, merged, type_) == [of([1, 2]), of([0]), of([]), of([3])]


@FEW
@given(bundles())
def test_nested_values_can_be_retracted(drawn):
    type_, parts = drawn
    over = retractable(Collect("x"), (type_,))
    state = over.reduce(*signed([], 1, type_))
    for rows in parts:
        state = through(over.add_rows(state, *signed(rows, 1, type_)))
    assert told(over, state, type_)
    for rows in parts:
        state = through(over.add_rows(state, *signed(rows, -1, type_)))
    assert told(over, state, type_) == [[]] * GROUPS


BACKWARDS = pa.array(range(GROUPS - 1, -1, -1))


def asked(accumulation, rows, type_):
    column, times, groups = columns(rows, type_)
    return [column] * len(accumulation.inputs), times, groups


def signed(rows, sign, type_):
    column, times, groups = columns(rows, type_)
    return [pa.array(np.full(len(rows), sign, np.int8)), column], times, groups


def through(state):
    """The state after a way through bytes, as a slice of something longer."""
    for column in state:
        column.validate(full=True)
    return [pa.concat_arrays([column, column]).slice(GROUPS) for column in stored(state)]


def told(accumulation, state, type_):
    types = [type_] * len(accumulation.inputs)
    values = cast(accumulation.extract_columns(state, types), accumulation.value_type(types))
    values.validate(full=True)
    return values.to_pylist()


@pytest.mark.parametrize("accumulation", [Collect("x"), TopN(2, "x"), CollectSet("x"), TopNByKey(2, "x", "x")])
def test_a_struct_field_that_is_always_null_is_kept_through_sessions(accumulation):
    one, other, most = ({"a": None, "b": text} for text in "xyz")
    script = (
        TestStream()
        .add([{"k": "a", "ts": 1, "x": one}, {"k": "b", "ts": 1, "x": None}])
        .add([{"k": "b", "ts": 9, "x": other}, {"k": "b", "ts": 2, "x": one}])
        .add([{"k": "a", "ts": 3, "x": other}, {"k": "a", "ts": 30, "x": None}])
        .add([{"k": "a", "ts": 4, "x": most}, {"k": "b", "ts": 10, "x": most}])
        .advance_watermark_to_infinity()
    )
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("k")
        .window(bm.Sessions(3))
        .accumulate(kept=accumulation)
    )
    panes = {(pane.key["k"], pane.window.start): pane.values["kept"] for pane in pipeline.run(script)}
    shape = (lambda x: {"key": x, "value": x}) if isinstance(accumulation, TopNByKey) else lambda x: x
    best_first = isinstance(accumulation, (TopN, TopNByKey))
    assert [kept for _, kept in sorted(panes.items())] == [
        [shape(x) for x in ([most, other] if best_first else [one, other, most])],
        [],
        [shape(one)],
        [shape(x) for x in ([most, other] if best_first else [other, most])],
    ]
