"""Values that show that they are whole and in their place.

Behind each value that is written stands a seal: a mark, and a checksum of the value, of its name, of its shard, and of a word that each
shard draws when it begins. A value is looked at only when its seal is right. So one that was damaged or cut short is refused before
anything tries to read it, and so is a whole one of another entry, shard or query.

A shard that was begun before there were seals has none; its values are taken as they are.
"""

from __future__ import annotations

import secrets
from zlib import crc32

import attrs

from beamish.engine.state.store import Store
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
        raise StateError(
            f"the state store's entry {name!r} of shard {shard} is not what was written (its checksum is wrong: it was damaged, cut short, or "
            "is of another entry, shard or query): restore the checkpoint from a copy, or start from a new one"
        )
    return value


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
    """

    store: Store
    shard: int
    word: str | None

    def get(self, name: str) -> bytes | None:
        value = self.store.get(name)
        return value if value is None or self.word is None else unseal(value, self.shard, name, self.word)

    def put(self, name: str, value: bytes) -> None:
        self.store.put(name, value if self.word is None else seal(value, self.shard, name, self.word))

    def remove(self, name: str) -> None:
        self.store.remove(name)
