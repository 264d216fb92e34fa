"""Hashes are kept in checkpoints: they never change."""

from decimal import Decimal

import pyarrow as pa
import pytest

from beamish.kernels.codes import hash_values


@pytest.mark.parametrize(
    ("column", "hashes"),
    [
        (
            pa.array([Decimal("1.5"), Decimal("-1.5"), Decimal(2**70)], pa.decimal128(38, 1)),
            [10160907587843550210, 10383095927911045224, 3336056932072549920],
        ),
        (pa.array([1.5, -0.0, float("nan")]), [15481881892811333770, 16294208416658607535, 14351126860892846918]),
        (pa.array([True, False]), [10451216379200822465, 16294208416658607535]),
        (
            pa.array([[1, 2], [2, 1], []], pa.list_(pa.int64())),
            [5259797780020892158, 1188582737922765960, 16294208416658607535],
        ),
        (pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "x"}]), [16292265010747031980, 8605470734487287906]),
    ],
    ids=["decimals", "floats", "booleans", "lists", "structs"],
)
def test_the_hash_of_a_value_never_changes(column, hashes):
    assert hash_values(column).tolist() == hashes
