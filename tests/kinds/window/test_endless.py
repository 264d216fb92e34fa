"""Windows without an end, in generations: a step reads and writes those of its keys, not all that are stored."""

import attrs
import numpy as np
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.contract.stored import DictStore
from beamish.errors import StateError
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.window.state.endless import generations
from beamish.kinds.window.state.segments import LAYOUT
from beamish.tables.segment_policy import DEFAULT_POLICY, SegmentPolicy
from beamish.tables.segments import SegmentStore
from beamish.triggers import Always

SCHEMA = pa.schema([("user", pa.int64())])
PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("user")
    .window(bm.GlobalWindow())
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(n=Count())
)
POLICY = SegmentPolicy(recent_windows=500, recent_batches=2, most_generations=3)


class Reads(DictStore):
    """A store that remembers which entries were read."""

    def __init__(self, entries):
        super().__init__(entries)
        self.read = set()

    def get(self, name, default=None):
        self.read.add(name)
        return super().get(name, default)


def stepped(store, users, policy=POLICY):
    """A step in which these users have a row each; the panes' users and counts."""
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), *SCHEMA])
    operator = attrs.evolve(PIPELINE.flow.bind({None: schema}, shards=1).operator, policy=policy)
    times = np.zeros(len(users), np.int64)
    rows = pa.table({"ts": pa.array(times).cast(schema[0].type), "user": users, EVENT_TIME: times})
    payloads = [payload for _, payload in operator.pack(0, rows)]
    out = operator.open(store).step([None], None, payloads)
    panes = out.filter(pa.array([pane["kind"] == "PANE" for pane in out["pane"].to_pylist()]))
    return dict(zip(panes["user"].to_pylist(), panes["n"].to_pylist(), strict=True))


def stored(store):
    segments = SegmentStore(store, LAYOUT)
    return sorted(set(generations(segments.index["segment"]).tolist())), segments.rows


def test_counts_continue_wherever_windows_are():
    store, expected, seen = DictStore(), dict[int, int](), set[int]()
    for number in range(40):
        users = [*range(number * 100, number * 100 + 200), number * 37 % 500]
        for user in set(users):
            expected[user] = expected.get(user, 0) + users.count(user)
        found = stepped(store, users)
        assert found == {user: expected[user] for user in users}
        of, rows = stored(store)
        assert rows == len(expected)
        assert len(of) <= 1 + POLICY.most_generations
        assert {name for name in store if name.startswith("h")} == {f"h{one}" for one in of if one > 0}
        seen |= {len(of)}
    assert max(seen) == 1 + POLICY.most_generations


def test_a_step_reads_the_recent_windows_and_those_of_its_keys():
    store = DictStore()
    for first in range(0, 6_000, 300):
        stepped(store, range(first, first + 300))
    segments = SegmentStore(store, LAYOUT)
    recent = generations(segments.index["segment"]) == 0
    names = {f"s{one}" for one in segments.numbers(recent)}
    assert 300 <= segments.index["windows"][recent].sum() < 1_000
    again = Reads(store)
    assert set(stepped(again, range(5_900, 6_100), DEFAULT_POLICY).values()) == {1, 2}
    assert {name for name in again.read if name.startswith("s")} <= names
    old = Reads(store)
    assert stepped(old, [7, 8], DEFAULT_POLICY) == {7: 2, 8: 2}
    assert 1 <= len({name for name in old.read if name.startswith("s")} - names) <= 2


def test_an_earlier_version_refuses_generations(monkeypatch):
    store = DictStore()
    for first in range(0, 4_000, 200):
        stepped(store, range(first, first + 200))
    assert SegmentStore(store, LAYOUT).about["format"] == 5
    monkeypatch.setattr("beamish.tables.notes.WITH_GENERATIONS", 0)
    with pytest.raises(StateError, match="the checkpoint has state format 5"):
        stepped(store, [1])
