"""The local runner: runs a flow on a script, in process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.clocks import Clocks
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.stored import DictStore
from beamish.contract.updates import number_rows
from beamish.flow import BoundFlow, Flow
from beamish.fusion.groups import APART, Fuse
from beamish.pane import Pane, PaneList
from beamish.script import (
    Event,
    ScriptRows,
    Trace,
    check_script,
    clock_of,
    moved_to,
    panes_from_table,
    script_rows,
    steps_of,
)
from beamish.source import Source
from beamish.watermarks import known_us


@attrs.frozen
class Variation:
    """Physical layout of a run; affects only the order between keys.

    Attributes:
        shards: number of shards of each stage.
        packs: number of parts that a bundle is split into before it is packed.
        round_trip: whether every step starts from the stored bytes only.
        adapt: modifies an operator before it runs, such as its segment policy.
        fuse: which stages run together.
    """

    shards: int = 1
    packs: int = 1
    round_trip: bool = False
    adapt: Callable[[Operator], Operator] = lambda operator: operator
    fuse: Fuse = APART


def trace(flow: Flow, events: Sequence[Event], how: Variation | None = None, initial: Any = None) -> Trace:
    """Run a script; yields each event with its output.

    Args:
        flow: the flow to run.
        events: the script.
        how: the physical layout.
        initial: initial rows of tables, as for ``Flow.initial``.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid.
    """
    how = how or Variation()
    rows = _rows_of(flow, events, initial)
    if not rows.any:
        return Trace((event, PaneList()) for event in events)
    bound = how.fuse.grouped(flow.bind(rows.schemas, shards=how.shards))
    tables = _run(_Node(bound, how, rows.initial), events, rows)
    return Trace(
        (event, panes_from_table(out, bound.operator.gives)) for event, out in zip(events, tables, strict=True)
    )


def _rows_of(flow: Flow, events: Sequence[Event], initial: Any) -> ScriptRows:
    """The rows of a script, checked against the flow.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid.
    """
    flow.check()
    check_script(flow, events)
    return script_rows(flow, events, initial)


def _run(root: _Node, events: Sequence[Event], rows: ScriptRows) -> Iterator[pa.Table]:
    """The output at each event."""
    bundles = {name: iter(tables) for name, tables in rows.tables.items()}
    for event in events:
        yield root.step(event, {step.input: next(bundles[step.input]) for step in steps_of(event) if step.rows})


def run(flow: Flow, events: Sequence[Event], how: Variation | None = None, initial: Any = None) -> PaneList:
    """Run a script like ``trace``; returns all output, in order.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid.
    """
    return PaneList(pane for _, panes in trace(flow, events, how, initial) for pane in panes)


@attrs.frozen
class StageStep:
    """The effect of a script event on one stage.

    Attributes:
        panes: its output.
        watermark_us: its watermark after the event, microseconds; None before there is one.
        inputs_us: the watermark of each of its inputs, likewise.
    """

    panes: list[Pane]
    watermark_us: int | None
    inputs_us: tuple[int | None, ...]


def trace_stages(flow: Flow, events: Sequence[Event], initial: Any = None) -> Iterator[tuple[Event, list[StageStep]]]:
    """Run a script; yields each event with its effect on each stage, in the order of ``flow.flows``.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid.
    """
    rows = _rows_of(flow, events, initial)
    if not rows.any:
        return
    root = _Node(flow.bind(rows.schemas, shards=1), Variation(), rows.initial)
    nodes = list(root.nodes())
    clocks = [Clocks.new(len(node.inputs_us)) for node in nodes]  # per input, which a shard does not expose
    for event, _ in zip(events, _run(root, events, rows), strict=True):
        done = []
        for below, node, of in zip(flow.flows, nodes, clocks, strict=True):
            of.step([relation.policy for relation in below.takes], node.inputs_us, clock_of(event))
            inputs_us = tuple(known_us(progress.watermark_us) for progress in of.inputs)
            done.append(StageStep(panes_from_table(node.out, node.gives), node.watermark_us, inputs_us))
        yield event, done


def stages_after(
    flow: Flow, events: Sequence[Event], initial: Any = None
) -> Iterator[tuple[BoundFlow, Sequence[DictStore]]]:
    """Each stage, bound to the script's columns, and the stores of its shards after it; empty: no rows arrived.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is invalid.
    """
    rows = _rows_of(flow, events, initial)
    if not rows.any:
        return
    bound = flow.bind(rows.schemas, shards=1)
    root = _Node(bound, Variation(), rows.initial)
    for _ in _run(root, events, rows):
        pass
    yield from zip(bound.flows, root.stores(), strict=True)


class _Leaf:
    """A source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.watermark_us: int | None = None

    def step(self, event: Event, rows: Mapping[str | None, pa.Table]) -> pa.Table | None:
        """Its rows among those of the step."""
        self.watermark_us = moved_to(self._source, event)
        return rows.get(self._source.name)


