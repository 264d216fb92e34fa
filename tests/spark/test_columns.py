import pytest
from pyspark.sql import functions as F

import beamish as bm
from beamish.accumulations import Count, Fold, Max, Sum
from beamish.packages import pyspark_version
from beamish.testing import TestStream
from tests.agreement import differences

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
    numbers, flags = "index:bigint,on_time_index:bigint", "is_first:boolean,is_last:boolean"
    assert [(field.name, field.dataType.simpleString()) for field in events.transform(PIPELINE).schema] == [
        ("team", "string"),
        ("window", "struct<start:timestamp,end:timestamp>"),
        ("count", "bigint"),
        ("total", "bigint"),
        (
            "pane",
            f"struct<kind:string,timing:string,{numbers},{flags},change:string,sequence:bigint,watermark:timestamp>",
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
        (PIPELINE.key_by("years"), "cannot pass a interval to Python; cast or drop it"),
        (PIPELINE.with_dropped(), "column 'years'"),
        (PIPELINE.accumulate(points=Sum("points")), "there is no column 'points'"),
    ],
)
def test_a_column_that_is_wrong_is_named_with_the_fix(events, pipeline, words):
    with pytest.raises(bm.ColumnError, match=words):
        pipeline.apply(events)


def test_a_key_expression_must_not_take_the_name_of_another_column(events):
    pipeline = PIPELINE.key_by(F.upper("team").alias("text"))
    with pytest.raises(bm.ColumnError, match=r"would be named 'text', like the column 'text' .*\.alias\('text_key'\)"):
        pipeline.apply(events)


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        (lambda: PIPELINE.key_by(F.rand().alias("k")), r"key_by\(Column<.*rand.*>\) on a stream: nondeterministic"),
        (lambda: PIPELINE.key_by("team", F.uuid().alias("k")), r"key_by\(Column<.*uuid.*>\) on a stream"),
        (
            lambda: PIPELINE.event_time(F.expr("now() - interval 1 hour"), bm.BoundedOutOfOrderness(0)),
            r"event_time\(Column<.*now.*>\) on a stream: nondeterministic.*\(current_timestamp\(\) is repeated\)",
        ),
        (
            lambda: PIPELINE.event_time(F.timestamp_seconds(F.rand() * 9), bm.BoundedOutOfOrderness(0)),
            r"event_time\(Column<.*\) on",
        ),
    ],
)
def test_an_expression_that_a_replay_would_compute_otherwise_is_refused_on_a_stream(events, pipeline, words):
    with pytest.raises(bm.PipelineError, match=words):
        pipeline().apply(events)


def test_deterministic_expressions_and_those_of_a_batch_are_accepted(spark, events):
    salted = PIPELINE.key_by("team", F.pmod(F.hash("score"), F.lit(8)).alias("salt"))
    salted.event_time(F.current_timestamp(), bm.BoundedOutOfOrderness(0)).apply(events)
    batch = spark.sql("SELECT timestamp_seconds(1) AS ts, 'red' AS team, 3 AS score")
    PIPELINE.key_by(F.floor(F.rand()).alias("k")).apply(batch)


OF_TIME = pytest.param(
    "current_time() > time'12:00:00'",
    marks=pytest.mark.skipif(pyspark_version() < (4, 1), reason="Spark 4.0 has no times of a day"),
)


@pytest.mark.parametrize("condition", ["rand() < 0.5", "ts < now()", OF_TIME])
def test_a_statement_over_a_stream_refuses_a_where_that_a_replay_would_compute_otherwise(events, condition):
    text = f"SELECT team, COUNT(*) AS n FROM events WINDOW TUMBLING (SIZE 1 MINUTE) WHERE {condition} GROUP BY team EMIT CHANGES"
    query = bm.sql(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0))
    with pytest.raises(bm.SqlError, match="on a stream this is nondeterministic"):
        query.apply(events)


def test_panes_cannot_be_observed_twice_under_one_name(events):
    observed = bm.observe(events.transform(PIPELINE))
    with pytest.raises(
        bm.OptionError, match=r"^observe\(panes, name='beamish'\): they are observed under this name already"
    ):
        bm.observe(observed)


def test_a_class_in_the_place_of_a_pipeline_is_refused(events):
    with pytest.raises(bm.OptionError, match=r"not the class: df\.transform\(bm\.Pipeline\(\)"):
        events.transform(bm.Pipeline)


