"""The plan: a pipeline's options bound to the columns and types of its input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import attrs
import numpy as np
import pyarrow as pa

from beamish.accumulations.accumulation import Accumulation
from beamish.accumulations.adapters.one_input import MergedInput, OfInputs, merged_name
from beamish.accumulations.adapters.retractable import removable
from beamish.accumulations.joins import Pairs
from beamish.errors import ColumnError, PipelineError
from beamish.kernels.grouping import Field
from beamish.kernels.reserved import INPUT, SIGN, WINDOW_END, WINDOW_START, is_reserved
from beamish.modes import AccumulationMode, TimestampCombiner
from beamish.options import Options
from beamish.windows.global_window import GlobalWindow
from beamish.windows.inherited import InheritedWindows
from beamish.windows.option import WindowOption
from beamish.windows.windowings import WINDOWING, Windowings

TIMESTAMP = pa.timestamp("us", tz="UTC")
WINDOW = pa.struct([("start", TIMESTAMP), ("end", TIMESTAMP)])
PANE = pa.struct(
    [
        ("kind", pa.string()),
        ("timing", pa.string()),
        ("index", pa.int64()),
        ("on_time_index", pa.int64()),
        ("is_first", pa.bool_()),
        ("is_last", pa.bool_()),
    ]
)


@attrs.frozen
class BoundAccumulation:
    """An accumulation with the types of its columns.

    Attributes:
        name: its output column.
        columns: the input columns it reads, with their types.
        fields: the columns of its state.
        first: the place of the first of them among all accumulations' state columns.
    """

    name: str
    accumulation: Accumulation
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    fields: tuple[Field, ...]
    first: int

    def inputs(self, table: pa.Table) -> list[pa.Array]:
        """Its input columns in a table of rows.

        For one that reads whole rows, the rows as one struct column; where rows can be removed, their sign first.
        """
        columns = [table[name].combine_chunks() for name in self.columns]
        if self.accumulation.inputs is None:
            columns = [pa.StructArray.from_arrays(columns, fields=list(self.types[0]))]
        return [table[SIGN].combine_chunks(), *columns] if SIGN in table.schema.names else columns

    @property
    def reads(self) -> list[str]:
        """Its input columns and their types, or the type of the row, in words."""
        if self.accumulation.inputs is None:
            return [str(self.types[0])]
        return [f"{name} {type_}" for name, type_ in zip(self.columns, self.types, strict=True)]

    def state_of(self, columns: Sequence[Any]) -> Sequence[Any]:
        """Its own among all accumulations' state columns."""
        return columns[self.first : self.first + len(self.fields)]


