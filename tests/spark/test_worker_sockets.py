"""Data from Spark is acknowledged when a task's function has arrived, not with the worker's next answer."""

import os
import pickle
import socket

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import beamish as bm
from beamish.accumulations import Collect, Count
from beamish.spark.operator.heartbeats import HeartbeatReader
from beamish.spark.operator.processor import FromQuery, ShardProcessor, WakePolicy
from beamish.spark.runtime.workers import AcknowledgedFunction, acknowledge
from beamish.spark.scripted import ScriptReader
from beamish.triggers import AfterProcessingTime, AfterWatermark

linux = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux has the option")


def same(batches):
    yield from batches


FUNCTION = AcknowledgedFunction(same)
OBJECTS = [
    FUNCTION,
    ShardProcessor(None, FromQuery((True,)), WakePolicy.WHEN_DUE),
    HeartbeatReader(),
    ScriptReader(pa.table({}), 1),
]


class Connection:
    """A connection whose kernel waits for an answer that can carry the acknowledgement, as a worker's does after its first task."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.end = socket.create_connection(server.getsockname())
            self.other, _ = server.accept()
        for end in (self.end, self.other):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)

    @property
    def waits(self):
        return [end.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 0 for end in (self.end, self.other)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end.close()
        self.other.close()


@linux
@pytest.mark.parametrize("sent", OBJECTS, ids=lambda sent: type(sent).__name__)
def test_connections_wait_no_more_once_it_is_unpickled(sent):
    with Connection() as connection:
        stored = cloudpickle.dumps(sent)
        assert connection.waits == [True, True]
        arrived = pickle.loads(stored)
        assert connection.waits == [False, False]
        assert arrived.__dict__.keys() == sent.__dict__.keys()


@linux
def test_connections_are_left_open_and_other_files_are_left_alone(tmp_path):
    with Connection() as connection, (tmp_path / "file").open("wb") as file:
        one, other = socket.socketpair(socket.AF_UNIX)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        acknowledge()
        connection.end.sendall(b"rows")
        assert connection.other.recv(4) == b"rows"
        one.sendall(b"rows")
        assert other.recv(4) == b"rows"
        assert all(os.fstat(open_.fileno()) for open_ in (file, datagrams))
        for end in (one, other, datagrams):
            end.close()


def test_systems_without_the_socket_option_are_skipped(monkeypatch):
    monkeypatch.setattr("beamish.spark.runtime.workers._ACKNOWLEDGE", None)
    monkeypatch.setattr("beamish.spark.runtime.workers._acknowledge", pytest.fail)
    assert pickle.loads(pickle.dumps(FUNCTION))([1]).__next__() == 1


def chain():
    first = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(10))
        .trigger(AfterWatermark(early=AfterProcessingTime(1)))
        .accumulating_and_retracting()
        .accumulate(plays=Count())
    )
    return first.then(bm.Pipeline().key_by("plays").accumulate(teams=Collect("team")))


def test_every_function_of_a_stream_is_acknowledged(spark, monkeypatch):
    given = []
    classic = type(spark.range(1))
    to_spark = classic.mapInArrow
    monkeypatch.setattr(
        classic, "mapInArrow", lambda df, function, *args: given.append(function) or to_spark(df, function, *args)
    )
    rows = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "'blue' AS team")
    bm.changelog(rows.transform(chain()), format="debezium")
    assert len(given) == 4  # rows and panes packed, panes out of bytes, images put together
    assert {type(function) for function in given} == {AcknowledgedFunction}
