"""The inputs of a stage as one table: keys and columns of each, conditions (``where``), and which rows retract or delete others.

An input's own columns are called ``input.column`` and are null in the rows of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.accumulations.base.accumulation import MergedInput, merged_name
from beamish.contract.relation import Relation
from beamish.errors import ColumnError
from beamish.kernels.buffers import cast_table
from beamish.kernels.column_names import INPUT, SIGN, is_reserved
from beamish.kernels.expressions import ANOTHER, NO_OTHER, Formula, check_condition
from beamish.kernels.field_paths import missing_words, path_of
from beamish.kernels.order import is_orderable
from beamish.pane import PaneKind


def merged_inputs(takes: Sequence[Relation], schema: pa.Schema) -> dict[str, MergedInput]:
    """The inputs of a merge by name, with their columns in ``schema``, that of the merged rows; empty otherwise."""
    inputs = {}
    for number, relation in enumerate(takes):
        if relation.name is not None:
            prefix = merged_name(relation.name, "")
            named = {field.name.removeprefix(prefix): field for field in schema if field.name.startswith(prefix)}
            columns = {name: field.type for name, field in named.items()}
            fields = {name for name, field in named.items() if path_of(field) is not None and name not in relation.keys}
            own = {name: type_ for name, type_ in columns.items() if name not in fields}
            inputs[relation.name] = MergedInput(relation.name, number, relation.keys, own, columns)
    return inputs


def merged_schema(takes: Sequence[Relation]) -> pa.Schema:
    """The columns of a merge's rows (ColumnError: a key is missing, or the inputs' keys are not of the same types)."""
    first = takes[0]
    keys = []
    for place, name in enumerate(first.keys):
        fields = [
            find_column(relation.columns, f"{relation.name}: key_by({relation.keys[place]!r})", relation.keys[place])
            for relation in takes
        ]
        types = [field.type for field in fields if not pa.types.is_null(field.type)] or [pa.null()]
        for relation, field in zip(takes, fields, strict=True):
            if not pa.types.is_null(field.type) and field.type != types[0]:
                raise ColumnError(
                    f"{relation.name}: key_by({field.name!r}): is {field.type}, and {first.name}'s {name!r} is {types[0]}; keys must have the same type: cast one of them"
                )
        keys.append((name, types[0]))
    own = [
        field.with_name(merged_name(str(relation.name), field.name)) for relation in takes for field in relation.columns
    ]
    return pa.schema([*keys, (INPUT, pa.int8()), *own])


def widen(takes: Sequence[Relation], number: int, rows: Mapping[str, Any], count: int, schema: pa.Schema) -> pa.Table:
    """Rows of one input with the columns of all.

    Args:
        takes: the inputs.
        number: the input of the rows.
        rows: its columns by its own names, and reserved ones.
        count: number of rows.
        schema: the columns of all.
    """
    relation = takes[number]
    own = dict(rows) | {
        merged_name(str(relation.name), name): rows[name] for name in relation.columns.names if name in rows
    }
    own |= {key: rows[name] for key, name in zip(takes[0].keys, relation.keys, strict=True)}
    own[INPUT] = pa.array(np.full(count, number, dtype=np.int8))
    columns = [own[field.name] if field.name in own else pa.nulls(count, field.type) for field in schema]
    return cast_table(pa.table(columns, names=schema.names), schema)


def find_column(schema: pa.Schema, where: str, name: Any) -> pa.Field:
    """Look a column up by name (ColumnError: not a name, or no column or several columns of this name)."""
    if not isinstance(name, str):
        raise ColumnError(
            f"{where}: a Column expression needs a DataFrame, which a script or a later stage does not have; give a column name"
        )
    found = schema.get_all_field_indices(name)
    if not found:
        known = [one.name for one in schema if not is_reserved(one.name) and path_of(one) is None]
        raise ColumnError(f"{where}: there is no column {name!r}; the columns are {known}{missing_words(schema, name)}")
    if len(found) > 1:
        raise ColumnError(f"{where}: there are {len(found)} columns {name!r}; rename or drop the others")
    return schema.field(found[0])


def is_whole_number(type_: pa.DataType) -> bool:
    """Whether its values are signed integers of at most 64 bits."""
    return bool(pa.types.is_integer(type_) and not pa.types.is_uint64(type_))


def is_groupable(type_: pa.DataType) -> bool:
    """Whether a column of this type can be a key."""
    if pa.types.is_struct(type_):
        return all(is_groupable(field.type) for field in type_)
    return not pa.types.is_nested(type_)


def check_keys(schema: pa.Schema, keys: Iterable[str]) -> None:
    """Check the key columns (ColumnError: one is missing, or of a type that cannot be a key)."""
    for name in keys:
        type_ = find_column(schema, f"key_by({name!r})", name).type
        if not is_groupable(type_):
            raise ColumnError(f"key_by({name!r}): a column of type {type_} cannot be a key; cast it to a string")


def check_change_columns(
    where: str, schema: pa.Schema, keys: Iterable[str], deleted: str | None, sequence_by: str | None
) -> None:
    """Check the columns of changes (ColumnError: a column is missing or of the wrong type)."""
    check_keys(schema, keys)
    if deleted is not None:
        type_ = find_column(schema, where, deleted).type
        if not (pa.types.is_boolean(type_) or pa.types.is_null(type_)):
            raise ColumnError(f"{where}: {deleted!r} is {type_}; must be a boolean")
    if sequence_by is not None:
        type_ = find_column(schema, where, sequence_by).type
        if not is_orderable(type_):
            raise ColumnError(f"{where}: {sequence_by!r} is {type_}, which has no order; cast it to a number")


NO_ROWS = {b"beamish": b"no rows"}
"""Metadata of the schema of a script's empty input: its columns are unknown, and its condition is never evaluated."""


