"""A batch gives what a script gives under each of Spark's settings that change the meaning of casts and expressions
(rules/running.md#batch-settings, rules/laws.md#law-batch-is-script)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import beamish as bm
from beamish import accumulations as a
from beamish.script import as_step, panes_from_table
from beamish.spark import bind
from beamish.spark.rows.schemas import ddl, spark_schema
from beamish.testing import TestStream
from tests.agreement import differences
from tests.budget import SPARK_SECONDS, search
from tests.declared_options import said
from tests.kinds.versions import strategy as tables
from tests.spark.settings import under

pytestmark = pytest.mark.spark

SETTINGS: Mapping[str, Sequence[str]] = {
    "spark.sql.ansi.enabled": ("false",),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true",),
    "spark.sql.ansi.enforceReservedKeywords": ("true",),
    "spark.sql.caseSensitive": ("true",),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ",),
    "spark.sql.session.timeZone": ("America/Los_Angeles", "Asia/Kathmandu", "-13:33:33"),
    "spark.sql.mapKeyDedupPolicy": ("LAST_WIN",),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("false",),
    "spark.sql.storeAssignmentPolicy": ("LEGACY",),
    "spark.sql.parser.escapedStringLiterals": ("true",),
    "spark.sql.parser.quotedRegexColumnNames": ("true",),
    "spark.sql.groupByOrdinal": ("false",),
    "spark.sql.groupByAliases": ("false",),
    "spark.sql.codegen.wholeStage": ("false",),
    "spark.sql.legacy.allowNegativeScaleOfDecimal": ("true",),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("true",),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("true",),
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": ("true",),
    "spark.sql.legacy.disableMapKeyNormalization": ("true",),
    "spark.sql.legacy.duplicateBetweenInput": ("true",),
    "spark.sql.legacy.earlyEvalCurrentTime": ("true",),
    "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName": ("false",),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("true",),
    "spark.sql.legacy.interval.enabled": ("true",),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("false",),
    "spark.sql.legacy.raiseErrorWithoutErrorClass": ("true",),
    "spark.sql.legacy.sizeOfNull": ("true",),
    "spark.sql.legacy.statisticalAggregate": ("true",),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "EXCEPTION"),
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": ("true",),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("1",),
    "spark.sql.execution.arrow.useLargeVarTypes": ("true",),
    "spark.sql.execution.arrow.compression.codec": ("zstd",),
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": ("true",),
    "spark.sql.execution.pandas.structHandlingMode": ("row",),
    "spark.sql.execution.pandas.inferPandasDictAsMap": ("true",),
    "spark.sql.execution.pandas.convertToArrowArraySafely": ("true",),
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": ("false",),
}
"""Those that change the meaning, and values that are not Spark's default."""
ALL = {name: values[0] for name, values in SETTINGS.items()}


@st.composite
def some_settings(draw: st.DrawFn) -> dict[str, str]:
    """Any of them."""
    names = draw(st.lists(st.sampled_from(sorted(SETTINGS)), max_size=len(SETTINGS), unique=True))
    return {name: draw(st.sampled_from(SETTINGS[name])) for name in sorted(names)}


def at(year: int, month: int, day: int, *time: int) -> datetime:
    return datetime(year, month, day, *time, tzinfo=UTC)  # type: ignore[misc] # hours to microseconds


TIMES = [
    *[at(1, 1, 1), at(1582, 10, 9, 12), at(1883, 11, 18, 12, 3), at(1969, 12, 31, 23, 59, 59, 999_999)],
    *[at(2024, 3, 10, 10), at(2024, 11, 3, 8, 30), at(2024, 11, 3, 9, 30), at(9999, 12, 31, 23, 59, 59, 999_999)],
    *[at(2024, 3, 10, 10, 0, second) for second in (1, 2, 9, 11)],
]
"""With changes of the clock in Los Angeles, and of the calendar."""
NAIVE = [datetime(2024, 3, 10, 2, 30), datetime(2024, 11, 3, 1, 30), datetime(1582, 10, 9), datetime(1, 1, 1, 0, 0, 1)]  # noqa: DTZ001
DATES = [date(1, 1, 1), date(1582, 10, 9), date(2024, 3, 10), date(9999, 12, 31)]
LONGS = [0, 1, -3, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**53 + 1]
DOUBLES = [0.0, -0.0, 0.1, 1.5, -2.5, 1e308, float("nan"), float("inf"), float("-inf")]


