"""Facts about rows that the user gives instead of Spark: apply(schema=..., shards=..., streaming=...)."""

import re

import pytest
from pyspark.sql import DataFrame

import beamish as bm
from beamish.accumulations import Count
from beamish.errors import ColumnError, OptionError, PipelineError
from beamish.spark.compile.inputs import name_inputs
from beamish.spark.rows.schemas import DeclaredInputs
from beamish.spark.split import as_they_came

ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
PLAYS = ROWS.window(bm.FixedWindows(60)).accumulate(plays=Count())
SCHEMA = "ts timestamp, team string, `odd name` array<int>"


def test_a_schema_is_a_text_or_a_struct_type():
    told = DeclaredInputs.read(SCHEMA, 8, streaming=True)
    assert [field.simpleString() for field in told.schemas[None]] == [
        "ts:timestamp",
        "team:string",
        "odd name:array<int>",
    ]
    assert told.schemas == DeclaredInputs.read(told.schemas[None], 8, streaming=False).schemas
    assert DeclaredInputs.read(None, 8, None) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SCHEMA, None, True), "shards=None, streaming=True): without Spark calls all three are required"),
        ((SCHEMA, 8, None), "shards=8, streaming=None): without Spark calls all three are required"),
        ((None, 8, True), "apply(streaming=True): without schema=... it is read from Spark"),
        (("ts instant", 8, True), "'struct<ts instant>' is not a Spark type"),
        ((["ts"], 8, True), "apply(schema=['ts']): must be a text such as"),
    ],
)
def test_declared_schemas_must_be_complete_and_valid(arguments, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        DeclaredInputs.read(*arguments)


@pytest.mark.usefixtures("spark")  # columns are Spark's
def test_rows_with_a_declared_schema_are_checked():
    class Silent(DataFrame):
        def __new__(cls):
            return object.__new__(cls)

        def __init__(self):
            pass

        def __getattribute__(self, name):
            if name.startswith("__") or name in ("select", "withColumn", "withMetadata", "withWatermark"):
                return super().__getattribute__(name)
            raise AssertionError(f"it was asked for {name}")

        def withColumn(self, *_):  # noqa: N802 - as Spark calls it
            return self

        select = withMetadata = withWatermark = withColumn  # noqa: N815

    told = DeclaredInputs.read(SCHEMA, 2, streaming=True)
    named = name_inputs(PLAYS.flow, Silent(), {}, told)
    assert set(named.rows) == {None}  # with the watermark
    assert named.bind(2).operator.gives.schema.names[:3] == ["team", "window", "plays"]
    with pytest.raises(ColumnError, match="event_time"):
        name_inputs(PLAYS.flow, Silent(), {}, DeclaredInputs.read("at timestamp, team string", 2, streaming=True))
    once = name_inputs(ROWS.deduplicate("team", within="1 hour").flow, Silent(), {}, told)
    assert isinstance(as_they_came(once.bind(2), Silent(), marked=True), Silent)
    merged = bm.merge(a=ROWS, b=ROWS).window(bm.FixedWindows(60)).accumulate(n=Count())
    with pytest.raises(OptionError, match="the schema of input 'a' is missing"):
        name_inputs(merged.flow, None, {"a": Silent(), "b": Silent()}, told)
    changes = bm.Pipeline().from_changelog().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
    changes = changes.window(bm.FixedWindows(60)).accumulate(plays=Count())
    with pytest.raises(PipelineError, match="changes need Spark calls"):
        name_inputs(
            changes.flow, Silent(), {}, DeclaredInputs.read(SCHEMA + ", _change_type string", 2, streaming=True)
        )
