"""The laws of beamish/engine/operator.py that are about one shard and its bytes, for every operator of a flow.

Packing and the number of shards: test_what_changes_nothing.py.
"""

from __future__ import annotations

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from beamish.engine.operator import Cadence
from beamish.engine.state import DictStore
from beamish.kernels.reserved import EVENT_TIME
from tests.laws.test_stage import COLUMNS, flows
from tests.seconds import S

bundles = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.none() | st.integers(0, 30),
            "team": st.sampled_from(["red", "blue", None]),
            "score": st.none() | st.integers(0, 3),
            "ratio": st.sampled_from([None, 0.5, 2.0]),
            "name": st.sampled_from([None, "a", "b"]),
            "flag": st.none() | st.booleans(),
        }
    ),
    max_size=4,
)
rising = st.none() | st.integers(0, 9)
steps = st.lists(st.tuples(rising, rising, bundles), max_size=6)
"""How far the watermark and the clock move, in seconds (None: they do not), and rows."""


def table(rows):
    times = [None if row["ts"] is None else row["ts"] * S for row in rows]
    own = pa.Table.from_pylist([{**row, "ts": time} for row, time in zip(rows, times, strict=True)], schema=COLUMNS)
    return own.append_column(EVENT_TIME, pa.array(times, pa.int64()))


class Running:
    """The operators of a flow of stages one after the other, one shard each."""

    def __init__(self, flow, *, reopens=False):
        self.operators = [one.operator for one in flow.bind({None: COLUMNS}, shards=1).flows]
        self.stores = [DictStore() for _ in self.operators]
        self.reopens, self.watermark_us, self.clock_us = reopens, 0, 0
        self.open()

    def open(self):
        self.shards = [one.open(store) for one, store in zip(self.operators, self.stores, strict=True)]

    def step(self, watermark, clock, rows):
        """Gives what comes out of each stage."""
        if self.reopens:
            self.open()
        self.watermark_us += (watermark or 0) * S
        self.clock_us += (clock or 0) * S
        source_us, taken, out = None if watermark is None else self.watermark_us, table(rows), []
        for operator, shard in zip(self.operators, self.shards, strict=True):
            payloads = [payload for _, payload in operator.pack(0, taken)]
            taken = shard.step([source_us], None if clock is None else self.clock_us, payloads)
            source_us = shard.watermark_us
            out.append(repr(taken.to_pylist()))
        return out


@given(flows(), steps)
def test_reopening_a_shard_from_the_bytes_in_its_store_changes_nothing(flow, steps):
    going_on, reopened = Running(flow), Running(flow, reopens=True)
    for step in steps:
        assert reopened.step(*step) == going_on.step(*step)
    assert [shard.next_due_us for shard in reopened.shards] == [shard.next_due_us for shard in going_on.shards]


@given(flows(), steps, st.booleans())
def test_a_step_of_nothing_gives_nothing_and_leaves_the_stored_bytes_as_they_are(flow, steps, reopens):
    running = Running(flow, reopens=reopens)
    # With an idle timeout a step of nothing is one more step in which no row came.
    assume(all(operator.cadence is Cadence.WHEN_DUE for operator in running.operators))
    for step in [(None, None, []), *steps]:  # the first writes what the shard is
        running.step(*step)
    before = [dict(store) for store in running.stores]
    if reopens:
        running.open()
    for shard in running.shards:
        assert shard.step([None], None, []).num_rows == 0
    assert running.stores == before
