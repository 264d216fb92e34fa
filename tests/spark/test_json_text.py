"""JSON has the same texts for times under every setting of the session."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from beamish.spark.rows.json_text import to_json
from tests.spark.settings import under

pytestmark = pytest.mark.spark

LEGACY = {"spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.session.timeZone": "America/Los_Angeles"}
TEXTS = {
    "1582-10-09": "1582-10-09T12:00:00.500000",
    "+10000-01-01": "+10000-01-01T00:00:00.000001",
    "0000-12-31": "0000-12-31T23:59:59.999999",
    "-0001-01-01": "-0001-01-01T00:00:00.000000",
    "2024-03-10": "2024-03-10T02:30:00.000000",
}
"""Days of another calendar, of five digits, before the year 1, and a time that Los Angeles leaves out."""


def test_times_have_the_same_json_under_each_setting(spark: SparkSession) -> None:
    times = {day: f"timestamp_ntz'{text}'" for day, text in TEXTS.items()}
    columns = [
        f"named_struct('at', cast(concat('{text}', 'Z') as timestamp_ltz), 'n', {times[day]}, 'd', date'{day}',"
        f" 'l', array(date'{day}', null), 'm', map('k', cast(concat('{text}', 'Z') as timestamp_ltz)),"
        f" 's', named_struct('a', date'{day}', 'A', null), 'x', if(true, null, named_struct('d', date'{day}'))) c{at}"
        for at, (day, text) in enumerate(TEXTS.items())
    ]
    df = spark.range(1).selectExpr(*columns)
    with under(spark, LEGACY):
        texts = [to_json(F.col(field.name), field.dataType) for field in df.schema]
        found = [json.loads(text) for text in df.select(*texts).collect()[0]]
    assert found == [
        {
            "at": f"{text}Z",
            "n": text,
            "d": day,
            "l": [day, None],
            "m": {"k": f"{text}Z"},
            "s": {"a": day, "A": None},
            "x": None,
        }
        for day, text in TEXTS.items()
    ]
