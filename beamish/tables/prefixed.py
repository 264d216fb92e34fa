"""A store view with a common prefix."""

from __future__ import annotations

from beamish.contract.store import Store


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