def check_where(relation: Relation, where: Formula | None) -> None:
    """Check a condition against the columns of an input (ColumnError: not a condition over these columns)."""
    if where is not None and not has_no_rows(relation):
        columns = relation.schema if relation.is_panes and relation.schema is not None else relation.columns
        of = "" if relation.name is None else f"{relation.name}: "
        check_condition(f"{of}where({where!r})", where, columns)
        for name in sorted(relation.totals & set(where.columns_in(columns))) if relation.totals else ():
            raise ColumnError(
                f"{of}where({where!r}): {name!r} is a key column of several key sets, null in totals; filter the rows before: df.where(...)"
            )


def columns_of_where(relation: Relation) -> tuple[str, ...]:
    """The columns read by the condition of a source."""
    if relation.where is None or relation.is_panes or has_no_rows(relation):
        return ()
    return relation.where.columns_in(relation.columns)


def has_no_rows(relation: Relation) -> bool:
    """Whether it is an input without rows, whose columns are unknown."""
    return relation.schema is not None and relation.schema.metadata == NO_ROWS


def wanted(relation: Relation, rows: pa.Table) -> pa.Table:
    """The rows that satisfy the condition of an input (UserFunctionError: it fails on a value)."""
    return filtered(relation.where, rows, NO_OTHER if relation.retracts else ANOTHER)


def filtered(where: Formula | None, rows: pa.Table, way_out: str) -> pa.Table:
    """The rows that satisfy a condition; ``way_out``: the fix if it fails."""
    if where is None:
        return rows
    return rows.filter(where.computed(f"where({where!r})", rows, way_out=way_out).cast(pa.bool_()))


def describe_where(takes: Sequence[Relation], own: Formula | None = None) -> Iterator[tuple[str, str]]:
    """The conditions of a stage and its inputs as a line of explain; empty without conditions."""
    words = [f"only rows of {one.name} with {one.where!r}" for one in takes if one.where is not None and one.name]
    words += [f"only rows with {where!r}" for where in (own, *(one.where for one in takes if not one.name)) if where]
    if words:
        yield "where", f"{', '.join(words)}; the others still advance the watermark"


def where_identity(relation: Relation) -> str | None:
    """The identity of the condition on retracting input, which may not change: a retraction must satisfy it if its row did."""
    return repr(relation.where) if relation.retracts and relation.where is not None else None


def signs_of(relation: Relation, rows: pa.Table) -> pa.Array:
    """int8, one per row: -1 for a retraction, else 1."""
    if not relation.retracts:
        return pa.array(np.ones(rows.num_rows, dtype=np.int8))
    if relation.is_signed:
        return rows[SIGN].combine_chunks()
    kind = rows["pane"].combine_chunks().field("kind")
    takes_back = pc.equal(kind, str(PaneKind.RETRACTION)).to_numpy(zero_copy_only=False)
    return pa.array(np.where(takes_back, -1, 1).astype(np.int8))


def sign_column(relation: Relation) -> tuple[str, ...]:
    """The sign column of a source, which ``signs_of`` reads, besides the stage's columns; empty without one."""
    return (SIGN,) if relation.is_signed else ()
