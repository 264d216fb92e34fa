"""Arriving changes: late ones and those without time or key are dropped; the rest is folded into the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from beamish.contract.drops import JOINED_ALREADY, TAKEN, Drops, why_dropped
from beamish.contract.sharding import from_shards
from beamish.kinds.versions.folding import Folded
from beamish.kinds.versions.horizon import horizon_us
from beamish.kinds.versions.note import Note
from beamish.kinds.versions.packing import null_key, time_us_of
from beamish.kinds.versions.table import VersionTable
from beamish.watermarks import NO_WATERMARK_US


def begin(table: VersionTable, note: Note, payloads: Sequence[bytes]) -> None:
    """Take in changes that are there before the first step: none is late, and their versions count as shown."""
    for changes in from_shards(payloads).values():
        latest_only = table.plan.options.latest_only
        arrive(
            table,
            note,
            changes,
            NO_WATERMARK_US,
            drops=Drops(None, note.dropped),
            keys={},
            latest_only=latest_only,
        )
    table.save(NO_WATERMARK_US)


def arrive(
    table: VersionTable,
    note: Note,
    changes: pa.Table,
    watermark_us: int,
    *,
    drops: Drops,
    keys: Mapping[str, pa.Array],
    latest_only: bool = False,
    joined_below_us: int | None = None,
    row_of: str | None = None,
) -> Folded | None:
    """Process changes.

    Args:
        table: the table.
        note: the shard's.
        changes: from ``packing.py``, n rows.
        watermark_us: decides which are late.
        drops: the drops of the step.
        keys: the output's key columns, n rows.
        latest_only: whether only versions without end are emitted.
        joined_below_us: in a join without corrections, rows at times below this have been emitted, so changes there are listed.
        row_of: their input, if there are several.

    Returns:
        the result of folding; None if all were dropped.
    """
    plan, time_us = table.plan, time_us_of(changes)
    why = why_dropped(changes["time_us"], null_key(changes), horizon_us(watermark_us, plan.options.allowed_lateness.us))
    taken = np.flatnonzero(why == TAKEN)
    if joined_below_us is not None:
        why[(why == TAKEN) & (time_us < joined_below_us)] = JOINED_ALREADY
    rows = changes["row"].combine_chunks() if drops.lists else None
    drops.add(why, time_us, watermark_us, keys, rows, changes["rows"].to_numpy(), row_of)
    if not len(taken):
        return None
    note.steps += 1
    own, time_us = changes.take(pa.array(taken)), time_us[taken]
    return table.take_in(
        own.select(table.schema.names),
        time_us,
        deletes=own["deletes"].to_numpy(),
        step=note.steps,
        signs=own["sign"].to_numpy().astype(np.int64) if plan.signed else None,
        late=time_us < watermark_us,
        latest_only=latest_only,
    )
