"""Stored tables: Arrow tables as bytes, each an entry under a name. Nothing is pickled.

index       the contents of segments (kinds/window/segments.py)
s<number>   a segment: windows (kinds/window/segments.py)
i<number>   the inherited panes of a segment's windows (the same)
takes       the columns of the stage's inputs, as JSON (contract/input_schemas.py)
about       the stage's description, as JSON (description.py), stored by the Spark runner
windowings  the names of several windowings, as JSON (kinds/window/windowings.py); each has its entries under its name: name/s1
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from beamish.contract.store import Store
from beamish.errors import StateError, cause, said
from beamish.kernels.ipc import from_bytes, to_bytes

INDEX, WINDOWINGS = "index", "windowings"
"""The names of entries that occur once per store."""


def segment_name(number: int) -> str:
    """The entry of a segment."""
    return f"s{number}"


def read_entry(store: Store, name: str) -> pa.Table:
    """Read a required entry.

    Raises:
        StateError: it is missing or damaged.
    """
    stored = store.get(name)
    if stored is None:
        raise StateError(
            f"the index lists entry {name!r}, but the state store does not have it: restore the checkpoint"
        )
    return table_of(name, stored)


def table_of(name: str, stored: bytes) -> pa.Table:
    """Decode an entry.

    Raises:
        StateError: the entry is damaged.
    """
    with naming_entry(name):
        table = from_bytes(stored)
        table.validate()
        return table


@contextmanager
def naming_entry(name: str) -> Iterator[None]:
    """Name the entry in errors raised inside, since it is damaged."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"the state store's entry {name!r} is not what was written ({said(error)}): restore the "
            "checkpoint from a copy, or start from a new one"
        ) from cause(error)


def write_entry(store: Store, name: str, table: pa.Table) -> None:
    """Write an entry."""
    store.put(name, entry_bytes(table))


def entry_bytes(table: pa.Table) -> bytes:
    """Encode an entry."""
    return to_bytes(table.combine_chunks(), compression="lz4")
