"""The local runner: a script through the engine, in process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from beamish.engine.bundle import plan_keys
from beamish.engine.keys import hash_rows
from beamish.engine.packing import EVENT_TIME, SHARD, pack
from beamish.engine.shard import Shard
from beamish.engine.state import DictStore
from beamish.errors import ScriptError
from beamish.options import Options
from beamish.pane import Pane
from beamish.pane_rows import panes_from_table
from beamish.plan import Plan, make_plan
from beamish.script_rows import script_tables
from beamish.testing import Bundle, ClockTo, Event, WatermarkTo
from beamish.watermarks import ProcessingTimeLag


def run(
    options: Options, events: Sequence[Event], *, shards: int = 1, packs: int = 1, round_trip: bool = False
) -> list[Pane]:
    """Run a script.

    Args:
        options: the pipeline.
        events: the script.
        shards: into how many parts the keys are cut; changes nothing in what comes out but the order between keys.
        packs: into how many parts a bundle is cut before it is packed; changes nothing.
        round_trip: whether every step begins from the stored bytes alone; changes nothing.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong.
    """
    options.check()
    lags = isinstance(options.watermark, ProcessingTimeLag)
    if lags and any(isinstance(event, WatermarkTo) for event in events):
        raise ScriptError("a watermark in a script with ProcessingTimeLag: the clock moves it; advance the clock")
    tables = script_tables(events, options.event_time)
    if not any(table.num_rows for table in tables):
        return []
    plan = make_plan(options, tables[0].drop_columns([EVENT_TIME]).schema, shards=shards)
    stores = [DictStore() for _ in range(shards)]
    workers = [Shard(plan, store) for store in stores]
    panes: list[Pane] = []
    bundles = iter(tables)
    for event in events:
        payloads = _pack(plan, next(bundles), packs) if isinstance(event, Bundle) else {}
        watermark_us = event.us if isinstance(event, WatermarkTo) else None
        clock_us = event.us if isinstance(event, ClockTo) else None
        if round_trip:
            workers = [Shard(plan, store) for store in stores]
        for number, worker in enumerate(workers):
            out = worker.step(watermark_us, clock_us, payloads.get(number, []))
            panes.extend(panes_from_table(out, plan))
    return panes


def _pack(plan: Plan, rows: pa.Table, packs: int) -> dict[int, list[bytes]]:
    """The payloads of a bundle for each shard."""
    keys = plan_keys(plan, rows)
    shard = (hash_rows(keys.columns, rows.num_rows) % np.uint64(plan.shards)).astype(np.int32)
    rows = rows.append_column(SHARD, pa.array(shard))
    payloads: dict[int, list[bytes]] = {}
    for part in range(packs):
        for number, payload in pack(plan, rows.take(pa.array(np.arange(part, rows.num_rows, packs)))):
            payloads.setdefault(number, []).append(payload)
    return payloads
