"""The output of the pipeline beside what the query emitted: the first batch in which they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.errors import ColumnError
from beamish.pane import Pane, PaneKind, Window
from beamish.replays.steps import is_pane
from beamish.script import panes_from_table

Given = Sequence[tuple[int, Pane]]
"""The pipeline's output, each row with the number of its batch."""


@attrs.frozen
class Came:
    """The rows that the query emitted.

    Attributes:
        panes: its rows, in order; only the last live ones where a table keeps no others.
        is_log: whether it has all of them.
        differs_in: the first batch in which the pipeline's output differs; None: it does not.
        difference: in words.
    """

    panes: Sequence[Pane]
    is_log: bool
    differs_in: int | None = None
    difference: str = ""


def came_from(panes: Any, keys: Sequence[str]) -> Came:
    """Read the rows that a query emitted from a table.

    Args:
        panes: an Arrow table of panes, as ``apply`` returns them, or of live rows, as ``bm.sinks`` keep them; or a list of ``Pane``.
        keys: the key columns.

    Raises:
        ColumnError: neither of these.
    """
    if isinstance(panes, Sequence):
        return Came([pane for pane in panes if is_pane(pane)], is_log=True)
    table: pa.Table = _in_utc(panes)
    missing = [name for name in keys if name not in table.column_names]
    if missing:
        raise ColumnError(
            f"replay(panes=...): there is no key column {missing[0]!r}; the table has {table.column_names}"
        )
    if {"window", "pane", "timestamp"} <= set(table.column_names):
        ends = max(table.column_names.index(name) for name in ("timestamp", "dropped") if name in table.column_names)
        table = table.select(table.column_names[: ends + 1])  # columns that the query added follow
        read = panes_from_table(table, Relation(tuple(keys), schema=table.schema))
        own = sorted((pane for pane in read if is_pane(pane)), key=lambda pane: pane.sequence)
        return Came(own, is_log=True)
    return Came([_live_pane(row, keys) for row in table.to_pylist()], is_log=False)


def _live_pane(row: Mapping[str, Any], keys: Sequence[str]) -> Pane:
    """A row of a table of live rows as a pane without number and timing."""
    window = row.get("window") or {name: row.get(f"window_{name}") for name in ("start", "end")}
    hidden = {*keys, *PANE_COLUMNS, "window_start", "window_end"}
    values = {name: value for name, value in row.items() if name not in hidden and not name.startswith("_")}
    bounds = Window(*(at and at.astimezone(UTC) for at in (window["start"], window["end"])))
    return Pane({name: row[name] for name in keys}, bounds, values)


def _in_utc(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([_field(field) for field in table.schema]), safe=False)


def _field(field: pa.Field) -> pa.Field:
    """A field whose instants are in UTC, also within structs: Spark writes Parquet this way."""
    return pa.field(field.name, _type_in_utc(field.type))


def _type_in_utc(of: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(of):
        return pa.timestamp("us", "UTC")
    if pa.types.is_struct(of):
        return pa.struct([_field(field) for field in of])
    return of


def compared(came: Came, given: Given, watermarks: Mapping[int, datetime | None]) -> Came:
    """The first difference between what came and the pipeline's output.

    Args:
        came: what the query emitted for the same keys and windows.
        given: the pipeline's output.
        watermarks: of each replayed batch.
    """
    if not came.is_log:
        return _compared_live(came, given)
    first = min((one for one in watermarks.values() if one is not None), default=None)
    last = max((one for one in watermarks.values() if one is not None), default=None)
    if min(watermarks) > 0 and first is not None:
        came = attrs.evolve(
            came, panes=[one for one in came.panes if one.watermark is not None and one.watermark >= first]
        )
    came = attrs.evolve(
        came, panes=[one for one in came.panes if one.watermark is None or last is None or one.watermark <= last]
    )
    found: list[tuple[int, str]] = []
    ours = [(batch, pane) for batch, pane in given if is_pane(pane)]
    for key in dict.fromkeys(repr(pane.key) for pane in [*came.panes, *(pane for _, pane in ours)]):
        emitted = [pane for pane in came.panes if repr(pane.key) == key]
        own = [(batch, pane) for batch, pane in ours if repr(pane.key) == key]
        for pane, one in zip_longest(emitted, own):
            if pane is not None and one is not None and str(pane) == str(one[1]):
                continue
            batches = ([] if one is None else [one[0]]) + ([] if pane is None else [_batch(pane, watermarks)])
            words = f"the query emitted {pane or 'nothing'}; the pipeline gives {one[1] if one else 'nothing'}"
            found.append((min(batches), words))
            break
    if not found:
        return came
    batch, words = min(found)
    return attrs.evolve(came, differs_in=batch, difference=words)


def _batch(pane: Pane, watermarks: Mapping[int, datetime | None]) -> int:
    """The first batch at a pane's watermark."""
    if pane.watermark is None:
        return min(watermarks)
    at = [number for number, watermark in watermarks.items() if watermark is not None and watermark >= pane.watermark]
    return min(at, default=max(watermarks))


def live(given: Given) -> dict[str, tuple[int, Pane]]:
    """The last pane of each key and window that is not retracted, with its batch."""
    found: dict[str, tuple[int, Pane]] = {}
    for batch, pane in given:
        slot = repr((dict(pane.key), pane.window))
        if pane.kind is PaneKind.PANE:
            found[slot] = batch, pane
        elif pane.kind is PaneKind.RETRACTION:
            found.pop(slot, None)
    return found


def _compared_live(came: Came, given: Given) -> Came:
    ours, stored = live(given), {repr((dict(pane.key), pane.window)): pane for pane in came.panes}
    retracted = {repr((dict(pane.key), pane.window)): batch for batch, pane in given}
    found: list[tuple[int, str]] = []
    for slot in dict.fromkeys([*stored, *ours]):
        pane, one = stored.get(slot), ours.get(slot)
        if pane is not None and one is not None and _same(pane.values, one[1].values):
            continue
        words = f"the table has {_values(pane)}; the pipeline gives {_values(one and one[1])}"
        batch = one[0] if one is not None else retracted.get(slot, max((number for number, _ in given), default=0))
        found.append((batch, f"{_place(pane or (one and one[1]))}: {words}"))
    if not found:
        return came
    batch, words = min(found)
    return attrs.evolve(came, differs_in=batch, difference=words)


def _same(stored: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether the values that both have are equal."""
    return all(stored[name] == given[name] for name in stored.keys() & given.keys())


def _values(pane: Pane | None) -> str:
    return "nothing" if pane is None else ", ".join(f"{name}={value!r}" for name, value in pane.values.items())


def _place(pane: Pane | None) -> str:
    assert pane is not None  # noqa: S101 - one of two is there
    return str(attrs.evolve(pane, values={})).split(" UNKNOWN ")[0]


def first_differing(batches: Sequence[int], is_same: Callable[[int], bool]) -> int | None:
    """The first of some batches after which the stored windows differ, by halving; None: they are the same after the last.

    Args:
        batches: their numbers.
        is_same: whether they are the same after a batch.
    """
    if not batches or is_same(batches[-1]):
        return None
    same, differs = -1, len(batches) - 1
    while differs - same > 1:
        middle = (same + differs) // 2
        if is_same(batches[middle]):
            same = middle
        else:
            differs = middle
    return batches[differs]
