"""Superseded and new versions as updates (docs/rules/tables.md#versions-rows)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.pane_columns import (
    LATE,
    ON_TIME,
    PANE_KIND,
    RETRACTION_KIND,
    make_block,
    timestamp_column,
)
from beamish.contract.schemas import TIMESTAMP
from beamish.contract.updates import Updates
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import plain
from beamish.kernels.order import sort_keys, sort_order
from beamish.kinds.versions.folding import Folded
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.kinds.versions.plan import VersionsPlan


def version_rows(plan: VersionsPlan, folded: Folded) -> Updates:
    """The updates of a step: per key retractions, by time, and then new versions."""
    went, came, then, now = folded.went, folded.came, folded.then, folded.now
    at = np.concatenate([then.at[went], now.at[came]])
    cells = folded.both.cells.take(pa.array(at))
    from_us = np.concatenate([then.from_us[went], now.from_us[came]])
    to_us = np.concatenate([then.to_us[went], now.to_us[came]])
    kind = np.repeat([RETRACTION_KIND, PANE_KIND], [len(went), len(came)])
    late = np.concatenate([then.late[went], now.late[came]])
    index = np.concatenate([then.panes[went] - 1, folded.came_before])
    by_key = [key for field in plan.table.key_schema for key in sort_keys(plain(cells[f"key.{field.name}"]))]
    order = sort_order([*by_key, (kind == PANE_KIND).astype(np.int64), from_us])
    cells, from_us, to_us, index = cells.take(pa.array(order)), from_us[order], to_us[order], index[order]
    block = make_block(
        len(order),
        kind=kind[order].astype(np.int8),
        timing=np.where(late[order], LATE, ON_TIME).astype(np.int8),
        windowless=True,
        index=index,
        on_time_index=index,
        is_first=index == 0,
        is_last=plan.is_final,
        pane_time_us=from_us,
    )
    table = plan.table
    keys = {field.name: cells[f"key.{field.name}"] for field in table.key_schema}
    values = {field.name: cells[f"value.{field.name}"] for field in table.value_schema}
    values[VALID_FROM] = timestamp_column(from_us, np.zeros(len(order), dtype=bool))
    values[VALID_TO] = pa.array(to_us, mask=to_us == END_OF_TIME_US).cast(TIMESTAMP)
    return Updates(block, pa.table(keys), pa.table(values))
