"""A shard's store: a map of names to bytes."""

from __future__ import annotations

from typing import Protocol

ABOUT, REPORTS = "about", "reports"
"""Entries for the stage's description, and for watermark reports if stages have watermarks other than the query's."""


class Store(Protocol):
    """A dict in a test, Spark's state store on Spark."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, value: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


class DictStore(dict[str, bytes]):
    """A store in memory."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def remove(self, name: str) -> None:
        self.pop(name, None)
