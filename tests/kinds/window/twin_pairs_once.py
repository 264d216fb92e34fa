"""Joins that emit each pair once, row by row (rules/stages.md#each-pair-once)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import beamish as bm
from beamish.windows.option import END_OF_TIME_US
from tests.twin.accumulations import Row
from tests.twin.joins import JOINS, Join, has_no_match, is_in_own_window, row_without
from tests.twin.order import spark_order
from tests.twin.windows import interval_of

if TYPE_CHECKING:
    from tests.twin.run import Key, Live, Twin

Pair = tuple[Row | None, Row | None]


@dataclass
class Made:
    """The rows of a key, over all windows.

    Attributes:
        pairs: emitted pairs; a row is identified by its values' object, which is the same in all windows.
        met: the rows in a pair.
    """

    pairs: dict[tuple[int, int], tuple[Any, Any]] = field(default_factory=dict)
    met: dict[int, Any] = field(default_factory=dict)

    def make(self, one: Row, other: Row) -> bool:
        """Add the pair if it is new."""
        name = id(one.values), id(other.values)
        if name in self.pairs:
            return False
        self.pairs[name] = one.values, other.values
        self.met |= {id(row.values): row.values for row in (one, other)}
        return True


def once_of(twin: Twin) -> Join | None:
    """The join, if each pair comes once."""
    found = [one for one in twin.options.accumulations.values() if type(one) in JOINS and one.once]  # type: ignore[attr-defined]
    return found[0] if found else None  # type: ignore[return-value]


def too_old(twin: Twin, row: Row) -> bool:
    """Is an arriving row past retention?"""
    once = once_of(twin)
    return once is not None and not kept_at(once, row, twin.time_of(row), twin.watermark)


def kept_at(once: Join, row: Row, time_us: int | None, watermark: float) -> bool:
    """Is a row with this event time stored at this watermark? One without is, as long as its window."""
    how_long = once.keep_for.get(row.input or "")
    return how_long is None or time_us is None or min(time_us + how_long.us, END_OF_TIME_US) > watermark


def meets(twin: Twin, once: Join, one: Row, other: Row) -> bool:
    """Do these rows match, in the stage's windows?"""
    window = twin.meets
    if has_no_match(once, one, twin.takes) or has_no_match(once, other, twin.takes):
        return False
    if not isinstance(window, bm.Within):
        return True
    of, time = (one, other.time_us) if once.left == window.of else (other, one.time_us)
    since, until = interval_of(window)
    return since <= of.time_us - time <= until


def emits(twin: Twin, once: Join, window: Live, one: Row, other: Row) -> bool:
    """Is this the window that emits the pair? (rules/joins.md#full-interval-joins)."""
    if twin.full is None:
        return True
    within = twin.full_window
    row = one if once.right == within.of else other
    return is_in_own_window(within, str(row.input), row.time_us, window.start)


def pair_up(twin: Twin, key: Key, windows: Iterable[Live]) -> None:
    """Windows, by (end, start), with new rows: matches are due in the first, then retention is applied."""
    once = once_of(twin)
    if once is None:
        return
    windows = list(windows)
    for window in windows:
        left, right = ([row for row in window.kept if row.input == name] for name in (once.left, once.right))
        for one in left:
            window.due += [
                (one, row)
                for row in right
                if meets(twin, once, one, row) and emits(twin, once, window, one, row) and key.made.make(one, row)
            ]
    for window in windows:
        let_go(twin, key, window)


def let_go(twin: Twin, key: Key, window: Live) -> int:
    """Apply retention to a window; returns the number of dropped unmatched rows."""
    once = once_of(twin)
    if once is None:
        return 0
    gone = [row for row in window.kept if not kept_at(once, row, twin.time_of(row), twin.watermark)]
    for name, rows in once.keep_rows.items():
        (keys,) = (one.keys for one in twin.takes if one.name == name)
        own = [row for row in window.kept if row.input == name]

        def place(row: Row, keys: Any = keys) -> Any:
            values = [spark_order(value) for value in row_without(keys, row).values()]
            return row.time_us, values, id(row.values) not in key.made.met

        gone += sorted(own, key=place)[: max(0, len(own) - rows)]
    went = [row for row in window.kept if any(row is one for one in gone)]
    window.kept = [row for row in window.kept if not any(row is one for one in gone)]
    alone = list(without_match(twin, once, key, window, went))
    window.due += alone
    return len(alone)


def without_match(twin: Twin, once: Join, key: Key, window: Live, rows: Iterable[Row]) -> Iterator[Pair]:
    """Unmatched rows among these that the window emits."""
    if twin.full is not None:
        within, start = twin.full_window, window.start
        rows = [row for row in rows if is_in_own_window(within, str(row.input), row.time_us, start)]
    keeps_left, keeps_right = JOINS[type(once)]
    for row in rows:
        if id(row.values) in key.made.met:
            continue
        if row.input == once.left and keeps_left:
            yield row, None
        if row.input == once.right and keeps_right:
            yield None, row


def pairs_due(twin: Twin, once: Join, window: Live) -> list[Mapping[str, Any]]:
    """The value of a pane emitted now."""
    keys = {one.name: one.keys for one in twin.takes}
    return [
        {name: row and row_without(keys[name], row) for name, row in zip((once.left, once.right), pair, strict=True)}
        for pair in window.due
    ]
