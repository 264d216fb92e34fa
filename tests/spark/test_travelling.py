"""Objects that Spark unpickles on the driver's machine do not need beamish there (docs/spark-notes.md#shipped-files)."""

import pickle
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from beamish.spark.operator import heartbeats
from beamish.spark.operator.processor import CarryOver, FromQuery, ShardProcessor, WakePolicy
from beamish.spark.operator.travelling import Travelling

PROCESSOR = ShardProcessor(cast("Any", "an operator"), FromQuery((True,)), WakePolicy.CALLED)
STAND_IN = """
class Handle:
    def getMapState(self, *declared):
        print(declared[0], *(one.simpleString() for one in declared[1:]))

it.init(Handle())
for call in (it.handleInputRows, it.handleInitialState, it.handleExpiredTimer):
    try:
        call("key", rows=[], timerValues=None)
    except ImportError as error:
        print(error.name)
"""
SOURCE = """
reader = it({}).streamReader(it({}).schema())
start = reader.latestOffset()
(partition,) = reader.partitions(start, reader.latestOffset(start))
(batch,) = reader.read(partition)
print(it.name(), batch.schema.names)
"""


DRIVERS = "sys.modules['__main__'].__spec__ = types.SimpleNamespace(name='pyspark.sql.streaming.transform_with_state_driver_worker')"


def without_beamish(pickled, program, first="sys.modules['beamish'] = None"):
    """The output of a program about an unpickled object in a Python without beamish."""
    head = f"import pickle, sys, types\n{first}\nit = pickle.load(sys.stdin.buffer)\n"
    done = subprocess.run([sys.executable, "-c", head + program], input=pickled, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_stand_in_declares_the_state_and_refuses_rows_without_beamish():
    for processor in (PROCESSOR, CarryOver(cast("Any", "an operator"), WakePolicy.CALLED)):
        lines = without_beamish(cloudpickle.dumps(processor), STAND_IN).splitlines()
        assert lines[0] == "shard struct<name:string> struct<value:binary>"
        assert len(lines) == 4
        assert all(line.startswith("beamish") for line in lines[1:])


def test_declaring_state_does_not_import_beamish():
    program = STAND_IN + "print('beamish' in sys.modules)"
    assert without_beamish(cloudpickle.dumps(PROCESSOR), program, DRIVERS).splitlines()[-1] == "False"


def test_spark_declares_the_state_in_the_process_that_is_looked_for():
    assert find_spec("pyspark.sql.streaming.transform_with_state_driver_worker") is not None


def test_a_processor_is_unpickled_as_itself_where_beamish_is():
    again = pickle.loads(cloudpickle.dumps(PROCESSOR))
    assert type(again) is ShardProcessor
    assert vars(again) == vars(PROCESSOR)


def test_every_stateful_processor_has_a_stand_in():
    names = {f"{one.__module__}.{one.__qualname__}" for one in StatefulProcessor.__subclasses__()}
    ours = {name for name in names if name.startswith("beamish.") and "<locals>" not in name}
    assert ours == {f"{Travelling.__module__}.Travelling"}


@pytest.mark.dear
def test_the_heartbeat_source_runs_without_beamish():
    pickled = []
    source = SimpleNamespace(register=lambda kind: pickled.append(cloudpickle.dumps(kind)))
    heartbeats.register(cast("Any", SimpleNamespace(dataSource=source)))
    assert without_beamish(pickled[0], SOURCE) == "beamish_heartbeats ['clock_us']\n"
    assert not cloudpickle.list_registry_pickle_by_value()
