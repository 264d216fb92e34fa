"""Which types can be summed."""

import pyarrow as pa
import pytest

from beamish.accumulations.base.columnar import is_number


@pytest.mark.parametrize("type_", [pa.int8(), pa.int64(), pa.uint32(), pa.float32(), pa.decimal128(5, 2), pa.null()])
def test_numbers_can_be_summed(type_):
    assert is_number(type_)


@pytest.mark.parametrize("type_", [pa.uint64(), pa.string(), pa.bool_(), pa.date32(), pa.list_(pa.int64())])
def test_non_numeric_types_are_rejected(type_):
    assert not is_number(type_)