@attrs.define(slots=False, eq=False)
class Plan:
    """What the engine needs to know of a pipeline.

    Attributes:
        options: the pipeline.
        schema: the input's columns that travel to the engine, with their types.
        shards: into how many parts the keys' state is cut.
        accumulations: bound to their columns, in order.
        later: whether it takes the panes of a stage before: its rows come in before the clocks move (RULES.md 30).
        windowings: the plan of each of several windowings, by name; none: there is one windowing, without a name.
    """

    options: Options
    schema: pa.Schema
    shards: int
    accumulations: tuple[BoundAccumulation, ...]
    later: bool = False
    windowings: Mapping[str, Plan] = attrs.Factory(dict)

    @property
    def signed(self) -> bool:
        """Whether rows can be removed again."""
        return SIGN in self.schema.names

    @property
    def columns(self) -> tuple[str, ...]:
        """Input columns that must travel: keys, what accumulations and windows read; all with ``with_dropped``."""
        return tuple(self.schema.names)

    @property
    def window(self) -> WindowOption:
        """The window option."""
        return cast("WindowOption", self.options.window)

    @property
    def is_global(self) -> bool:
        """Whether all of time is one window."""
        window = self.window
        while isinstance(window, InheritedWindows):
            window = window.of
        return isinstance(window, GlobalWindow)

    @property
    def needs_clock(self) -> bool:
        """Whether the batches' clock must be brought in."""
        return self.options.needs_clock

    @property
    def combines_timestamps(self) -> bool:
        """Whether panes' timestamps depend on their rows."""
        return self.options.combiner is not TimestampCombiner.END_OF_WINDOW

    @property
    def keeps_live(self) -> bool:
        """Whether the values last emitted are kept."""
        return self.options.retracts or self.options.only_updated

    @property
    def preaggregates(self) -> bool:
        """Whether rows are summed up by (key, window) before they reach their shard (RULES.md 29)."""
        return not self.why_not_preaggregated

    @property
    def why_not_preaggregated(self) -> str:
        """Why rows travel as rows; empty if they do not."""
        if self.options.with_dropped:
            return "with_dropped() needs the rows"
        if self.window.merging:
            return "windows that merge are known only in the shard"
        if self.later:
            return "they are panes of the stage before"
        if self.window.columns or type(self.window).__module__.split(".")[0] != "beamish":
            return "the window option is a user's own"
        for bound in self.accumulations:
            if bound.accumulation.python or not bound.accumulation.preaggregates:
                return f"{bound.name}={bound.accumulation!r} works on rows"
        return ""

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The key columns."""
        return pa.schema([self.schema.field(name) for name in self.options.keys])

    @cached_property
    def shown_key_schema(self) -> pa.Schema:
        """The key columns as they come out: with several windowings also which it is."""
        return self.key_schema.append(pa.field(WINDOWING, pa.string())) if self.windowings else self.key_schema

    @cached_property
    def state_schema(self) -> pa.Schema:
        """The accumulators' columns."""
        fields = [
            (f"{bound.name}.{i}", field.type) for bound in self.accumulations for i, field in enumerate(bound.fields)
        ]
        return pa.schema(fields)

    @cached_property
    def value_schema(self) -> pa.Schema:
        """The panes' values, as they are kept."""
        return pa.schema([(bound.name, bound.accumulation.value_type(bound.types)) for bound in self.accumulations])

    @property
    def join(self) -> Pairs | None:
        """The join, which is then the only accumulation, and whose panes are a row for each pair."""
        only = self.accumulations[0].accumulation if self.accumulations else None
        return only if isinstance(only, Pairs) else None

    @cached_property
    def shown_schema(self) -> pa.Schema:
        """The panes' values, as they come out."""
        if self.join is None:
            return self.value_schema
        (bound,) = self.accumulations
        return pa.schema([(bound.name, self.join.pair_type(bound.types))])

    @cached_property
    def row_type(self) -> pa.DataType:
        """A dropped row; of a merge a struct of its inputs, of which one is not null."""
        if self.options.inputs:
            inputs = merged_inputs(self.options, self.schema).values()
            return pa.struct([(one.name, pa.struct(list(one.columns.items()))) for one in inputs])
        return pa.struct([field for field in self.schema if not is_reserved(field.name)])

    @cached_property
    def pane_schema(self) -> pa.Schema:
        """The output."""
        dropped = pa.struct([("reason", pa.string()), ("late_by", pa.int64()), ("row", self.row_type)])
        return pa.schema(
            [
                *self.shown_key_schema,
                ("window", WINDOW),
                *self.shown_schema,
                ("pane", PANE),
                ("timestamp", TIMESTAMP),
                *([("dropped", dropped)] if self.options.with_dropped else []),
            ]
        )

    @cached_property
    def new_state(self) -> pa.Table:
        """The accumulators of no rows: one entry."""
        columns: list[pa.Array] = []
        for bound in self.accumulations:
            none = [pa.array([], field.type) for field in bound.fields]
            columns.extend(bound.accumulation.combine(np.empty(0, dtype=np.int64), 1, none))
        return pa.table(columns, schema=self.state_schema)

    def expiry_us(self, end_us: Any) -> Any:
        """The watermark at which windows with these ends expire."""
        lateness = self.options.allowed_lateness.us
        return np.where(end_us > _END_US - lateness, _END_US, np.minimum(end_us, _END_US - lateness) + lateness)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """What may not change while a checkpoint is used, in JSON's terms."""
        return {
            "shards": self.shards,
            "keys": [f"{field.name}: {field.type}" for field in self.key_schema],
            "window": repr(self.window),
            "mode": "discarding"
            if self.options.discards
            else "retracting"
            if self.options.retracts
            else "accumulating",
            "timestamp combiner": self.options.combiner.value,
            "stage": "a later one" if self.later else "the first",
            "accumulations": {
                bound.name: f"{_stable_repr(bound.accumulation)} of {', '.join(bound.reads)}"
                for bound in self.accumulations
            },
        }

    @cached_property
    def changeable(self) -> dict[str, Any]:
        """What may change, but makes the state be read through once."""
        return {"trigger": _stable_repr(self.options.trigger), "lateness": self.options.allowed_lateness.us}


