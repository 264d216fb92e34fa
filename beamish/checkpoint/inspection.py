"""A checkpoint, looked into: ``bm.inspect`` (docs/rules/running.md#inspect)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from beamish.addresses import printable, printable_text
from beamish.checkpoint.question import Question, read_question, read_texts, stage_meant
from beamish.checkpoint.words import QueryFacts, held_back_by, rows_of, stage_lines, summary, why
from beamish.contract.at_rest import Asked, Keeps
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
        return self._frame(_STAGES, enumerate(self._stages, 1))

    def watermarks(self) -> DataFrame:
        """The watermark over the batches that the checkpoint remembers (Spark keeps 100, unless it is told otherwise), a row each.

        Returns:
            ``batch``, ``clock`` (when it began), ``watermark`` (Spark's, in it; null: none), ``committed``, ``next_watermark`` (to where its
            rows took it; it counts from the next batch on). Where a policy follows the clock, a stage's own is in ``stages()``.
        """
        return self._frame(_WATERMARKS, ((one,) for one in self._batches))

    def inputs(self) -> DataFrame:
        """What the stages take, a row each: which input of a merge is how far.

        Returns:
            ``stage``, ``input`` (its name; null: the only one), ``of_stage`` (the stage whose panes it is; null: a source, or not known),
            ``watermark``, ``latest`` (the latest event time of its rows; null: not known, or not one of several inputs), ``moves`` (how its
            watermark moves, in words; null: not known).
        """
        each = ((number, one) for number, stage in enumerate(self._stages, 1) for one in stage.facts.inputs)
        return self._frame(_INPUTS, each)

    def shards(self) -> DataFrame:
        """The shards that have state, a row each.

        Returns:
            ``stage``, ``shard`` (its id in the state), ``windows``, ``segments``, ``bytes``.
        """
        stages = enumerate(self._stages, 1)
        return self._frame(_SHARDS, ((number, of, shard) for number, of in stages for shard in of.facts.stored_shards))

    def segments(self) -> DataFrame:
        """The segments that windows are stored in, a row each.

        Returns:
            ``stage``, ``shard``, ``segment`` (the name of its entry in the state), ``windows``, ``start``, ``end`` (their span; null: of
            rows, or without end), ``due`` (the least watermark at which something in it is due), ``due_clock`` (the least clock),
            ``bytes``.
        """
        stages = enumerate(self._stages, 1)
        return self._frame(_SEGMENTS, ((number, of, one) for number, of in stages for one in of.facts.segments))

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
            OptionError: there is no such key column, or the window is not one.
        """
        of, question = self._asked("windows", key, window, stage)
        return of.windows(question.asked)

    def why(self, *, key: Any = None, window: Any = None, stage: int | None = None) -> str:
        """Why a window has not fired, in words: what it waits for, and how far that is; a paragraph for each that is meant.

        Args:
            key, window, stage: as of ``windows``.

        Raises:
            PipelineError, OptionError: as ``windows``.
        """
        of, question = self._asked("why", key, window, stage)
        found = of.windows(question.asked).limit(_MOST_ASKED)
        return why(of.facts, question, self._rows(of, found), self._query)

    def _asked(self, call: str, key: Any, window: Any, stage: int | None) -> tuple[StoredStage, Question]:
        of = self._stages[self._meant(call, stage) - 1]
        return of, read_question(of.facts, call, key, window)

    def _meant(self, call: str, stage: int | None) -> int:
        with_windows = [number for number, one in enumerate(self._stages, 1) if one.facts.plan is not None]
        return stage_meant(call, stage, with_windows)

    def asked_in_texts(self, keys: Sequence[str], window: str | None, stage: int | None) -> str:
        """As ``why``, of texts: ``name=value`` and a time; for the command line."""
        of = self._stages[self._meant("inspect", stage) - 1]
        key, time = read_texts(of.facts, keys, window)
        return self.why(key=key or None, window=time, stage=stage)

    @property
    def _query(self) -> QueryFacts:
        of = next(one for one in self._batches if one.number == self.batch)
        last = max(one.number for one in self._batches if one.committed)
        return QueryFacts(of.number, of.clock_us, of.next_watermark_us, is_last=of.number == last)

    def _rows(self, stage: StoredStage, found: DataFrame) -> list[dict[str, Any]]:
        return rows_of(found.toArrow().cast(stage.facts.asked(Asked(Keeps.WINDOWS)).schema))

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

    def _frame(self, columns: _Columns, each: Iterable[tuple[Any, ...]]) -> DataFrame:
        from beamish.spark.checkpoint.inspected import frame

        rows = list(each)
        table = {name: pa.array([cell(*row) for row in rows], type_) for name, (type_, cell) in columns.items()}
        return frame(self.spark, pa.table(table))


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


