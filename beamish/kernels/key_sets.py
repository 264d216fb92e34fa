"""Several sets of keys in one pass: rows for each set, whose other key columns are null (docs/rules/key-sets.md)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.errors import ColumnError, OptionError

GROUPING_ID = "grouping_id"
"""The key column that tells a total from a null: a bit per column, the first the highest, 1 where it is not in the set."""
MOST = 64
"""Most sets: each row is added to that many windows."""


@attrs.frozen(init=False, repr=False)
class KeySets:
    """Sets of key columns, for ``Pipeline.key_by``: the rows are grouped by each of them.

    Attributes:
        columns: the key columns of all sets.
        sets: the columns of each set.
    """

    columns: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]

    def _set(self, given: tuple[Any, ...], sets: list[tuple[Any, ...]], columns: tuple[Any, ...]) -> None:
        call = f"{type(self).__name__}({', '.join(map(repr, given))})"
        if not columns:
            raise OptionError(f"{call}: no columns; name them, such as bm.Rollup('country', 'city')")
        for name in columns:
            if not isinstance(name, str) or not name or "." in name:
                raise OptionError(
                    f"{call}: {name!r} must be the name of a column, without a path; for an expression add a column first, df.withColumn('day', ...)"
                )
        for one in (columns, *sets):
            if len(set(one)) < len(one):
                raise OptionError(f"{call}: a column is named twice in {one!r}; name it once")
        if len(set(map(frozenset, sets))) < len(sets):
            raise OptionError(f"{call}: two sets have the same columns; leave one out")
        if len(sets) > MOST:
            raise OptionError(
                f"{call}: {len(sets)} sets, so each row would be in as many windows; the most are {MOST}: use bm.GroupingSets(...) with those that are read"
            )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "sets", tuple(sets))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._arguments))})"

    @property
    def _arguments(self) -> tuple[Any, ...]:
        return self.columns

    @property
    def ids(self) -> list[int]:
        """``grouping_id`` of each set."""
        bits = [1 << place for place in reversed(range(len(self.columns)))]
        return [sum(bit for bit, name in zip(bits, self.columns, strict=True) if name not in one) for one in self.sets]

    def bit(self, name: str) -> int:
        """The bit of a column."""
        return 1 << (len(self.columns) - 1 - self.columns.index(name))

    def check_free(self, names: Any) -> None:
        """Check that rows have no column ``grouping_id`` (ColumnError: they have)."""
        if any(str(name).lower() == GROUPING_ID for name in names):
            raise ColumnError(f"key_by({self!r}): the output has a column {GROUPING_ID!r} of its own; rename yours")

    def expand(self, rows: pa.Table, at: int) -> pa.Table:
        """A row per set, in place of each row; ``at``: the place of the column ``grouping_id``."""
        self.check_free(rows.schema.names)
        count = len(self.sets)
        ids = np.tile(np.array(self.ids, np.int64), rows.num_rows)
        out = rows.take(pa.array(np.repeat(np.arange(rows.num_rows), count)))
        for name in self.columns:
            place = out.schema.get_field_index(name)
            if place >= 0:
                column = out[name].combine_chunks()
                kept = pa.array((ids & self.bit(name)) == 0)
                shown = pc.if_else(kept, column, pa.scalar(None, column.type))
                out = out.set_column(place, out.schema.field(place), shown)
        return out.add_column(at, GROUPING_ID, pa.array(ids))


@attrs.frozen(init=False, repr=False)
class Rollup(KeySets):
    """All of the columns, then one fewer at a time from the right, down to the grand total, as SQL's ``ROLLUP``.

    Args:
        columns: names of columns, the widest group first.

    Raises:
        OptionError: no columns, or not names.

    Example:
        >>> import beamish as bm
        >>> bm.Rollup("country", "city").sets
        (('country', 'city'), ('country',), ())
    """

    def __init__(self, *columns: str) -> None:
        self._set(columns, [columns[:size] for size in range(len(columns), -1, -1)], columns)


@attrs.frozen(init=False, repr=False)
class Cube(KeySets):
    """All combinations of the columns, as SQL's ``CUBE``.

    Args:
        columns: names of columns, at most six.

    Raises:
        OptionError: no columns, not names, or too many.

    Example:
        >>> import beamish as bm
        >>> bm.Cube("country", "device").sets
        (('country', 'device'), ('country',), ('device',), ())
    """

    def __init__(self, *columns: str) -> None:
        sizes = range(len(columns), -1, -1) if len(columns) <= MOST.bit_length() else ()
        sets = [one for size in sizes for one in combinations(columns, size)]
        self._set(columns, sets or [()] * (MOST + 1), columns)


@attrs.frozen(init=False, repr=False)
class GroupingSets(KeySets):
    """These sets of columns, as SQL's ``GROUPING SETS``.

    Args:
        sets: each a tuple of names of columns, or a single name; ``()`` is the grand total.

    Raises:
        OptionError: no columns, not names, or a repeated set.

    Example:
        >>> import beamish as bm
        >>> bm.GroupingSets(("country", "city"), "device", ()).columns
        ('country', 'city', 'device')
    """

    def __init__(self, *sets: str | tuple[str, ...]) -> None:
        each = [(one,) if isinstance(one, str) else tuple(one) for one in sets]
        self._set(sets, each, tuple(dict.fromkeys(name for one in each for name in one)))

    @property
    def _arguments(self) -> tuple[Any, ...]:
        return self.sets
