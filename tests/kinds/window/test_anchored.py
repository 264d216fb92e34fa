"""Windows anchored at rows: chunks, cost, restarts; what cannot be shown in a transcript (rules/windows.md#anchored-windows)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.accumulations import Collect, Count, Max, Sum
from beamish.contract.stored import DictStore
from beamish.kernels.anchored import changed_windows
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.window.parts import anchors
from beamish.script import as_step
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.agreement import differences
from tests.cost import cost
from tests.kinds.window.strategy import script_of
from tests.laws.counting import work_of_last_step
from tests.upgrades.carried import in_two_runs

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
ALWAYS = SOURCE.window(bm.AnchoredWindows(2)).trigger(Always()).accumulating_and_retracting()


@pytest.mark.of_law("law-anchored")
@cost(0.5)
@given(st.integers(0, 2**40), st.sampled_from([0, 1, 3]))
def test_the_window_that_ends_at_a_row_has_the_rows_of_its_range_frame(number, difference):
    """One of the two is an accumulator per window, the other a value per row, recombined from blocks."""
    values = {"n": Count(), "total": Sum("score"), "most": Max("ratio")}
    script = script_of(number, ends=True)
    windows = SOURCE.window(bm.AnchoredWindows(difference)).allowed_lateness(10**6).accumulating().accumulate(**values)
    frames = SOURCE.over(bm.Preceding(difference)).allowed_lateness(10**6).accumulating_and_retracting()
    ends = {}
    for pane in windows.run(script):
        ends[pane.key["team"], pane.end] = [pane.values[name] for name in values]
    rows = bm.live(frames.accumulate(**values).run(script))
    assert rows
    for row in rows:
        end = row.timestamp + pa.scalar(1, pa.duration("us")).as_py()
        assert ends[row.key["team"], end] == [row.values[name] for name in values]


@pytest.mark.of_law("law-anchored")
@cost(3)
@given(st.integers(0, 2**40))
def test_in_the_end_windows_that_retract_are_those_of_all_rows_at_once(number):
    pipeline = ALWAYS.allowed_lateness(10**6).accumulate(n=Count(), scores=Collect("score"))
    script = script_of(number, ends=True)
    rows = [row for event in map(as_step, script.events) for row in event.rows]
    at_once = TestStream().add(rows).advance_watermark_to_infinity()
    assert live(pipeline.run(script)) == live(pipeline.run(at_once))


def live(panes):
    """The live panes, as text; rows of equal times in any order."""
    live = [pane for pane in bm.live(panes) if pane.kind is PaneKind.PANE]
    return sorted(
        repr((pane.key, pane.window, pane.values["n"], sorted(map(repr, pane.values["scores"])))) for pane in live
    )


@pytest.mark.parametrize("first", [2, 3, 5])
def test_a_later_run_may_list_dropped_rows_and_may_stop_to(first):
    """Stored rows have the columns that accumulations read, whatever travels to the shard."""
    pipeline = ALWAYS.allowed_lateness(5).accumulate(n=Count(), total=Sum("score"))
    script = script_of(3)
    for then, now in ((pipeline, pipeline.with_dropped()), (pipeline.with_dropped(), pipeline)):
        one, other = in_two_runs(then, now, script, first)
        kept = [pane for pane in (*one, *other) if pane.kind is not PaneKind.DROPPED]
        assert not differences(pipeline.run(script), kept, pipeline)


@pytest.mark.dear
@pytest.mark.parametrize("most", [1, 3, 10])
def test_the_number_of_pairs_that_are_added_at_once_changes_nothing(monkeypatch, most):
    pipeline = ALWAYS.allowed_lateness(5).accumulate(n=Count(), scores=Collect("score"))
    for number in range(5):
        script = script_of(number)
        whole = pipeline.run(script)
        with monkeypatch.context() as patched:
            patched.setattr(anchors, "_MOST_ENTRIES", most)
            assert pipeline.run(script) == whole


def test_changed_windows_are_found_on_columns():
    key, time_us = np.array([0, 0, 1, 0]), np.array([10, 12, 12, 11])
    found = changed_windows(key, time_us, np.array([True, True, True, False]), 3)
    window, row = found.pairs()
    pairs = sorted(zip(found.start_us[window].tolist(), time_us[row].tolist(), strict=True))
    # [8, 10] has no new row, [10, 12] and [11, 13] take the new one, [9, 11] and [12, 14] are new, that of key 1 stays.
    assert pairs == [(9, 10), (9, 11), (10, 11), (11, 11), (12, 12)]


def test_a_step_costs_the_rows_within_the_difference():
    """Entries of the store and calls of the last step, as ever more rows lie outside the windows of its row."""

    def work(rows):
        script = TestStream().add([{"ts": ts * 100, "team": "a", "score": 1} for ts in range(rows)])
        for later in range(3):
            script = script.add([{"ts": (rows + later) * 100, "team": "a", "score": 1}])
        return work_of_last_step(pipeline, script.events)

    pipeline = ALWAYS.allowed_lateness("30 days").accumulate(n=Count())
    few, many = work(200), work(2000)
    assert many[0] <= few[0] + 3
    assert many[1] <= 1.1 * few[1]


def test_rows_are_dropped_when_no_window_can_have_them():
    columns = {None: pa.schema([("ts", pa.timestamp("us", "UTC")), ("team", pa.string())])}
    pipeline = ALWAYS.allowed_lateness(1).accumulate(n=Count())
    operator, store = pipeline.flow.bind(columns, shards=1).operator, DictStore()
    rows = pa.table({"team": ["a", "b"], EVENT_TIME: [1_000_000, 1_000_000]})
    operator.open(store).step([0], None, [payload for _, payload in operator.pack(0, rows)])
    stored = operator.open(store)
    assert stored.next_due_us is not None
    stored.step([4_000_001], None, [])
    assert any(name.startswith("anchors") and not name.endswith("index") for name in store)
    operator.open(store).step([4_000_002], None, [])
    assert not [name for name in store if name.startswith("anchors") and not name.endswith("index")]
    assert operator.open(store).next_due_us is None
