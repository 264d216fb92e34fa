"""The heartbeat source's offsets, and the clock that they have, without Spark (rules/time.md#machine-clock)."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count
from beamish.spark.checkpoint.stored_query import is_heartbeat
from beamish.spark.operator import heartbeats
from beamish.spark.operator.heartbeats import Heartbeat, HeartbeatReader, Reading
from beamish.testing import TestStream

pytestmark = pytest.mark.usefixtures("several_partitions")

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND
NOON = 1_790_000_000 * SECOND


class Machine:
    """A machine: a time that passes, a clock that may be off, and a start that can come again."""

    def __init__(self):
        self.passed_us, self.off_us, self.boot = 0, 0, "first"

    def reading(self):
        return Reading(NOON + self.passed_us + self.off_us, 5 * SECOND + self.passed_us, self.boot)


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(Reading, "now", machine.reading)
    return machine


def seconds(offset):
    """The clock of an offset, in seconds since noon."""
    return (offset["clock_us"] - NOON) / SECOND


def beats(machine, offset, *steps):
    """Clocks of the heartbeats after an offset; each step: the seconds that pass, and by how many the clock is off."""
    reader, found = HeartbeatReader(), []
    for passed, off in steps:
        machine.passed_us, machine.off_us = machine.passed_us + passed * SECOND, off * SECOND
        offset = json.loads(json.dumps(reader.latestOffset(offset, None)))
        found.append(seconds(offset))
    return offset, found


def test_there_is_at_most_one_heartbeat_per_second(machine):
    reader = HeartbeatReader()
    first = reader.latestOffset(reader.initialOffset(), None)
    assert (first["tick"], first["clock_us"]) == (1, NOON)
    machine.passed_us += SECOND - 1
    assert reader.latestOffset(first, None) == first
    machine.passed_us += 1
    second = reader.latestOffset(first, None)
    assert (second["tick"], second["clock_us"]) == (2, NOON + SECOND)


def test_an_available_now_run_gets_two_heartbeats_and_ends(machine):
    offset = Heartbeat(7, 5).offset
    for _ in range(2):
        reader = HeartbeatReader()
        reader.prepareForTriggerAvailableNow()
        offsets = [offset]
        for _ in range(5):
            machine.passed_us += 10 * SECOND
            offsets.append(reader.latestOffset(offsets[-1], None))
        assert [later["tick"] - earlier["tick"] for earlier, later in pairwise(offsets)] == [1, 1, 0, 0, 0]
        offset = offsets[-1]


def test_an_offset_of_an_earlier_version_is_read(machine):
    before = {"tick": 7, "clock_us": NOON - DAY}
    assert HeartbeatReader().latestOffset(before, None)["clock_us"] == NOON
    assert HeartbeatReader().initialOffset() == {"tick": 0, "clock_us": 0}
    assert is_heartbeat(json.dumps(before))
    assert is_heartbeat(json.dumps(HeartbeatReader().latestOffset(before, None)))
    assert not is_heartbeat('{"topic": {"0": 5}}')


def test_a_clock_that_is_a_day_ahead_once_moves_a_heartbeat_by_a_second(machine):
    start = HeartbeatReader().initialOffset()
    with pytest.warns(
        UserWarning, match=r"machine is at .*1 day, 0:00:00 ahead of .* heartbeats continue at most twice"
    ):
        _, found = beats(machine, start, (0, 0), (1, 0), (1, 86_400), (1, 0), (1, 0), (1, 0))
    assert found == [0, 1, 3, 3.5, 4, 5]


def test_a_clock_a_day_ahead_after_a_pause_moves_a_heartbeat_by_a_minute(machine):
    start, _ = beats(machine, HeartbeatReader().initialOffset(), (0, 0))
    with pytest.warns(UserWarning, match="ahead of"):
        _, found = beats(machine, start, (3_600, 86_400), (1, 0))  # another run on the same machine
    assert found == [3_660, 3_660.5]


def test_a_clock_that_stays_ahead_is_trusted_after_ten_minutes(machine):
    start, _ = beats(machine, HeartbeatReader().initialOffset(), (0, 0))
    with pytest.warns(UserWarning, match="ahead for 0:10:00") as warned:
        _, found = beats(machine, start, *[(1, 86_400)] * 602)
    assert found[:600] == [2 * passed for passed in range(1, 601)]
    assert found[600:] == [86_400 + 601, 86_400 + 602]
    assert len(warned) == 1


def test_a_clock_set_back_continues_at_half_the_pace(machine):
    start, _ = beats(machine, HeartbeatReader().initialOffset(), (0, 0))
    with pytest.warns(UserWarning, match=r"machine is at .*0:10:00 behind .* heartbeats continue at half the pace"):
        _, found = beats(machine, start, (1, -600), (1, -600), (1_197, -600), (10, -600))
    assert found == [0.5, 1, 599.5, 609]


def test_a_clock_set_back_before_a_restart_of_the_machine_continues(machine):
    start, _ = beats(machine, HeartbeatReader().initialOffset(), (0, 0))
    machine.boot = "second"
    with pytest.warns(UserWarning, match="1 day, 0:00:00 behind"):
        offset, found = beats(machine, start, (0, -86_400), (2, -86_400))
    assert found == [0, 1]
    assert offset["tick"] == 3


def test_a_clock_is_taken_as_it_is_after_a_restart_of_the_machine(machine):
    start, _ = beats(machine, HeartbeatReader().initialOffset(), (0, 0))
    machine.boot = "second"
    _, found = beats(machine, start, (0, 86_400))
    assert found == [86_400]


@pytest.mark.parametrize("policy", [bm.ProcessingTimeLag(60), bm.BoundedOutOfOrderness(60, idle_timeout=30)], ids=str)
def test_no_row_is_dropped_for_a_clock_that_is_a_day_ahead_once(machine, policy):
    pipeline = bm.Pipeline().event_time("ts", policy).window(bm.FixedWindows(10)).with_dropped().accumulate(n=Count())
    steps = [(1, 86_400 if passed == 40 else 0) for passed in range(120)]
    with pytest.warns(UserWarning, match="ahead of"):
        _, clocks = beats(machine, HeartbeatReader().initialOffset(), *steps)
    script = TestStream()
    for passed, clock in enumerate(clocks):
        now = NOON / SECOND + passed
        watermark = {"watermark": now - 60} if policy.moved_by_rows and passed < 5 else {}
        script = script.step([{"ts": now}], clock=NOON / SECOND + clock, **watermark)
    panes = pipeline.run(script)
    assert panes
    assert not [pane for pane in panes if pane.kind is bm.PaneKind.DROPPED]


@given(st.lists(st.tuples(st.integers(1, 4_000), st.sampled_from([0, 0, 0, -3, 2, 70, -86_400, 86_400])), min_size=1))
def test_heartbeats_follow_time_within_bounds(steps):
    machine = Machine()
    before = Heartbeat().next(machine.reading())
    for passed, off in steps:
        machine.passed_us, machine.off_us = machine.passed_us + passed * SECOND, off * SECOND
        after = before.next(machine.reading())
        moved = after.clock_us - before.clock_us
        since = after.ahead_since_us
        believed = since is not None and machine.reading().up_us - since >= 10 * MINUTE
        assert moved >= passed * SECOND // 2
        assert moved <= passed * SECOND + min(passed * SECOND, MINUTE) or believed
        assert not believed or after.clock_us == machine.reading().wall_us
        before = after


@given(st.integers(-2 * DAY, 2 * DAY))
def test_heartbeats_come_to_a_clock_that_stays(off_us):
    machine = Machine()
    before = Heartbeat().next(machine.reading())
    machine.off_us = off_us
    for passed in [1] * 700 + [2 * DAY // SECOND] * 4:
        machine.passed_us += passed * SECOND
        before = before.next(machine.reading())
    assert before.clock_us == machine.reading().wall_us


def test_before_spark_4_2_offsets_have_the_clock_and_no_tick(machine):
    reader = HeartbeatReader()
    first = reader.latestOffset()
    assert (first["tick"], first["clock_us"]) == (0, NOON)
    machine.passed_us += SECOND - 1
    assert reader.latestOffset() == first
    machine.passed_us, machine.off_us = machine.passed_us + 1, DAY
    with pytest.warns(UserWarning, match="ahead of"):
        assert reader.latestOffset()["clock_us"] == NOON + 2 * SECOND


def test_before_spark_4_2_a_clock_set_back_before_a_restart_continues(machine):
    committed = Heartbeat(0, NOON + DAY).offset
    reader = HeartbeatReader()
    first = reader.latestOffset()
    reader.partitions(committed, first)
    machine.passed_us += 2 * SECOND
    with pytest.warns(UserWarning, match="behind"):
        assert reader.latestOffset()["clock_us"] == NOON + DAY + SECOND


def test_a_batch_gets_the_clock_of_its_end():
    reader = HeartbeatReader()
    (partition,) = reader.partitions({"tick": 1, "clock_us": 10}, {"tick": 4, "clock_us": 40})
    (batch,) = reader.read(partition)
    assert batch.to_pylist() == [{"clock_us": 40}]


def test_without_a_boot_id_readings_are_comparable_within_a_process(monkeypatch, tmp_path):
    monkeypatch.setattr(heartbeats, "_BOOT", tmp_path / "none")
    monkeypatch.delattr(heartbeats.time, "CLOCK_BOOTTIME", raising=False)
    one, other = Reading.now(), Reading.now()
    assert one.boot == other.boot
    assert one.up_us <= other.up_us
    monkeypatch.setattr(heartbeats.os, "getpid", lambda: 0)
    assert Reading.now().boot != one.boot
