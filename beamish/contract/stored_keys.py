"""State by key, and what the watermark will do to it: rows of ``state(...).keys()``, and sentences of ``why``.

A kind gives parts: its stored entries of one sort, with their keys. Rows are made of them here, one per key and part, alike for all kinds
(docs/rules/running.md#stored-keys).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.at_rest import Answer, of_key
from beamish.contract.keys import shard_of
from beamish.contract.stored import Store
from beamish.contract.updates import TIMESTAMP
from beamish.instants import EARLIEST_US, LATEST_US
from beamish.kernels.buffers import Ints
from beamish.kernels.codes import factorize_rows, normalise

UNTIL_NEVER_US = 2**63 - 1
"""A time that the watermark does not reach."""
STORED, ENTRIES, FIRST, LAST, VALUES, DUE, THEN, ENDS = (
    "stored",
    "entries",
    "first",
    "last",
    "values",
    "due",
    "then",
    "ends",
)
_OWN: tuple[tuple[str, pa.DataType], ...] = (
    (STORED, pa.string()),
    (ENTRIES, pa.int64()),
    (FIRST, TIMESTAMP),
    (LAST, TIMESTAMP),
    (VALUES, pa.string()),
    (DUE, TIMESTAMP),
    (THEN, pa.string()),
    (ENDS, TIMESTAMP),
)
_SHORT = 200
"""Characters of a value."""


@attrs.frozen(eq=False)
class StoredPart:
    """Entries of one sort, of any keys.

    Attributes:
        what: what they are, in words, plural: "rows that wait".
        keys: n rows: the key columns.
        first_us, last_us: int64[n], the times of its first and its last row.
        entries: int64[n], how many each stands for; None: 1.
        values: n rows, shown of the latest entry; None: none.
        due_us: int64[n], the watermark at which something happens to it; None, UNTIL_NEVER_US: nothing does.
        then: what happens, in words, for each; or for all.
        ends_us: int64[n], the watermark at which it is deleted; None, UNTIL_NEVER_US: not by itself.
    """

    what: str
    keys: pa.Table
    first_us: Ints
    last_us: Ints
    entries: Ints | None = None
    values: pa.Table | None = None
    due_us: Ints | None = None
    then: str | Sequence[str] = ""
    ends_us: Ints | None = None

    def rows(self, key: Mapping[str, Any]) -> pa.Table:
        """A row per key; ``key``: values of some key columns."""
        is_keyed = bool(self.keys.schema.names)
        at = np.flatnonzero(of_key(self.keys, key)) if is_keyed else np.arange(len(self.first_us))
        keys = self.keys.take(pa.array(at)) if is_keyed else self.keys
        columns = keys.columns or [pa.array(np.zeros(len(at), np.int8))]
        groups = factorize_rows(columns, len(at))
        never = np.full(len(self.first_us), UNTIL_NEVER_US)
        first_us, last_us = self.first_us[at], self.last_us[at]
        due_us, ends_us = ((never if one is None else one)[at] for one in (self.due_us, self.ends_us))
        entries = np.ones(len(at), np.int64) if self.entries is None else self.entries[at]
        first = pa.array(groups.first())
        # The first that is due, and the latest, of each key.
        next_ = np.lexsort((due_us, groups.of))
        next_ = next_[np.searchsorted(groups.of[next_], np.arange(groups.count))]
        latest = np.lexsort((last_us, groups.of))
        latest = latest[np.searchsorted(groups.of[latest], np.arange(groups.count), side="right") - 1]
        then = [self.then if isinstance(self.then, str) else self.then[i] for i in at[next_].tolist()]
        own = [
            pa.array([self.what] * groups.count, pa.string()),
            pa.array(groups.sum(entries)),
            _times(groups.least(first_us)),
            _times(groups.greatest(last_us)),
            pa.array(self._values(at[latest]), pa.string()),
            _times(due_us[next_]),
            pa.array([one or None for one in then], pa.string()),
            _times(groups.greatest(ends_us)),
        ]
        own_fields = [pa.field(name, type_) for name, type_ in _OWN]
        own_keys = keys.take(first).columns if is_keyed else []
        return pa.table([*own_keys, *own], schema=pa.schema([*keys.schema, *own_fields]))

    def _values(self, at: Ints) -> list[str | None]:
        if self.values is None or not self.values.num_columns:
            return [None] * len(at)
        rows = self.values.take(pa.array(at)).to_pylist()
        return [", ".join(f"{name}={_short(value)}" for name, value in row.items()) for row in rows]


class StoresKeys(Protocol):
    """A bound stage that gives them."""

    shards: int

    @property
    def stored_keys(self) -> pa.Schema:
        """The columns of the keys that its state is stored by."""
        ...

    @property
    def sharded_by(self) -> Sequence[str]:
        """Those that decide the shard."""
        ...

    def stored(self, store: Store) -> Iterator[StoredPart]:
        """The entries of a shard."""
        ...


@attrs.frozen(eq=False)
class StoredKeys(Answer):
    """The entries of keys in shards, as rows.

    Attributes:
        of: the bound stage.
        key: values of some key columns.
    """

    of: StoresKeys
    key: Mapping[str, Any]

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the key columns."""
        return tuple(self.of.stored_keys.names)

    @property
    def schema(self) -> pa.Schema:
        """Keys, and what is stored of them."""
        return pa.schema([*self.of.stored_keys, *(pa.field(name, type_) for name, type_ in _OWN)])

    @property
    def shard(self) -> int | None:  # type: ignore[override]
        """The shard of the key, if enough of it is given."""
        names = self.of.sharded_by
        if not names or not set(names) <= self.key.keys():
            return None
        types = [self.of.stored_keys.field(name).type for name in names]
        own = [normalise(pa.array([self.key[name]], type_)) for name, type_ in zip(names, types, strict=True)]
        return shard_of(pa.table(own, names=list(names)), self.of.shards)

    def read(self, store: Store) -> pa.Table:
        schema = self.schema
        parts = [part.rows(self.key).cast(schema) for part in self.of.stored(store)]
        return pa.concat_tables([schema.empty_table(), *parts])


def _times(us: Ints) -> pa.Array:
    """Times of int64 microseconds; null outside the years 1 to 9999."""
    return pa.array(us, mask=(us > LATEST_US) | (us < EARLIEST_US)).cast(TIMESTAMP)


def _short(value: Any) -> str:
    text = str(value.replace(tzinfo=None)) if isinstance(value, datetime) else repr(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."
