"""bm.errors.of on Spark: what is raised in a worker, or while a batch is written, is found with its class and its message alone."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Reduce, Sum
from beamish.triggers import Always

MOST = 2**63 - 1
ROWS = [{"ts": 1, "k": "a", "x": MOST}, {"ts": 2, "k": "a", "x": 1}]
FIRST = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").window(bm.FixedWindows(10))
FIRST = FIRST.trigger(Always()).accumulating()


def no_more(x, y):
    raise ValueError(f"{x} is enough:\n{y} is one too many")


STOPS = {
    "a sum": (
        FIRST.with_dropped().accumulate(total=Sum("x")),
        bm.NumericOverflowError,
    ),  # so that the engine runs a batch
    "a function": (FIRST.accumulate(total=Reduce(no_more, "x")), bm.UserFunctionError),
    "a second stage": (
        FIRST.discarding()
        .key_by("k", "x")
        .accumulate(most=Sum("x"))
        .then(bm.Pipeline().key_by("k").accumulate(of=Sum("most"))),
        bm.NumericOverflowError,
    ),
    "a suppressed stage": (
        FIRST.with_dropped().accumulate(total=Sum("x")).suppress(bm.UntilWindowCloses()),
        bm.NumericOverflowError,
    ),
}
SAMPLE = ("a function", "a second stage")
DEEP = [pytest.param(name, marks=pytest.mark.deep) for name in STOPS if name not in SAMPLE]
FINE = FIRST.accumulate(rows=Count())


def message_of(pipeline):
    """Its message without Spark."""
    with pytest.raises(bm.BeamishError) as raised:
        pipeline.run(bm.testing.TestStream().add(ROWS))
    return str(raised.value)


def is_found(error, kind, message):
    found = bm.errors.of(error)
    assert (type(found), str(found)) == (kind, message)
    assert found.__cause__ is error
    assert "Traceback" in str(error)


@pytest.fixture
def events(files):
    made = files(ts=pa.timestamp("us", tz="UTC"), k=pa.string(), x=pa.int64())
    return made.add(*({**row, "ts": row["ts"] * 1_000_000} for row in ROWS))


@pytest.fixture
def stopped(tmp_path):
    """The error that stops a query, as raised and as returned by ``exception()``."""

    def run(panes, write):
        writer = panes.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        with pytest.raises(Exception, match="STREAM_FAILED") as raised:
            query.awaitTermination()
        return raised.value, query.exception()

    return run


@pytest.mark.parametrize("of", [*SAMPLE, *DEEP])
def test_an_error_in_a_worker_of_a_stream(events, stopped, of):
    pipeline, kind = STOPS[of]
    for error in stopped(events.stream().transform(pipeline), lambda panes, _: panes.collect()):
        is_found(error, kind, message_of(pipeline))


@pytest.mark.parametrize("of", [*SAMPLE, *DEEP])
def test_an_error_in_a_worker_of_a_batch(spark, events, of):
    events.stream()
    pipeline, kind = STOPS[of]
    panes = spark.read.parquet(str(events.folder)).transform(pipeline)
    for action in (panes.collect, panes.toArrow, panes.count, panes.write.format("noop").mode("append").save):
        with pytest.raises(Exception, match="Python") as raised:
            action()
        is_found(raised.value, kind, message_of(pipeline))


def test_an_error_in_a_worker_while_a_batch_is_written(events, stopped):
    pipeline, kind = STOPS["a function"]

    def write(_, number):
        events.spark.read.parquet(str(events.folder)).transform(pipeline).collect()

    for error in stopped(events.stream().transform(FINE), write):
        is_found(error, kind, message_of(pipeline))


def test_an_error_of_the_driver_while_a_batch_is_written(events, stopped):
    def write(panes, _):
        panes.drop("pane").transform(FIRST.event_time("nobody", bm.BoundedOutOfOrderness(0)).accumulate(n=Count()))

    for error in stopped(events.stream().transform(FINE), write):
        found = bm.errors.of(error)
        assert isinstance(found, bm.ColumnError)
        assert str(found).splitlines()[0].startswith("event_time('nobody')")
        assert "py4j" not in str(found)
