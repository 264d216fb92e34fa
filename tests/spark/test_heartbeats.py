"""The heartbeat source's offsets, without Spark."""

from itertools import pairwise

import pytest

from beamish.spark.sources import heartbeats
from beamish.spark.sources.heartbeats import HeartbeatReader


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        us = 1_000_000_000

    monkeypatch.setattr(heartbeats.time, "time_ns", lambda: Clock.us * 1000)
    return Clock


def test_a_heartbeat_comes_once_a_second_at_the_most(clock):
    reader = HeartbeatReader()
    first = reader.latestOffset(reader.initialOffset(), None)
    assert first == {"tick": 1, "clock_us": 1_000_000_000}
    clock.us += 999_999
    assert reader.latestOffset(first, None) == first
    clock.us += 1
    assert reader.latestOffset(first, None) == {"tick": 2, "clock_us": 1_001_000_000}


def test_a_run_over_what_is_available_gets_two_heartbeats_and_ends(clock):
    offset = {"tick": 7, "clock_us": 5}
    for _ in range(2):
        reader = HeartbeatReader()
        reader.prepareForTriggerAvailableNow()
        offsets = [offset]
        for _ in range(5):
            clock.us += 10_000_000
            offsets.append(reader.latestOffset(offsets[-1], None))
        assert [later["tick"] - earlier["tick"] for earlier, later in pairwise(offsets)] == [1, 1, 0, 0, 0]
        offset = offsets[-1]


def test_a_clock_that_was_set_back_does_not_take_the_offsets_back(clock):
    reader = HeartbeatReader()
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset({"tick": 7, "clock_us": 2**60}, None) == {"tick": 8, "clock_us": 2**60}


def test_before_spark_4_2_the_offset_is_the_second(clock):
    clock.us += 1_999_999
    assert HeartbeatReader().latestOffset() == {"tick": 0, "clock_us": 1_001_000_000}


def test_a_batch_gets_the_clock_of_its_end():
    reader = HeartbeatReader()
    (partition,) = reader.partitions({"tick": 1, "clock_us": 10}, {"tick": 4, "clock_us": 40})
    (batch,) = reader.read(partition)
    assert batch.to_pylist() == [{"clock_us": 40}]
