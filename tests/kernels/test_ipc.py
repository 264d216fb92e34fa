"""Tables as bytes."""

import pyarrow as pa
import pytest
from hypothesis import given

from beamish.kernels.buffers import from_bytes, to_bytes
from tests.kernels.nested import nested_columns


@given(nested_columns())
def test_a_table_is_read_back_with_its_metadata(column):
    table = pa.table({"x": column}).replace_schema_metadata({"rows": str(len(column))})
    for compression in (None, "lz4"):
        back = from_bytes(to_bytes(table, compression=compression))
        back.validate(full=True)
        assert back.schema.equals(table.schema, check_metadata=True)
        assert back["x"].to_pylist() == column.to_pylist()


def test_a_slice_serializes_only_its_rows():
    table = pa.table({"x": list(range(100_000))})
    assert len(to_bytes(table.slice(5, 10))) == len(to_bytes(pa.table({"x": list(range(10))})))


@pytest.mark.parametrize("read", [bytes, pa.py_buffer])
def test_bytes_and_buffers_are_read(read):
    assert from_bytes(read(to_bytes(pa.table({"x": [1]})))).to_pydict() == {"x": [1]}
