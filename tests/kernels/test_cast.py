"""Columns in another type, nested ones and slices of them included."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.kernels.buffers import cast, cast_table, plain
from tests.kernels.nested import nested_columns

VOID = pa.struct([("a", pa.null()), ("b", pa.string())])
ROWS = [[{"a": None, "b": "x"}], None, [{"a": None, "b": "y"}, None], []]


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("layout", [pa.list_, pa.large_list, pa.list_view])
def test_lists_of_structs_with_a_void_field_keep_their_items(layout, start):
    column = pa.array(ROWS, pa.list_(VOID)).slice(start)
    for made in (cast(column, pa.list_(VOID)), plain(_laid_out(column, layout))):
        made.validate(full=True)
        assert (made.type, made.to_pylist()) == (pa.list_(VOID), ROWS[start:])


def _laid_out(column, layout):
    return pa.array(column.to_pylist(), layout(VOID))


def test_fields_and_items_are_cast():
    column = pa.array([{"a": [1, None], "b": None}, None], pa.struct([("a", pa.list_(pa.int32())), ("b", pa.null())]))
    wide = pa.struct([("a", pa.list_(pa.float64())), ("b", pa.int64())])
    made = cast(column, wide)
    made.validate(full=True)
    assert (made.type, made.to_pylist()) == (wide, [{"a": [1.0, None], "b": None}, None])


def test_a_table_is_cast_column_by_column():
    table = pa.table({"n": pa.array([1, 2, 3, 4], pa.int8()), "x": pa.array(ROWS, pa.large_list(VOID))}).slice(1)
    schema = pa.schema([("n", pa.int64()), ("x", pa.list_(VOID))])
    made = cast_table(table, schema)
    made.validate(full=True)
    assert (made.schema, made.to_pydict()) == (schema, {"n": [2, 3, 4], "x": ROWS[1:]})
    assert cast_table(made, schema) is made
    assert cast_table(table.select([]), pa.schema([])).num_rows == 3


@given(nested_columns(), st.booleans())
def test_a_cast_to_a_plain_type_changes_no_value(column, sliced):
    column = column.slice(1) if sliced else column
    made = plain(column)
    made.validate(full=True)
    assert made.to_pylist() == column.to_pylist()
    assert cast(column, column.type).to_pylist() == column.to_pylist()
