"""Keys as numbers."""

import pyarrow as pa

from beamish.kernels.codes import factorize_rows, normalise


def test_structs_without_fields_are_one_key_and_null_another():
    column = normalise(pa.array([{}, None, {}], pa.struct([])))
    assert factorize_rows([column], 3).of.tolist() == [0, 1, 0]
