"""The operator of a merge whose inputs' watermarks depend on the clock: each shard follows every input by itself.

What the tasks of a batch say of an input (*marks*) counts from the next batch on, as Spark's own watermark does, so
that a batch's rows are judged by the batches before it. Every shard gets every mark and every heartbeat, so all come
to the same watermark, and it is part of their state: after a restart they go on where they were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs

from beamish.engine.clocks import Clocks, MergedClocks
from beamish.engine.state import Store
from beamish.plan import Plan
from beamish.spark.millis import watermark_us
from beamish.spark.operator.processor import ShardProcessor
from beamish.spark.rows.watermark_reports import NO_INPUT

_NAME = "inputs"


def follows_inputs(plan: Plan) -> bool:
    """Whether the shards follow the inputs' watermarks themselves."""
    return any(one.watermark.needs_clock for one in plan.options.inputs)


class MergeProcessor(ShardProcessor):
    """One micro-batch of one partition of a merge."""

    def __init__(self, plan: Plan, *, tells: bool) -> None:
        super().__init__(plan, tells=tells)
        self._inputs = plan.options.inputs
        self._marks: dict[str, int] = {}
        self._steps_always = True

    def _read(self, rows: Iterable[Any]) -> tuple[list[bytes], int]:
        frames = list(rows)
        self._marks = {}
        for frame in frames:
            marked = frame[frame["input"] != NO_INPUT]
            for number, mark in zip(marked["input"], marked["mark_us"], strict=True):
                name = self._inputs[int(number)].name
                self._marks[name] = max(int(mark), self._marks.get(name, 0))
        return super()._read(frames)

    def _watermark(self, timer_values: Any, clock_us: int | None) -> int | None:
        """The least watermark of the inputs at the marks of the batches before; takes up those of this one."""
        clocks, pending = _stored(self._store)
        merged = MergedClocks(
            [one.watermark for one in self._inputs], [clocks.get(one.name, Clocks()) for one in self._inputs]
        )
        sources = [watermark_us(pending.get(one.name, 0) // 1000) for one in self._inputs]
        watermark = merged.step(sources, clock_us)
        of_input = {one.name: attrs.asdict(clocks) for one, clocks in zip(self._inputs, merged.clocks, strict=True)}
        self._store.put(_NAME, json.dumps({"clocks": of_input, "marks": self._marks}).encode())
        self._marks = {}
        return watermark


def _stored(store: Store) -> tuple[dict[str, Clocks], dict[str, int]]:
    """The clocks of the inputs and the marks that count from now on, by name."""
    stored = store.get(_NAME)
    if stored is None:
        return {}, {}
    about = json.loads(stored)
    return {name: Clocks(**clocks) for name, clocks in about["clocks"].items()}, about["marks"]
