"""The local runner: a script through the engine, in process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from beamish.engine.clocks import MergedClocks
from beamish.engine.state import DictStore
from beamish.engine.windowing.rows_of_panes import rows_of_panes
from beamish.engine.windowing.several import open_shard, pack_each
from beamish.kernels.reserved import EVENT_TIME
from beamish.options import Options
from beamish.pane import Pane
from beamish.plan import Plan, make_later_plan, make_plan
from beamish.script.events import Bundle, ClockTo, Event, WatermarkTo
from beamish.script.panes import panes_from_table
from beamish.script.tables import bundle_tables, check_script, input_watermarks


def run(
    stages: Sequence[Options],
    events: Sequence[Event],
    *,
    shards: int = 1,
    packs: int = 1,
    round_trip: bool = False,
) -> list[Pane]:
    """Run a script.

    Args:
        stages: the pipeline, or the stages of a chain.
        events: the script.
        shards: into how many parts the keys are cut; changes nothing in what comes out but the order between keys.
        packs: into how many parts a bundle is cut before it is packed; changes nothing.
        round_trip: whether every step begins from the stored bytes alone; changes nothing.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong.
    """
    first, *rest = stages
    first.check()
    check_script(first, events)
    tables = bundle_tables(first, events)
    if not any(table.num_rows for table in tables):
        return []
    plans = [make_plan(first, tables[0].drop_columns([EVENT_TIME]).schema, shards=shards)]
    for options in rest:
        plans.append(make_later_plan(options, plans[-1], shards=shards))
    workers = [_Stage(plan, packs, round_trip) for plan in plans]
    panes: list[Pane] = []
    bundles = iter(tables)
    merged = MergedClocks([one.watermark for one in first.inputs]) if first.inputs else None
    for event in events:
        rows = next(bundles) if isinstance(event, Bundle) else None
        watermark_us = event.us if isinstance(event, WatermarkTo) else None
        clock_us = event.us if isinstance(event, ClockTo) else None
        if merged is not None:
            watermark_us = merged.step(input_watermarks(first, event), clock_us)
        for worker in workers:
            out = worker.step(watermark_us, clock_us, rows)
            rows = out
        panes.extend(panes_from_table(out, plans[-1]))
    return panes


class _Stage:
    """A stage of a chain, with all its shards."""

    def __init__(self, plan: Plan, packs: int, round_trip: bool) -> None:
        self._plan, self._packs, self._round_trip = plan, packs, round_trip
        self._stores = [DictStore() for _ in range(plan.shards)]
        self._workers = [open_shard(plan, store) for store in self._stores]

    def step(self, watermark_us: int | None, clock_us: int | None, rows: pa.Table | None) -> pa.Table:
        """A step of all shards; ``rows`` are the script's, or the panes of the stage before."""
        if rows is not None and self._plan.later:
            rows = rows_of_panes(self._plan, rows)
        payloads = {} if rows is None else _pack(self._plan, rows, self._packs)
        if self._round_trip:
            self._workers = [open_shard(self._plan, store) for store in self._stores]
        out = [
            worker.step(watermark_us, clock_us, payloads.get(number, [])) for number, worker in enumerate(self._workers)
        ]
        return pa.concat_tables(out)


def _pack(plan: Plan, rows: pa.Table, packs: int) -> dict[int, list[bytes]]:
    """The payloads of a bundle for each shard."""
    payloads: dict[int, list[bytes]] = {}
    for part in range(packs):
        for number, payload in pack_each(plan, rows.take(pa.array(np.arange(part, rows.num_rows, packs)))):
            payloads.setdefault(number, []).append(payload)
    return payloads
