"""The keys to show."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from beamish.errors import OptionError
from beamish.plot.picture import Panel

MOST_PANELS = 12
"""Maximum number of panels: more would be unreadable."""


@attrs.frozen
class Chosen:
    """The requested keys.

    Attributes:
        key: key columns and their values; or the value of a single key column; None: all keys.
        columns: the key columns of each stage.
    """

    key: Any
    columns: Sequence[Sequence[Any]]

    def __attrs_post_init__(self) -> None:
        known = list(dict.fromkeys(str(name) for names in self.columns for name in names))
        if self.key is not None and not known:
            raise OptionError(f"timeline(key={self.key!r}): nothing is keyed; leave key= out")
        if isinstance(self.key, Mapping):
            for name in self.key:
                if name not in known:
                    raise OptionError(f"timeline(key={self.key!r}): there is no key column {name!r}; there are {known}")
        elif self.key is not None and any(len(names) > 1 for names in self.columns):
            raise OptionError(
                f"timeline(key={self.key!r}): there are several key columns; name them: key={{{known[0]!r}: {self.key!r}}}"
            )

    def keys(self, stage: int, seen: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The keys of a stage to show, among those seen, in order of appearance."""
        return [key for key in dict.fromkeys(seen) if self._is_asked(stage, key)]

    def _is_asked(self, stage: int, key: tuple[Any, ...]) -> bool:
        if self.key is None or not key:
            return True
        if not isinstance(self.key, Mapping):
            return bool(key[0] == self.key)
        named = dict(zip(map(str, self.columns[stage]), key, strict=True))
        return all(named[name] == value for name, value in self.key.items() if name in named)

    def check(self, panels: Sequence[Panel]) -> None:
        """Check the number of panels.

        Raises:
            OptionError: no such key, or too many keys.
        """
        if not panels:
            what = (
                "there are no rows and no panes" if self.key is None else f"no row and no pane has the key {self.key!r}"
            )
            raise OptionError(f"timeline(key={self.key!r}): {what}, so there is nothing to show")
        if len(panels) > MOST_PANELS:
            example = next(panel.key for panel in panels if panel.key)
            raise OptionError(
                f"timeline(): {len(panels)} keys, a panel each, are too many to read (at most {MOST_PANELS}); "
                f"pick one: key={dict(example)!r}"
            )


def key_of(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values of a key, for lookups: normalised as in panes; unhashable values as text."""
    return tuple(map(_to_look_up, values))


def _to_look_up(value: Any) -> Any:
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0  # panes have 0.0 for both zeros
    return value if isinstance(value, Hashable) else repr(value)


def key_name(key: Mapping[str, Any]) -> str:
    """A key as text."""
    return ", ".join(f"{name} = {value}" for name, value in key.items())
