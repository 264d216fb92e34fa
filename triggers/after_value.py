"""AfterValue: fire when the value of an accumulation reaches a bound."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isnan
from typing import Any

import attrs
import pyarrow as pa

from beamish.errors import OptionError
from beamish.triggers.trigger import Flags, Merge, Now, State, Trigger, Waiting, WindowIndices


@attrs.frozen
class AfterValue(Trigger):
    """Fires once the value that a pane would have now is at least, or at most, a number, and is then finished.

    It is evaluated after a bundle. With discarding panes the value is of the rows since the last pane, otherwise of all rows.
    Null is neither. Merging uses the merged window's value; if it has fired in a source window, it has fired. Once per session, however it
    grows: ``AfterEach(AfterValue("n", at_least=5), Never())``.

    Args:
        name: the name of an accumulation of the pipeline with numeric values.
        at_least: the least value that fires.
        at_most: the greatest value that fires, in place of ``at_least``.

    Raises:
        OptionError: an invalid name, both bounds or neither, or a bound that is not a number.

    Example:
        >>> from beamish.triggers import AfterValue, Repeatedly
        >>> AfterValue("total", at_least=100).describe()
        'once total is at least 100'
    """

    name: str = attrs.field()
    at_least: int | float | Decimal | None = attrs.field(default=None, kw_only=True)
    at_most: int | float | Decimal | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        named: Any = self.name
        if not isinstance(named, str) or not named:
            raise OptionError(f"AfterValue(name={self.name!r}): must be the name of an accumulation, such as 'total'")
        if (self.at_least is None) == (self.at_most is None):
            raise OptionError(
                f"{self!r}: give one of at_least and at_most, such as AfterValue({self.name!r}, at_least=5)"
            )
        for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)):
            is_number = isinstance(bound, (int, float, Decimal)) and not isinstance(bound, bool) and not isnan(bound)
            if bound is not None and not is_number:
                raise OptionError(f"AfterValue({name}={bound!r}): must be a number")

    def describe(self) -> str:
        bound = f"least {self.at_least}" if self.at_most is None else f"most {self.at_most}"
        return f"once {self.name} is at {bound}"

    def describe_repeated(self) -> str:
        return self.describe().replace("once", "with every bundle while", 1)

    @property
    def asked_values(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        pass

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Flags:
        return now.value_is_within(self.name, at, self.at_least, self.at_most)

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        s.finished[m.into] = m.any(s.finished)

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        bound = f"least {self.at_least}" if self.at_most is None else f"most {self.at_most}"
        return pa.array([f"a row with which {self.name} is at {bound}"] * len(at), pa.string())
