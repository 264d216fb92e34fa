import pyarrow as pa
import pytest
from pyspark.sql import types as t

import beamish as bm
from beamish.spark.rows.schemas import arrow_type, spark_schema, spark_type

COLUMNS = (
    "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h string, i binary, j date, k timestamp, "
    "l timestamp_ntz, m decimal(20, 3), n array<struct<x: int, y: map<string, double>>>, o interval day to second"
)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_schema_converts_to_arrow_and_back():
    schema = t.StructType.fromDDL(COLUMNS)
    there = pa.schema([(field.name, arrow_type(field.dataType)) for field in schema])
    assert spark_schema(there) == schema


def test_types_that_python_cannot_have_are_none():
    assert arrow_type(t.CalendarIntervalType()) is None
    assert arrow_type(t.ArrayType(t.CalendarIntervalType())) is None


def test_char_is_a_string():
    assert arrow_type(t.CharType(3)) == pa.string()


def test_a_type_that_spark_does_not_have_is_refused():
    with pytest.raises(bm.ColumnError, match="uint64: Spark has no such type"):
        spark_type(pa.uint64())