def decimals(scale: int) -> st.SearchStrategy[Decimal]:
    """38 digits, some of them the fraction."""
    digits = st.sampled_from([0, 1, -7, 10 ** min(scale, 37), 6, 10**37, 10**38 - 1, 1 - 10**38, 5 * 10**37])
    return digits.map(lambda one: scaled(one, scale))


def scaled(digits: int, scale: int) -> Decimal:
    """Exactly, as a context of 28 digits is not."""
    return Decimal(f"{digits}E-{scale}")


@st.composite
def some_rows(draw: st.DrawFn, times: st.SearchStrategy[Any]) -> list[dict[str, Any]]:
    """Rows of all types, with their extremes."""
    scale = draw(st.sampled_from([0, 2, 10, 24, 33, 36, 38]))
    one = st.fixed_dictionaries(
        {
            "ts": st.none() | times,
            "k": st.none() | st.sampled_from(["a", "A", "b"]),
            "f": st.none() | st.sampled_from(DOUBLES),
            "d": st.none() | st.sampled_from(DATES),
            "n": st.none() | st.sampled_from(NAIVE),
            "b": st.none() | st.sampled_from(LONGS),
            "c": st.none() | st.integers(-3, 3),
            "x": st.none() | st.sampled_from(DOUBLES),
            "m": st.none() | decimals(scale),
            "g": st.none() | st.booleans(),
            "at": st.none() | st.sampled_from(TIMES),
            "s": st.none() | st.fixed_dictionaries({"at": st.sampled_from(TIMES), "t": st.sampled_from(["", "x"])}),
            "l": st.none() | st.lists(st.sampled_from(DATES), max_size=2),
        }
    )
    rows = draw(st.lists(one, min_size=1, max_size=12))
    full = {"ts": at(2024, 1, 1), "k": "full", "f": 1.5, "d": DATES[0], "n": NAIVE[0], "b": 1, "c": 1, "x": 0.5}
    full |= {"m": scaled(10**37, scale), "g": True, "at": TIMES[0], "s": {"at": TIMES[0], "t": ""}, "l": DATES}
    return [full, *rows]  # all types are known


KEYS = [(), ("k",), ("f",), ("d",), ("n",), ("g",), ("at",), ("m",), ("k", "b"), ("s",), ("c", "x")]
WINDOWS = [
    *[bm.FixedWindows(10), bm.FixedWindows("1 microsecond"), bm.FixedWindows("30000 days", "-1 hour")],
    *[bm.SlidingWindows(10, 5, 2), bm.Sessions(5), bm.Sessions("300 days"), bm.GlobalWindow()],
]
NUMBERS = ["b", "c", "x", "m", "f"]
COLUMNS = [*NUMBERS, "k", "d", "n", "g", "at"]


@st.composite
def aggregations(draw: st.DrawFn) -> bm.Pipeline:
    """Windows, most of them computed by Spark's own operators."""
    number, any_ = st.sampled_from(NUMBERS), st.sampled_from(COLUMNS)
    native = st.one_of(
        *[st.builds(a.Count, st.none() | any_), st.builds(a.Sum, number), st.builds(a.Mean, number)],
        *[st.builds(a.Min, any_), st.builds(a.Max, any_), st.builds(a.Sum, st.sampled_from(["b", "m"]))],
        *[st.builds(kind, number, population=st.booleans()) for kind in (a.Variance, a.StdDev)],
        st.lists(any_, min_size=1, max_size=2, unique=True).map(lambda names: a.CountDistinct(*names)),
    )
    others = st.one_of(st.builds(a.Collect, st.sampled_from([*COLUMNS, "s", "l"])), st.builds(a.First, any_))
    kinds = native if draw(st.integers(0, 3)) else native | others
    made = draw(st.lists(kinds, min_size=1, max_size=4))
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by(*draw(st.sampled_from(KEYS)))
    pipeline = pipeline.window(draw(st.sampled_from(WINDOWS))).accumulate(
        **{f"v{at}": one for at, one in enumerate(made)}
    )
    return pipeline.timestamp_combiner(draw(st.sampled_from(list(bm.TimestampCombiner))))


