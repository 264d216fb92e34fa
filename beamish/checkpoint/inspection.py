"""``bm.inspect``: the contents of a checkpoint (docs/rules/running.md#inspect)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from beamish.addresses import printable, printable_text
from beamish.checkpoint.question import check_no_window, read_question, read_texts, stage_meant
from beamish.checkpoint.stored_keys import why_of_keys
from beamish.checkpoint.words import QueryFacts, held_back_by, rows_of, stage_lines, summary, why
from beamish.contract.at_rest import Asked, Keeps
from beamish.contract.updates import TIMESTAMP
from beamish.errors import OptionError, PipelineError
from beamish.flow import Flow
from beamish.instants import END_OF_TIME_US, LATEST_US
from beamish.markup import html_table
from beamish.watermarks import NO_WATERMARK_US

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from beamish.spark.checkpoint.inspected import Batch, StoredStage

_NEXT = 3
"""Number of windows due next that each stage describes."""
_MOST_ASKED = 100
"""Maximum number of windows described."""


@attrs.frozen(eq=False, repr=False)
class Inspection:
    """The contents of a checkpoint, as of a batch; created by ``bm.inspect``.

    It prints as a summary: the progress of the query, and for each stage its watermark and the input that holds it back, its
    state, dropped rows, and the windows due next. In a notebook it is shown as tables. The methods return DataFrames, or text.

    Attributes:
        spark: the session.
        checkpoint: its folder.
        batch: the batch after which it is read.
        flow: of the pipeline, if given.
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
            ``dropped`` (map of reason to number of rows), ``unknown`` (array of sentences: facts missing in the checkpoint).
        """
        return self._frame(_STAGES, enumerate(self._stages, 1))

    def watermarks(self) -> DataFrame:
        """The watermark over the batches in the checkpoint (Spark keeps 100 by default), a row each.

        Returns:
            ``batch``, ``clock`` (when it began), ``watermark`` (Spark's, in it; null: none), ``committed``, ``next_watermark``
            (by its rows; applies from the next batch on). If a policy follows the clock, a stage's own watermark is in
            ``stages()``.
        """
        return self._frame(_WATERMARKS, ((one,) for one in self._batches))

    def inputs(self) -> DataFrame:
        """The inputs of the stages, a row each, with their progress.

        Returns:
            ``stage``, ``input`` (its name; null: the only one), ``of_stage`` (the stage whose panes it is; null: a source, or unknown),
            ``watermark``, ``latest`` (the latest event time of its rows; null: unknown, or a single input), ``moves`` (how its
            watermark moves, as text; null: unknown).
        """
        each = ((number, one) for number, stage in enumerate(self._stages, 1) for one in stage.facts.inputs)
        return self._frame(_INPUTS, each)

    def shards(self) -> DataFrame:
        """The shards with state, a row each.

        Returns:
            ``stage``, ``shard`` (its id in the state), ``windows``, ``segments``, ``bytes``.
        """
        stages = enumerate(self._stages, 1)
        return self._frame(_SHARDS, ((number, of, shard) for number, of in stages for shard in of.facts.stored_shards))

    def segments(self) -> DataFrame:
        """The segments of windows, a row each.

        Returns:
            ``stage``, ``shard``, ``segment`` (the name of its entry in the state), ``windows``, ``start``, ``end`` (their span;
            null: count windows, or without end), ``due`` (the least watermark at which something in it is due), ``due_clock``
            (the least clock), ``bytes``.
        """
        stages = enumerate(self._stages, 1)
        return self._frame(_SEGMENTS, ((number, of, one) for number, of in stages for one in of.facts.segments))

    def windows(self, *, key: Any = None, window: Any = None, stage: int | None = None) -> DataFrame:
        """The stored windows of a stage, a row each; lazy: executors read them, and only the needed segments.

        Args:
            key: only those of keys with these values in these columns (a dict; for a single key column its value).
            window: only the one that starts at, or those that contain, a time (aware datetime, text such as 2026-01-01T10:14Z, seconds since
                the epoch; for count windows a number), or that overlap a span (start, end).
            stage: the number of the stage, if several have windows.

        Returns:
            ``key`` (struct; missing without keys), with several windowings ``windowing``, ``window``, ``values`` (struct: of a
            pane now), ``new_rows``, ``panes``, ``last_timing``, ``last_values`` (if stored: with retractions or
            ``only_updated_panes()``), ``closed`` (its trigger has finished), ``due`` (the clock its trigger waits for),
            ``expires`` (the watermark at which it does), ``waits_for`` (text).

        Raises:
            PipelineError: no stage has windows, or several have and ``stage`` is missing.
            OptionError: no such key column, or an invalid window.
        """
        of = self._stages[self._meant("windows", stage, Keeps.WINDOWS) - 1]
        return of.windows(read_question(of.facts, "windows", key, window).asked)

    def why(self, *, key: Any = None, window: Any = None, stage: int | None = None) -> str:
        """Why a window has not fired: what it waits for, and how long; a paragraph for each selected window.

        For a stage without windows, a paragraph for each selected key: its stored state, and what it waits for.

        Args:
            key, window, stage: as for ``windows``. Without ``stage`` the only one with windows, or without such the only one that stores keys.

        Raises:
            PipelineError, OptionError: as for ``windows``.
            StateError: a stage without windows has functions or custom classes, and no pipeline was given.
        """
        number = self._meant("why", stage, Keeps.WINDOWS, Keeps.KEYS)
        of = self._stages[number - 1]
        if of.facts.plan is None:
            check_no_window("why", number, window)
            asked, answer = of.answer_of_keys("why", key, self.flow)
            rows = of.answered(answer).limit(_MOST_ASKED).toArrow().to_pylist()
            return why_of_keys(of.facts, asked, answer.keys, rows, self._query)
        question = read_question(of.facts, "why", key, window)
        found = of.windows(question.asked).limit(_MOST_ASKED)
        return why(of.facts, question, self._rows(of, found), self._query)

    def _meant(self, call: str, stage: int | None, *meant: Keeps) -> int:
        keeping = {number: one.keeps for number, one in enumerate(self._stages, 1)}
        return stage_meant(call, stage, keeping, *meant)

    def _asked_in_texts(self, keys: Sequence[str], window: str | None, stage: int | None) -> str:
        """Like ``why``, from texts: ``name=value`` and a time; for the command line."""
        of = self._stages[self._meant("inspect", stage, Keeps.WINDOWS, Keeps.KEYS) - 1]
        schema = of.facts.key_schema if of.facts.plan is not None else of.key_columns(self.flow)
        key, time = read_texts(of.facts.plan, schema, keys, window)
        return self.why(key=key or None, window=time, stage=stage)

    @property
    def _query(self) -> QueryFacts:
        of = next(one for one in self._batches if one.number == self.batch)
        last = max(one.number for one in self._batches if one.committed)
        return QueryFacts(of.number, of.clock_us, of.next_watermark_us, is_last=of.number == last)

    def _rows(self, stage: StoredStage, found: DataFrame) -> list[dict[str, Any]]:
        return rows_of(found.toArrow().cast(stage.facts.asked(Asked(Keeps.WINDOWS)).schema))

    def _next(self) -> dict[int, list[dict[str, Any]]]:
        """Some windows due next, by stage."""
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
                list(stage_lines(stage.facts, self._query.clock_us, stage.size, due.get(place, ()))),
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
    """Inspect the checkpoint of a running or stopped query: what it waits for, and why a window has not fired.

    The checkpoint describes its query, so the pipeline is not needed. It is read with Spark's own readers of state and text, as
    of a committed batch, so a running query is not disturbed; also through Spark Connect. Nothing in it is unpickled or
    evaluated.

    Args:
        spark: the session, classic or Connect.
        checkpoint: the query's ``checkpointLocation``.
        pipeline: the query's, if unchanged; it provides functions and custom classes, which are not in the checkpoint.
        batch: read the state after this batch; None: the last committed one.

    Returns:
        an ``Inspection``, which prints as a summary, has DataFrames (``stages``, ``windows``, ``watermarks``, ``inputs``,
        ``shards``, ``segments``), and ``why(key=..., window=...)``.

    Raises:
        StateError: not the checkpoint of a pipeline that has committed a batch, or not readable by this version.
        OptionError: the batch is not in the checkpoint; not a session, or not a folder.
        PipelineError: not a pipeline.

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
    from beamish.spark.checkpoint.inspected import read_batches

    return opened(spark, str(checkpoint), flow, read_batches(spark, str(checkpoint)), batch)


def opened(
    spark: SparkSession, checkpoint: str, flow: Flow | None, batches: Sequence[Batch], batch: int | None = None
) -> Inspection:
    """The contents of a checkpoint whose log has been read; for arguments and errors see ``inspect``."""
    from beamish.spark.checkpoint.inspected import batch_meant, read_stages

    of = batch_meant(batches, batch)
    stages = read_stages(spark, checkpoint, of, flow and flow.completed)
    return Inspection(spark, checkpoint, of.number, flow, batches, stages)


def _time(us: int) -> int | None:
    """Microseconds as a cell of a timestamp column; None: missing."""
    return None if us in (NO_WATERMARK_US, END_OF_TIME_US) or abs(us) > LATEST_US else us


def _time_of_segment(of: StoredStage, us: int) -> int | None:
    """A bound or due time of a segment; null for count windows."""
    return None if of.facts.plan is not None and of.facts.plan.window.counts_rows else _time(us)


_NUMBER, _TEXT = pa.int64(), pa.string()
_Columns = Mapping[str, tuple[pa.DataType, Callable[..., Any]]]
"""Columns of a table: the type of each, and a function from a row's object to its cell."""
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
