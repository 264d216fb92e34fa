"""The laws of beamish/contract/operator.py for every operator of a flow, one of a stage kind that lives in the tests among them.

They hold of pipelines of all kinds in test_engine_and_twin.py too.
"""

from __future__ import annotations

from unittest import mock

import pyarrow as pa
from hypothesis import assume, example, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.contract.operator import Cadence, Shard
from beamish.contract.stored import DictStore
from beamish.fusion.groups import APART, FUSE
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.window.step import packing
from beamish.script import panes_from_table
from beamish.source import Source
from tests.agreement import differences
from tests.kinds.every import strategies
from tests.kinds.suppress.strategy import patient, suppressed, until_limit
from tests.seconds import S
from tests.strategies.accumulations import accumulations
from tests.strategies.triggers import triggers
from tests.strategies.watermarks import watermarks
from tests.strategies.windows import windows

COLUMNS = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "team": pa.string(),
        "score": pa.int64(),
        "ratio": pa.float64(),
        "name": pa.string(),
        "cost": pa.decimal128(10, 2),
        "flag": pa.bool_(),
        "mark": pa.timestamp("us", "UTC"),
    }
)


@st.composite
def window_flows(draw: st.DrawFn):
    """A flow of one stage, or of a stage over it, that its ``check`` accepts."""
    first = (
        bm.Pipeline()
        .event_time("ts", draw(watermarks))
        .key_by(*draw(st.sampled_from([(), ("team",)])))
        .window(draw(windows))
        .trigger(draw(triggers), allow_data_loss=True)
        .accumulation_mode(draw(st.sampled_from(bm.AccumulationMode)))
        .accumulate(v=draw(accumulations))
    )
    if draw(st.booleans()):
        later = bm.Pipeline().trigger(draw(triggers), allow_data_loss=True).accumulating()
        try:
            first = first.then(later.accumulate(n=bm.accumulations.Count()))
        except bm.PipelineError:
            assume(False)  # noqa: FBT003
    try:
        first.flow.check()
    except bm.PipelineError:
        assume(False)  # noqa: FBT003
    return first.flow


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
    max_size=6,
)
rising = st.none() | st.integers(0, 9)
steps = st.lists(st.tuples(rising, rising, bundles, st.integers(0, 1)), max_size=6)
"""How far the watermark and the clock move, in seconds (None: they do not), rows, and the source whose rows and watermark."""


def table(rows):
    times = [None if row["ts"] is None else row["ts"] * S for row in rows]
    own = pa.Table.from_pylist([{**row, "ts": time} for row, time in zip(rows, times, strict=True)], schema=COLUMNS)
    return own.append_column(EVENT_TIME, pa.array(times, pa.int64()))


@st.composite
def suppressed_flows(draw: st.DrawFn):
    """The same with some of their stages suppressed."""
    try:
        return draw(suppressed(window_flows().map(bm.Pipeline), buffers=patient)).flow
    except bm.PipelineError:
        assume(False)  # noqa: FBT003


CHANGES = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
sequences = st.sampled_from([None, "score", "name"])
changes_flows = st.builds(
    lambda sequence_by, until, buffer: (
        CHANGES.changes(deleted="flag", sequence_by=sequence_by).suppress(until, buffer=buffer).flow
    ),
    sequences,
    until_limit("event", "processing"),
    patient,
)
SUMS = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(3))
    .accumulate(n=Count(), sum=Sum("score"))
)
AGAIN = bm.Pipeline().key_by("team")
tables = st.builds(
    lambda before, history, said: before.versions(history, **said),
    st.sampled_from([CHANGES, SUMS.trigger(bm.triggers.Always()).accumulating_and_retracting().then(AGAIN)]),
    st.integers(0, 20),
    st.fixed_dictionaries({}, optional={"only_updated": st.booleans(), "allowed_lateness": st.just(0)}),
)
deleting_tables = st.builds(
    lambda history, by: CHANGES.versions(history, deleted="flag", sequence_by=by), st.integers(0, 20), sequences
)
lefts = st.sampled_from([bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)), SUMS])
joins = st.builds(
    lambda orders, rates, retracts, said: retracts(bm.as_of_join(orders=orders, rates=rates, on="team", **said)),
    lefts,
    st.one_of(tables, deleting_tables),
    st.sampled_from([bm.Pipeline.discarding, bm.Pipeline.accumulating_and_retracting]),
    st.fixed_dictionaries(
        {"how": st.sampled_from(["inner", "left"]), "early": st.booleans()},
        optional={"wait_for": st.just(bm.LEFT_INPUT), "allow_exact_matches": st.sampled_from([True, False])},
    ),
)
COUNTS = bm.Pipeline().key_by("team").window(bm.FixedWindows(5)).trigger(bm.triggers.Always()).accumulating()
flows = st.one_of(
    st.one_of(tables, deleting_tables, joins).map(lambda pipeline: pipeline.flow),
    st.one_of(tables, joins).map(lambda pipeline: pipeline.then(COUNTS.accumulate(n=Count())).flow),
    window_flows(),
    suppressed_flows(),
    changes_flows,
    *(one.map(lambda pipeline: pipeline.flow) for kind in strategies() for one in getattr(kind, "FLOWS", ())),
)


SPILLS = (
    CHANGES.changes(deleted="flag")
    .suppress(bm.UntilTimeLimit(1, clock="event"), buffer=bm.Buffer(max_records=0, when_full=bm.SPILL))
    .flow
)
fuses = st.sampled_from([FUSE, APART])


