"""Shards with a versioned table: their note, and changes as they arrive; late ones, or those without time or key, are dropped."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.clocks import Clocks, horizon_us
from beamish.contract.drops import JOINED_ALREADY, TAKEN, Drops, why_dropped
from beamish.contract.keys import from_shards
from beamish.contract.operator import Operator, Shard
from beamish.contract.stored import Store
from beamish.durations import Duration
from beamish.errors import StateError
from beamish.kernels.identity import same_identity
from beamish.kinds.versions.folding import Folded, cells_schema
from beamish.kinds.versions.plan import TablePlan, null_key, time_us_of
from beamish.kinds.versions.table import TablePolicy, VersionTable
from beamish.tables.notes import NOTE_FORMAT, VERSIONS, read_json
from beamish.watermarks import NO_WATERMARK_US


@attrs.define
class TableNote:
    """The metadata.

    Attributes:
        clocks: the current clocks.
        dropped: number of rows dropped so far, by reason.
        steps: number of steps with changes.
    """

    clocks: Clocks
    dropped: dict[str, int] = attrs.Factory(dict)
    steps: int = 0

    def write(self, store: Store, identity: Mapping[str, Any], table: TablePlan) -> None:
        """Write it, with the stage's identity."""
        about = {
            "format": NOTE_FORMAT,
            "identity": identity,
            "name": table.takes.name,
            "spans": table.spans,
            "cells": base64.b64encode(cells_schema(table).serialize().to_pybytes()).decode(),
            "clocks": attrs.asdict(self.clocks),
            "dropped": self.dropped,
            "steps": self.steps,
        }
        store.put(VERSIONS, json.dumps(about).encode())


def read_note(store: Store, identity: Mapping[str, Any], table: TablePlan, inputs: int) -> TableNote:
    """The metadata of a shard; initialized for a new shard.

    Args:
        store: the shard's.
        identity: of the stage.
        table: the plan of its table.
        inputs: number of inputs whose watermark counts.

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """
    about = read_json(store, VERSIONS, holds="a versioned table")
    if about is None:
        return TableNote(Clocks.new(inputs))
    for what, now in identity.items():
        then = about["identity"].get(what)
        if not same_identity(then, now):
            raise StateError(
                f"the checkpoint was written with {_said(what, then)}, the pipeline now has {_said(what, now)}: keep the old one, or start from a "
                "new checkpoint (grace and with_dropped may change, history and allowed_lateness may shrink)"
            )
    for what, now_us in table.spans.items():
        then_us = about["spans"][what]
        if now_us > then_us:
            raise StateError(
                f"the checkpoint was written with {what} '{Duration(then_us)}', the pipeline now has '{Duration(now_us)}': it may only shrink, since older changes were dropped; keep the old one, or start from a new checkpoint"
            )
    return TableNote(Clocks.of(about["clocks"]), about["dropped"], about["steps"])


def _said(what: str, value: Any) -> str:
    """An option, in source form."""
    return f"{what} {str(Duration(value))!r}" if what == "tolerance" and value is not None else f"{what} {value}"


def begin(table: VersionTable, note: TableNote, payloads: Sequence[bytes]) -> None:
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
    note: TableNote,
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
        changes: from ``plan.py``, n rows.
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


class TableShard(Shard):
    """A shard that keeps a versioned table.

    Args:
        operator: of the stage.
        plan: the table's.
        store: the shard's.
        policy: how the table is partitioned into segments.
        inputs: number of inputs whose watermark counts.

    Raises:
        StateError: the state was written by another stage, number of shards or format.
    """

    def __init__(self, operator: Operator, plan: TablePlan, store: Store, policy: TablePolicy, *, inputs: int) -> None:
        self.operator, self._store = operator, store
        self._note = read_note(store, operator.identity, plan, inputs)
        self.clocks, self.dropped = self._note.clocks, self._note.dropped
        self._table = VersionTable(plan, store, policy)

    def save(self) -> None:
        self._table.save(self.clocks.watermark_us)
        self._note.write(self._store, self.operator.identity, self._table.plan)

    def begin(self, payloads: Sequence[bytes]) -> None:
        begin(self._table, self._note, payloads)
        self._note.write(self._store, self.operator.identity, self._table.plan)