def test_a_column_that_is_there_twice_is_refused_where_it_is_read(events):
    twice = events.select("ts", "team", "score", F.col("team").alias("other")).withColumnsRenamed({})
    twice = twice.select("ts", "team", "score", F.col("other").alias("team"))
    with pytest.raises(bm.ColumnError, match="column 'team' is ambiguous"):
        PIPELINE.apply(twice)
    assert PIPELINE.key_by("score").apply(twice).columns[0] == "score"


def test_a_name_that_beamish_uses_is_refused(events):
    with pytest.raises(
        bm.ColumnError, match="'__beamish_event_time_us': names that begin with '__beamish_' are reserved"
    ):
        PIPELINE.apply(events.withColumn("__beamish_event_time_us", F.lit(1)))


@pytest.mark.parametrize(
    ("marked", "policy", "words"),
    [
        (
            "ts",
            bm.BoundedOutOfOrderness("30 seconds"),
            r"'1 hour', and the pipeline has '30 seconds'.*'ts', '30 seconds'",
        ),
        ("ts", bm.BoundedOutOfOrderness("1 hour", max_future=5), "which has no max_future; leave one of the two out"),
        (
            "seen",
            bm.BoundedOutOfOrderness("1 hour"),
            r"'seen' has a withWatermark.*follows 'ts'.*withWatermark\('ts', \.\.\.",
        ),
        ("ts", bm.Punctuated("seen"), r"'ts' has a withWatermark.*follows 'seen'.*Redefining watermark is disallowed"),
    ],
)
def test_another_watermark_on_the_rows_is_rejected(events, marked, policy, words):
    rows = events.withColumn("seen", F.col("ts")).withWatermark(marked, "1 hour")
    with pytest.raises(bm.PipelineError, match=words):
        PIPELINE.event_time("ts", policy).apply(rows)
    assert PIPELINE.event_time(marked, bm.BoundedOutOfOrderness("1 hour")).apply(rows).isStreaming
    assert PIPELINE.event_time("ts", bm.ProcessingTimeLag(5)).apply(rows).isStreaming


@pytest.mark.parametrize("shards", [0, -1, True, 2.0])
def test_shards_are_a_whole_number_of_at_least_one(events, shards):
    with pytest.raises(bm.OptionError, match="must be a whole number of at least 1"):
        PIPELINE.apply(events, shards=shards)


def test_a_global_window_that_waits_for_the_end_is_refused_on_a_stream(events):
    with pytest.raises(bm.PipelineError, match="waits for the end of time"):
        PIPELINE.window(bm.GlobalWindow()).apply(events)


@pytest.fixture(params=["false", "true"])
def case_sensitive(spark, request):
    spark.conf.set("spark.sql.caseSensitive", request.param)
    yield request.param == "true"
    spark.conf.unset("spark.sql.caseSensitive")


def test_reading_columns_that_differ_in_case_is_refused_unless_case_sensitive(spark, case_sensitive):
    rows = spark.range(1).selectExpr("timestamp_seconds(1) ts", "'red' team", "'blue' Team", "3 score", "now() TS")
    others = {
        "a key": PIPELINE.event_time(F.timestamp_seconds(F.lit(1)), bm.BoundedOutOfOrderness(0)),
        "a time": PIPELINE,
    }
    for pipeline in (*others.values(), PIPELINE.key_by("score"), PIPELINE.with_dropped()):
        if case_sensitive:
            assert pipeline.apply(rows).count() == 1
        else:
            with pytest.raises(bm.ColumnError, match=r"columns \['t.*'\] differ in case only.*rename or drop one"):
                pipeline.apply(rows)
    alone = rows.drop("TS") if case_sensitive else rows.toDF("ts", "team", "Team", "score", "other")
    (pane,) = PIPELINE.key_by("score").apply(alone).collect()
    assert pane.asDict()["score"] == 3


def test_names_in_another_case_are_found_unless_spark_is_case_sensitive(spark, case_sensitive):
    rows = spark.range(2).selectExpr("timestamp_seconds(id) ts", "'a' team", "int(id) score")
    pipeline = (
        PIPELINE.key_by("TEAM")
        .event_time("Ts", bm.BoundedOutOfOrderness(0))
        ._with(accumulations={"total": Sum("SCORE")})
    )
    if case_sensitive:
        with pytest.raises(bm.ColumnError, match="no column 'Ts'"):
            pipeline.apply(rows)
    else:
        (pane,) = pipeline.apply(rows).collect()
        assert (pane.asDict()["TEAM"], pane["total"]) == ("a", 1)


@pytest.mark.usefixtures("case_sensitive")
def test_an_accumulation_named_as_a_key_in_another_case_is_refused(events):
    with pytest.raises(bm.PipelineError, match=r"column 'TEAM': 'team' is a key column too"):
        PIPELINE.accumulate(TEAM=Count()).apply(events)
    with pytest.raises(bm.PipelineError, match=r"column 'TEAM': 'team' is a key column too"):
        PIPELINE.key_by(F.upper("text").alias("team")).accumulate(TEAM=Count()).apply(events.drop("team"))


