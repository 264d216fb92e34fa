"""A step must be unchanged after it has been stored and read again."""

import attrs
import numpy as np
import pyarrow as pa

import beamish as bm
from beamish.accumulations import Count
from beamish.kernels.codes import factorize_rows, factorize_tuples, hash_rows, normalise
from beamish.tables.segment_policy import segment_numbers
from beamish.tables.working_table import Pool
from beamish.testing import TestStream
from beamish.triggers import Trigger
from beamish.windows.option import END_OF_TIME_US

KEYS = pa.schema([("team", pa.string())])


@attrs.frozen
class EveryOtherBundle(Trigger):
    """A user's trigger that counts bundles; nothing is its state before the first."""

    def on_rows(self, state, count, context):
        return (state or 0) + 1

    def should_fire(self, state, context):
        return state == 2

    def on_fire(self, state, context):
        return None, False

    def may_lose_rows(self, allowed_lateness_us):
        return False


def test_a_custom_trigger_continues_from_its_stored_state():
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(100))
        .trigger(EveryOtherBundle())
        .discarding()
        .accumulate(n=Count())
    )
    script = TestStream()
    for team in ("red", "blue", "red", "red", "red", "blue"):
        script = script.add([{"ts": 1, "team": team}])
    panes = [(pane.key["team"], pane.values["n"], pane.index) for pane in pipeline.run(script)]
    assert panes == [("red", 2, 0), ("red", 2, 1), ("blue", 2, 0)]


def test_endless_windows_are_segmented_by_key():
    pool = Pool(KEYS)
    at = pool.append(pa.table({"team": [f"team {n}" for n in range(2_000)]}, schema=KEYS))
    ends = np.full(2_000, END_OF_TIME_US)
    segments = segment_numbers(1_000_000, ends, pool, at)
    assert len(set(segments.tolist())) == 64
    assert segments.max() - segments.min() == 63
    assert segments.max() < -(2**61)  # apart from the numbers of windows that end
    assert segment_numbers(7, ends[:1], pool, at[5:6]).tolist() == [segments[5]]
    assert segment_numbers(1_000_000, np.array([0, 999_999, -1]), pool, at[:3]).tolist() == [0, 0, -1]


def test_the_hash_of_a_key_never_changes():
    """State is found by it."""
    text = pa.array(["red", None, "a key of more than eight bytes"])
    number = pa.array([1, 2, None])
    both = pa.StructArray.from_arrays([text, number], names=["team", "number"])
    assert hash_rows([text], 3).tolist() == [11356384189429302457, 0, 15326767092061833735]
    assert hash_rows([text, number], 3).tolist() == [2558705346755059931, 10905525727622292241, 15551944730807121764]
    assert hash_rows([both], 3).tolist() == [2558705347283400751, 10905525725756348111, 15551944729386527793]


def test_rows_of_keys_are_equal_as_in_a_group_by():
    number = normalise(pa.array([0.0, -0.0, float("nan"), -float("nan"), None, 1.0, None]))
    assert factorize_rows([number], 7).of.tolist() == [0, 0, 1, 1, 2, 3, 2]
    groups = factorize_rows([pa.array(["a", "a", "b", "a"]), pa.array([1, 2, 1, 1])], 4)
    assert (groups.of.tolist(), groups.count) == ([0, 1, 2, 0], 3)
    struct = pa.array([{"x": None}, None, {"x": None}, {"x": 1}])
    assert factorize_rows([struct], 4).of.tolist() == [0, 1, 0, 2]
    assert factorize_rows([], 3).of.tolist() == [0, 0, 0]
    assert factorize_rows([], 0).count == factorize_tuples([], 0).count == 0
    assert factorize_rows([pa.nulls(2)], 2).count == 1
