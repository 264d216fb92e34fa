"""Deduplication (rules/output.md#duplicates)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from beamish import DropReason
from beamish.accumulations import Accumulation
from beamish.windows.option import END_OF_TIME_US
from tests.twin.accumulations import Row
from tests.twin.order import normal, same, spark_order
from tests.twin.windows import Bounds, groups

if TYPE_CHECKING:
    from tests.twin.run import Key, Twin

Again = tuple[Bounds, Row, Bounds, DropReason]
"""The window that a row falls in by itself, the row, the window that it is dropped from, and why."""


def came_again(twin: Twin, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> list[Again]:
    """The duplicates of a bundle, per window."""
    once = twin.options.deduplication
    if once is None:
        return []
    first = FirstCome([*once.columns, *columns_read(twin.options.accumulations)], [row.values for _, row in pairs])
    in_order = sorted(pairs, key=lambda pair: first.place(pair[1].time_us, pair[1].values))
    if once.within is None:
        return list(in_windows(twin, key, in_order, once.columns))
    return list(within(twin, key, in_order, once.columns, once.within.us))


def in_windows(twin: Twin, key: Key, pairs: Sequence[tuple[Bounds, Row]], columns: Sequence[str]) -> Iterator[Again]:
    """A window stores the ids of its rows; for merging windows that of the merged bundle.

    Of rows that a closed session took before, nothing else is asked, nor do others become anything with them.
    """
    into: dict[Bounds, Bounds] = {}
    if twin.merging:
        took = [(own, row, took_before(key, own, id_of(columns, row.values))) for own, row in pairs]
        yield from ((own, row, bounds, DropReason.DUPLICATE) for own, row, bounds in took if bounds is not None)
        pairs = [(own, row) for own, row, bounds in took if bounds is None]
        for members, result in groups(twin.window, sorted({bounds for bounds, _ in pairs} | set(key.live))):
            into.update(dict.fromkeys(members, result))
    seen: dict[Bounds, list[Any]] = {}
    for bounds, window in key.live.items():
        seen.setdefault(into.get(bounds, bounds), []).extend(window.ids)
    for bounds, ids in key.closed.items():
        seen.setdefault(bounds, []).extend(ids)
    for own, row in pairs:
        bounds, id_ = into.get(own, own), id_of(columns, row.values)
        ids = seen.setdefault(bounds, [])
        if any(same(id_, one) for one in ids):
            yield own, row, bounds, DropReason.DUPLICATE
        elif bounds not in key.closed:
            ids.append(id_)


def took_before(key: Key, own: Bounds, id_: Any) -> Bounds | None:
    """The first closed window that has a row's own window in it and took the row."""
    for bounds, ids in sorted(key.closed.items(), key=lambda one: one[0]):
        if bounds[0] <= own[0] and own[1] <= bounds[1] and any(same(id_, one) for one in ids):
            return bounds
    return None


def within(
    twin: Twin, key: Key, pairs: Sequence[tuple[Bounds, Row]], columns: Sequence[str], within_us: int
) -> Iterator[Again]:
    """A key stores ids for some time, in all windows."""
    judged: dict[int, DropReason | None] = {}
    for own, row in pairs:
        if id(row) not in judged:
            judged[id(row)] = remember(
                key.remembered, id_of(columns, row.values), row.time_us, within_us, twin.watermark
            )
        reason = judged[id(row)]
        if reason is not None:
            yield own, row, own, reason


def remember(
    remembered: list[tuple[Any, int]], id_: Any, time_us: int, within_us: int, watermark: float
) -> DropReason | None:
    """The drop reason of a row; otherwise its id is stored (rules/output.md#duplicates-within)."""
    until = min(time_us + within_us, END_OF_TIME_US)
    if until <= watermark:
        return DropReason.OUT_OF_RETENTION
    if any(same(id_, one) for one, other_until in remembered if other_until > watermark):
        return DropReason.DUPLICATE
    remembered.append((id_, until))
    return None


def id_of(columns: Sequence[str], values: Mapping[str, Any]) -> list[Any]:
    """The id of a row."""
    return [normal(values.get(column)) for column in columns]


class FirstCome:
    """The effective row among duplicates of a bundle: by event time, then by the columns that are read, by name, then by the others.

    Args:
        read: the columns that are; None among them: all.
        rows: of the bundle.
    """

    def __init__(self, read: Sequence[str | None], rows: Sequence[Mapping[str, Any]]) -> None:
        names = {name for row in rows for name in row}
        known = names if None in read else names.intersection(read)
        self.names = [*sorted(known), *sorted(names - known)]

    def place(self, time_us: int, values: Mapping[str, Any]) -> Any:
        return time_us, [spark_order(values.get(name)) for name in self.names]


def columns_read(accumulations: Mapping[str, Accumulation]) -> list[str | None]:
    """The columns read by accumulations; None for one that reads whole rows."""
    found: list[str | None] = []
    for one in accumulations.values():
        found += [None] if one.inputs is None else one.inputs
    return found
