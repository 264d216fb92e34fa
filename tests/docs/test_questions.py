"""The questions are those that users ask: their words, their error messages, and an answer to each."""

import re
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Window
from pyspark.sql import functions as F

from tools import docs_counts

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {name: (DOCS / f"{name}.md").read_text("utf-8") for name in ("questions", "questions-errors", "platforms")}
QUESTIONS = {
    heading: body
    for name in ("questions", "questions-errors")
    for heading, body in re.findall(r"(?ms)^### (.*?)\n(.*?)(?=^##|\Z)", PAGES[name])
}
TYPED = """access mode, append, backfill, CDC, complete, consumer lag, Databricks, daylight, Debezium, declarative, dimension, DLT,
dropDuplicates, duplicate, exactly once, fill gaps, foreachBatch, future, interval, Kafka, lag, Lakeflow, last value, late, latest,
one final row, real-time mode, restart, rolling, running total, row_number, serverless, sessionization, slowly changing, stuck,
temporal join, three streams, time zone, Top N, TTL, unit test, update mode, upsert, watermark, withWatermark"""
"""Words of searches."""


def test_there_are_at_least_forty_questions():
    assert len(QUESTIONS) >= 40


@pytest.mark.parametrize("heading", QUESTIONS)
def test_each_question_has_code_or_a_page_or_a_reason(heading):
    body = QUESTIONS[heading]
    assert re.search(r"(?m)^```py|\]\([\w./#-]+\)|^Not possible: ", body), body


def test_each_impossible_thing_has_its_reason():
    reasons = re.findall(r"(?ms)^(?:Not possible|No): (.*?)\n\n", "\n".join(PAGES.values()) + "\n\n")
    assert len(reasons) >= 6
    assert min(docs_counts.words(one) for one in reasons) >= 5


@pytest.mark.parametrize("word", [word.strip() for word in TYPED.split(",")])
def test_the_pages_have_the_words_that_users_type(word):
    text = "\n".join(PAGES[name] for name in ("questions", "questions-errors"))
    assert re.search(re.escape(word), text, re.IGNORECASE)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_fewer_than_2_500_words(name):
    assert docs_counts.words(docs_counts.prose(PAGES[name])) < 2500


def refused(spark, tmp_path):
    """Streaming queries that Spark refuses, each with what the pages quote of its message."""
    ticks = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS id")
    timed = ticks.withWatermark("ts", "1 minute")
    left, right = timed.alias("a"), timed.alias("b")
    within = F.expr("a.id = b.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MINUTE")
    minutes = timed.groupBy(F.window("ts", "1 minute"), "id").count()
    by_id = Window.partitionBy("id").orderBy("ts")

    def start(df, mode="append", form="noop"):
        writer = df.writeStream.outputMode(mode).format(form).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start(str(tmp_path / "out")).stop()

    return {
        "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION": lambda: start(ticks.groupBy("id").count()),
        "streaming aggregations without watermark": lambda: start(ticks.groupBy("id").count()),
        "This output mode is not supported in Data Source parquet": lambda: start(minutes, "update", "parquet"),
        "This output mode is not supported for session window streaming aggregations": lambda: start(
            timed.groupBy(F.session_window("ts", "1 minute"), "id").count(), "update"
        ),
        "Invalid streaming output mode: complete": lambda: start(ticks, "complete"),
        "Sorting is not supported on streaming DataFrames/Datasets": lambda: start(minutes.orderBy("id"), "update"),
        "Distinct aggregations are not supported on streaming DataFrames/Datasets": lambda: start(
            timed.groupBy(F.window("ts", "1 minute")).agg(F.count_distinct("id")), "update"
        ),
        "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING": lambda: start(timed.withColumn("n", F.row_number().over(by_id))),
        "Detected pattern of possible 'correctness' issue due to global watermark": lambda: start(
            minutes.groupBy(F.window("window", "1 hour")).count(), "update"
        ),
        "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE": lambda: ticks.select(F.col("ts").cast("string")).withWatermark(
            "ts", "1 minute"
        ),
        "dropDuplicatesWithinWatermark is not supported on streaming DataFrames/DataSets without watermark": lambda: (
            start(ticks.dropDuplicatesWithinWatermark(["id"]))
        ),
        "is not supported without a watermark in the join keys, or a watermark on the nullable side and an appropriate range condition": lambda: (
            start(ticks.alias("a").join(ticks.alias("b"), F.expr("a.id = b.id"), "left_outer"))
        ),
        "is not supported in Update output mode": lambda: start(left.join(right, within, "left_outer"), "update"),
        "LeftOuter join with a streaming DataFrame/Dataset on the right and a static DataFrame/Dataset on the left": lambda: (
            start(spark.range(3).alias("a").join(right, F.expr("a.id = b.id"), "left_outer"))
        ),
        "Queries with streaming sources must be executed with writeStream.start()": ticks.count,
    }


@pytest.mark.spark
def test_the_quoted_messages_are_those_of_spark(spark, tmp_path):
    for quoted, query in refused(spark, tmp_path).items():
        with pytest.raises(AnalysisException) as error:
            query()
        assert quoted in str(error.value)
        assert quoted in PAGES["questions-errors"]
