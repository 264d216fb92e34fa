"""The condition of an input (``where``): the rows that a stage reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.kernels.formulas import ANOTHER, NO_OTHER, Formula, check_condition

NO_ROWS = {b"beamish": b"no rows"}
"""Metadata of the schema of a script's empty input: its columns are unknown, and its condition is never evaluated."""


def check_where(relation: Relation, where: Formula | None) -> None:
    """Check a condition against the columns of an input.

    Raises:
        ColumnError: not a condition over these columns.
    """
    if where is not None and not _has_no_rows(relation):
        columns = relation.schema if relation.is_panes and relation.schema is not None else relation.columns
        of = "" if relation.name is None else f"{relation.name}: "
        check_condition(f"{of}where({where!r})", where, columns)


def columns_of_where(relation: Relation) -> tuple[str, ...]:
    """The columns read by the condition of a source."""
    if relation.where is None or relation.is_panes or _has_no_rows(relation):
        return ()
    return relation.where.columns_in(relation.columns)


def _has_no_rows(relation: Relation) -> bool:
    return relation.schema is not None and relation.schema.metadata == NO_ROWS


def wanted(relation: Relation, rows: pa.Table) -> pa.Table:
    """The rows that satisfy the condition of an input.

    Raises:
        UserFunctionError: it fails on a value.
    """
    return filtered(relation.where, rows, NO_OTHER if relation.retracts else ANOTHER)


def filtered(where: Formula | None, rows: pa.Table, way_out: str) -> pa.Table:
    """The rows that satisfy a condition; ``way_out``: the fix if it fails."""
    if where is None:
        return rows
    return rows.filter(where.computed(f"where({where!r})", rows, way_out=way_out).cast(pa.bool_()))


def describe_where(takes: Sequence[Relation], own: Formula | None = None) -> Iterator[tuple[str, str]]:
    """The conditions of a stage and its inputs as a line of explain; empty if there are none."""
    words = [f"only rows of {one.name} with {one.where!r}" for one in takes if one.where is not None and one.name]
    words += [f"only rows with {where!r}" for where in (own, *(one.where for one in takes if not one.name)) if where]
    if words:
        yield "where", f"{', '.join(words)}; the others still advance the watermark"


def where_identity(relation: Relation) -> str | None:
    """The identity of the condition on retracting input, which may not change: a retraction must satisfy it if its row did."""
    return repr(relation.where) if relation.retracts and relation.where is not None else None
