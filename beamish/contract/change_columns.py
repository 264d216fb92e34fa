"""The columns of a change: its slot, whether it deletes, and its order."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from beamish.contract.columns import find_column, is_groupable
from beamish.errors import ColumnError
from beamish.kernels.order import is_orderable


def check_change_columns(
    where: str, schema: pa.Schema, keys: Iterable[str], deleted: str | None, sequence_by: str | None
) -> None:
    """Check the columns of changes.

    Raises:
        ColumnError: a column is missing or of the wrong type.
    """
    for name in keys:
        if not is_groupable(find_column(schema, f"key_by({name!r})", name).type):
            raise ColumnError(f"key_by({name!r}): a column of type {schema.field(name).type} cannot be a key; cast it")
    if deleted is not None:
        type_ = find_column(schema, where, deleted).type
        if not (pa.types.is_boolean(type_) or pa.types.is_null(type_)):
            raise ColumnError(f"{where}: {deleted!r} is {type_}; it must be a boolean")
    if sequence_by is not None:
        type_ = find_column(schema, where, sequence_by).type
        if not is_orderable(type_):
            raise ColumnError(f"{where}: {sequence_by!r} is {type_}, which has no order; cast it to a number")
