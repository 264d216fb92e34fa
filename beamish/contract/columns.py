"""The rows of several inputs as one table: the keys, the number of the input, the columns of each input.

An input's own columns are called ``input.column`` and are null in the rows of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.accumulations.base.accumulation import MergedInput, merged_name
from beamish.contract.relation import Relation
from beamish.errors import ColumnError
from beamish.kernels.buffers import cast_table
from beamish.kernels.reserved import INPUT, is_reserved


def merged_inputs(takes: Sequence[Relation], schema: pa.Schema) -> dict[str, MergedInput]:
    """The inputs of a merge by name, with their columns in ``schema``, that of the merged rows; empty otherwise."""
    inputs = {}
    for number, relation in enumerate(takes):
        if relation.name is not None:
            prefix = merged_name(relation.name, "")
            columns = {field.name.removeprefix(prefix): field.type for field in schema if field.name.startswith(prefix)}
            inputs[relation.name] = MergedInput(relation.name, number, relation.keys, columns)
    return inputs


def merged_schema(takes: Sequence[Relation]) -> pa.Schema:
    """The columns of a merge's rows.

    Raises:
        ColumnError: a key is missing, or the inputs' keys are not of the same types.
    """
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
        (merged_name(str(relation.name), field.name), field.type) for relation in takes for field in relation.columns
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
    """Look a column up by name.

    Raises:
        ColumnError: not a name, or no column or several columns of this name.
    """
    if not isinstance(name, str):
        raise ColumnError(
            f"{where}: a Column expression needs a DataFrame, which a script or a later stage does not have; give a column name"
        )
    found = schema.get_all_field_indices(name)
    if not found:
        known = [one for one in schema.names if not is_reserved(one)]
        raise ColumnError(f"{where}: there is no column {name!r}; the columns are {known}{_of_struct(schema, name)}")
    if len(found) > 1:
        raise ColumnError(f"{where}: there are {len(found)} columns {name!r}; rename or drop the others")
    return schema.field(found[0])


def _of_struct(schema: pa.Schema, name: str) -> str:
    """The fix for a name with a dot that may mean a field of a struct."""
    struct, dot, field = name.partition(".")
    if not dot or struct not in schema.names or not pa.types.is_struct(schema.field(struct).type):
        return ""
    return f"; a name means a whole column: for a field of {struct!r} add one first, df.withColumn({field!r}, F.col({name!r}))"


def is_whole_number(type_: pa.DataType) -> bool:
    """Whether its values are signed integers of at most 64 bits."""
    return bool(pa.types.is_integer(type_) and not pa.types.is_uint64(type_))


def is_groupable(type_: pa.DataType) -> bool:
    """Whether a column of this type can be a key."""
    if pa.types.is_struct(type_):
        return all(is_groupable(field.type) for field in type_)
    return not pa.types.is_nested(type_)
