"""Options by name."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Named(dict[str, T]):
    """A dict that is hashable, since nothing changes it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))
