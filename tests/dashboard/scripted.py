"""A watched query without Spark: the state of a script, read by the same answers as that of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import attrs
import pyarrow as pa

import beamish as bm
from beamish.checkpoint.inspection import Inspection
from beamish.contract.at_rest import Asked, Keeps, read_key
from beamish.errors import OptionError
from beamish.flow import descriptions
from beamish.local import stages_after
from beamish.spark.checkpoint.inspected import Batch
from beamish.stage_facts import StageFacts, stage_facts
from beamish.testing import TestStream
from beamish.watermarks import NO_WATERMARK_US

SECOND_US = 1_000_000
START_US = 1_700_000_000 * SECOND_US


@attrs.frozen
class ScriptStage:
    """A stage after a script, as ``StoredStage`` is one of a checkpoint."""

    operator: int
    facts: StageFacts
    stores: dict
    bound: Any

    @property
    def sizes(self):
        return [(shard, name, len(value)) for shard, store in self.stores.items() for name, value in store.items()]

    @property
    def size(self):
        return sum(size for *_, size in self.sizes)

    @property
    def keeps(self):
        return (Keeps.WINDOWS,) if self.facts.plan is not None else self.facts.about.keeps

    def read(self, answer, *, by_shard=False):
        tables = {shard: answer.read(store) for shard, store in self.stores.items()}
        if by_shard:
            tables = {
                shard: one.add_column(0, "shard", pa.array([shard] * one.num_rows, pa.int64()))
                for shard, one in tables.items()
            }
        return pa.concat_tables(tables.values())

    def key_columns(self, flow):
        return self.bound.operator.stored_keys

    def answer_of_keys(self, call, key, flow):
        asked = read_key(call, key, self.key_columns(flow))
        return asked, attrs.evolve(self.bound.operator.answer(Asked(Keeps.KEYS)), key=asked)

    def due_of_held(self, flow):
        stage, takes = self.facts.about.rebuilt()
        at_rest = stage.at_rest(takes, list(self.stores.values()), Keeps.HELD, shards=1)
        return self.read(at_rest.answer(Asked(Keeps.HELD)))["due"].combine_chunks()


def stages_of(pipeline: bm.Pipeline, script: TestStream, query_us: int = NO_WATERMARK_US) -> list[ScriptStage]:
    """The stages of a pipeline after a script."""
    after = list(stages_after(pipeline.flow.completed, script.events))
    abouts = descriptions(after[-1][0]) if after else []
    return [
        ScriptStage(
            place,
            stage_facts(
                dict(enumerate(stores)),
                about,
                bound.operator if Keeps.WINDOWS in _keeps(bound) else None,
                query_us=query_us,
            ),
            dict(enumerate(stores)),
            bound,
        )
        for place, (about, (bound, stores)) in enumerate(zip(abouts, after, strict=True))
    ]


def sharded(pipeline: bm.Pipeline, scripts: Sequence[TestStream]) -> ScriptStage:
    """A stage with a shard after each script, which have different keys."""
    each = [stages_of(pipeline, script)[0] for script in scripts]
    stores = {shard: stage.stores[0] for shard, stage in enumerate(each)}
    about = descriptions(list(stages_after(pipeline.flow.completed, scripts[0].events))[-1][0])[0]
    bound: Any = each[0].bound
    return ScriptStage(0, stage_facts(stores, about, bound.operator), stores, bound)


def _keeps(bound):
    return bound.stage.keeps(bound.operator.takes)


def batch(number: int, watermark_s: float | None = None, *, committed: bool = True, seconds: float = 2.0) -> Batch:
    """A batch of the log, a minute after the one before."""
    clock_us = START_US + 60 * SECOND_US * number
    watermark_us = NO_WATERMARK_US if watermark_s is None else int(watermark_s * SECOND_US)
    written_us = clock_us + int(seconds * SECOND_US) if committed else 0
    return Batch(number, clock_us, watermark_us, committed, watermark_us if committed else NO_WATERMARK_US, written_us)


@attrs.define
class ScriptSource:
    """A source whose query is played: ``stages`` are those after the last committed batch."""

    log: list[Batch]
    stages: list[ScriptStage]
    name: str = "/checkpoints/scores"
    fails: Exception | None = None
    panes_of_key: pa.Table | None = None
    dropped_rows: pa.Table | None = None
    given_metrics: object = None
    opened_times: int = 0

    @classmethod
    def after(cls, pipeline, script, batches: int = 3, **more) -> ScriptSource:
        return cls([batch(number) for number in range(batches)], stages_of(pipeline, script), **more)

    @property
    def has_panes(self):
        return self.panes_of_key is not None

    @property
    def has_dropped(self):
        return self.dropped_rows is not None

    def batches(self) -> Sequence[Batch]:
        if self.fails is not None:
            raise self.fails
        return self.log

    def opened(self, batches) -> Inspection:
        self.opened_times += 1
        last = max(one.number for one in batches if one.committed)
        return Inspection(cast("Any", None), self.name, last, None, list(batches), cast("Any", self.stages))

    def metrics(self):
        return self.given_metrics

    def panes(self, question, most):
        if self.panes_of_key is None:
            raise OptionError("watch: no table of panes is named; start it with --panes TABLE")
        return self.panes_of_key, None

    def dropped(self, most):
        if self.dropped_rows is None:
            raise OptionError("watch: no table of dropped rows is named; start it with --dropped TABLE")
        return self.dropped_rows
