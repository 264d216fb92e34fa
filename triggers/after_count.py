"""AfterCount: fire after a number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa

from beamish.errors import OptionError
from beamish.triggers.trigger import Merge, Now, State, Trigger, Waiting, WindowIndices, in_words


@attrs.frozen
class AfterCount(Trigger):
    """Fires once at least ``n`` rows have arrived since it started waiting, and is then finished (Beam: AfterPane/AfterCount).

    It is evaluated after a bundle: a bundle of 7 with ``n=3`` gives one pane of 7, and counting restarts at 0. Merging adds the
    counts; if it has fired in a source window, it has fired.

    Args:
        n: how many rows, at least 1.

    Raises:
        OptionError: n is below 1 or not an integer.

    Example:
        >>> from beamish.triggers import AfterCount, Repeatedly
        >>> AfterCount(100).describe(), Repeatedly(AfterCount(100)).describe()
        ('after 100 rows', 'every 100 rows')
    """

    n: int = attrs.field()

    @n.validator
    def _check(self, _: object, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise OptionError(
                f"AfterCount(n={value!r}): n must be a whole number of at least 1; for a pane per bundle use Always()"
            )

    def describe(self) -> str:
        return "after 1 row" if self.n == 1 else f"after {self.n} rows"

    def describe_repeated(self) -> str:
        return "every row" if self.n == 1 else f"every {self.n} rows"

    @property
    def columns(self) -> Mapping[str, tuple[str, Any]]:
        return {"count": ("int64", 0)}

    def on_rows_columns(self, s: State, at: WindowIndices, count: Any, now: Now) -> None:
        s["count"][at] += count

    def should_fire_columns(self, s: State, at: WindowIndices, now: Now) -> Any:
        return s["count"][at] >= self.n

    def on_fire_columns(self, s: State, at: WindowIndices, now: Now) -> None:
        self.clear(s, at)
        s.finished[at] = True

    def on_merge_columns(self, s: State, m: Merge, now: Now) -> None:
        fired, count = m.any(s.finished), m.sum(s["count"])
        s.finished[m.into] = fired
        s["count"][m.into] = count * ~fired

    def waits_for_columns(self, s: State, at: WindowIndices, now: Waiting) -> pa.Array:
        return in_words(s["count"][at], self._waits_for)

    def _waits_for(self, count: int) -> str:
        if count >= self.n:
            return f"nothing more: {count} of {self.n} rows have arrived"
        left = self.n - count
        came = f" ({count} of {self.n} have arrived since it began waiting)" if self.n > 1 else ""
        return f"{left} more row{'s' * (left > 1)}{came}"
