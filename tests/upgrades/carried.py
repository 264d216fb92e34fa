"""A pipeline stopped, changed and started, in process: the state is carried over as a checkpoint carries it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
import pyarrow as pa

import beamish as bm
from beamish.checkpoint.comparison import Change, StoredStage, changes_of
from beamish.contract.operator import Operator
from beamish.contract.stored import ABOUT, DictStore
from beamish.flow import BoundFlow, descriptions
from beamish.fusion.groups import APART
from beamish.local import Variation, _Node
from beamish.pane import Pane
from beamish.rescale import check_carries_over, put_together, split
from beamish.script import ScriptRows, as_step, panes_from_table, script_rows
from beamish.spark.compile.stream import needs_ticks
from beamish.testing import TestStream

SHARDS = 2
Stores = list[Sequence[DictStore]]
Types = Mapping[str, pa.DataType]
"""The types of columns, by name; the others are inferred from their values."""
BothTypes = tuple[Types, Types]
"""In the first run and in the second."""
AS_THEY_COME: BothTypes = ({}, {})


class Run:
    """A pipeline in process, whose state outlives it.

    Args:
        pipeline: what runs.
        schemas: the columns of its sources.
        stores: per stage the stores of its shards; None: it begins.
        shards: of each stage.
    """

    def __init__(
        self,
        pipeline: bm.Pipeline,
        schemas: Mapping[str | None, pa.Schema],
        stores: Stores | None = None,
        shards: int = SHARDS,
    ) -> None:
        self.flow: BoundFlow = pipeline.flow.completed.bind(schemas, shards=shards)
        self._root = _Node(self.flow, Variation(shards=shards, round_trip=True))
        if stores is not None:
            for node, own in zip(self._root.nodes(), stores, strict=True):
                node._stores = list(own)
                node._shards = [node._operator.open(store) for store in own]

    def step(self, event: Any, rows: pa.Table | None) -> list[Pane]:
        out = self._root.step(event, {} if rows is None else {as_step(event).input: rows})
        return list(panes_from_table(out, self.flow.operator.gives))

    @property
    def stores(self) -> Stores:
        return list(self._root.stores())


def typed(rows: ScriptRows, types: Types) -> ScriptRows:
    """The rows of a script in columns of these types."""
    tables = {name: [_cast(table, types) for table in of] for name, of in rows.tables.items()}
    schemas = {name: _cast(schema.empty_table(), types).schema for name, schema in rows.schemas.items()}
    return attrs.evolve(rows, tables=tables, schemas=schemas)


def _cast(table: pa.Table, types: Types) -> pa.Table:
    for at, name in enumerate(table.schema.names):
        if name in types:
            column = table[name]
            if pa.types.is_decimal(types[name]) and pa.types.is_integer(column.type):
                column = column.cast(pa.int16())  # a longer one might have more digits than the decimal
            table = table.set_column(at, name, column.cast(types[name]))
    return table


def in_two_runs(
    then: bm.Pipeline, now: bm.Pipeline, script: TestStream, first: int, types: BothTypes = AS_THEY_COME
) -> tuple[list[Pane], list[Pane]]:
    """The output of a script in two runs, the first with this many events."""
    both = [typed(script_rows(then.flow, script.events), of) for of in types]
    tables = {name: zip(*(rows.tables[name] for rows in both), strict=True) for name in both[0].tables}
    run, out = Run(then, both[0].schemas), ([], [])  # type: tuple[Run, tuple[list[Pane], list[Pane]]]
    for number, event in enumerate(script.events):
        if number == first:
            run = Run(now, both[1].schemas, run.stores)
        step, second = as_step(event), number >= first
        out[second].extend(run.step(event, next(tables[step.input])[second] if step.rows else None))
    return out


def carry_over(operator: Operator, stores: Sequence[DictStore]) -> list[DictStore]:
    """The stores of a stage's shards, for an operator that continues with them."""
    check_carries_over(operator, dict(enumerate(stores)))
    parts = [split(operator, store) for store in stores]
    return [put_together(operator, [part[to] for part in parts]) for to in range(operator.shards)]


