"""Words that are nearly a type: each token has its place."""

import pyarrow as pa
import pytest

from beamish.errors import OptionError
from beamish.kernels.type_names import parsed_type


@pytest.mark.parametrize(
    ("words", "type_"),
    [
        ("decimal", pa.decimal128(10, 0)),
        ("dec(7)", pa.decimal128(7, 0)),
        ("struct<a:decimal(5,1),b:int>", pa.struct([("a", pa.decimal128(5, 1)), ("b", pa.int32())])),
        ("array<decimal(5)>", pa.list_(pa.decimal128(5, 0))),
        ("map<int,array<date>>", pa.map_(pa.int32(), pa.list_(pa.date32()))),
        ("struct<a int>", pa.struct([("a", pa.int32())])),
    ],
)
def test_a_type_inside_another_ends_where_it_ends(words, type_):
    assert parsed_type("x", words) == type_


@pytest.mark.parametrize(
    "words",
    [
        "struct<,",
        "struct<(",
        "struct(a:int>",
        "struct<a:int(b:int>",
        "struct>a:int>",
        "decimal(10:2)",
        "decimal(10,2>",
        "decimal<10,2)",
        "decimal(10,2,3)",
        "decimal(x)",
        "array(int>",
        "array<int)",
        "map(int,int>",
        "map<int:int>",
        "map<int,int)",
        "int int",
    ],
)
def test_a_token_out_of_place_is_refused(words):
    with pytest.raises(OptionError, match="is not a Spark type"):
        parsed_type("Fold(result_type)", words)