def _time_of_segment(of: StoredStage, us: int) -> int | None:
    """A bound or due time of a segment; null for windows of rows."""
    return None if of.facts.plan is not None and of.facts.plan.window.counts_rows else _time(us)


_NUMBER, _TEXT = pa.int64(), pa.string()
_Columns = Mapping[str, tuple[pa.DataType, Callable[..., Any]]]
"""Columns of a table: the type of each, and its cell of what a row is of."""
_STAGES: _Columns = {
    "stage": (_NUMBER, lambda number, _: number),
    "operator": (_NUMBER, lambda _, of: of.operator),
    "windows": (_TEXT, lambda _, of: of.facts.windows_in_words or None),
    "fires": (_TEXT, lambda _, of: of.facts.plan and of.facts.plan.options.trigger.describe()),
    "keys": (pa.list_(_TEXT), lambda _, of: list(of.facts.key_schema.names)),
    "watermark": (TIMESTAMP, lambda _, of: _time(of.facts.watermark_us)),
    "clock": (TIMESTAMP, lambda _, of: _time(of.facts.clock_us or NO_WATERMARK_US)),
    "held_back": (_TEXT, lambda _, of: held_back_by(of.facts)),
    "kept_windows": (_NUMBER, lambda _, of: of.facts.windows),
    "segments": (_NUMBER, lambda _, of: len(of.facts.segments)),
    "bytes": (_NUMBER, lambda _, of: of.size),
    "shards": (_NUMBER, lambda _, of: of.facts.shards),
    "rows_out": (_NUMBER, lambda _, of: of.facts.rows_out),
    "dropped": (pa.map_(_TEXT, _NUMBER), lambda _, of: list(of.facts.dropped.items())),
    "unknown": (pa.list_(_TEXT), lambda _, of: list(of.facts.unknown)),
}
_WATERMARKS: _Columns = {
    "batch": (_NUMBER, lambda batch: batch.number),
    "clock": (TIMESTAMP, lambda batch: _time(batch.clock_us)),
    "watermark": (TIMESTAMP, lambda batch: _time(batch.watermark_us)),
    "committed": (pa.bool_(), lambda batch: batch.committed),
    "next_watermark": (TIMESTAMP, lambda batch: _time(batch.next_watermark_us)),
}
_INPUTS: _Columns = {
    "stage": (_NUMBER, lambda number, _: number),
    "input": (_TEXT, lambda _, one: one.name),
    "of_stage": (_NUMBER, lambda _, one: one.stage),
    "watermark": (TIMESTAMP, lambda _, one: _time(one.watermark_us)),
    "latest": (TIMESTAMP, lambda _, one: _time(one.latest_us)),
    "moves": (_TEXT, lambda _, one: one.moves),
}
_SHARDS: _Columns = {
    "stage": (_NUMBER, lambda number, _, __: number),
    "shard": (_NUMBER, lambda _, __, shard: shard),
    "windows": (_NUMBER, lambda _, of, shard: sum(one.windows for one in of.facts.segments if one.shard == shard)),
    "segments": (_NUMBER, lambda _, of, shard: sum(one.shard == shard for one in of.facts.segments)),
    "bytes": (_NUMBER, lambda _, of, shard: sum(size for where, _, size in of.sizes if where == shard)),
}
_SEGMENTS: _Columns = {
    "stage": (_NUMBER, lambda number, _, __: number),
    "shard": (_NUMBER, lambda _, __, one: one.shard),
    "segment": (_TEXT, lambda _, __, one: one.entry),
    "windows": (_NUMBER, lambda _, __, one: one.windows),
    "start": (TIMESTAMP, lambda _, of, one: _time_of_segment(of, one.start_us)),
    "end": (TIMESTAMP, lambda _, of, one: _time_of_segment(of, one.end_us)),
    "due": (TIMESTAMP, lambda _, of, one: _time_of_segment(of, one.due_us)),
    "due_clock": (TIMESTAMP, lambda _, __, one: _time(one.clock_due_us)),
    "bytes": (_NUMBER, lambda _, of, one: of.sizes_of_entries.get((one.shard, one.entry), 0)),
}
