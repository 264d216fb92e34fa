"""Output rows as Pane objects, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.contract.schemas import ROW_WINDOW
from beamish.instants import instant
from beamish.markup import html_table
from beamish.pane import DropReason, Pane, PaneChange, PaneKind, PaneList, PaneTiming, RowWindow, Window
from beamish.script.events import Event, shown


class Trace(list[tuple[Event, list[Pane]]]):
    """The events of a script with their output: a list that is shown in a notebook as a table."""

    def _repr_html_(self) -> str:
        rows = []
        for number, (event, panes) in enumerate(self):
            first, *others = [str(pane) for pane in panes] or [""]
            rows += [(number, shown(event), first), *(("", "", pane) for pane in others)]
        return html_table(("", "event", "output"), rows)


def panes_from_table(table: pa.Table, gives: Relation) -> PaneList:
    """The rows of a stage's output, in order; ``gives`` has the key columns."""
    windows, timestamps = windows_of(table), table["timestamp"].cast(pa.int64()).to_pylist()
    rows, values = table.drop_columns(["window", "timestamp"]).to_pylist(), gives.values
    return PaneList(
        _pane(row, gives.keys, values, own, _instant(time))
        for row, own, time in zip(rows, windows, timestamps, strict=True)
    )


def windows_of(table: pa.Table) -> list[Window | RowWindow | None]:
    """The windows of output rows; None: no window."""
    window = table["window"].combine_chunks()
    if window.type == ROW_WINDOW:
        return [None if row is None else RowWindow(row["start"], row["end"]) for row in window.to_pylist()]
    starts, ends = (window.field(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    return [
        Window(_instant(start), _instant(end)) if known else None
        for known, start, end in zip(window.is_valid().to_pylist(), starts, ends, strict=True)
    ]


def _pane(
    row: Mapping[str, Any],
    keys: Sequence[str],
    values: Sequence[str],
    window: Window | RowWindow | None,
    timestamp: datetime | None,
) -> Pane:
    info, dropped = row["pane"], row.get("dropped")
    return Pane(
        key={name: row[name] for name in keys},
        window=window,
        values=dict(dropped["row"]) if dropped else {name: row[name] for name in values},
        kind=PaneKind(info["kind"]),
        timing=PaneTiming(info["timing"]),
        index=info["index"],
        on_time_index=info["on_time_index"],
        is_first=info["is_first"],
        is_last=info["is_last"],
        timestamp=timestamp,
        change=info["change"] and PaneChange(info["change"]),
        sequence=info["sequence"],
        watermark=info["watermark"],
        reason=DropReason(dropped["reason"]) if dropped else None,
        **({"late_by_rows" if isinstance(window, RowWindow) else "late_by_us": dropped["late_by"]} if dropped else {}),
        message=dropped.get("message") if dropped else None,
    )


def _instant(us: int | None) -> datetime | None:
    return None if us is None else instant(us)
