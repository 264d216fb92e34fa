"""MERGE INTO, as DuckDB, Delta and Iceberg read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from beamish.kernels.image_columns import DELETED, SEQUENCE


def merge_statement(
    table: str,
    source: str,
    *,
    data: Sequence[str],
    identity: Sequence[str],
    quote: Callable[[str], str],
    same: str,
    keep_deleted: bool,
) -> str:
    """The statement that takes the net change of a batch into a table.

    Args:
        table: the table, quoted.
        source: where the net change is, quoted: one row per identity.
        data: the columns but for ``_deleted``.
        identity: those that tell rows apart.
        quote: quotes a name.
        same: compares two values, null as equal to null.
        keep_deleted: whether deleted rows stay, marked by ``_deleted``.
    """
    newer = f"s.{quote(SEQUENCE)} > t.{quote(SEQUENCE)}"
    deletes = "" if keep_deleted else f" WHEN MATCHED AND {newer} AND s.{quote(DELETED)} THEN DELETE"
    inserts = "" if keep_deleted else f" AND NOT s.{quote(DELETED)}"
    found, update, insert = _clauses(data, identity, quote, same, keep_deleted=keep_deleted)
    return (
        f"MERGE INTO {table} AS t USING {source} AS s ON {found}{deletes} WHEN MATCHED AND {newer} THEN {update}"
        f" WHEN NOT MATCHED{inserts} THEN {insert}"
    )


def replace_statement(
    table: str,
    source: str,
    *,
    data: Sequence[str],
    identity: Sequence[str],
    quote: Callable[[str], str],
    same: str,
    keep_deleted: bool,
) -> str:
    """The statement that makes a table hold what the source holds and nothing else; arguments as of ``merge_statement``."""
    live = source if keep_deleted else f"(SELECT * FROM {source} WHERE NOT {quote(DELETED)})"
    found, update, insert = _clauses(data, identity, quote, same, keep_deleted=keep_deleted)
    return (
        f"MERGE INTO {table} AS t USING {live} AS s ON {found} WHEN MATCHED THEN {update} WHEN NOT MATCHED THEN {insert}"
        " WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )


def _clauses(
    data: Sequence[str], identity: Sequence[str], quote: Callable[[str], str], same: str, *, keep_deleted: bool
) -> tuple[str, str, str]:
    """The condition that two rows have one identity, the update of a row, and its insert."""
    columns = [*data, *([DELETED] if keep_deleted else [])]
    found = " AND ".join(f"t.{quote(name)} {same} s.{quote(name)}" for name in identity)
    sets = ", ".join(f"{quote(name)} = s.{quote(name)}" for name in columns if name not in identity)
    values = ", ".join(f"s.{quote(name)}" for name in columns)
    return found, f"UPDATE SET {sets}", f"INSERT ({', '.join(map(quote, columns))}) VALUES ({values})"