def carried(
    pipeline: bm.Pipeline,
    now: bm.Pipeline,
    script: TestStream,
    first: int,
    shards: tuple[int, int],
    *,
    types: BothTypes = AS_THEY_COME,
) -> tuple[list[Pane], list[Pane]]:
    """The output of a script whose first events run with one number of shards, and the others with another; ``now``: the pipeline of the latter."""
    both = [typed(script_rows(pipeline.flow, script.events), of) for of in types]
    if not both[0].any:
        return [], []
    tables = {name: zip(*(rows.tables[name] for rows in both), strict=True) for name in both[0].tables}
    before, after = (
        _Node(one.flow.completed.bind(rows.schemas, shards=count), Variation(shards=count, round_trip=True))
        for one, count, rows in zip((pipeline, now), shards, both, strict=True)
    )
    run, out = before, ([], [])  # type: tuple[_Node, tuple[list[Pane], list[Pane]]]
    for number, event in enumerate(script.events):
        if number == first:
            for old, new in zip(before.nodes(), after.nodes(), strict=True):
                new._stores = carry_over(new._operator, old._stores)
                new._shards = [new._operator.open(store) for store in new._stores]
                new._given = [max(old._given) for _ in new._given]
            run = after
        step = as_step(event)
        table = run.step(event, {step.input: next(tables[step.input])[run is after]} if step.rows else {})
        out[run is after].extend(panes_from_table(table, run._operator.gives))
    return out


def differences_after(  # noqa: PLR0917 - the parts of a row, in its order
    then: bm.Pipeline,
    now: bm.Pipeline,
    script: TestStream,
    first: int,
    types: BothTypes = AS_THEY_COME,
    shards: int = SHARDS,
) -> list[Change]:
    """The answer of ``check_upgrade`` about the checkpoint of the first run."""
    rows, of_now = (typed(script_rows(then.flow, script.events), of) for of in types)
    tables = {name: iter(of) for name, of in rows.tables.items()}
    run = Run(then, rows.schemas)
    for event in script.events[:first]:
        step = as_step(event)
        run.step(event, next(tables[step.input]) if step.rows else None)
    stored = [
        StoredStage.of(noted(said, stores)) for said, stores in zip(descriptions(run.flow), run.stores, strict=True)
    ]
    given = of_now.schemas
    missing = {source.name: next(iter(given.values())) for source in now.flow.sources if source.name not in given}
    flow, applied = (now.flow.completed.bind({**given, **missing}, shards=count) for count in (SHARDS, shards))
    own = [each.operator.shards for each in applied.flows]
    return changes_of(
        stored, flow, shards=own, clock=(needs_ticks(APART.grouped(run.flow)), needs_ticks(APART.grouped(flow)))
    )


def noted(about: Mapping[str, Any], stores: Sequence[DictStore]) -> dict[int, DictStore]:
    """The stores of a stage's shards with the notes that the runner on Spark keeps."""
    spark = {ABOUT: json.dumps(about).encode(), "spark": json.dumps({"shards": len(stores)}).encode()}
    return {number: DictStore({**store, **spark}) for number, store in enumerate(stores)}


def line(pane: Pane) -> str:
    """A pane in a line."""
    key = "".join(str(value) for value in pane.key.values())
    of = f" {_seconds(pane.window.start)}-{_seconds(pane.window.end)}" if isinstance(pane.window, bm.Window) else ""
    values = " ".join(f"{name}={_value(value)}" for name, value in pane.values.items())
    sign = "-" if pane.kind == "RETRACTION" else ""
    return f"{sign}{key}{of} {values} {pane.timing}"


def _seconds(time: Any) -> str:
    return "" if time is None else f"{time.timestamp():g}"


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _value(own) for name, own in value.items()}
    return _seconds(value) if isinstance(value, datetime) else value
