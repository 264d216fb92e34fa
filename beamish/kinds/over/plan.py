"""The plan of an over stage: its options bound to the columns and types of its input; rows packed by shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from beamish.accumulations.base.accumulation import Accumulation
from beamish.contract.inputs import check_keys, check_where, find_column, signs_of, where_identity
from beamish.contract.keys import times_of, to_shards
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.updates import PANE, TIMESTAMP, WINDOW, dropped_type
from beamish.durations import LONGEST_US, Duration
from beamish.errors import ColumnError, NumericOverflowError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import cast
from beamish.kernels.codes import normalise
from beamish.kernels.field_paths import path_of
from beamish.kernels.identity import identity
from beamish.kernels.order import is_orderable
from beamish.kinds.over.options import FirstValue, OverFunction, OverOptions, Unbounded


@attrs.frozen
class BoundValue:
    """An accumulation or a function with the types of its columns.

    Attributes:
        name: its output column.
        of: the accumulation.
        columns, types: the columns that it reads.
        type: of its values.
        state: the types of its accumulator's columns; empty for a function.
    """

    name: str
    of: Accumulation
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    type: pa.DataType
    state: tuple[pa.DataType, ...]

    def inputs(self, cell: Callable[[str], pa.Array]) -> list[pa.Array]:
        """Its columns, of those that ``cell`` returns; the rows as structs for one that reads whole rows."""
        columns = [cell(f"own.{name}") for name in self.columns]
        if self.of.inputs is None:
            return [pa.StructArray.from_arrays(columns, fields=list(self.types[0]))]
        return columns

    def overflow(self, error: NumericOverflowError) -> NumericOverflowError:
        """The error of a sum or mean of it, with a fix that an over stage has."""
        fix = "cast the column first, such as to decimal(38, 0) or double, in a new checkpoint"
        return NumericOverflowError(
            f"accumulate({self.name}={self.of!r}) after over(...): {error.raised or error}; {fix}"
        )

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Report an overflow meanwhile as one of it (NumericOverflowError)."""
        try:
            yield
        except NumericOverflowError as error:
            raise self.overflow(error) from error


