"""Rows of output as Pane objects, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from beamish.pane import DropReason, Pane, PaneKind, PaneTiming, Window
from beamish.plan.relation import Relation


def panes_from_table(table: pa.Table, gives: Relation) -> list[Pane]:
    """The rows of a stage's output, in their order; ``gives`` says which columns are keys."""
    return [_pane(row, gives.keys, gives.values) for row in table.to_pylist()]


def _pane(row: Mapping[str, Any], keys: Sequence[str], values: Sequence[str]) -> Pane:
    info, dropped = row["pane"], row.get("dropped")
    return Pane(
        key={name: row[name] for name in keys},
        window=None if row["window"] is None else Window(_utc(row["window"]["start"]), _utc(row["window"]["end"])),
        values=dict(dropped["row"]) if dropped else {name: row[name] for name in values},
        kind=PaneKind(info["kind"]),
        timing=PaneTiming(info["timing"]),
        index=info["index"],
        on_time_index=info["on_time_index"],
        is_first=info["is_first"],
        is_last=info["is_last"],
        timestamp=_utc(row["timestamp"]),
        reason=DropReason(dropped["reason"]) if dropped else None,
        late_by_us=dropped["late_by"] if dropped else None,
    )


def _utc(time: datetime | None) -> datetime | None:
    return None if time is None else time.astimezone(UTC)
