"""Values that show that they are whole, in their place, and those that were written last.

Behind each value that is written stands a seal: a mark, and a checksum of the value, of its name, of its shard, and of a word that each
shard draws when it begins. A value is looked at only when its seal is right. So one that was damaged or cut short is refused before
anything tries to read it, and so is a whole one of another entry, shard or query. The checksums of all entries are noted too
(``spark/operator/notes.py``), so that one of an earlier batch is refused, and one that was lost.

A shard that was begun before there were seals has none, and one of before checksums were noted has no such note; their values are taken
as they are.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from zlib import crc32

import attrs

from beamish.contract.store import Store
from beamish.errors import StateError

_MARK = b"\xbe\xa3\x15\x01"
_LENGTH = len(_MARK) + 4


def new_word() -> str:
    """The word of a shard that begins."""
    return secrets.token_hex(8)


def seal(value: bytes, shard: int, name: str, word: str = "") -> bytes:
    """A value with its seal."""
    return b"".join((value, _MARK, _checksum(value, shard, name, word)))


def unseal(sealed: bytes, shard: int, name: str, word: str = "") -> bytes:
    """The value without its seal, which was found right.

    Raises:
        StateError: it is not: the value is not what was written under this name.
    """
    value = sealed[:-_LENGTH]
    if sealed[-_LENGTH:] != _MARK + _checksum(value, shard, name, word):
        why = "its checksum is wrong: it was damaged, cut short, or is of another entry, shard or query"
        raise not_as_written(shard, name, why)
    return value


def check_last(sealed: bytes | None, shard: int, name: str, sums: Mapping[str, int]) -> None:
    """Check that a sealed value, or that there is none (None), is what was last written.

    Args:
        sealed: the value, whose seal is right.
        shard, name: of the entry.
        sums: the noted checksums.

    Raises:
        StateError: it is not.
    """
    there = None if sealed is None else _sum_of(sealed)
    if there != sums.get(name):
        raise not_as_written(shard, name, "it was lost" if there is None else "it is of an earlier batch")


def not_as_written(shard: int, name: str, why: str) -> StateError:
    """The error of an entry that is not what was written."""
    return StateError(
        f"the state store's entry {name!r} of shard {shard} is not what was written ({why}): "
        "restore the checkpoint from a copy, or start from a new one"
    )


def _sum_of(sealed: bytes) -> int:
    return int.from_bytes(sealed[-4:], "big")


def is_sealed(value: bytes) -> bool:
    """Whether there is a seal, right or wrong."""
    return value[-_LENGTH:-4] == _MARK


def _checksum(value: bytes, shard: int, name: str, word: str) -> bytes:
    return crc32(value, crc32(f"{word}/{shard}/{name}/".encode())).to_bytes(4, "big")


@attrs.frozen(eq=False)
class SealedStore:
    """A store whose values are sealed.

    Attributes:
        store: where they are.
        shard: whose they are.
        word: the shard's; None: it was begun before there were seals.
        sums: the checksum of each entry, kept up to date; None: the shard was begun before they were noted.
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
