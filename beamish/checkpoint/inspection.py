"""A checkpoint, looked into: ``bm.inspect`` (docs/rules/running.md#inspect)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from beamish.addresses import printable, printable_text
from beamish.checkpoint.of_script import place_of
from beamish.checkpoint.question import Question, read_question, read_texts
from beamish.checkpoint.rows import rows_of
from beamish.checkpoint.words import QueryFacts, held_back_by, stage_lines, summary, why
from beamish.contract.schemas import TIMESTAMP
from beamish.errors import OptionError, PipelineError
from beamish.flow import Flow
from beamish.instants import END_OF_TIME_US, LATEST_US
from beamish.markup import html_table
from beamish.watermarks import NO_WATERMARK_US

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from beamish.spark.checkpoint.inspected import Batch, StoredStage

_NEXT = 3
"""Of so many windows that are due next each stage says what they wait for."""
_MOST_ASKED = 100
"""Of so many windows at most words are made."""


@attrs.frozen(eq=False, repr=False)
class Inspection:
    """What a checkpoint says, as of one of its batches; see ``bm.inspect``, which makes it.

    It prints as a summary: how far the query is, and of each stage its watermark, what holds that back, its state, what was dropped, and
    the windows that are due next. In a notebook it shows itself as tables. The methods give DataFrames, or words.

    Attributes:
        spark: the session that reads it.
        checkpoint: its folder.
        batch: the number of the batch after which it is read.
        flow: of the pipeline, if it was given.
    """

    spark: SparkSession
    checkpoint: str
    batch: int
    flow: Flow | None
    _batches: Sequence[Batch]
    _stages: Sequence[StoredStage]

    def stages(self) -> DataFrame:
        """The stages of the query, a row each.

        Returns:
            ``stage`` (as ``explain`` numbers them), ``operator`` (Spark's id), ``windows`` and ``fires`` (in words; null: it has none),
            ``keys`` (array), ``watermark``, ``clock`` (timestamps; null: none yet, or none is needed), ``held_back`` (which input of a
            merge holds the watermark back; empty: none), ``kept_windows``, ``segments``, ``bytes``, ``shards``, ``rows_out``,
            ``dropped`` (map of reason to number of rows), ``unknown`` (array of sentences: what the checkpoint does not say).
        """
        rows = []
        for number, stage in enumerate(self._stages, 1):
            facts, plan = stage.facts, stage.facts.plan
            rows.append(
                {
                    "stage": number,
                    "operator": stage.operator,
                    "windows": facts.windows_in_words or None,
                    "fires": plan and plan.options.trigger.describe(),
                    "keys": list(facts.key_schema.names),
                    "watermark": _time(facts.watermark_us),
                    "clock": _time(facts.clock_us or NO_WATERMARK_US),
                    "held_back": held_back_by(facts),
                    "kept_windows": facts.windows,
                    "segments": len(facts.segments),
                    "bytes": stage.size,
                    "shards": facts.shards,
                    "rows_out": facts.rows_out,
                    "dropped": list(facts.dropped.items()),
                    "unknown": list(facts.unknown),
                }
            )
        return self._frame(_STAGES, rows)

    def watermarks(self) -> DataFrame:
        """The watermark over the batches that the checkpoint remembers (Spark keeps 100, unless it is told otherwise), a row each.

        Returns:
            ``batch``, ``clock`` (when it began), ``watermark`` (Spark's, in it; null: none), ``committed``, ``next_watermark`` (to where its
            rows took it; it counts from the next batch on). Where a policy follows the clock, a stage's own is in ``stages()``.
        """
        rows = [
            {
                "batch": one.number,
                "clock": _time(one.clock_us),
                "watermark": _time(one.watermark_us),
                "committed": one.committed,
                "next_watermark": _time(one.next_watermark_us),
            }
            for one in self._batches
        ]
        return self._frame(_WATERMARKS, rows)

    def inputs(self) -> DataFrame:
        """What the stages take, a row each: which input of a merge is how far.

        Returns:
            ``stage``, ``input`` (its name; null: the only one), ``of_stage`` (the stage whose panes it is; null: a source, or not known),
            ``watermark``, ``latest`` (the latest event time of its rows; null: not known, or not one of several inputs), ``moves`` (how its
            watermark moves, in words; null: not known).
        """
        rows = [
            {
                "stage": number,
                "input": one.name,
                "of_stage": one.stage,
                "watermark": _time(one.watermark_us),
                "latest": _time(one.latest_us),
                "moves": one.about.get("watermark"),
            }
            for number, stage in enumerate(self._stages, 1)
            for one in stage.facts.inputs
        ]
        return self._frame(_INPUTS, rows)

    def shards(self) -> DataFrame:
        """The shards that have state, a row each.

        Returns:
            ``stage``, ``shard`` (its id in the state), ``windows``, ``segments``, ``bytes``.
        """
        rows = []
        for number, stage in enumerate(self._stages, 1):
            for shard in stage.facts.stored_shards:
                own = [one for one in stage.facts.segments if one.shard == shard]
                size = sum(size for of, _, size in stage.sizes if of == shard)
                rows.append(
                    {
                        "stage": number,
                        "shard": shard,
                        "windows": sum(one.windows for one in own),
                        "segments": len(own),
                        "bytes": size,
                    }
                )
        return self._frame(_SHARDS, rows)

    def segments(self) -> DataFrame:
        """The segments that windows are stored in, a row each.

        Returns:
            ``stage``, ``shard``, ``segment`` (the name of its entry in the state), ``windows``, ``start``, ``end`` (their span; null: of
            rows, or without end), ``due`` (the least watermark at which something in it is due), ``due_clock`` (the least clock),
            ``bytes``.
        """
        rows = []
        for number, stage in enumerate(self._stages, 1):
            sizes = {(shard, entry): size for shard, entry, size in stage.sizes}
            of_rows = stage.facts.plan is not None and stage.facts.plan.counts_rows
            rows += [
                {
                    "stage": number,
                    "shard": one.shard,
                    "segment": one.entry,
                    "windows": one.windows,
                    "start": None if of_rows else _time(one.start_us),
                    "end": None if of_rows else _time(one.end_us),
                    "due": None if of_rows else _time(one.due_us),
                    "due_clock": _time(one.clock_due_us),
                    "bytes": sizes.get((one.shard, one.entry), 0),
                }
                for one in stage.facts.segments
            ]
        return self._frame(_SEGMENTS, rows)

    def windows(self, *, key: Any = None, window: Any = None, stage: int | None = None) -> DataFrame:
        """The windows that a stage keeps, a row each; lazy: executors read them, and only the segments that are asked for.

        Args:
            key: only those of keys with these values in these columns (a dict; of the only key column its value).
            window: only the one that starts then, or those that hold that time (aware datetime, seconds since the epoch; of windows of
                rows a number), or that overlap a span (start, end).
            stage: the number of the stage, where several have windows.

        Returns:
            ``key`` (struct; not there if the pipeline is not keyed), under several windowings ``windowing``, ``window``, ``values``
            (struct: what a pane would hold now), ``new_rows``, ``panes``, ``last_timing``, ``last_values`` (where they are kept: with
            retractions or ``only_updated_panes()``), ``closed`` (its trigger has finished), ``due`` (the clock its trigger waits for),
            ``expires`` (the watermark at which it does), ``waits_for`` (text).

        Raises:
            PipelineError: no stage has windows, or several and none is named.
            OptionError: there is no such key column, or the window is none.
        """
        of, question = self._asked("windows", key, window, stage)
        return of.windows(question.key, question.span)

    def why(self, *, key: Any = None, window: Any = None, stage: int | None = None) -> str:
        """Why a window has not fired, in words: what it waits for, and how far that is; a paragraph for each that is meant.

        Args:
            key, window, stage: as of ``windows``.

        Raises:
            PipelineError, OptionError: as ``windows``.
        """
        of, question = self._asked("why", key, window, stage)
        found = of.windows(question.key, question.span).limit(_MOST_ASKED)
        return why(of.facts, question, self._rows(of, found), self._query)

    def _asked(self, call: str, key: Any, window: Any, stage: int | None) -> tuple[StoredStage, Question]:
        of = self._stages[place_of([one.facts for one in self._stages], call, stage)]
        return of, read_question(of.facts, call, key, window)

    def asked_in_texts(self, keys: Sequence[str], window: str | None, stage: int | None) -> str:
        """As ``why``, of texts: ``name=value`` and a time; for the command line."""
        of = self._stages[place_of([one.facts for one in self._stages], "inspect", stage)]
        key, time = read_texts(of.facts, keys, window)
        return self.why(key=key or None, window=time, stage=stage)

    @property
    def _query(self) -> QueryFacts:
        of = next(one for one in self._batches if one.number == self.batch)
        last = max(one.number for one in self._batches if one.committed)
        return QueryFacts(of.number, of.clock_us, of.next_watermark_us, is_last=of.number == last)

    def _rows(self, stage: StoredStage, found: DataFrame) -> list[dict[str, Any]]:
        return rows_of(found.toArrow().cast(stage.facts.reader.schema))

    def _next(self) -> dict[int, list[dict[str, Any]]]:
        """By the place of the stage some windows that are due next."""
        due: dict[int, list[dict[str, Any]]] = {}
        for place, stage in enumerate(self._stages):
            found = stage.next_segment()
            if found is not None:
                first = found.where("NOT closed").orderBy("window.end", "window.start").limit(_NEXT)
                due[place] = self._rows(stage, first)
        return due

    @cached_property
    def _summary(self) -> str:
        sizes = {place: stage.size for place, stage in enumerate(self._stages)}
        return summary([stage.facts for stage in self._stages], self._query, sizes, self._next())

    def __str__(self) -> str:
        return f"checkpoint {printable_text(self.checkpoint)}, {self._summary}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        due = self._next()
        tables = [
            html_table(
                (),
                list(stage_lines(stage.facts, stage.size, due.get(place, ()))),
                f"stage {place + 1} of {len(self._stages)}",
            )
            for place, stage in enumerate(self._stages)
        ]
        return html_table((), [("checkpoint", printable_text(self.checkpoint)), ("batch", self.batch)]) + "".join(
            tables
        )

    def _frame(self, schema: pa.Schema, rows: list[dict[str, Any]]) -> DataFrame:
        from beamish.spark.checkpoint.inspected import frame

        return frame(self.spark, pa.Table.from_pylist(rows, schema=schema))


def inspect(
    spark: SparkSession, checkpoint: str | Path, pipeline: Any = None, *, batch: int | None = None
) -> Inspection:
    """Look into the checkpoint of a query that runs or is stopped: what waits in it, for what, and why a window has not fired.

    What it is of stands in the checkpoint itself, so the pipeline is not needed. It is read by Spark's own readers of state and text, as of
    a batch that is done, so a query that runs is not disturbed; through Spark Connect too. Nothing in it is unpickled or evaluated.

    Args:
        spark: the session that reads it, classic or Connect.
        checkpoint: the folder of the query's option ``checkpointLocation``.
        pipeline: the query's; it says what no checkpoint holds, the functions and classes of your own, where it is the same as then.
        batch: the number of the batch after which it is read; None: the last one that is done.

    Returns:
        an ``Inspection``, which prints as a summary, gives DataFrames (``stages``, ``windows``, ``watermarks``, ``inputs``, ``shards``,
        ``segments``), and answers: ``why(key=..., window=...)``.

    Raises:
        StateError: it is no checkpoint of a pipeline that has done a batch, or one that this version cannot read.
        OptionError: it does not remember the batch; no session, or no folder.
        PipelineError: what is given for the pipeline is none.

    Example:
        ``print(bm.inspect(spark, "/checkpoints/scores").why(key={"team": "red"}, window=datetime(2026, 1, 1, 10, 14, tzinfo=UTC)))``
    """
    flow: Any = getattr(pipeline, "flow", None)
    if pipeline is not None and not isinstance(flow, Flow):
        raise PipelineError(
            f"inspect(spark, checkpoint, {printable(pipeline)}): must be the query's pipeline, or left out"
        )
    if not hasattr(spark, "read") or not hasattr(spark, "createDataFrame"):
        raise OptionError(f"inspect({printable(spark)}, ...): must be a SparkSession: inspect(spark, checkpoint)")
    given: Any = checkpoint
    if not isinstance(given, (str, Path)) or not str(given):
        raise OptionError(f"inspect(spark, {printable(checkpoint)}): must be the folder of a checkpoint")
    from beamish.spark.checkpoint.inspected import batch_meant, read_batches, read_stages

    folder = str(checkpoint)
    batches = read_batches(spark, folder)
    of = batch_meant(batches, batch)
    stages = read_stages(spark, folder, of, flow and flow.completed)
    return Inspection(spark, folder, of.number, flow, batches, stages)


def _time(us: int) -> int | None:
    """Microseconds as a cell of a timestamp column; None: there is none."""
    return None if us in (NO_WATERMARK_US, END_OF_TIME_US) or abs(us) > LATEST_US else us


_NUMBER, _TEXTS = pa.int64(), pa.list_(pa.string())


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


_STAGES = _schema(
    stage=_NUMBER,
    operator=_NUMBER,
    windows=pa.string(),
    fires=pa.string(),
    keys=_TEXTS,
    watermark=TIMESTAMP,
    clock=TIMESTAMP,
    held_back=pa.string(),
    kept_windows=_NUMBER,
    segments=_NUMBER,
    bytes=_NUMBER,
    shards=_NUMBER,
    rows_out=_NUMBER,
    dropped=pa.map_(pa.string(), _NUMBER),
    unknown=_TEXTS,
)
_WATERMARKS = _schema(
    batch=_NUMBER, clock=TIMESTAMP, watermark=TIMESTAMP, committed=pa.bool_(), next_watermark=TIMESTAMP
)
_INPUTS = _schema(
    stage=_NUMBER, input=pa.string(), of_stage=_NUMBER, watermark=TIMESTAMP, latest=TIMESTAMP, moves=pa.string()
)
_SHARDS = _schema(stage=_NUMBER, shard=_NUMBER, windows=_NUMBER, segments=_NUMBER, bytes=_NUMBER)
_SEGMENTS = _schema(
    stage=_NUMBER,
    shard=_NUMBER,
    segment=pa.string(),
    windows=_NUMBER,
    start=TIMESTAMP,
    end=TIMESTAMP,
    due=TIMESTAMP,
    due_clock=TIMESTAMP,
    bytes=_NUMBER,
)