class Running:
    """The operators of a flow, each after those whose panes it takes; those of fused stages are one."""

    def __init__(self, flow, *, fuse, shards=1, packs=1, pieces=1, reopens=False):
        self.names = [source.name for source in flow.sources]
        bound = flow.bind(dict.fromkeys(self.names, COLUMNS), shards=shards)
        self.flows = fuse.grouped(bound).each
        self.last = [flow.flows[group.links[-1].number - 1] for group in self.flows]
        self.operators = [one.operator for one in self.flows]
        self.stores = [[DictStore() for _ in range(one.shards)] for one in self.operators]
        self.packs, self.pieces, self.reopens, self.clock_us = packs, pieces, reopens, 0
        self.watermarks_us = dict.fromkeys(self.names, 0)
        self.open()

    def open(self):
        self.shards = [
            [one.open(store) for store in stores] for one, stores in zip(self.operators, self.stores, strict=True)
        ]

    def step(self, watermark, clock, rows, of):
        """Returns the output of each stage."""
        if self.reopens:
            self.open()
        name = self.names[of % len(self.names)]
        self.watermarks_us[name] += (watermark or 0) * S
        self.clock_us += (clock or 0) * S
        gave = {name: (table(rows), None if watermark is None else self.watermarks_us[name])}
        for flow, shards in zip(self.flows, self.shards, strict=True):
            given = [gave.get(one.name if isinstance(one, Source) else one, (None, None)) for one in flow.inputs]
            payloads = {}
            for number, (taken, _) in enumerate(given):
                for shard, payload in self.packed(flow.operator, number, taken):
                    payloads.setdefault(shard, []).append(payload)
            clock_us, sources_us = None if clock is None else self.clock_us, [us for _, us in given]
            tables = [shard.step(sources_us, clock_us, payloads.get(i, [])) for i, shard in enumerate(shards)]
            gave[flow] = pa.concat_tables(tables), shards[0].watermark_us
        return [panes_from_table(gave[flow][0], flow.operator.gives) for flow in self.flows]

    def packed(self, operator, number, taken):
        """The payloads of what an input gives, in parts, each in pieces."""
        for part in reversed(parts(taken, self.packs)) if taken is not None else ():
            pieces = parts(part, self.pieces)
            yield from operator.pack_pieces(number, pieces) if self.pieces > 1 else operator.pack(number, part)


def parts(rows, count):
    """Rows as this many non-empty tables."""
    each = [rows.take(pa.array(range(part, len(rows), count), pa.int64())) for part in range(count)]
    return [part for part in each if len(part)]


def is_the_same(one, other, steps):
    """The output of each operator is; of the last one, if the stages run in other operators: in one shard all run in one."""
    first = 0 if len(one.flows) == len(other.flows) else -1
    for step in steps:
        outputs = (outputs[first:] for outputs in (one.last, one.step(*step), other.step(*step)))
        for of_stage, panes, otherwise in zip(*outputs, strict=True):
            found = differences(otherwise, panes, bm.Pipeline(of_stage))
            assert not found, "\n".join(found)


@given(flows, fuses, steps, st.integers(2, 4))
def test_how_rows_are_packed_changes_nothing(flow, fuse, steps, packs):
    is_the_same(Running(flow, fuse=fuse), Running(flow, fuse=fuse, packs=packs), steps)


@given(flows, fuses, steps, st.integers(1, 2), st.integers(2, 4))
def test_packing_piece_by_piece_changes_nothing(flow, fuse, steps, packs, pieces):
    with mock.patch.object(packing, "_WORTH", 0):  # slices are put together however few that saves
        is_the_same(Running(flow, fuse=fuse), Running(flow, fuse=fuse, packs=packs, pieces=pieces), steps)


@given(flows, fuses, steps, st.integers(2, 4))
def test_the_number_of_shards_changes_nothing(flow, fuse, steps, shards):
    is_the_same(Running(flow, fuse=fuse), Running(flow, fuse=fuse, shards=shards), steps)


@given(flows, fuses, steps)
def test_reopening_a_shard_from_the_bytes_in_its_store_changes_nothing(flow, fuse, steps):
    as_input, reopened = Running(flow, fuse=fuse), Running(flow, fuse=fuse, reopens=True)
    for step in steps:
        assert list(map(repr, reopened.step(*step))) == list(map(repr, as_input.step(*step)))
    due = [[shard.next_due_us for shards in one.shards for shard in shards] for one in (as_input, reopened)]
    assert due[0] == due[1]


@given(flows, fuses, steps, st.booleans())
def test_a_step_of_nothing_gives_nothing_and_leaves_the_stored_bytes_as_they_are(flow, fuse, steps, reopens):
    running = Running(flow, fuse=fuse, reopens=reopens)
    # With an idle timeout a step of nothing is one more step in which no row came.
    assume(all(operator.cadence is Cadence.WHEN_DUE for operator in running.operators))
    for step in [(None, None, [], 0), *steps]:  # the first writes what the shard is
        running.step(*step)
    before = [[dict(store) for store in stores] for stores in running.stores]
    if reopens:
        running.open()
    for operator, shards in zip(running.operators, running.shards, strict=True):
        for shard in shards:
            assert shard.step([None] * len(operator.takes), None, []).num_rows == 0
    assert running.stores == before


@example(
    SPILLS, APART, [(None, None, [{"ts": 0, "team": "red", "score": 1, "ratio": None, "name": None, "flag": None}], 0)]
)
@given(flows, fuses, steps)
def test_updates_writes_nothing(flow, fuse, steps):
    running = Running(flow, fuse=fuse)

    def step(shard, *came):
        before = [[dict(store) for store in stores] for stores in running.stores]
        updates = shard.updates(*came)
        assert running.stores == before
        rows = shard.operator.rows(updates)
        shard.save()
        return rows

    with mock.patch.object(Shard, "step", step):
        for one in steps:
            running.step(*one)
