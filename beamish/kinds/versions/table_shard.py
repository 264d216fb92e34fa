"""Shards with a versioned table: their note, and changes as they arrive; late ones, or those without time or key, are dropped."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.clocks import horizon_us
from beamish.contract.drops import JOINED_ALREADY, TAKEN, Drops, why_dropped
from beamish.contract.keys import from_shards
from beamish.contract.operator import Operator
from beamish.contract.stored import Note, Store
from beamish.durations import Duration
from beamish.errors import StateError
from beamish.kinds.versions.folding import Folded, cells_schema
from beamish.kinds.versions.plan import TablePlan, null_key, time_us_of
from beamish.kinds.versions.table import TablePolicy, VersionTable
from beamish.tables.notes import VERSIONS, NotedShard, entry_note
from beamish.watermarks import NO_WATERMARK_US


def table_note(table: TablePlan, identity: Mapping[str, Any]) -> Note:
    """Declare the metadata of the shards of a stage with a table and an identity."""

    def check(store: Store, *, identity: Mapping[str, Any]) -> None:
        _check_spans(TableShard.read(store, identity) or {}, table)

    return entry_note(VERSIONS, identity, check)


def _check_spans(about: Mapping[str, Any], table: TablePlan) -> None:
    """Check that no span is longer than that of the metadata (StateError: one is)."""
    for what, then_us in about.get("spans", {}).items():
        now_us = table.spans[what]
        if now_us > then_us:
            raise StateError(
                f"the checkpoint was written with {what} '{Duration(then_us)}', the pipeline now has '{Duration(now_us)}': it may only shrink, since older changes were dropped; keep the old one, or start from a new checkpoint"
            )


class TableShard(NotedShard):
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

    ENTRY, HOLDS, BY = VERSIONS, "a versioned table", "versions(...) or as_of_join(...)"

    def __init__(self, operator: Operator, plan: TablePlan, store: Store, policy: TablePolicy, *, inputs: int) -> None:
        super().__init__(operator, store, inputs)
        _check_spans(self.stored, plan)
        self._steps: int = self.stored.get("steps", 0)
        self._table = VersionTable(plan, store, policy)

    def noted(self) -> Mapping[str, Any]:
        plan = self._table.plan
        cells = base64.b64encode(cells_schema(plan).serialize().to_pybytes()).decode()
        return {"name": plan.takes.name, "spans": plan.spans, "cells": cells, "steps": self._steps}

    def save(self) -> None:
        self._table.save(self.clocks.watermark_us)
        super().save()

    def begin(self, payloads: Sequence[bytes]) -> None:
        """Process changes that are there before the first step: none is late, and their versions count as shown."""
        for changes in from_shards(payloads).values():
            self.take_changes(changes, NO_WATERMARK_US, drops=Drops(None, self.dropped), keys={})
        TableShard.save(self)

    def take_changes(
        self,
        changes: pa.Table,
        watermark_us: int,
        *,
        drops: Drops,
        keys: Mapping[str, pa.Array],
        joined_below_us: int | None = None,
        row_of: str | None = None,
    ) -> Folded | None:
        """Process changes.

        Args:
            changes: from ``plan.py``, n rows.
            watermark_us: decides which are late.
            drops: the drops of the step.
            keys: the output's key columns, n rows.
            joined_below_us: in a join without corrections, rows at times below this have been emitted, so changes there are listed.
            row_of: their input, if there are several.

        Returns:
            the result of folding; None if all were dropped.
        """
        table, plan, time_us = self._table, self._table.plan, time_us_of(changes)
        horizon = horizon_us(watermark_us, plan.options.allowed_lateness.us)
        why = why_dropped(changes["time_us"], null_key(changes), horizon)
        taken = np.flatnonzero(why == TAKEN)
        if joined_below_us is not None:
            why[(why == TAKEN) & (time_us < joined_below_us)] = JOINED_ALREADY
        rows = changes["row"].combine_chunks() if drops.lists else None
        drops.add(why, time_us, watermark_us, keys, rows, changes["rows"].to_numpy(), row_of)
        if not len(taken):
            return None
        self._steps += 1
        own, time_us = changes.take(pa.array(taken)), time_us[taken]
        return table.take_in(
            own.select(table.schema.names),
            time_us,
            deletes=own["deletes"].to_numpy(),
            step=self._steps,
            signs=own["sign"].to_numpy().astype(np.int64) if plan.signed else None,
            late=time_us < watermark_us,
            latest_only=plan.options.latest_only,
        )
