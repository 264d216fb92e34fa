"""A sink of a classic session is not sent to workers; Spark Connect sends it to the server."""

import pickle

import pytest

import beamish as bm
from beamish.sinks import options

SINKS = [bm.sinks.sql("sqlite:///a.db", "totals"), bm.sinks.merge("totals"), bm.sinks.kafka("host:9092", "totals")]


@pytest.mark.parametrize("sink", SINKS, ids=lambda sink: type(sink).__name__)
def test_a_sink_is_pickled_for_the_server_of_connect_only(sink, monkeypatch):
    monkeypatch.setattr(options, "is_driver", lambda: False)
    assert pickle.loads(pickle.dumps(sink)) == sink
    monkeypatch.setattr(options, "is_driver", lambda: True)
    with pytest.raises(
        bm.SinkError, match=rf"{type(sink).__name__}: .* as foreach does .*: writeStream.foreachBatch\(sink\)"
    ):
        pickle.dumps(sink)
