import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Sum

PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
    .key_by("team")
    .window(bm.FixedWindows("1 minute"))
    .accumulate(count=Count(), total=Sum("score"))
)
COLUMNS = "ts timestamp, team string, score int, local timestamp_ntz, text string, tags map<string, int>"


@pytest.fixture
def events(spark):
    rate = spark.readStream.format("rate").load()
    return rate.selectExpr(
        "timestamp as ts",
        "string(value) as team",
        "int(value) as score",
        "cast(timestamp as timestamp_ntz) as local",
        "string(timestamp) as text",
        "map('a', 1) as tags",
        "make_interval(1) as years",
    )


def test_the_output_has_keys_window_values_pane_and_timestamp(events):
    assert [(field.name, field.dataType.simpleString()) for field in events.transform(PIPELINE).schema] == [
        ("team", "string"),
        ("window", "struct<start:timestamp,end:timestamp>"),
        ("count", "bigint"),
        ("total", "bigint"),
        (
            "pane",
            "struct<kind:string,timing:string,index:bigint,on_time_index:bigint,is_first:boolean,is_last:boolean>",
        ),
        ("timestamp", "timestamp"),
    ]


def test_column_expressions_name_their_output_column(events):
    pipeline = PIPELINE.key_by(F.upper("team").alias("upper"), F.col("score")).event_time(
        F.to_timestamp("text"), bm.Punctuated("ts")
    )
    assert events.transform(pipeline).columns[:2] == ["upper", "score"]


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        (
            PIPELINE.event_time("when", bm.BoundedOutOfOrderness(0)),
            r"event_time\('when'\): there is no column 'when'.*'ts', 'team'",
        ),
        (
            PIPELINE.event_time("score", bm.BoundedOutOfOrderness(0)),
            "must be a timestamp, is int; use .*F.timestamp_seconds",
        ),
        (PIPELINE.event_time("local", bm.BoundedOutOfOrderness(0)), "a timestamp_ntz has no time zone"),
        (PIPELINE.event_time("ts", bm.Punctuated("mark")), r"Punctuated\('mark'\): there is no column 'mark'"),
        (PIPELINE.event_time("ts", bm.Punctuated("text")), r"Punctuated\('text'\): must be a timestamp, is string"),
        (PIPELINE.key_by("player"), r"key_by\('player'\): there is no column 'player'"),
        (PIPELINE.key_by("tags"), "cannot be a key"),
        (PIPELINE.key_by("years"), "cannot hand a interval to Python; cast or drop it"),
        (PIPELINE.with_dropped(), "column 'years'"),
        (PIPELINE.accumulate(total=Sum("points")), "there is no column 'points'"),
    ],
)
def test_a_column_that_is_wrong_is_named_with_the_fix(events, pipeline, words):
    with pytest.raises(bm.ColumnError, match=words):
        pipeline.apply(events)


def test_a_key_expression_must_not_take_the_name_of_another_column(events):
    pipeline = PIPELINE.key_by(F.upper("team").alias("text"))
    with pytest.raises(bm.ColumnError, match=r"would be named 'text'.*\.alias\('text_key'\)"):
        pipeline.apply(events)


def test_a_column_that_is_there_twice_is_refused_where_it_is_read(events):
    twice = events.select("ts", "team", "score", F.col("team").alias("other")).withColumnsRenamed({})
    twice = twice.select("ts", "team", "score", F.col("other").alias("team"))
    with pytest.raises(bm.ColumnError, match="column 'team' is there twice"):
        PIPELINE.apply(twice)
    assert PIPELINE.key_by("score").apply(twice).columns[0] == "score"


def test_a_name_that_beamish_uses_is_refused(events):
    with pytest.raises(bm.ColumnError, match="'__event_time_us': beamish uses this name itself"):
        PIPELINE.apply(events.withColumn("__beamish_event_time_us", F.lit(1)))


def test_a_watermark_on_the_event_time_is_refused_since_spark_would_follow_the_least(events):
    with pytest.raises(bm.PipelineError, match=r"has a withWatermark of its own.*take it out"):
        PIPELINE.apply(events.withWatermark("ts", "1 hour"))


@pytest.mark.parametrize("shards", [0, -1, True, 2.0])
def test_shards_are_a_whole_number_of_at_least_one(events, shards):
    with pytest.raises(bm.OptionError, match="must be a whole number of at least 1"):
        PIPELINE.apply(events, shards=shards)


def test_a_global_window_that_waits_for_the_end_is_refused_on_a_stream(events):
    with pytest.raises(bm.PipelineError, match="waits for the end of time"):
        PIPELINE.window(bm.GlobalWindow()).apply(events)