@attrs.define(slots=False, eq=False)
class OverPlan:
    """The bound options of an over stage.

    Attributes:
        options: its options.
        takes: the input, with its schema.
        values: accumulations and functions, in order.
        shards: number of shards.
        is_final: whether the input is complete, as in a batch.
        gives: the output, before ``having`` and ``with_columns``.
    """

    options: OverOptions
    takes: Relation
    values: tuple[BoundValue, ...]
    shards: int
    is_final: bool
    gives: Relation

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of a row, with nested fields that the stage names."""
        return self.takes.columns

    @cached_property
    def shown(self) -> list[str]:
        """The emitted ones; an event time named ``timestamp`` becomes the pane's."""
        return shown_columns(self.takes)

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The key columns."""
        return pa.schema([self.schema.field(name) for name in self.takes.keys])

    @property
    def has_windows(self) -> bool:
        """Whether rows are panes with windows, which they keep."""
        return self.takes.window is not None

    @cached_property
    def functions(self) -> list[BoundValue]:
        """The functions of a row's place."""
        return [one for one in self.values if isinstance(one.of, OverFunction)]

    @cached_property
    def over_frame(self) -> list[BoundValue]:
        """The accumulations of the frame."""
        return [one for one in self.values if not isinstance(one.of, OverFunction)]

    @cached_property
    def stores_values(self) -> bool:
        """Whether rows are stored with their values: to retract them, or to emit them when Lead is known."""
        return self.options.retracts or self.options.lead > 0

    @cached_property
    def has_past(self) -> bool:
        """Whether something of each key is stored for ever."""
        return bool(self.options.lag or self.options.lead or self.counts or self.sums or self.firsts)

    @cached_property
    def counts(self) -> bool:
        """Whether all rows of a key are counted."""
        return any(one.counts for one in self.options.functions.values())

    @cached_property
    def sums(self) -> list[BoundValue]:
        """The accumulations over all rows of a key."""
        return self.over_frame if isinstance(self.options.frame, Unbounded) else []

    @cached_property
    def firsts(self) -> list[BoundValue]:
        """The values of the first row of a key."""
        unbounded = isinstance(self.options.frame, Unbounded)
        return [one for one in self.functions if unbounded and isinstance(one.of, FirstValue)]

    @property
    def tail(self) -> int:
        """How many of the last rows of each key are stored for ever."""
        return max(self.options.lag, self.options.lead)

    @property
    def span_us(self) -> int:
        """How far behind the watermark rows are stored one by one, microseconds."""
        return min(self.options.allowed_lateness.us + self.options.frame.span_us, LONGEST_US)

    def describe_stored(self) -> str:
        """The stored state, for explain."""
        words = f"rows until the watermark is {Duration(self.span_us)} past them"
        return f"{words}, each with its values" if self.stores_values else words

    @property
    def _refinement(self) -> dict[str, Any]:
        """The columns and the condition of the output, which a retraction repeats."""
        options = self.options
        derived = {name: identity(formula) for name, formula in options.derived.items()}
        having = None if options.having is None else identity(options.having)
        return {"having": having, "with_columns": derived or None, "explode": options.explode}

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the plan that may not change under a checkpoint."""
        options = self.options
        return {
            "shards": self.shards,
            "keys": list(self.takes.keys),
            "rows": [f"{field.name}: {field.type}" for field in self.schema],
            "frame": identity(options.frame),
            "order_by": options.order_by,
            "values": [[one.name, identity(one.of)] for one in self.values],
            "allowed_lateness": options.allowed_lateness.us,
            "early": options.early,
            "mode": None if options.mode is None else options.mode.value,
            "forget_after": None if options.forget_after is None else options.forget_after.us,
            "rows retract": self.takes.retracts,
            "condition": where_identity(self.takes),
            **(self._refinement if options.retracts else dict.fromkeys(self._refinement)),
        }


def shown_columns(takes: Relation) -> list[str]:
    """The columns of the input that are emitted."""
    hidden = "timestamp" if takes.event_time == "timestamp" else None
    return [name for name in takes.own_columns.names if name != hidden]


def make_over_plan(options: OverOptions, takes: Relation, gives: Relation, shards: int, *, is_final: bool) -> OverPlan:
    """Bind an over stage to its input (ColumnError: a column is missing, of the wrong type, or has a name that the output uses)."""
    check_where(takes, takes.where)
    where = f"over({options.arguments})"
    check_keys(takes.columns, takes.keys)
    if options.order_by is not None:
        type_ = find_column(takes.columns, where, options.order_by).type
        if not is_orderable(type_):
            raise ColumnError(f"{where}: {options.order_by!r} is {type_}, which has no order; cast it to a number")
    values = tuple(_bound(name, one, takes) for name, one in options.accumulations.items())
    shown, added = shown_columns(takes), {*(one.name.lower() for one in values), *map(str.lower, options.derived)}
    for name in shown:
        if name.lower() in {*PANE_COLUMNS, *added}:
            raise ColumnError(f"{where}: the output has a column {name!r} of its own; rename yours, or the value")
    own = takes.own_columns
    columns = [*(own.field(name) for name in shown), *((one.name, one.type) for one in values)]
    columns += [("window", WINDOW), ("pane", PANE), ("timestamp", TIMESTAMP)]
    columns += [("dropped", dropped_type(pa.struct(list(own))))] if options.with_dropped else []
    bound = attrs.evolve(gives, schema=pa.schema(columns))
    return OverPlan(options, takes, values, shards, is_final, bound)


def _bound(name: str, accumulation: Accumulation, takes: Relation) -> BoundValue:
    schema, where = takes.columns, f"accumulate({name}={accumulation!r})"
    whole = [field for field in schema if path_of(field) is None or field.name in takes.keys]
    names = tuple(field.name for field in whole) if accumulation.inputs is None else accumulation.inputs
    types = tuple(find_column(schema, where, column).type for column in names)
    types = (pa.struct(whole),) if accumulation.inputs is None else types
    accumulation.check_types(name, types)
    is_function = isinstance(accumulation, OverFunction)
    state = () if is_function else tuple(field.type for field in accumulation.fields(types))
    return BoundValue(name, accumulation, names, types, accumulation.value_type(types), state)


def pack_rows(plan: OverPlan, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Pack rows, one payload per shard.

    Args:
        plan: the stage's.
        rows: a source's, its columns and ``EVENT_TIME``; or panes.
    """
    rows, takes = rows.combine_chunks(), plan.takes
    keys = [normalise(rows[name].combine_chunks()) for name in takes.keys]
    columns = {f"key.{name}": key for name, key in zip(takes.keys, keys, strict=True)}
    columns |= {f"own.{field.name}": cast(rows[field.name].combine_chunks(), field.type) for field in plan.schema}
    columns["time_us"] = times_of(takes, rows)
    if plan.has_windows:
        window = rows["window"].combine_chunks()
        columns["start_us"] = pc.fill_null(window.field("start").cast(pa.int64()), 0)
        columns["end_us"] = pc.fill_null(window.field("end").cast(pa.int64()), END_OF_TIME_US)
    if takes.retracts:
        columns["sign"] = signs_of(takes, rows)
    yield from to_shards(pa.table(columns), keys, takes, 0, plan.shards)
