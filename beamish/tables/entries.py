"""The entries of a store: Arrow tables as bytes, entries under a common prefix, and sealed values. Nothing is pickled.

Stored tables: Arrow tables as bytes, each an entry under a name. Nothing is pickled.

index       the contents of segments (kinds/window/state/segments.py)
s<number>   a segment: windows (kinds/window/state/segments.py)
i<number>   the inherited panes of a segment's windows (the same)
h<number>   the hashes of keys at rest, a generation of windows without an end (kinds/window/state/endless.py)
takes       the columns of the stage's inputs, as JSON (contract/stored.py)
about       the stage's description, as JSON (flow.py), stored by the Spark runner
windowings  the names of several windowings, as JSON (kinds/window/windowings.py); each has its entries under its name: name/s1
fused       which stages share the shard, as JSON (fusion/operator.py); each has its entries under its name

Sealed values: checksums that detect damaged, misplaced and outdated entries.

Each stored value is followed by a seal: a mark, and a checksum of the value, its name, its shard, and a random word of the shard.
A value is decoded only if its seal is valid. So a damaged or truncated value is rejected before it is decoded, and so is an
intact one of another entry, shard or query. The checksums of all entries are stored too (``spark/operator/notes.py``), so that
outdated and lost entries are detected.

Shards older than seals or checksums lack them; their values are not checked.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from zlib import crc32

import attrs
import pyarrow as pa

from beamish.contract.stored import Store
from beamish.errors import StateError, cause, check_memory, describe_foreign
from beamish.kernels.buffers import from_bytes, to_bytes


def under(name: str | None, store: Store) -> Store:
    """The view of a windowing; the whole store if it has no name."""
    return store if name is None else StoreUnder(name, store)


class StoreUnder:
    """The entries of a store under a name."""

    def __init__(self, name: str, store: Store) -> None:
        self._name, self._store = name, store

    def get(self, name: str) -> bytes | None:
        return self._store.get(f"{self._name}/{name}")

    def put(self, name: str, value: bytes) -> None:
        self._store.put(f"{self._name}/{name}", value)

    def remove(self, name: str) -> None:
        self._store.remove(f"{self._name}/{name}")


class PendingStore:
    """A store whose changes are written when they are flushed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: dict[str, bytes | None] = {}

    def get(self, name: str) -> bytes | None:
        return self._pending[name] if name in self._pending else self._store.get(name)

    def put(self, name: str, value: bytes) -> None:
        self._pending[name] = value

    def remove(self, name: str) -> None:
        self._pending[name] = None

    def flush(self) -> None:
        """Write the changes."""
        for name, value in self._pending.items():
            if value is None:
                self._store.remove(name)
            else:
                self._store.put(name, value)
        self._pending.clear()


INDEX, WINDOWINGS, FUSED = "index", "windowings", "fused"
"""The names of entries that occur once per store."""


def segment_name(number: int) -> str:
    """The entry of a segment."""
    return f"s{number}"


def read_entry(store: Store, name: str) -> pa.Table:
    """Read a required entry (StateError: it is missing or damaged)."""
    stored = store.get(name)
    if stored is None:
        raise StateError(
            f"the index lists entry {name!r}, but the state store does not have it: restore the checkpoint"
        )
    return table_of(name, stored)


def table_of(name: str, stored: bytes) -> pa.Table:
    """Decode an entry (StateError: the entry is damaged)."""
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
        check_memory(error)
        raise StateError(
            f"the state store's entry {name!r} is not what was written ({describe_foreign(error)}): restore the "
            "checkpoint from a copy, or start from a new one"
        ) from cause(error)


def write_entry(store: Store, name: str, table: pa.Table) -> None:
    """Write an entry."""
    store.put(name, entry_bytes(table))


def entry_bytes(table: pa.Table) -> bytes:
    """Encode an entry."""
    return to_bytes(table.combine_chunks(), compression="lz4")


_MARK = b"\xbe\xa3\x15\x01"
_LENGTH = len(_MARK) + 4


def new_word() -> str:
    """The random word of a new shard."""
    return secrets.token_hex(8)


def seal(value: bytes, shard: int, name: str, word: str = "") -> bytes:
    """Seal a value."""
    return b"".join((value, _MARK, _checksum(value, shard, name, word)))


def unseal(sealed: bytes, shard: int, name: str, word: str = "") -> bytes:
    """The value without its seal, which is verified (StateError: the seal is invalid)."""
    value = sealed[:-_LENGTH]
    if sealed[-_LENGTH:] != _MARK + _checksum(value, shard, name, word):
        why = "its checksum is wrong: it was damaged, truncated, or belongs to another entry, shard or query"
        raise not_as_written(shard, name, why)
    return value


def check_last(sealed: bytes | None, shard: int, name: str, sums: Mapping[str, int]) -> None:
    """Check a sealed value, or an absent one (None), against the stored checksums.

    Args:
        sealed: the value, whose seal is valid.
        shard, name: of the entry.
        sums: the stored checksums.

    Raises:
        StateError: it is not the last written value.
    """
    there = None if sealed is None else _sum_of(sealed)
    if there != sums.get(name):
        raise not_as_written(shard, name, "it was lost" if there is None else "it is from an earlier batch")


def not_as_written(shard: int, name: str, why: str) -> StateError:
    """The error of an invalid entry."""
    return StateError(
        f"the state store's entry {name!r} of shard {shard} is not what was written ({why}): "
        "restore the checkpoint from a copy, or start from a new one"
    )


def _sum_of(sealed: bytes) -> int:
    return int.from_bytes(sealed[-4:], "big")


def is_sealed(value: bytes) -> bool:
    """Whether there is a seal, valid or not."""
    return value[-_LENGTH:-4] == _MARK


def _checksum(value: bytes, shard: int, name: str, word: str) -> bytes:
    return crc32(value, crc32(f"{word}/{shard}/{name}/".encode())).to_bytes(4, "big")


@attrs.frozen(eq=False)
class SealedStore:
    """A store with sealed values.

    Attributes:
        store: the store.
        shard: the shard's id.
        word: the shard's; None: older than seals.
        sums: the checksum of each entry, kept up to date; None: older than checksums.
    """

    store: Store
    shard: int
    word: str | None
    sums: dict[str, int] | None

    def get(self, name: str) -> bytes | None:
        sealed = self.store.get(name)
        value = sealed if sealed is None or self.word is None else unseal(sealed, self.shard, name, self.word)
        if self.sums is not None:
            check_last(sealed, self.shard, name, self.sums)
        return value

    def put(self, name: str, value: bytes) -> None:
        stored = value if self.word is None else seal(value, self.shard, name, self.word)
        self.store.put(name, stored)
        if self.sums is not None:
            self.sums[name] = _sum_of(stored)

    def remove(self, name: str) -> None:
        self.store.remove(name)
        if self.sums is not None:
            self.sums.pop(name, None)
