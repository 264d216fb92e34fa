"""A text is its hand-made pipeline (docs/sql.md): what each clause compiles to."""

import pickle

import pytest

import beamish as bm
from beamish.accumulations import (
    ApproxCountDistinct,
    BitAnd,
    BitOr,
    BitXor,
    BoolAnd,
    BoolOr,
    BottomN,
    Collect,
    CollectSet,
    Correlation,
    Count,
    CountDistinct,
    CountIf,
    Covariance,
    First,
    Kurtosis,
    Last,
    LinearRegression,
    Max,
    MaxBy,
    Mean,
    Median,
    Min,
    MinBy,
    Mode,
    Product,
    Quantiles,
    Skewness,
    StdDev,
    Sum,
    TopN,
    TopNByKey,
    Variance,
)
from beamish.durations import Duration
from beamish.triggers import AfterProcessingTime, Always, Never, Repeatedly
from tests.public_names import public_names

WATERMARK = bm.BoundedOutOfOrderness("30 seconds")


def sql(text, **options):
    return bm.sql(text, event_time="ts", watermark=WATERMARK, **options)


def by_hand(*keys):
    return bm.Pipeline().event_time("ts", WATERMARK).key_by(*keys)


def changes(pipeline, trigger=None):
    return pipeline.trigger(trigger or Always()).on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)


FIVE_MINUTES = bm.FixedWindows("5 minutes")
COUNTED = {"COUNT(*)": Count()}


@pytest.mark.parametrize(
    ("window", "option", "lateness"),
    [
        ("TUMBLING (SIZE 5 MINUTES)", FIVE_MINUTES, 0),
        ("TUMBLING (SIZE 5 MINUTE, GRACE PERIOD 1 DAY)", FIVE_MINUTES, "1 day"),
        ("tumbling(size 300 seconds, retention 2 days, grace period 1 hour)", FIVE_MINUTES, "1 hour"),
        ("TUMBLING (SIZE 5 MINUTES, GRACE PERIOD 90 SECONDS, RETENTION 1 HOUR)", FIVE_MINUTES, 90),
        ("by_five TUMBLING (SIZE 5 MINUTES)", FIVE_MINUTES, 0),
        ("HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES)", bm.SlidingWindows("1 hour", "5 minutes"), 0),
        ("HOPPING (SIZE 1 HOURS, ADVANCE BY 1 HOUR, GRACE PERIOD 0 SECONDS)", bm.SlidingWindows("1 hour", "1 hour"), 0),
        ("TUMBLING (SIZE 250 MILLISECONDS)", bm.FixedWindows("250 milliseconds"), 0),
    ],
)
@pytest.mark.parametrize("emit", ["EMIT FINAL", "EMIT CHANGES"])
def test_windows_and_grace_are_those_of_a_pipeline(window, option, lateness, emit):
    query = sql(f"SELECT region, COUNT(*) AS n FROM views WINDOW {window} GROUP BY region {emit}")
    pipeline = by_hand("region").window(option).allowed_lateness(lateness).accumulating().accumulate(**COUNTED)
    assert query.pipeline == (pipeline.trigger(Never()) if emit == "EMIT FINAL" else changes(pipeline))


def test_sessions_retract_merged_windows():
    query = sql("SELECT region, COUNT(*) AS n FROM views WINDOW SESSION (10 MINUTES) GROUP BY region EMIT CHANGES")
    pipeline = by_hand("region").window(bm.Sessions("10 minutes", late_rows="session")).accumulating_and_retracting()
    assert query.pipeline == changes(pipeline).accumulate(**COUNTED)


@pytest.mark.parametrize(
    ("rest", "retracts"),
    [
        ("EMIT CHANGES", False),
        ("EMIT CHANGES RETRACTING", True),
        ("HAVING COUNT(*) > 2 EMIT CHANGES", True),
    ],
)
def test_changes_are_retracted_if_rows_vanish_or_if_requested(rest, retracts):
    query = sql(f"SELECT region, COUNT(*) AS n FROM views GROUP BY region {rest}")
    pipeline = by_hand("region").window(bm.GlobalWindow())
    pipeline = pipeline.accumulating_and_retracting() if retracts else pipeline.accumulating()
    assert query.pipeline == changes(pipeline).accumulate(**COUNTED)


def test_every_is_a_rate_limit():
    query = sql("SELECT region, COUNT(*) AS n FROM views GROUP BY region EMIT CHANGES EVERY 10 SECONDS")
    pipeline = by_hand("region").window(bm.GlobalWindow()).accumulating()
    assert query.pipeline == changes(pipeline, Repeatedly(AfterProcessingTime("10 seconds"))).accumulate(**COUNTED)