def test_a_key_expression_named_as_a_column_in_another_case(events, case_sensitive):
    pipeline = PIPELINE.key_by(F.upper("team").alias("Text"))
    if case_sensitive:
        assert pipeline.apply(events).columns[0] == "Text"
    else:
        with pytest.raises(
            bm.ColumnError, match=r"would be named 'Text', like the column 'text' .*alias\('Text_key'\)"
        ):
            pipeline.apply(events)


def nested():
    return PIPELINE.key_by(F.col("user.id")).then(bm.Pipeline().key_by("id", "total").accumulate(n=Count()))


def test_a_chain_whose_first_stage_is_keyed_by_a_nested_column_gives_panes(events, spark):
    chain = nested().then(bm.Pipeline().key_by("id").accumulate(totals=Count()))
    user = "named_struct('id', value % 2) user"
    assert chain.apply(events.selectExpr("*", "named_struct('id', team) user")).columns[0] == "id"
    rows = spark.range(4).selectExpr("id value").selectExpr("timestamp_seconds(value) ts", "int(value) score", user)
    assert sorted((row["id"], row["totals"]) for row in chain.apply(rows).collect()) == [(0, 1), (1, 1)]


def test_a_nested_column_of_panes_is_refused_when_the_chain_is_applied(events):
    chain = nested().then(bm.Pipeline().key_by(F.col("window.start")).accumulate(totals=Count()))
    with pytest.raises(bm.ColumnError, match=r"key_by\(Column<'window.start'>\).*a later stage.*give a column name"):
        chain.apply(events.selectExpr("*", "named_struct('id', team) user"))


UNDERSCORED = [
    {"ts": 1, "__op": "c", "__sign": 1, "__deleted": False},
    {"ts": 2, "__op": "c", "__sign": -1, "__deleted": True},
    {"ts": 3, "__op": "d", "__sign": -1, "__deleted": None},
]


def underscored():
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("__op").window(bm.FixedWindows(10))
    script = TestStream().add(UNDERSCORED).advance_watermark_to(10).add(UNDERSCORED[2:])
    return pipeline, script


def test_columns_of_a_user_that_begin_with_underscores_are_kept(spark):
    pipeline, script = underscored()
    pipeline = pipeline.with_dropped().accumulate(n=Count(), s=Sum("__sign"), rows=Fold("", spell))
    panes = pipeline.run(script)
    of_c = next(pane for pane in panes if pane.key == {"__op": "c"})
    assert of_c.values == {
        "n": 2,
        "s": 0,
        "rows": "ts=1 __op=c __sign=1 __deleted=False; ts=2 __op=c __sign=-1 __deleted=True; ",
    }
    (dropped,) = (pane for pane in panes if pane.kind is bm.PaneKind.DROPPED)
    assert dropped.values == UNDERSCORED[2]
    assert not differences(script.on_spark(spark, pipeline, shards=2, partitions=1), panes, pipeline)


def test_columns_of_a_user_that_begin_with_underscores_are_keys_of_chains(spark):
    pipeline, script = underscored()
    chain = pipeline.accumulate(n=Count(), __deleted=Max("__deleted")).then(
        bm.Pipeline().key_by("__deleted").accumulate(ops=Count(), __sign=Max("__op"))
    )
    panes = chain.run(script)
    assert {pane.key["__deleted"]: pane.values for pane in panes} == {
        True: {"ops": 1, "__sign": "c"},
        None: {"ops": 1, "__sign": "d"},
    }
    assert not differences(script.on_spark(spark, chain, shards=2, partitions=1), panes, chain)


def spell(words, row):
    return words + " ".join(f"{name}={value}" for name, value in row.items()) + "; "


@pytest.mark.parametrize("name", ["__beamish_x", "__BEAMISH_sign"])
def test_a_column_with_the_prefix_of_beamish_is_refused_in_process_too(name):
    pipeline, _ = underscored()
    with pytest.raises(bm.ColumnError, match=f"column '{name}': names that begin with '__beamish_' are reserved"):
        pipeline.accumulate(n=Count()).run(TestStream().add([{**UNDERSCORED[0], name: 1}]))
    with pytest.raises(bm.PipelineError, match=f"column '{name}': names that begin with '__beamish_' are reserved"):
        pipeline.accumulate(**{name: Count()}).run(TestStream().add(UNDERSCORED))
