"""Pseudonyms for personal values: equal values get equal ones, in the same order, everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from beamish.errors import OptionError
from beamish.pane import Pane

_MASKED = (str, int)


@attrs.frozen
class Masks:
    """Pseudonyms by value.

    Texts are replaced wherever they are, whole numbers only in the masked columns.
    """

    columns: frozenset[str]
    by_value: Mapping[Any, Any]

    @classmethod
    def of(cls, columns: Iterable[str], rows: Sequence[Mapping[str, Any]], known: Iterable[str]) -> Masks:
        """Pseudonyms of the values of some columns.

        Args:
            columns: their names.
            rows: all rows.
            known: all column names.

        Raises:
            OptionError: no such column, or values that are neither texts nor whole numbers.
        """
        names = list(columns)
        for name in names:
            if name not in set(known):
                raise OptionError(
                    f"replay(mask={names!r}): the rows have no column {name!r}; they have {sorted(set(known))}"
                )
        by_value: dict[Any, Any] = {}
        texts: dict[str, str] = {}
        numbers: set[int] = set()
        for name in names:
            for value in (row.get(name) for row in rows):
                if value is None:
                    continue
                if not isinstance(value, _MASKED) or isinstance(value, bool):
                    raise OptionError(
                        f"replay(mask): column {name!r} has a {type(value).__name__}; texts and whole numbers can be masked"
                    )
                if isinstance(value, str):
                    texts.setdefault(value, name)
                else:
                    numbers.add(value)
        width = len(str(len(texts)))
        by_value |= {value: f"{texts[value]}-{place:0{width}}" for place, value in enumerate(sorted(texts), 1)}
        by_value |= {value: place for place, value in enumerate(sorted(numbers), 1)}
        return cls(frozenset(names), by_value)

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row, or a key or values, with pseudonyms."""
        return {name: self.value(value, whole=name in self.columns) for name, value in row.items()}

    def value(self, value: Any, *, whole: bool = False) -> Any:
        """A value with pseudonyms; ``whole``: whole numbers too."""
        if isinstance(value, str) or (whole and isinstance(value, int) and not isinstance(value, bool)):
            return self.by_value.get(value, value)
        if isinstance(value, Mapping):
            return self.row(value)
        if isinstance(value, list):
            return [self.value(one, whole=whole) for one in value]
        return value

    def pane(self, pane: Pane) -> Pane:
        """A pane with pseudonyms."""
        return attrs.evolve(pane, key=self.row(pane.key), values=self.row(pane.values))
