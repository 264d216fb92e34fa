"""MERGE INTO, as DuckDB, Delta and Iceberg support it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from beamish.kernels.image_columns import DELETED, SEQUENCE


@attrs.frozen
class MergeInto:
    """Statements that merge the net change of a batch into a table.

    Attributes:
        table: the table, quoted.
        source: the net change, quoted: one row per identity.
        data: the columns without ``_deleted``.
        identity: the columns that identify a row.
        quote: quotes a name.
        same: the null-safe equality operator.
        keep_deleted: whether deleted rows stay, marked by ``_deleted``.
    """

    table: str
    source: str
    data: Sequence[str]
    identity: Sequence[str]
    quote: Callable[[str], str]
    same: str
    keep_deleted: bool

    def update(self) -> str:
        """The statement that merges the net change."""
        newer = f"s.{self.quote(SEQUENCE)} > t.{self.quote(SEQUENCE)}"
        deletes = "" if self.keep_deleted else f" WHEN MATCHED AND {newer} AND s.{self.quote(DELETED)} THEN DELETE"
        inserts = "" if self.keep_deleted else f" AND NOT s.{self.quote(DELETED)}"
        return self._merge(self.source, f"{deletes} WHEN MATCHED AND {newer}", inserts)

    def replace(self) -> str:
        """The statement that makes the table equal to the source."""
        live = f"(SELECT * FROM {self.source} WHERE NOT {self.quote(DELETED)})"
        merged = self._merge(self.source if self.keep_deleted else live, " WHEN MATCHED", "")
        return f"{merged} WHEN NOT MATCHED BY SOURCE THEN DELETE"

    def _merge(self, source: str, matched: str, not_matched: str) -> str:
        quote, columns = self.quote, [*self.data, *([DELETED] if self.keep_deleted else [])]
        found = " AND ".join(f"t.{quote(name)} {self.same} s.{quote(name)}" for name in self.identity)
        sets = ", ".join(f"{quote(name)} = s.{quote(name)}" for name in columns if name not in self.identity)
        values = ", ".join(f"s.{quote(name)}" for name in columns)
        return (
            f"MERGE INTO {self.table} AS t USING {source} AS s ON {found}{matched} THEN UPDATE SET {sets}"
            f" WHEN NOT MATCHED{not_matched} THEN INSERT ({', '.join(map(quote, columns))}) VALUES ({values})"
        )