_END_US = np.iinfo(np.int64).max


def _stable_repr(value: Any) -> str:
    """The repr, without the addresses that Python functions have in theirs."""
    words = repr(value).split(" at 0x")
    return words[0] + "".join(word[word.index(">") :] if ">" in word else word for word in words[1:])


def is_groupable(type_: pa.DataType) -> bool:
    """Whether a column of this type can be a key."""
    if pa.types.is_struct(type_):
        return all(is_groupable(field.type) for field in type_)
    return not pa.types.is_nested(type_)


def make_plan(options: Options, schema: pa.Schema, *, shards: int) -> Plan:
    """Bind a pipeline to the columns of its input.

    Args:
        options: the pipeline.
        schema: the input's columns.
        shards: into how many parts the keys' state is cut, at least 1.

    Raises:
        PipelineError: the options do not go together.
        ColumnError: a column is missing, twice there, or of the wrong type.
    """
    options.check()
    return _make_plan(options, schema, shards, later=False)


def make_later_plan(options: Options, before: Plan, *, shards: int) -> Plan:
    """Bind a later stage to the panes of the stage before.

    Args:
        options: the later stage: no event time, since its rows' times are their panes'.
        before: the plan of the stage before, which gives windows, if it has none of its own, and the watermark.
        shards: into how many parts the keys' state is cut.

    Raises:
        PipelineError: the options do not go together, or not with the stage before.
        ColumnError: a column is missing or of the wrong type.
    """
    inherited = [] if options.window else [(WINDOW_START, pa.int64()), (WINDOW_END, pa.int64())]
    options = later_options(options, before.options)
    signed = before.options.retracts
    schema = pa.schema(
        [
            *before.shown_key_schema,
            *before.shown_schema,
            *inherited,
            *([(SIGN, pa.int8())] if signed else []),
        ]
    )
    return _make_plan(options, schema, shards, later=True)


def later_options(options: Options, before: Options) -> Options:
    """A later stage's options with what it has of the stage before: event time, watermark, windows.

    Raises:
        PipelineError: the options do not go together, or not with the stage before.
    """
    if options.event_time is not None:
        raise PipelineError(
            f"event_time({options.event_time!r}) in a later stage: a pane's time is its timestamp, and the watermark is "
            "that of the stage before; leave it out"
        )
    if options.window is None and isinstance(before.window, Windowings):
        _check_inherits(options, before.window)
    options = attrs.evolve(
        options,
        event_time="timestamp",
        watermark=before.watermark,
        window=options.window or InheritedWindows(before.window or GlobalWindow()),
    )
    options.check()
    signed = before.retracts
    if signed and options.mode is None:  # so a window has one pane, which holds all
        options = attrs.evolve(options, mode=AccumulationMode.ACCUMULATING)
    if signed and options.window and options.window.merging:
        raise PipelineError(
            f"window({options.window!r}) over a stage that retracts: taking a row back may split a merged window; use a "
            "window that does not merge, or let the stage before be accumulating() or discarding()"
        )
    if signed and options.discards:
        raise PipelineError(
            "discarding over a stage that retracts: what is removed is of an earlier pane; use accumulating() or "
            "accumulating_and_retracting()"
        )
    return options


def _check_inherits(options: Options, windowings: Windowings) -> None:
    if WINDOWING not in options.keys:
        raise PipelineError(
            f"a later stage that keeps the windows of several windowings must tell them apart: key_by({WINDOWING!r}, ...), or "
            "give it a window of its own"
        )
    if any(isinstance(option, GlobalWindow) for option in windowings.options.values()):
        raise PipelineError(
            f"a later stage that keeps the windows of {windowings!r}: one is all of time, which the others are not; give "
            "the stage a window of its own"
        )


