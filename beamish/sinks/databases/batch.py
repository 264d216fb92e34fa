"""A batch for a table of a database: one row per identity, in columns that it knows; and names as SQL reads them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.addresses import printable
from beamish.errors import OptionError
from beamish.kernels.codes import factorize_rows, hash_rows, normalise
from beamish.kernels.upserts import DELETED, MODULUS, SEQUENCE, Contents

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


MARKS = "_beamish_sinks"
"""The table of marks, beside a sink's tables."""
STAGE = "_beamish_stage"
"""The temporary table that a batch is loaded into."""


def is_name(text: str) -> bool:
    """Whether databases can read a name: Unicode text without NUL."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def quoted(name: str) -> str:
    """Quote any name."""
    return '"' + name.replace('"', '""') + '"'


@attrs.frozen
class TableName:
    """A table name, with an optional schema."""

    schema: str | None
    name: str

    @classmethod
    def read(cls, words: object) -> TableName:
        """Parse a SQL name: ``hourly``, ``stats.hourly``, ``stats."by.hour"`` (OptionError: not a valid table name)."""
        parts, at = [], 0
        while isinstance(words, str) and (found := _PART.match(words, at)):
            parts.append(found[1].replace('""', '"') if found[1] else found[2].strip())
            at = found.end()
            if at == len(words) or words[at] != ".":
                break
            at += 1
        if not isinstance(words, str) or at != len(words) or len(parts) not in (1, 2) or "" in parts:
            raise OptionError(
                f"table={printable(words)}: must be a name such as 'hourly' or 'stats.hourly'; a dot within a name needs quotes: "
                "'stats.\"by.hour\"'"
            )
        if not is_name(words):
            raise OptionError(f"table={printable(words)}: a name must be Unicode text without the character NUL")
        if parts[-1].lower() in (MARKS, STAGE):
            raise OptionError(
                f"table={printable(words)}: {MARKS!r} and {STAGE!r} are tables of the sink; choose another name"
            )
        return cls(parts[0] if len(parts) == 2 else None, parts[-1])

    def beside(self, name: str) -> TableName:
        """A table in the same schema."""
        return TableName(self.schema, name)

    @property
    def sql(self) -> str:
        """The quoted name."""
        return ".".join(quoted(part) for part in (self.schema, self.name) if part is not None)

    def __str__(self) -> str:
        return ".".join(filter(None, (self.schema, self.name)))


@attrs.frozen(eq=False)
class Batch:
    """The net change of a batch.

    Attributes:
        rows: identity, data, ``_sequence`` and ``_deleted``; one row per identity.
        identity: the columns that identify a row.
        nested: columns with JSON, as text.
    """

    rows: pa.Table
    identity: tuple[str, ...]
    nested: frozenset[str] = frozenset()

    @classmethod
    def net(cls, rows: pa.Table, identity: tuple[str, ...], nested: frozenset[str] = frozenset()) -> Batch:
        """Keep the row with the greatest sequence for each identity.

        Args:
            rows: as ``rows`` of a batch, with any number of rows per identity, in any order.
            identity: the columns that identify a row: null equals null, -0.0 equals 0.0, NaN equals NaN.
            nested: columns with JSON, as text.
        """
        for name in identity:
            column = rows[name].combine_chunks()
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), normalise(column))
        groups = factorize_rows([rows[name] for name in identity], rows.num_rows)
        newest = groups.first([-np.asarray(rows[SEQUENCE], dtype=np.int64)])
        return cls(rows.take(newest), identity, nested)

    @property
    def data(self) -> list[str]:
        """The columns without ``_deleted``."""
        return [name for name in self.rows.column_names if name != DELETED]

    @property
    def schema(self) -> pa.Schema:
        """All columns with their types."""
        return self.rows.schema

    def stored(self, *, keep_deleted: bool) -> Contents:
        """The rows that an empty table would have after it."""
        rows = self.rows if keep_deleted else self.rows.filter(pc.invert(self.rows[DELETED]))
        return Contents(rows.num_rows, int(np.sum(np.asarray(rows[SEQUENCE], dtype=np.int64) % MODULUS)))

    @property
    def nulls(self) -> list[str]:
        """The nullable columns of the identity in this batch."""
        return [name for name in self.identity if self.rows[name].null_count]

    def digest(self) -> str:
        """An order-independent digest of the changed identities, and whether each is deleted.

        Values and sequences are not part of it: in a replayed batch the last digits of a float may differ, and so may the order of keys.
        """
        columns = [self.rows[name] for name in (*self.identity, DELETED)]
        hashes = np.sort(hash_rows(columns, self.rows.num_rows))
        return f"rows {hashlib.sha256(hashes.tobytes()).hexdigest()[:32]}"

    def null_patterns(self) -> Iterator[frozenset[str]]:
        """The sets of identity columns that are null together: a condition on each set can use an index."""
        flags = {name: pc.is_null(self.rows[name]) for name in self.nulls}
        if not flags:
            yield frozenset()
            return
        for row in pa.table(flags).group_by(list(flags)).aggregate([]).to_pylist():
            yield frozenset(name for name, null in row.items() if null)