@pytest.mark.parametrize(
    ("text", "accumulation"),
    [
        ("COUNT(*)", Count()),
        ("COUNT(1)", Count()),
        ("COUNT()", Count()),
        ("COUNT_DISTINCT(x)", CountDistinct("x")),
        ("STDDEV_SAMPLE(x)", StdDev("x")),
        ("EARLIEST_BY_OFFSET(x)", MinBy("x", "offset of (x)")),
        ("EARLIEST_BY_OFFSET(x, FALSE)", MinBy("x", "offset and nulls of (x)")),
        ("EARLIEST_BY_OFFSET(x, 3)", BottomN(3, "values of (x)")),
        ("LATEST_BY_OFFSET(x, TRUE)", MaxBy("x", "offset of (x)")),
        ("LATEST_BY_OFFSET(x, 3, FALSE)", TopN(3, "values and nulls of (x)")),
        ("TOPKDISTINCT(x, 3)", CollectSet("x")),
        ("TOPK(x, y, 3)", TopN(3, "TOPK of (x, y)")),
        ("COUNT(x)", Count("x")),
        ("COUNT(DISTINCT x)", CountDistinct("x")),
        ("COUNT(DISTINCT x, y)", CountDistinct("x", "y")),
        ("SUM(x)", Sum("x")),
        ("MIN(x)", Min("x")),
        ("MAX(x)", Max("x")),
        ("AVG(x)", Mean("x")),
        ("MEAN(x)", Mean("x")),
        ("VARIANCE(x)", Variance("x")),
        ("VAR_SAMP(x)", Variance("x")),
        ("VAR_POP(x)", Variance("x", population=True)),
        ("STDDEV(x)", StdDev("x")),
        ("STDDEV_POP(x)", StdDev("x", population=True)),
        ("MIN_BY(x, y)", MinBy("x", "y")),
        ("MAX_BY(x, y * 2)", MaxBy("x", "y * 2")),
        ("FIRST(x)", First("x")),
        ("FIRST(x, TRUE)", First("x", ignore_nulls=True)),
        ("LAST(x)", Last("x")),
        ("LAST(x, FALSE)", Last("x")),
        ("COLLECT_LIST(x)", Collect("x")),
        ("COLLECT_SET(x)", CollectSet("x")),
        ("APPROX_COUNT_DISTINCT(x)", ApproxCountDistinct("x")),
        ("APPROX_COUNT_DISTINCT(x, 0.02)", ApproxCountDistinct("x", 0.02)),
        ("MEDIAN(x)", Median("x")),
        ("PERCENTILE(x, 0.9)", Quantiles("x", (0.9,))),
        ("TOPK(x, 3)", TopN(3, "x")),
        ("CORR(x, y)", Correlation("x", "y")),
        ("COVAR_SAMP(x, y)", Covariance("x", "y")),
        ("COVAR_POP(x, y)", Covariance("x", "y", population=True)),
        ("SKEWNESS(x)", Skewness("x")),
        ("KURTOSIS(x)", Kurtosis("x")),
        ("PRODUCT(x)", Product("x")),
        ("MODE(x)", Mode("x")),
        ("BIT_AND(x)", BitAnd("x")),
        ("BIT_OR(x)", BitOr("x")),
        ("BIT_XOR(x)", BitXor("x")),
        ("BOOL_AND(x)", BoolAnd("x")),
        ("EVERY(x > 1)", BoolAnd("x > 1")),
        ("BOOL_OR(x)", BoolOr("x")),
        ("COUNT_IF(x > 1)", CountIf("x > 1")),
        ("REGR_SLOPE(y, x)", LinearRegression("y", "x")),
        ("BEST(x)", TopNByKey(1, "name", "x")),
        ("SUM(x * 2)", Sum("x * 2")),
        ("SUM(v.x)", Sum("x")),
        ("SUM(`x y`)", Sum("x y")),
    ],
)
def test_aggregates_are_accumulations(text, accumulation):
    best = {"best": lambda column: TopNByKey(1, "name", column)}
    query = sql(f"SELECT k, {text} AS n FROM views v GROUP BY k", aggregates=best, offset="o")
    assert list(query.pipeline.flow.stage.options.accumulations.values()) == [accumulation]


