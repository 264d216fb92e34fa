"""A sink is a value that may be pickled and copied; only foreach, which gives it single rows, is refused."""

import copy
import pickle
from types import FunctionType

import pytest

import beamish as bm

SINKS = [bm.sinks.sql("sqlite:///a.db", "totals"), bm.sinks.merge("totals"), bm.sinks.kafka("host:9092", "totals")]


def foreach(sink):
    return pickle.dumps(sink)


@pytest.mark.parametrize("module", ["pyspark.sql.streaming.readwriter", "pyspark.sql.connect.streaming.readwriter"])
@pytest.mark.parametrize("sink", SINKS, ids=lambda sink: type(sink).__name__)
def test_a_sink_is_pickled_but_by_foreach(sink, module):
    assert pickle.loads(pickle.dumps(sink)) == copy.deepcopy(sink) == sink
    with pytest.raises(
        bm.SinkError, match=rf"{type(sink).__name__}: foreach gives it rows, .*: writeStream.foreachBatch\(sink\)"
    ):
        FunctionType(foreach.__code__, {"__name__": module, "pickle": pickle})(sink)
