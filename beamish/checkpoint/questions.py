"""Questions to what a pipeline keeps between two steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from beamish.at_rest.after_script import held_after, rows_after, tables_after, windows_after
from beamish.errors import OptionError, PipelineError
from beamish.flow import Flow
from beamish.instants import END_OF_TIME_US, instant, instant_us
from beamish.kernels.named import Named
from beamish.kinds.as_of.stage import AsOfStage
from beamish.kinds.suppress.stage import Suppressed, unsuppressed
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.kinds.versions.stage import VersionsStage
from beamish.kinds.window.kept_windows import CLOSED, NEW_ROWS, PANES, check_key, key_names
from beamish.kinds.window.stage import WindowStage
from beamish.pane import PaneKind, RowWindow, Window
from beamish.script.events import Event
from beamish.script.panes import windows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@attrs.frozen
class Held:
    """An update that a suppress holds.

    Attributes:
        name: the suppress.
        key: the key columns.
        window: the window; None for a change without one.
        kind: PANE: what it brings; RETRACTION: what it takes back, or (of changes) deletes.
        values: the values.
        timestamp: the pane's timestamp.
        since: since when its (key, window) is held, on the clock that is waited for; None: it waits for a pane.
        due: when it leaves, on that clock; None: not by itself.
    """

    name: str
    key: Named[Any]
    window: Window | RowWindow | None
    kind: PaneKind
    values: Named[Any]
    timestamp: datetime | None
    since: datetime | None
    due: datetime | None


@attrs.frozen
class KeptWindow:
    """A window that a stage keeps.

    Attributes:
        key: the key columns; under several windowings also ``windowing``.
        window: its bounds.
        values: what a pane would hold now, under ``discarding()`` of the rows that are in no pane yet; None if it is closed.
        new_rows: number of rows that are in no pane yet.
        panes: number of panes so far.
        closed: whether its trigger has finished: it is kept to drop the rows that still come for it.
    """

    key: Named[Any]
    window: Window | RowWindow
    values: Named[Any] | None
    new_rows: int
    panes: int
    closed: bool


@attrs.frozen
class KeptRow:
    """A row that a stage keeps in its windows.

    Attributes:
        key: the key columns; under several windowings also ``windowing``.
        place: its event time; in windows of rows its number.
        row: its columns, so far as they are kept.
    """

    key: Named[Any]
    place: datetime | int
    row: Named[Any]


@attrs.frozen
class StoredVersion:
    """A version in a versioned table.

    Attributes:
        key: the key columns.
        values: the values.
        valid_from: since when it is valid.
        valid_to: until before when; None: still.
    """

    key: Named[Any]
    values: Named[Any]
    valid_from: datetime
    valid_to: datetime | None


@attrs.frozen
class ScriptState:
    """What a pipeline keeps after a test script.

    Attributes:
        flow: the pipeline's.
        events: the script's.
        initial: rows that its tables began with, as ``Pipeline.run`` takes them.
    """

    flow: Flow
    events: Sequence[Event]
    initial: Any = None

    def held(self) -> list[Held]:
        """What its suppresses hold: a value per row that would come out.

        Raises:
            PipelineError: it has none.
        """
        check_suppressed(self.flow)
        found = []
        for relation, table in held_after(self.flow, self.events, self.initial):
            values = [name for name in relation.values if name in table.schema.names]
            found += [
                Held(
                    name=row["suppress"],
                    key=Named({name: row[name] for name in relation.keys}),
                    window=window,
                    kind=PaneKind(row["kind"]),
                    values=Named({name: row[name] for name in values}),
                    timestamp=row["timestamp"],
                    since=row["since"],
                    due=row["due"],
                )
                for row, window in zip(table.drop_columns(["window"]).to_pylist(), windows_of(table), strict=True)
            ]
        return found

    def windows(
        self, start: Any = None, end: Any = None, *, key: Mapping[str, Any] | None = None, stage: int | None = None
    ) -> list[KeptWindow]:
        """The windows that it keeps: open ones, and those kept for late rows.

        Args:
            start, end: only windows that overlap this span (seconds since the epoch or aware datetimes; of windows of rows
                numbers of rows); None: no bound.
            key: only those of keys that have these values in these key columns.
            stage: the number of the stage as ``explain`` has it, where several have windows; 1: the first.

        Returns:
            them by key, end and start.

        Raises:
            PipelineError: no stage has windows, or several and none is named.
            OptionError: ``key`` names no key column, or the span is empty.
        """
        of, wanted = window_stage(self.flow, stage), dict(key or {})
        span = span_of(of, start, end)
        found = windows_after(self.flow, self.events, self.initial, of, span)
        if found is None:
            return []
        names = key_names(found.schema.names)
        check_key(names, wanted)
        kept = []
        for row, window in zip(found.drop_columns(["window"]).to_pylist(), windows_of(found), strict=True):
            about = [row.pop(name) for name in (NEW_ROWS, PANES, CLOSED)]
            own = Named({name: row.pop(name) for name in names})
            assert window is not None  # noqa: S101 - a window that is kept has bounds, if none
            if all(own[name] == value for name, value in wanted.items()):
                kept.append(KeptWindow(own, window, None if about[-1] else Named(row), *about))
        return kept

    def rows(
        self,
        start: Any = None,
        end: Any = None,
        *,
        key: Mapping[str, Any] | None = None,
        of: str | None = None,
        stage: int | None = None,
    ) -> list[KeptRow]:
        """The rows that it keeps in its windows, each once in however many it is; rows of closed windows are gone.

        Args:
            start, end: only rows in this span (seconds since the epoch or aware datetimes; of windows of rows numbers of rows); None: no
                bound.
            key: only those of keys that have these values in these key columns.
            of: what keeps them: a ``Collect``, by its name, or an input of ``CoGroup`` or a join; None: the only thing that does.
            stage: the number of the stage as ``explain`` has it, where several have windows; 1: the first.

        Returns:
            them by key, time or number, and row.

        Raises:
            PipelineError: no stage has windows, or several and none is named; nothing keeps rows, or several things and none is named.
            OptionError: ``key`` names no key column, or the span is empty.
        """
        below, wanted = window_stage(self.flow, stage), dict(key or {})
        found = rows_after(
            self.flow, self.events, self.initial, stage=below, span=span_of(below, start, end, "rows"), of=of
        )
        if found is None:
            return []
        *names, place, row = found.schema.names
        check_key(names, wanted, "rows")
        kept = []
        for one in found.to_pylist():
            own = Named({name: one[name] for name in names})
            if all(own[name] == value for name, value in wanted.items()):
                kept.append(KeptRow(own, one[place], Named(one[row])))
        return kept

    def versions(self, name: str | None = None, *, as_of: Any = None) -> list[StoredVersion]:
        """What its versioned table holds.

        Args:
            name: which table, where there are several: its input's name.
            as_of: what was valid then (seconds since the epoch or an aware datetime); None: all that exact reads can reach.

        Raises:
            PipelineError: there is no such table, or several.
            OptionError: ``as_of`` lies further back than exact reads can reach.
        """
        name = table_name(self.flow, name)
        as_of_us = None if as_of is None else instant_us("versions(as_of)", as_of)
        found = []
        for table in tables_after(self.flow, self.events, self.initial):
            if table.name != name:
                continue
            check_as_of(as_of, as_of_us, table.oldest_us)
            rows = table.rows(as_of_us)
            keys = [field.name.partition(".")[2] for field in table.cells if field.name.startswith("key.")]
            for row in rows.to_pylist():
                times = {VALID_FROM: row.pop(VALID_FROM), VALID_TO: row.pop(VALID_TO)}
                key = Named({key: row.pop(key) for key in keys})
                found.append(StoredVersion(key, Named(row), **times))
        return found


@attrs.frozen
class CheckpointState:
    """What a query keeps, as of a batch of its checkpoint.

    Attributes:
        flow: the pipeline's.
        spark: the session that reads it.
        checkpoint: the query's checkpoint folder.
        batch: the number of the batch after which it is read; None: the last one.
    """

    flow: Flow
    spark: SparkSession
    checkpoint: str | Path
    batch: int | None = None

    def held(self, name: str | None = None) -> DataFrame:
        """What a suppress holds: a row per row that would come out.

        Args:
            name: which suppress, where there are several.

        Returns:
            ``suppress``, the key columns, ``window``, the value columns, ``kind``, ``timestamp``, ``since``, ``due``; the last
            two on the clock that is waited for.

        Raises:
            PipelineError: there is no such suppress, or several.
            StateError: the checkpoint is another pipeline's, or holds nothing of it.
        """
        from beamish.spark.checkpoint.held import held_in_checkpoint

        names = check_suppressed(self.flow)
        if (name is None and len(names) > 1) or (name is not None and name not in names):
            raise PipelineError(
                f"held({name!r}): the pipeline's suppresses are {', '.join(map(repr, names))}; name one"
            )
        folder = str(self.checkpoint)
        return held_in_checkpoint(self.flow, self.spark, folder, batch=self.batch, name=name or names[0])

    def windows(
        self, start: Any = None, end: Any = None, *, key: Mapping[str, Any] | None = None, stage: int | None = None
    ) -> DataFrame:
        """The windows that it keeps: open ones, and those kept for late rows.

        Args:
            start, end: only windows that overlap this span (seconds since the epoch or aware datetimes; of windows of rows
                numbers of rows); None: no bound. What
                lies elsewhere is not read.
            key: only those of keys that have these values in these key columns.
            stage: the number of the stage as ``explain`` has it, where several have windows; 1: the first.

        Returns:
            the key columns (under several windowings also ``windowing``), ``window``, the values that a pane would have now
            (null if it is closed), ``new_rows`` (bigint, those in no pane yet), ``panes`` (bigint, how many there were),
            ``closed`` (boolean: its trigger has finished).

        Raises:
            PipelineError: no stage has windows, or several and none is named.
            OptionError: ``key`` names no key column, or the span is empty.
            StateError: the checkpoint is another pipeline's, or too old to be read without rows.
        """
        from beamish.spark.checkpoint.kept_windows import windows_in_checkpoint

        of, wanted = window_stage(self.flow, stage), dict(key or {})
        span = span_of(of, start, end)
        return windows_in_checkpoint(of, self.spark, str(self.checkpoint), batch=self.batch, span_us=span, key=wanted)

    def rows(
        self,
        start: Any = None,
        end: Any = None,
        *,
        key: Mapping[str, Any] | None = None,
        of: str | None = None,
        stage: int | None = None,
    ) -> DataFrame:
        """The rows that it keeps in its windows, each once in however many it is; rows of closed windows are gone.

        Args:
            start, end: only rows in this span (seconds since the epoch or aware datetimes; of windows of rows numbers of rows); None: no
                bound.
            key: only those of keys that have these values in these key columns.
            of: what keeps them: a ``Collect``, by its name, or an input of ``CoGroup`` or a join; None: the only thing that does.
            stage: the number of the stage as ``explain`` has it, where several have windows; 1: the first.

        Returns:
            the key columns (under several windowings also ``windowing``), ``time`` (of windows of rows ``number``, bigint), ``row`` (a struct
            of the columns that are kept).

        Raises:
            PipelineError: no stage has windows, or several and none is named; nothing keeps rows, or several things and none is named.
            OptionError: ``key`` names no key column, or the span is empty.
            StateError: the checkpoint is another pipeline's, or too old to be read without rows.
        """
        from beamish.spark.checkpoint.kept_windows import rows_in_checkpoint

        below, wanted = window_stage(self.flow, stage), dict(key or {})
        span = span_of(below, start, end, "rows")
        return rows_in_checkpoint(
            below, self.spark, str(self.checkpoint), batch=self.batch, span=span, key=wanted, of=of
        )

    def versions(self, name: str | None = None, *, as_of: Any = None) -> DataFrame:
        """What its versioned table holds.

        Args:
            name: which table, where there are several: its input's name.
            as_of: what was valid then (seconds since the epoch or an aware datetime); None: all that exact reads can reach.

        Returns:
            the key columns, the values, ``valid_from``, ``valid_to`` (null: still valid).

        Raises:
            PipelineError: there is no such table, or several.
            OptionError: ``as_of`` lies further back than exact reads can reach.
            StateError: the checkpoint has none.
        """
        from beamish.spark.checkpoint.stored_versions import stored_versions, table_in_checkpoint

        name = table_name(self.flow, name)
        as_of_us = None if as_of is None else instant_us("versions(as_of)", as_of)
        table, entries = table_in_checkpoint(self.spark, str(self.checkpoint), self.batch, name)
        check_as_of(as_of, as_of_us, table.oldest_us)
        return stored_versions(table, entries, as_of_us)


def window_stage(flow: Flow, number: int | None) -> Flow:
    """The stage of windows that is meant.

    Raises:
        PipelineError: there is none, or several and none is named, or it is none.
    """
    stages = {at: below for at, below in enumerate(flow.flows, 1) if has_windows(below)}
    if not stages:
        raise PipelineError("windows(): no stage of the pipeline has windows to look into")
    if number is None and len(stages) == 1:
        return next(iter(stages.values()))
    if number not in stages:
        raise PipelineError(
            f"windows(stage={number!r}): stages with windows are {', '.join(map(str, stages))}; name one: "
            f"windows(stage={next(iter(stages))})"
        )
    return stages[number]


def has_windows(flow: Flow) -> bool:
    """Whether a stage is one of windows, suppressed or not."""
    return isinstance(unsuppressed(flow.stage), WindowStage)


def span_of(of: Flow, start: Any, end: Any, call: str = "windows") -> tuple[int, int]:
    """A span of time in microseconds, or of numbers of rows, as the windows of a stage are; None: without a bound.

    Raises:
        OptionError: it is no time, or no number, or the span is empty.
    """
    stage = unsuppressed(of.stage)
    of_rows = isinstance(stage, WindowStage) and stage.options.counts_rows
    read = _number if of_rows else instant_us
    start_us = -END_OF_TIME_US if start is None else read(f"{call}(start)", start)
    end_us = END_OF_TIME_US if end is None else read(f"{call}(end)", end)
    if start_us >= end_us:
        raise OptionError(f"{call}(start={start!r}, end={end!r}): the span is empty; end must be after start")
    return start_us, end_us


def _number(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= END_OF_TIME_US:
        raise OptionError(
            f"{where}={value!r}: windows are of rows, so it must be the number of a row, a whole number of 64 bits"
        )
    return value


def check_suppressed(flow: Flow) -> list[str]:
    """The names of a flow's suppresses.

    Raises:
        PipelineError: it has none.
    """
    names = [below.stage.suppress.name for below in flow.flows if isinstance(below.stage, Suppressed)]
    if not names:
        raise PipelineError("held(): the pipeline has no suppress, so nothing is held; say .suppress(...)")
    return names


def table_name(flow: Flow, name: str | None) -> str | None:
    """The name of the versioned table that is meant; None: that of the stage ``versions(...)``, which has none.

    Raises:
        PipelineError: there is no such table, or several.
    """
    names: list[str | None] = []
    for below in flow.flows:
        if isinstance(below.stage, VersionsStage):
            names.append(None)
        elif isinstance(below.stage, AsOfStage):
            names.append(below.takes[1].name)
    if not names:
        raise PipelineError("versions(): the pipeline has no versioned table; say .versions(...) or bm.as_of_join(...)")
    if len(names) == 1 and name is None:
        return names[0]
    if names == [None]:
        raise PipelineError(f"versions({name!r}): the pipeline's only versioned table has no name; leave it out")
    if names.count(name) != 1:
        raise PipelineError(f"versions({name!r}): the pipeline's versioned tables are {names!r}; name one")
    return name


def check_as_of(as_of: Any, as_of_us: int | None, oldest_us: int) -> None:
    """Check that a whole table can be read as of a time.

    Raises:
        OptionError: it lies further back than exact reads can reach.
    """
    if as_of_us is not None and as_of_us < oldest_us:
        raise OptionError(
            f"versions(as_of={as_of!r}): further back than the history, which begins at {instant(oldest_us)}; give a later time, "
            "or the table a longer history from its first run on"
        )