@pytest.mark.parametrize(
    "other",
    [
        "select max( price*amount ) as most, region from views group by region",
        "SELECT region, /* the dearest */ MAX(Price * AMOUNT) most FROM views v\n-- by region\nGROUP BY v.region;",
        "SELECT views.region, MAX(views.price * amount) AS most FROM shop.views GROUP BY `region`",
        "SELECT region, MAX(v.price * v.amount) + COUNT(*) AS most FROM views AS v GROUP BY region",
    ],
)
def test_accumulations_are_named_by_the_normal_form_of_their_expression(other):
    accumulations = sql(other).pipeline.flow.stage.options.accumulations
    assert "MAX(price * amount)" in accumulations
    assert accumulations["MAX(price * amount)"].column == "price * amount"


@pytest.mark.parametrize(
    ("text", "kind", "refinement", "name"),
    [
        ("SELECT k, COUNT(*) AS n FROM t GROUP BY k", "pull", "final", None),
        ("SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT CHANGES", "push", "changes", None),
        ("SELECT k, COUNT(*) AS n FROM t WINDOW SESSION (1 HOUR) GROUP BY k EMIT FINAL", "push", "final", None),
        ("CREATE TABLE counts AS SELECT k, COUNT(*) AS n FROM t GROUP BY k", "persistent", "changes", "counts"),
        (
            "CREATE TABLE shop.counts AS SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 1 DAY) GROUP BY k EMIT FINAL;",
            "persistent",
            "final",
            "shop.counts",
        ),
    ],
)
def test_kind_refinement_and_name_follow_the_text(text, kind, refinement, name):
    query = sql(text)
    assert (query.kind, query.refinement, query.name) == (kind, refinement, name)


def test_names_and_formats_under_with_are_read_and_have_no_effect():
    text = "CREATE TABLE c WITH (kafka_topic = 'out', VALUE_FORMAT='JSON', WRAP_SINGLE_VALUE=false) AS SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    query = sql(text)
    assert query.properties == {"KAFKA_TOPIC": "out", "VALUE_FORMAT": "JSON", "WRAP_SINGLE_VALUE": False}
    assert query.pipeline == sql("CREATE TABLE c AS SELECT k, COUNT(*) AS n FROM t GROUP BY k").pipeline
    assert "WITH (KAFKA_TOPIC, VALUE_FORMAT, WRAP_SINGLE_VALUE) has no effect" in " ".join(query.explain().split())


def test_retention_is_told_and_has_no_effect():
    text = "SELECT k, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 1 HOUR{}) GROUP BY k EMIT FINAL"
    assert sql(text.format(", RETENTION 2 DAYS")).retention == Duration(2 * 86_400_000_000)
    assert sql(text.format("")).retention is None
    assert sql(text.format(", RETENTION 2 DAYS")).pipeline == sql(text.format("")).pipeline


def test_a_query_is_a_value():
    text = "SELECT upper(k) AS k, COUNT(*) AS n FROM t GROUP BY upper(k) EMIT CHANGES"
    query = sql(text, with_dropped=True)
    assert query == sql(text, with_dropped=True) != sql(text)
    assert hash(query) == hash(sql(text, with_dropped=True))
    assert pickle.loads(pickle.dumps(query)) == query
    assert eval(repr(query), public_names(bm)) == query
    drops = sql(text, on_error="drop")
    assert drops not in (query, sql(text))
    assert pickle.loads(pickle.dumps(drops)) == drops == eval(repr(drops), public_names(bm))


def test_words_of_the_grammar_may_name_columns_where_an_operand_stands():
    query = sql("SELECT emit, MAX(size) AS final FROM grace WHERE emit = 'EMIT CHANGES' GROUP BY emit EMIT CHANGES")
    assert query.pipeline.flow.sources[0].keys == ("emit",)


def test_explain_describes_the_query_around_the_pipeline_and_the_defaults():
    query = sql(
        "SELECT upper(region) AS r, SUM(price) AS spent FROM views WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 1 DAY) "
        "WHERE price > 0 GROUP BY upper(region) HAVING COUNT(*) > 2 EMIT FINAL"
    )
    said = " ".join(query.explain().split())
    assert " ".join(query.pipeline.explain().split()) in said
    for words in (
        "rows for which price > 0 is true are kept; the others do not move the watermark",
        "before it is in a window: upper(region)",
        "panes and retractions for which COUNT(*) > 2 is true are emitted",
        "upper(region) as r, SUM(price) as spent; then window, pane and timestamp",
        "GRACE PERIOD is not set, so it is 0",
        "RETENTION 1 day has no effect",
    ):
        assert words in said
