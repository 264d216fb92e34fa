"""The contents of a checkpoint, and refused changes."""

from datetime import UTC, datetime
from typing import Any, ClassVar, cast

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import beamish as bm
from beamish.accumulations import Count, Reduce
from beamish.spark.checkpoint.entries import entries_of
from beamish.triggers import AfterWatermark

pytestmark = pytest.mark.usefixtures("several_partitions")

COLUMNS = {"ts": pa.timestamp("us", tz="UTC"), "team": pa.string(), "score": pa.int64()}


def row(seconds, team, score):
    return {"ts": datetime.fromtimestamp(seconds, UTC), "team": team, "score": score}


def greatest(*, mended):
    def larger(a, b):
        if not mended and max(a, b) == 13:
            raise ValueError("thirteen")
        return max(a, b)

    larger.__qualname__ = "larger"  # of a module, where its name tells it; another lambda would be another function
    return (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(10))
        .trigger(AfterWatermark())
        .accumulating()
        .accumulate(count=Count(), greatest=Reduce(larger, column="score"))
    )


def test_a_query_continues_after_a_raising_function_is_fixed(spark, files, run_query):
    stream = (
        files(**COLUMNS)
        .add(row(1, "red", 5), row(2, "red", 6))
        .add(row(3, "red", 13), row(3, "red", 12), row(20, "blue", 1))
        .stream()
    )
    with pytest.raises(StreamingQueryException) as stopped:
        run_query(greatest(mended=False), stream)
    error = bm.errors.of(stopped.value)
    assert isinstance(error, bm.UserFunctionError)
    words = str(error)
    assert words.startswith("key {'team': 'red'}, window ")
    assert "larger" in words
    assert "thirteen" in words
    assert "SQLSTATE" not in words
    panes = [pane for batch in run_query(greatest(mended=True), stream) for pane in batch]
    assert [(pane.key["team"], pane.values) for pane in panes] == [("red", {"count": 4, "greatest": 13})]


@pytest.mark.smoke
def test_another_number_of_shards_is_refused(spark, files, run_query):
    input_ = files(**COLUMNS).add(row(1, "red", 5))
    run_query(greatest(mended=True), input_.stream(), shards=2)
    input_.add(row(2, "blue", 5))
    with pytest.raises(StreamingQueryException) as stopped:
        run_query(greatest(mended=True), input_.stream(), shards=3)
    error = bm.errors.of(stopped.value)
    assert isinstance(error, bm.StateError)
    assert str(error).startswith(
        "the checkpoint has 2 shards, the pipeline is applied with 3: keep it at .apply(df, shards=2)"
    )


def test_the_query_manager_is_asked_for_before_state_is_read(spark, tmp_path):
    class Session:
        asked: ClassVar[list[str]] = []

        def __getattr__(self, name):
            self.asked.append(name)
            return getattr(spark, name)

    with pytest.raises(PySparkException):
        entries_of(cast("Any", Session()), str(tmp_path), 0, 0)
    assert Session.asked == ["version", "streams", "read"]
