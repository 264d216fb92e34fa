"""Accumulations bound to the columns and types of their input rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation, MergedInput
from beamish.accumulations.base.gathered import Gathered, MeetingPairs, Pairs
from beamish.accumulations.base.pairs_once import PairsOnce
from beamish.accumulations.base.retractable import Keeper, retractable
from beamish.accumulations.joins import Join
from beamish.contract.inputs import find_column
from beamish.kernels.buffers import plain_type
from beamish.kernels.column_names import KEPT_BY, KEPT_ROWS, NUMBER, SIGN, is_reserved
from beamish.kernels.field_paths import path_of
from beamish.kernels.order import is_orderable
from beamish.kernels.state_fields import Field
from beamish.windows.option import WindowOption
from beamish.windows.within import Within, WithinInput


@attrs.frozen
class BoundAccumulation:
    """An accumulation with the types of its columns.

    Attributes:
        name: its output column.
        accumulation: ``bound``, or an adapter around it for retracting input.
        bound: the declared accumulation, bound to the columns of the rows.
        columns, types: the input columns it reads, with their types.
        fields: the columns of its state.
        first: the position of the first of them among all state columns.
    """

    name: str
    accumulation: Accumulation
    bound: Accumulation
    columns: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    fields: tuple[Field, ...]
    first: int

    def values(self, state: pa.Table) -> pa.Array:
        """The values of its output column for accumulators.

        Args:
            state: the accumulators of all accumulations.
        """
        return self.accumulation.extract_columns(self.state_of(state), self.types)

    def check_state(self, state: pa.Table) -> None:
        """Check accumulators of all accumulations; see ``Accumulation.check_state``."""
        self.accumulation.check_state(self.state_of(state), self.types)

    def inputs(self, table: pa.Table) -> list[pa.Array]:
        """Its input columns in a table of rows.

        For one that reads whole rows, the rows as one struct column; for retracting input, their sign first; their number, if
        rows are numbered; their event time, for retention by time in count windows.
        """
        columns = [table[name].combine_chunks() for name in self.columns]
        if self.accumulation.inputs is None:
            columns = [pa.StructArray.from_arrays(columns, fields=list(self.types[0]))]
        return [
            *(
                table[name].combine_chunks()
                for name in (SIGN, NUMBER, KEPT_BY)
                if table.schema.get_field_index(name) >= 0
            ),
            *columns,
        ]

    @property
    def reads(self) -> list[list[str | None]]:
        """Its input columns as pairs of name and type; of one that reads whole rows the type of these, and no name."""
        if self.accumulation.inputs is None:
            return [[None, str(self.types[0])]]
        return [[name, str(type_)] for name, type_ in zip(self.columns, self.types, strict=True)]

    def state_in(self, slices: pa.Table) -> list[pa.Array]:
        """Its state columns in a table of slices (kinds/window/step/packing.py)."""
        return [slices[f"{self.name}.{i}"].combine_chunks() for i in range(len(self.fields))]

    def state_of(self, state: pa.Table) -> list[pa.Array]:
        """Its state columns among those of all accumulations."""
        return [state.column(self.first + i).combine_chunks() for i in range(len(self.fields))]


def bind_accumulations(
    accumulations: Mapping[str, Accumulation],
    inputs: Mapping[str, MergedInput],
    schema: pa.Schema,
    window: WindowOption | None = None,
    keys: Sequence[str] = (),
) -> Iterator[BoundAccumulation]:
    """Bind accumulations to the columns of rows.

    Args:
        accumulations: by the name of their output column.
        inputs: of a merge, by name; otherwise empty.
        schema: the rows' columns; with a sign for retracting input.
        window: the window option, which may define matches of a join.
        keys: the key columns, which may be nested fields.

    Raises:
        ColumnError: a column is missing, ambiguous, or of the wrong type.
    """
    first, signed = 0, SIGN in schema.names
    public = [
        field for field in schema if not is_reserved(field.name) and (path_of(field) is None or field.name in keys)
    ]
    for name, declared in accumulations.items():
        accumulation = declared.bind(name, inputs)
        conditional = isinstance(declared, Join) and bool(declared.match_if)
        if isinstance(accumulation, Pairs) and (conditional or isinstance(window, Within)):
            accumulation = _meeting(accumulation, window, conditional=conditional)
        if window is not None and isinstance(accumulation, PairsOnce):
            accumulation = _once(accumulation, window)
        where = f"accumulate({name}={accumulation!r})"
        whole_rows = accumulation.inputs is None
        columns = tuple(field.name for field in public) if accumulation.inputs is None else accumulation.inputs
        types = tuple(find_column(schema, where, column).type for column in columns)
        types = (pa.struct(public),) if whole_rows else types
        accumulation.check_types(name, types)
        adapted = retractable(accumulation, types) if signed else accumulation
        fields = tuple(adapted.fields(types))
        yield BoundAccumulation(name, adapted, accumulation, columns, types, fields, first)
        first += len(fields)


def bind_keeper(schema: pa.Schema, first: int) -> BoundAccumulation:
    """An accumulation that stores the rows, for retracting input with dropped rows; only comparable columns.

    Args:
        schema: the rows' columns.
        first: the position of its state column.
    """
    own = [field for field in schema if not is_reserved(field.name) and is_orderable(plain_type(field.type))]
    names, types = tuple(field.name for field in own), tuple(field.type for field in own)
    keeper = Keeper.of(names)
    return BoundAccumulation(KEPT_ROWS, keeper, keeper, names, types, tuple(keeper.fields(types)), first)


def _once(join: PairsOnce, window: WindowOption) -> PairsOnce:
    """A join that emits each pair once, also if rows are in several windows."""
    if isinstance(window, Within):  # a pair is in a single window
        of_left = join.sides[0].name != window.of
        return attrs.evolve(join, meets_us=_span_us(join, window), visited=_is_visited(window), of_left=of_left)
    dated = window.counts_rows and any(keeps.for_us is not None for keeps in join.keeps)
    return attrs.evolve(join, numbered=window.may_overlap, dated=dated)


def _span_us(join: Gathered, within: Within) -> tuple[int, int]:
    """How far after a left row its earliest and latest matches are, microseconds; negative: before it."""
    earliest_us, latest_us = within.reach_us
    return (-latest_us, -earliest_us) if join.sides[0].name == within.of else (earliest_us, latest_us)


def _meeting(join: Pairs, window: WindowOption | None, *, conditional: bool) -> MeetingPairs:
    """A join in which not all rows match: those within a span, those that fulfil conditions."""
    within = window if isinstance(window, Within) else None
    return MeetingPairs(
        declared=join.declared,
        sides=join.sides,
        keeps_left=join.keeps_left,
        keeps_right=join.keeps_right,
        apart=join.apart,
        meets_us=None if within is None else _span_us(join, within),
        conditional=conditional,
        visited=within is not None and _is_visited(within),
        of_left=within is None or join.sides[0].name != within.of,
    )


def _is_visited(within: Within) -> bool:
    """Whether rows are in windows that are not their own."""
    return isinstance(within, WithinInput) and within.beside is not None
