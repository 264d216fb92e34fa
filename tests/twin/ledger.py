"""The ``change`` of each output row (rules/panes.md#pane-change), from the rows of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

import beamish as bm
from beamish import Pane, PaneChange, PaneKind
from beamish.flow import Flow
from beamish.kinds.table_join.stage import TableJoinStage
from tests.declared_options import StageOptions, said
from tests.twin.order import normal, same


def told(flow: Flow, rows: Sequence[Pane]) -> list[Pane]:
    """The rows of one step of a flow's last stage, each with its ``change``."""
    options = said(flow)
    if isinstance(options.window, bm.Rolling):  # its twin knows them (rules/rolling.md#rolling-rows)
        return list(rows)
    changes: list[PaneChange | None] = [None] * len(rows)
    of_key: dict[Any, list[int]] = {}
    for i, row in enumerate(rows):
        if row.kind is not PaneKind.DROPPED:
            of_key.setdefault(repr([normal(value) for value in row.key.values()]), []).append(i)
    for own in of_key.values():
        for i, after in zip(own, [*own[1:], None], strict=True):
            if rows[i].kind is PaneKind.RETRACTION:
                changes[i] = PaneChange.DELETE
                if after is not None and is_replaced(flow, options, rows[i], rows[after]):
                    changes[i], changes[after] = PaneChange.UPDATE_BEFORE, PaneChange.UPDATE_AFTER
            elif changes[i] is None:
                changes[i] = PaneChange.UPDATE_AFTER if stands_for_another(options, rows[i]) else PaneChange.INSERT
    return [attrs.evolve(row, change=change) for row, change in zip(rows, changes, strict=True)]


def is_replaced(flow: Flow, options: StageOptions, one: Pane, after: Pane) -> bool:
    """Is the retracted row replaced by the next one?"""
    if after.kind is not PaneKind.PANE:
        return False
    if options.as_of:  # the new match of a left row
        table = str(flow.takes[1].name)
        return (one.window, one.timestamp) == (after.window, after.timestamp) and same(
            {name: value for name, value in one.values.items() if name != table},
            {name: value for name, value in after.values.items() if name != table},
        )
    if options.gaps:  # the row of the same cell
        return one.timestamp == after.timestamp
    if options.over:  # the corrected values of a row
        computed = {*options.over.accumulations, *options.over.derived}
        rows = [{n: value for n, value in pane.values.items() if n not in computed} for pane in (one, after)]
        return (one.window, one.timestamp, one.index + 1) == (after.window, after.timestamp, after.index) and same(
            *rows
        )
    if options.versions or options.changes or options.explode or is_join(options):  # rows that never replace another
        return False
    if isinstance(flow.stage, TableJoinStage):  # so too (rules/joins.md#changing-tables)
        return False
    return one.window == after.window


def stands_for_another(options: StageOptions, row: Pane) -> bool:
    """Does a pane replace one before it that is not retracted?"""
    ends = options.suppress is not None and isinstance(options.suppress.until, bm.UntilWindowCloses)
    if options.changes:
        return not ends
    if options.versions or options.explode or options.retracts or options.discards:
        return False
    return row.index > 0 and not ends


def is_join(options: StageOptions) -> bool:
    return any(accumulation.explodes for accumulation in options.accumulations.values())