Inputs = dict[str | None, list[dict[str, Any]]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[bm.Pipeline, Inputs]:
    """A pipeline, and the rows of its inputs."""
    if draw(st.integers(0, 3)):
        times = st.sampled_from(TIMES) if draw(st.booleans()) else st.sampled_from(TIMES[-4:])
        return draw(aggregations()), {None: draw(some_rows(times))}
    pipeline = draw(tables.as_of_joins(of=tables.Drawing(policy=tables.simple), lefts=("rows",), tables=("rows",)))
    script = tables.script_of(draw(st.integers(0, 2**40)), pipeline, 12)
    rows: Inputs = {}
    for event in map(as_step, script.events):
        for row in event.rows:
            time = row[f"{event.input}_at"]
            made = {**row, f"{event.input}_at": None if time is None else datetime.fromtimestamp(time, UTC)}
            rows.setdefault(event.input, []).append(made)
    for name, some in rows.items():  # all types are known
        full = {"value": 1, "ratio": 0.5, "mark": "a", "seq": 1, "gone": False}
        some.append({f"{name}_at": at(2030, 1, 1), f"{name}_team": "full", f"{name}_part": 2.0, **full})
    return pipeline, rows


def outcome_of_script(pipeline: bm.Pipeline, rows: Inputs) -> Any:
    """The panes of all rows and then the end of time; or the error."""
    script = TestStream()
    for name, some in rows.items():
        script = script.add(some, input=name)
    try:
        return bm.Pipeline(pipeline.flow.final).run(script.advance_watermark_to_infinity())
    except bm.NumericOverflowError:
        return bm.NumericOverflowError


def frame_of(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    table = pa.Table.from_pylist(rows)
    return spark.createDataFrame(table, spark_schema(table.schema))


def outcome_of_batch(spark: SparkSession, pipeline: bm.Pipeline, rows: Inputs, chosen: Mapping[str, str]) -> Any:
    """The panes under some settings; or the error. The rows were made under the defaults."""
    frames = {name: frame_of(spark, some) for name, some in rows.items()}
    named: Any = {name: df for name, df in frames.items() if name is not None}
    with under(spark, chosen):
        gives = bind(pipeline.flow, frames.get(None), named, 2).operator.gives
        try:
            out = pipeline.apply(frames.get(None), shards=2, **named).toArrow()
        except Exception as error:
            found = bm.errors.of(error)
            if isinstance(found, bm.NumericOverflowError):
                return bm.NumericOverflowError
            raise
    return panes_from_table(out.cast(gives.schema), gives)


def in_order(panes: Sequence[bm.Pane]) -> list[bm.Pane]:
    """By window, since the panes of a batch are in no order."""
    return sorted(panes, key=lambda pane: (str(pane.window), str(pane.timestamp)))


def may_overflow_midway(pipeline: bm.Pipeline, rows: Inputs) -> bool:
    """Whether a sum of decimals may exceed 38 digits before it has all rows, which is an error (``Sum``)."""
    values = [value.as_tuple() for row in rows.get(None, []) if (value := row["m"]) is not None]
    scale = max((-int(value.exponent) for value in values), default=0)
    total = sum(int("".join(map(str, value.digits))) * 10 ** (scale + int(value.exponent)) for value in values)
    sums = (one for one in said(pipeline).accumulations.values() if isinstance(one, a.Sum | a.Mean))
    return any(one.column == "m" for one in sums) and total >= 10**38


def agree(spark: SparkSession, pipeline: bm.Pipeline, rows: Inputs, chosen: Mapping[str, str]) -> None:
    script, batch = outcome_of_script(pipeline, rows), outcome_of_batch(spark, pipeline, rows, chosen)
    told = "\n".join([repr(pipeline), repr(rows), repr(chosen), "- script, + batch"])
    if isinstance(script, type) or isinstance(batch, type):
        midway = isinstance(batch, type) and may_overflow_midway(pipeline, rows)
        assert script is batch or midway, f"{told}\n{script}\n{batch}"
        return
    found = differences(in_order(script), in_order(batch), pipeline)
    assert not found, "\n".join([told, *found])


T0 = at(2024, 3, 10, 10)
AGGREGATION = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
BY_K = AGGREGATION.key_by("k").window(bm.FixedWindows(10))
FULL: dict[str, Any] = {"ts": T0, "k": "a", "b": 1, "m": Decimal(10**37), "x": 0.5, "n": NAIVE[0], "d": DATES[1]}


def with_values(name: str, *values: Any) -> Inputs:
    return {None: [{**FULL, name: value} for value in values]}


FIXED: Mapping[str, tuple[bm.Pipeline, Inputs]] = {
    "a sum above 64 bits": (BY_K.accumulate(v=a.Sum("b")), with_values("b", 2**62, 2**62, 2**62)),
    "sums above 64 bits on the way, and the spread of one value": (
        BY_K.accumulate(
            v=a.Sum("b"),
            w=a.Mean("b"),
            s=a.StdDev("y"),
            p=a.Variance("y", population=True),
            m=a.Mean("m"),
            c=a.CountDistinct("d", "n"),
            t=a.Max("n"),
        ),
        {
            None: [
                {**FULL, "b": b, "y": 0.5 if b == 3 else None}
                for b in (2**62, 2**62, 3, -(2**62), None, -(2**63) + 3, 2**63 - 1)
            ]
        },
    ),
    "keys and values of the engine": (
        AGGREGATION.key_by("n", "d").window(bm.Sessions(5)).accumulate(v=a.Collect("ts"), w=a.Max("n"), m=a.Min("m")),
        with_values("n", *NAIVE, None),
    ),
    "a sum below 64 bits": (
        AGGREGATION.window(bm.GlobalWindow()).accumulate(v=a.Sum("b")),
        with_values("b", -(2**63), -1),
    ),
    "a sum above 38 digits": (BY_K.accumulate(v=a.Sum("m")), with_values("m", *[Decimal(5 * 10**37)] * 2)),
    "a mean above 38 digits": (BY_K.accumulate(v=a.Mean("m")), with_values("m", *[scaled(10**37, 2)] * 2)),
    "a mean that two roundings would change": (
        BY_K.accumulate(v=a.Mean("m")),
        with_values("m", *[scaled(digits, 33) for digits in (10**37, 5 - 10**37, *[0] * 9)]),
    ),
}
"""Cases that a setting changed, or that Spark fails on."""


@pytest.mark.of_law("law-batch-is-script")
def test_a_batch_is_a_script_under_all_settings(spark: SparkSession) -> None:
    for pipeline, rows in list(FIXED.values())[:2]:
        agree(spark, pipeline, rows, ALL)


@pytest.mark.deep
@pytest.mark.of_law("law-batch-is-script")
@pytest.mark.parametrize("chosen", [{}, *({name: value} for name in SETTINGS for value in SETTINGS[name])], ids=str)
def test_a_batch_is_a_script_under_each_setting(spark: SparkSession, chosen: dict[str, str]) -> None:
    for pipeline, rows in FIXED.values():
        agree(spark, pipeline, rows, chosen)


@pytest.mark.deep
@pytest.mark.of_law("law-batch-is-script")
def test_drawn_batches_are_scripts_under_drawn_settings(spark: SparkSession) -> None:
    @settings(
        max_examples=20, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @given(cases(), some_settings())
    def law(spark: SparkSession, case: tuple[bm.Pipeline, Inputs], chosen: dict[str, str]) -> None:
        agree(spark, *case, chosen)

    search(law, SPARK_SECONDS / 8, spark=spark)


@pytest.mark.deep
def test_a_stream_and_its_checkpoint_are_the_same_under_all_settings(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = BY_K.key_by("k", "n").accumulate(v=a.Sum("b"), w=a.Collect("n"), m=a.Max("d"))
    script = TestStream().add(with_values("b", 2**62, 1)[None]).add(with_values("b", 2**62 - 2)[None])
    script = script.advance_watermark_to(at(2024, 4, 1)).add(
        [{**FULL, "ts": at(2024, 5, 1), "n": naive} for naive in NAIVE]
    )
    told = []
    for number, chosen in enumerate(({}, ALL)):
        folder = tmp_path / str(number)
        with under(spark, chosen):
            panes = script.on_spark(spark, pipeline, shards=2, checkpoint=folder)
            assert not differences(in_order(pipeline.run(script)), in_order(panes), pipeline)
            query = str(folder / "checkpoint")
            bm.migrate(spark, query, str(folder / "migrated"), pipeline, shards=3)
            tables = [pipeline.state(spark, query).windows(), pipeline.state(spark, query).rows()]
            state = [sorted(map(str, table.toArrow().to_pylist())) for table in tables]
            upgrade = bm.check_upgrade(spark, query, pipeline)
            told.append((state, [one.what for one in upgrade.changes], len(str(bm.inspect(spark, query)).splitlines())))
    assert told[0] == told[1]


@pytest.mark.deep
@pytest.mark.parametrize("format_", ["spark", "flink", "debezium", "upsert", "kafka", "diff"])
def test_a_changelog_is_the_same_under_all_settings(spark: SparkSession, format_: str) -> None:
    rows = [{**FULL, "ts": time, "d": day, "n": naive} for time in TIMES[1:7] for day in DATES for naive in NAIVE]
    df = frame_of(spark, rows)
    pipeline = BY_K.accumulate(v=a.Collect("d"), n=a.Max("n"), t=a.First("ts"), m=a.Min("m"))
    found = []
    for chosen in ({}, ALL):
        with under(spark, chosen):
            changes = bm.changelog(pipeline.apply(df), format_, keys=["k"]).drop("ts_ms")
            found.append(sorted(map(str, changes.toArrow().to_pylist())))
    assert found[0] == found[1]


def test_the_clock_of_max_future_is_read_per_batch(spark: SparkSession) -> None:
    with under(spark, {"spark.sql.legacy.earlyEvalCurrentTime": "true"}):
        pipeline = bm.Pipeline().event_time("timestamp", bm.BoundedOutOfOrderness(0, max_future="1 hour"))
        panes = (
            pipeline.window(bm.FixedWindows(10))
            .accumulate(n=a.Count())
            .apply(spark.readStream.format("rate").load(), shards=2)
        )
        plan: Any = panes
        assert "current_timestamp()" in plan._jdf.queryExecution().analyzed().toString()


def test_an_overflow_is_named_with_key_and_window(spark: SparkSession) -> None:
    df = spark.sql("SELECT timestamp_seconds(id) ts, 4611686018427387904L b, 'a' k FROM range(3)")
    with (
        under(spark, {"spark.sql.ansi.enabled": "false"}),
        pytest.raises(Exception, match="NumericOverflowError") as caught,
    ):
        BY_K.accumulate(v=a.Sum("b")).apply(df).collect()
    found = bm.errors.of(caught.value)
    assert isinstance(found, bm.NumericOverflowError)
    assert str(found).startswith(
        '{"k":"a","window":{"start":"1970-01-01T00:00:00.000000Z","end":"1970-01-01T00:00:10.000000Z"}}: the sum of column '
        "'b' does not fit bigint"
    )


def test_texts_with_a_collation_are_plain_texts(spark: SparkSession) -> None:
    """In streams and scripts they are."""
    df = spark.sql("SELECT timestamp_seconds(id) ts, if(id < 2, 'a', 'A') COLLATE UNICODE_CI k FROM range(4)")
    panes = BY_K.accumulate(n=a.Count(), kinds=a.CountDistinct("k"), most=a.Max("k")).apply(df)
    found = panes.select("k", "n", "kinds", "most").toArrow().to_pylist()
    assert sorted(map(tuple, map(dict.values, found))) == [("A", 2, 1, "A"), ("a", 2, 1, "a")]
    stored = panes.withColumn("k", F.expr("k COLLATE UNICODE_CI"))  # as a table of the user's may declare it
    assert {row["k"] for row in bm.live(stored).collect()} == {"a", "A"}


@pytest.mark.parametrize("times", [2**32 + 1, 2**31, -(2**31), None])
def test_a_diff_that_would_wrap_around_is_an_error(spark: SparkSession, times: int | None) -> None:
    changes = bm.Pipeline().from_changelog("diff").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    pipeline = changes.window(bm.FixedWindows(10)).accumulating_and_retracting().accumulate(n=a.Count())
    words = r"_diff=.*; must be a whole number from -2147483647 to 2147483647"
    with pytest.raises(bm.ScriptError, match=words):
        pipeline.run(TestStream().add([{"ts": T0, "k": "a", "_diff": times}]))
    df = spark.createDataFrame([(T0, "a", times)], "ts timestamp_ltz, k string, _diff long")
    with under(spark, {"spark.sql.ansi.enabled": "false"}), pytest.raises(Exception, match=words):
        pipeline.apply(df).collect()


def test_images_of_different_types_are_refused(spark: SparkSession) -> None:
    row = "named_struct('ts', timestamp_seconds(1), 'k', 'a', 'v', {})"
    df = spark.sql(f"SELECT 'u' op, {row.format('1.25BD')} before, {row.format('1.3BD')} after")
    pipeline = bm.Pipeline().from_changelog("debezium").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    pipeline = pipeline.window(bm.FixedWindows(10)).accumulating_and_retracting().accumulate(n=a.Sum("v"))
    with pytest.raises(bm.ColumnError, match=r"v:decimal\(3,2\)>.*v:decimal\(2,1\)>.*the same columns and types"):
        pipeline.apply(df)


def test_a_type_in_sql_is_the_same_under_each_timestamp_type(spark: SparkSession) -> None:
    type_ = "a timestamp_ltz, b timestamp_ntz, c struct<`x y`: array<timestamp_ltz>, d: map<date, timestamp_ltz>>, e decimal(9,2)"
    schema = spark.createDataFrame([], type_).schema
    with under(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
        texts = ", ".join(f"{field.name} {ddl(field.dataType)}" for field in schema)
        assert spark.createDataFrame([], texts).schema == schema
