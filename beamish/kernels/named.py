"""Options by name."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Named(dict[str, T]):
    """An immutable, hashable dict."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class InOrder(Named[T]):
    """The same, whose order a checkpoint keeps."""

    def identity(self) -> tuple[tuple[str, T], ...]:
        """What a checkpoint holds of it."""
        return tuple(self.items())