class _Node:
    """A stage of the flow with all its shards and upstream nodes."""

    out: pa.Table
    """The output of the last step."""

    def __init__(
        self, flow: BoundFlow, how: Variation, initial: Mapping[str | None, pa.Table] = MappingProxyType({})
    ) -> None:
        self._operator, self._how = how.adapt(flow.operator), how
        self._inputs = [
            _Leaf(taken) if isinstance(taken, Source) else _Node(taken, how, initial) for taken in flow.inputs
        ]
        self._stores = [DictStore() for _ in range(flow.operator.shards)]
        self._shards = [self._operator.open(store) for store in self._stores]
        self._given = [0 for _ in self._stores]
        for number, taken in enumerate(flow.inputs):
            if isinstance(taken, Source) and taken.name in initial:
                payloads: dict[int, list[bytes]] = {}
                rows = self._operator.takes[number].with_fields(initial[taken.name])
                for shard, payload in self._operator.pack(number, rows):
                    payloads.setdefault(shard, []).append(payload)
                for shard, of_shard in payloads.items():
                    self._shards[shard].begin(of_shard)

    def nodes(self) -> Iterator[_Node]:
        """The upstream stages and itself, each after those it depends on."""
        for below in self._inputs:
            if isinstance(below, _Node):
                yield from below.nodes()
        yield self

    @property
    def gives(self) -> Relation:
        """Its output relation."""
        return self._operator.gives

    @property
    def inputs_us(self) -> list[int | None]:
        """The watermarks of its inputs in the last step."""
        return [below.watermark_us for below in self._inputs]

    @property
    def watermark_us(self) -> int | None:
        """The watermark that it forwards; equal in all its shards."""
        return self._shards[0].watermark_us

    def stores(self) -> Iterator[Sequence[DictStore]]:
        """The stores of the shards of upstream stages, and of its own, in the order of ``BoundFlow.flows``."""
        for below in self._inputs:
            if isinstance(below, _Node):
                yield from below.stores()
        yield self._stores

    def step(self, event: Event, rows: Mapping[str | None, pa.Table]) -> pa.Table:
        """Step upstream nodes, then its own shards; ``rows`` are those of the step, by input."""
        sources_us: list[int | None] = []
        payloads: dict[int, list[bytes]] = {}
        for number, below in enumerate(self._inputs):
            taken = below.step(event, rows)
            sources_us.append(below.watermark_us)
            for shard, payload in _payloads(self._operator, number, taken, self._how.packs):
                payloads.setdefault(shard, []).append(payload)
        if self._how.round_trip:
            self._shards = [self._operator.open(store) for store in self._stores]
        out = [
            self._numbered(i, shard.step(sources_us, clock_of(event), payloads.get(i, [])))
            for i, shard in enumerate(self._shards)
        ]
        self.out = pa.concat_tables(out)
        return self.out

    def _numbered(self, shard: int, rows: pa.Table) -> pa.Table:
        first = self._given[shard]
        self._given[shard] += rows.num_rows
        return number_rows(rows, first, self._shards[shard].watermark_us)


def _payloads(operator: Operator, number: int, rows: pa.Table | None, packs: int) -> Iterator[tuple[int, bytes]]:
    """The payloads of a bundle, which is split into ``packs`` parts first."""
    if rows is not None:
        for part in range(packs):
            taken = rows.take(pa.array(np.arange(part, rows.num_rows, packs)))
            yield from operator.pack(number, operator.takes[number].with_fields(taken))
