"""Joined rows as updates."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.pane_columns import (
    EARLY,
    PANE_KIND,
    make_block,
    timestamp_column,
)
from beamish.contract.updates import Updates
from beamish.kernels.arrays import Flags, Ints
from beamish.kernels.order import ranks, sort_order
from beamish.kinds.as_of.left_rows import LeftRows
from beamish.kinds.as_of.plan import TABLE, AsOfPlan
from beamish.kinds.versions.changes import Changes


@attrs.frozen(eq=False)
class Matches:
    """The matches of rows.

    Attributes:
        changes: changes of the table.
        at: int64, one per row: the index of its match; -1: no match.
    """

    changes: Changes
    at: Ints

    def take(self, rows: Ints | Flags) -> Matches:
        """A subset."""
        return Matches(self.changes, self.at[rows])


@attrs.frozen(eq=False)
class Joined:
    """Output rows: panes, or retractions, of rows of the left input.

    Attributes:
        kind: PANE_KIND or RETRACTION_KIND.
        rows: as they were when emitted: ``panes`` counts this one, ``timing`` is its.
        matches: their matches.
        is_last: bool, one per row.
        of: int64, one per row: a number shared by a row's retraction and pane; equal rows are emitted in its order.
    """

    kind: int
    rows: LeftRows
    matches: Matches
    is_last: Flags
    of: Ints


def joined_updates(plan: AsOfPlan, parts: Sequence[Joined]) -> list[Updates]:
    """Updates by time, a row's retraction right before its pane; empty if there are no rows."""
    parts = [part for part in parts if len(part.rows)]
    if not parts:
        return []
    rows = LeftRows.concat([part.rows for part in parts])
    kind = np.concatenate([np.full(len(part.rows), part.kind) for part in parts])
    of = np.concatenate([part.of for part in parts])
    order = sort_order([ranks(rows.order()), of, (kind == PANE_KIND).astype(np.int64)])
    rows, kind = rows.take(order), kind[order]
    of, is_pane = of[order], kind == PANE_KIND
    pairs = (of[:-1] == of[1:]) & ~is_pane[:-1] & is_pane[1:]
    timing, index = rows["timing"], rows["panes"] - 1
    later = np.where(timing == EARLY, -1, rows["later_panes"] - 1)
    block = make_block(
        len(order),
        kind=kind.astype(np.int8),
        timing=timing,
        start_us=rows["start_us"],
        end_us=rows["end_us"],
        windowless=rows["windowless"],
        index=index,
        on_time_index=later,
        is_first=index == 0,
        is_last=np.concatenate([part.is_last for part in parts])[order],
        pane_time_us=rows["time_us"],
        replaces=np.append(pairs, False) | np.append(False, pairs),
    )
    values = {name: rows.cells[f"left.{name}"].combine_chunks() for name in plan.left_names}
    matches = [match_column(plan, part.matches) for part in parts]
    values[str(plan.takes[TABLE].name)] = pa.concat_arrays(matches).take(pa.array(order))
    return [Updates(block, pa.table({}), pa.table(values))]


def match_column(plan: AsOfPlan, matches: Matches) -> pa.Array:
    """Matches as structs; null without a match."""
    changes, at = matches.changes, matches.at
    nothing = at < 0
    rows = pa.array(at, mask=nothing)
    columns = [changes.cells[f"value.{field.name}"].combine_chunks().take(rows) for field in plan.table.value_schema]
    from_us = changes["version_us"][at] if len(changes) else np.zeros(len(at), np.int64)
    columns.append(timestamp_column(from_us, nothing))
    return pa.StructArray.from_arrays(columns, fields=list(plan.match_type), mask=pa.array(nothing))