def _make_plan(options: Options, schema: pa.Schema, shards: int, *, later: bool) -> Plan:
    for name in options.keys:
        type_ = _column(schema, f"key_by({name!r})", name).type
        if not is_groupable(type_):
            raise ColumnError(f"key_by({name!r}): a column of type {type_} cannot be a key; cast it to a string")
    window_columns = options.window.columns if options.window else ()
    for name in window_columns:
        _column(schema, f"window({options.window!r})", name)
    accumulations = tuple(_bind(options, schema))
    everything = options.with_dropped or any(bound.accumulation.inputs is None for bound in accumulations)
    wanted = {SIGN, *options.keys, *window_columns, *(column for bound in accumulations for column in bound.columns)}
    travelling = [field for field in schema if everything or field.name in wanted]
    windowings = {name: _make_plan(one, schema, shards, later=later) for name, one in options.windowings.items()}
    return Plan(options, pa.schema(travelling), shards, accumulations, later, windowings)


def _bind(options: Options, schema: pa.Schema) -> Iterator[BoundAccumulation]:
    first = 0
    public = [field for field in schema if not is_reserved(field.name)]
    inputs = merged_inputs(options, schema)
    for name, said in options.accumulations.items():
        accumulation = said.bound_to(name, inputs) if isinstance(said, OfInputs) else said
        where = f"accumulate({name}={accumulation!r})"
        whole_rows = accumulation.inputs is None
        columns = tuple(field.name for field in public) if accumulation.inputs is None else accumulation.inputs
        types = tuple(_column(schema, where, column).type for column in columns)
        types = (pa.struct(public),) if whole_rows else types
        accumulation.check_types(name, types)
        bound = removable(accumulation, types) if SIGN in schema.names else accumulation
        yield BoundAccumulation(name, bound, columns, types, tuple(bound.fields(types)), first)
        first += len(bound.fields(types))


def merged_inputs(options: Options, schema: pa.Schema) -> dict[str, MergedInput]:
    """The inputs of a merge, by name, with the columns that the merged rows have of them; none if it is none."""
    inputs = {}
    for number, one in enumerate(options.inputs):
        prefix = merged_name(one.name, "")
        columns = {field.name.removeprefix(prefix): field.type for field in schema if field.name.startswith(prefix)}
        inputs[one.name] = MergedInput(one.name, number, one.keys, columns)
    return inputs


def merged_schema(options: Options, schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns of a merge's rows: the keys, the number of the input, the columns of each input.

    Args:
        options: a merge.
        schemas: those of its inputs, in their order.

    Raises:
        ColumnError: a key is missing, or the inputs' keys are not of the same types.
    """
    first = options.inputs[0]
    keys = []
    for place, name in enumerate(first.keys):
        fields = [
            _column(schema, f"{one.name}: key_by({one.keys[place]!r})", one.keys[place])
            for one, schema in zip(options.inputs, schemas, strict=True)
        ]
        types = [field.type for field in fields if not pa.types.is_null(field.type)] or [pa.null()]
        for one, field in zip(options.inputs, fields, strict=True):
            if not pa.types.is_null(field.type) and field.type != types[0]:
                raise ColumnError(
                    f"{one.name}: key_by({field.name!r}): is {field.type}, and {first.name}'s {name!r} is {types[0]}; keys must "
                    "be of one type to meet: cast one of them"
                )
        keys.append((name, types[0]))
    own = [
        (merged_name(one.name, field.name), field.type)
        for one, schema in zip(options.inputs, schemas, strict=True)
        for field in schema
    ]
    return pa.schema([*keys, (INPUT, pa.int8()), *own])


def _column(schema: pa.Schema, where: str, name: Any) -> pa.Field:
    found = schema.get_all_field_indices(name) if isinstance(name, str) else []
    if not isinstance(name, str):
        raise ColumnError(f"{where}: a Column expression works on Spark only; use df.withColumn and give the name")
    if not found:
        raise ColumnError(f"{where}: there is no column {name!r}; the columns are {schema.names}")
    if len(found) > 1:
        raise ColumnError(f"{where}: there are {len(found)} columns {name!r}; rename or drop the others")
    return schema.field(found[0])
