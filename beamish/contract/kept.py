"""Declared state: the keyed tables and the metadata of an operator's shards.

An operator that declares them (``Operator.tables``, ``Operator.notes``) can be rescaled (at_rest/rescale.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import pyarrow as pa

from beamish.contract.store import Store
from beamish.kernels.arrays import Ints

INDEX = "index"
"""The entry of a table's index."""


@attrs.frozen(eq=False)
class Layout:
    """The entries and the index of a table in a shard's store.

    Attributes:
        name: prefix of its entries: ``name/s1``; empty: ``s1``.
        columns: additional columns of the index.
        rows: the index column with the number of rows.
        companion: the letter of companion entries, and the index column that flags them; None: rows have no companions.
        later: defaults of index columns that earlier versions did not write.
        has_metadata: whether the index is written even without segments, for its metadata.
        in_row_order: whether segments are indexed in the order of their first rows in memory, not by number.
        read: gives the metadata of an index as this version has it; raises StateError if it cannot read the format.
    """

    name: str
    columns: tuple[str, ...] = ()
    rows: str = "rows"
    companion: tuple[str, str] | None = None
    later: Mapping[str, int] = {}
    has_metadata: bool = False
    in_row_order: bool = False
    read: Callable[[dict[str, Any]], dict[str, Any]] = lambda about: about

    @property
    def index(self) -> tuple[str, ...]:
        """The columns of the index."""
        return ("segment", self.rows, *self.columns, *(self.companion or ())[1:])

    def entry(self, name: str | int, letter: str = "s") -> str:
        """The name of an entry in the store, or of that of a segment."""
        own = name if isinstance(name, str) else f"{letter}{name}"
        return f"{self.name}/{own}" if self.name else own

    def owns(self, names: Iterable[str]) -> set[str]:
        """The entries among these names that belong to the table."""
        own = re.compile(re.escape(self.entry("")) + rf"({INDEX}|[a-z]-?\d+)")
        return set(filter(own.fullmatch, names))


class Segments(Protocol):
    """The stored segments of a table in a shard (tables/segment_store.py).

    Attributes:
        about: the metadata of the index, as JSON.
        index: the index's columns.
    """

    about: dict[str, Any]
    index: dict[str, Ints]

    def read(self, number: int) -> pa.Table:
        """The rows of a segment."""
        ...

    def read_companions(self, number: int) -> pa.Table | None:
        """The companions of a segment's rows; None if empty."""
        ...


@attrs.frozen(eq=False)
class KeyedTable:
    """A table partitioned by key: each shard stores the rows of its keys.

    Attributes:
        layout: its entries in a shard's store.
        key: the stored columns that rows are partitioned by, with the types that are hashed; empty: a single shard.
        restore: ``restore(store, parts)`` writes rows of earlier shards into the store of a new one.
    """

    layout: Layout
    key: pa.Schema
    restore: Callable[[Store, Sequence[Segments]], None]


@attrs.frozen(eq=False)
class Note:
    """The metadata of a shard, as JSON, with at least ``clocks`` and ``dropped``.

    Attributes:
        stage: what it says of the stage, given what it said.
        entries: names of the other entries written with it.
        read: returns the metadata in a store; None: absent.
        write: writes it.
        check: raises StateError if the stage, with any number of shards, cannot continue from a store.
        holds: the name of the stage's suppress; None: it has none.
    """

    stage: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    entries: frozenset[str]
    read: Callable[[Store], dict[str, Any] | None]
    write: Callable[[Store, Mapping[str, Any]], None]
    check: Callable[[Store], object]
    holds: str | None = None
