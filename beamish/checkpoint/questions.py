"""Lookups in the state of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from beamish.checkpoint.of_script import ScriptStages
from beamish.checkpoint.question import stage_meant
from beamish.contract.at_rest import Answer, Asked, Keeps
from beamish.contract.stage import Stage
from beamish.errors import OptionError, PipelineError
from beamish.flow import Flow
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.kernels.identity import Named
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.pane import PaneKind, RowWindow, Window
from beamish.script import Event, windows_of
from beamish.windows.windowings import WINDOWING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@attrs.frozen
class Held:
    """A buffered update of a suppress.

    Attributes:
        name: the suppress.
        key: the key columns.
        window: the window; None for a change without one.
        kind: PANE; RETRACTION, or (for changes) a delete.
        values: the values.
        timestamp: the pane's timestamp.
        since: since when its (key, window) is buffered, on the suppress's clock; None: it waits for a pane.
        due: when it is emitted, on that clock; None: not by itself.
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
    """A stored window.

    Attributes:
        key: the key columns; with several windowings also ``windowing``.
        window: its bounds.
        values: of a pane now, with ``discarding()`` of the rows in no pane yet; None if it is closed.
        new_rows: number of rows in no pane yet.
        panes: number of panes so far.
        closed: whether its trigger has finished: it is only stored to drop later rows.
    """

    key: Named[Any]
    window: Window | RowWindow
    values: Named[Any] | None
    new_rows: int
    panes: int
    closed: bool


@attrs.frozen
class KeptRow:
    """A stored row of a window.

    Attributes:
        key: the key columns; with several windowings also ``windowing``.
        place: its event time; in count windows its number.
        row: its stored columns.
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
        valid_from: the start of its validity.
        valid_to: the exclusive end; None: still valid.
    """

    key: Named[Any]
    values: Named[Any]
    valid_from: datetime
    valid_to: datetime | None


@attrs.frozen
class StoredKey:
    """The entries of one sort that a stage without windows stores of a key.

    Attributes:
        key: the key columns.
        stored: what they are, in words.
        entries: how many rows, ids or versions.
        first, last: the times of the first and of the last; None: they have none.
        values: those of the last emitted row or version, in words; None: not stored, or not shown.
        due: the watermark at which something happens to the first of them; None: nothing does.
        then: what happens, in words.
        ends: the watermark at which the last of them is deleted; None: not by itself.
    """

    key: Named[Any]
    stored: str
    entries: int
    first: datetime | None
    last: datetime | None
    values: str | None
    due: datetime | None
    then: str | None
    ends: datetime | None


@attrs.frozen
class ScriptState:
    """The state of a pipeline after a test script.

    Attributes:
        flow: the pipeline's.
        events: the script's.
        initial: initial rows of its tables, as for ``Pipeline.run``.
    """

    flow: Flow
    events: Sequence[Event]
    initial: Any = None

    def held(self) -> list[Held]:
        """The buffers of its suppresses: one value per buffered row.

        Raises:
            PipelineError: it has no suppress.
        """
        stages = suppressed(self.flow)
        after = ScriptStages.after(self.flow, self.events, self.initial)
        found = [after.answer(stage, Asked(Keeps.HELD)) for stage in stages]
        return [held for one in found if one is not None for held in _held(*one)]

    def windows(
        self, start: Any = None, end: Any = None, *, key: Any = None, stage: int | None = None
    ) -> list[KeptWindow]:
        """The stored windows: open ones, and those kept for late rows.

        Args:
            start, end: only windows that overlap this span (seconds since the epoch or aware datetimes; for count windows row
                numbers); None: no bound.
            key: only those of keys with these values in these columns (a dict; for a single key column its value).
            stage: the number of the stage in ``explain``, if several have windows; 1: the first.

        Returns:
            the windows by key, end and start.

        Raises:
            PipelineError: no stage has windows, or several have and ``stage`` is missing.
            OptionError: no such key column, a value of another type, or an empty span.
        """
        found = self._answer(*windows_asked(self.flow, Keeps.WINDOWS, (start, end), stage, key=key))
        return [] if found is None else list(_kept_windows(found[1]))

    def rows(
        self,
        start: Any = None,
        end: Any = None,
        *,
        key: Any = None,
        of: str | None = None,
        stage: int | None = None,
    ) -> list[KeptRow]:
        """The stored rows of windows, each once even if in several windows; closed windows have none.

        Args:
            start, end: only rows in this span (seconds since the epoch or aware datetimes; for count windows row numbers); None: no bound.
            key: only those of keys with these values in these columns (a dict; for a single key column its value).
            of: a ``Collect``, by its name, or an input of ``CoGroup`` or a join; None: the only one.
            stage: the number of the stage in ``explain``, if several have windows; 1: the first.

        Returns:
            the rows by key, time or number, and columns.

        Raises:
            PipelineError: no stage has windows, or several have and ``stage`` is missing; no accumulation stores rows, or several
                do and ``of`` is missing.
            OptionError: no such key column, a value of another type, or an empty span.
        """
        found = self._answer(*windows_asked(self.flow, Keeps.ROWS, (start, end), stage, key=key, of=of))
        return [] if found is None else list(_kept_rows(*found))

    def keys(self, *, key: Any = None, stage: int | None = None) -> list[StoredKey]:
        """The state that stages without windows store of keys: one value per key and sort of entries.

        Args:
            key: only those of keys with these values in these columns (a dict; for a single key column its value).
            stage: the number of the stage in ``explain``, if several store keys; 1: the first.

        Raises:
            PipelineError: no stage stores keys without windows, or several do and ``stage`` is missing.
            OptionError: no such key column, or a value of another type.
        """
        found = self._answer(*keys_asked(self.flow, stage, key))
        return [] if found is None else list(_stored_keys(*found))

    def _answer(self, stage: int, asked: Asked) -> tuple[Answer, pa.Table] | None:
        return ScriptStages.after(self.flow, self.events, self.initial).answer(stage, asked)

    def versions(self, name: str | None = None, *, as_of: Any = None) -> list[StoredVersion]:
        """The versions of its versioned table.

        Args:
            name: the table, if there are several: its input's name.
            as_of: versions valid at this time (seconds since the epoch or an aware datetime); None: all within exact reads.

        Raises:
            PipelineError: no such table, or several tables.
            OptionError: ``as_of`` is before the range of exact reads.
        """
        found = self._answer(*table_asked(self.flow, name, as_of))
        return [] if found is None else list(_versions(*found))


def _held(answer: Answer, held: pa.Table) -> Iterator[Held]:
    own = {"suppress", *answer.keys, "window", "kind", "timestamp", "since", "due"}
    values = [name for name in held.schema.names if name not in own]
    for row, window in zip(held.drop_columns(["window"]).to_pylist(), windows_of(held), strict=True):
        yield Held(
            name=row["suppress"],
            key=Named({name: row[name] for name in answer.keys}),
            window=window,
            kind=PaneKind(row["kind"]),
            values=Named({name: row[name] for name in values}),
            timestamp=row["timestamp"],
            since=row["since"],
            due=row["due"],
        )


def _kept_windows(windows: pa.Table) -> Iterator[KeptWindow]:
    for row, window in zip(windows.drop_columns(["window"]).to_pylist(), windows_of(windows), strict=True):
        assert window is not None  # noqa: S101 - a window that is kept has bounds, if none
        windowing = {WINDOWING: row[WINDOWING]} if WINDOWING in row else {}
        key, values = Named({**row.get("key", {}), **windowing}), None if row["closed"] else Named(row["values"])
        yield KeptWindow(key, window, values, row["new_rows"], row["panes"], row["closed"])


def _kept_rows(answer: Answer, rows: pa.Table) -> Iterator[KeptRow]:
    *_, place, row = rows.schema.names
    for one in rows.to_pylist():
        yield KeptRow(Named({name: one[name] for name in answer.keys}), one[place], Named(one[row]))


def _stored_keys(answer: Answer, rows: pa.Table) -> Iterator[StoredKey]:
    for row in rows.to_pylist():
        yield StoredKey(Named({name: row.pop(name) for name in answer.keys}), **row)


def _versions(answer: Answer, versions: pa.Table) -> Iterator[StoredVersion]:
    for row in versions.to_pylist():
        valid = row.pop(VALID_FROM), row.pop(VALID_TO)
        yield StoredVersion(Named({name: row.pop(name) for name in answer.keys}), Named(row), *valid)


@attrs.frozen
class CheckpointState:
    """The state of a query, as of a batch of its checkpoint.

    Attributes:
        flow: the pipeline's.
        spark: the session.
        checkpoint: the query's checkpoint folder.
        batch: read the state after this batch; None: the last one.
    """

    flow: Flow
    spark: SparkSession
    checkpoint: str | Path
    batch: int | None = None

    def held(self, name: str | None = None) -> DataFrame:
        """The buffer of a suppress: one row per buffered row.

        Args:
            name: the suppress, if there are several.

        Returns:
            ``suppress``, the key columns, ``window``, the value columns, ``kind``, ``timestamp``, ``since``, ``due``; the last
            two on the suppress's clock.

        Raises:
            PipelineError: no such suppress, or several.
            StateError: the checkpoint belongs to another pipeline, or has nothing of it.
        """
        stages = suppressed(self.flow)
        meant = [stage for stage, own in stages.items() if name in (None, own)]
        if len(meant) != 1:
            raise PipelineError(
                f"held({name!r}): the pipeline's suppresses are {', '.join(map(repr, stages.values()))}; name one"
            )
        return self._answer(meant[0], Asked(Keeps.HELD))

    def windows(self, start: Any = None, end: Any = None, *, key: Any = None, stage: int | None = None) -> DataFrame:
        """The stored windows: open ones, and those kept for late rows.

        Args:
            start, end, key, stage: as for ``ScriptState.windows``; segments outside the span are not read.

        Returns:
            the key columns (with several windowings also ``windowing``), ``window``, the values of a pane now (null if it is
            closed), ``new_rows`` (bigint, rows in no pane yet), ``panes`` (bigint, number so far), ``closed`` (boolean: its
            trigger has finished).

        Raises:
            PipelineError, OptionError: as for ``ScriptState.windows``.
            StateError: the checkpoint belongs to another pipeline, or is too old to be read without input.
        """
        return self._answer(*windows_asked(self.flow, Keeps.WINDOWS, (start, end), stage, key=key))

    def rows(
        self,
        start: Any = None,
        end: Any = None,
        *,
        key: Any = None,
        of: str | None = None,
        stage: int | None = None,
    ) -> DataFrame:
        """The stored rows of windows, each once even if in several windows; closed windows have none.

        Args:
            start, end, key, of, stage: as for ``ScriptState.rows``.

        Returns:
            the key columns (with several windowings also ``windowing``), ``time`` (for count windows ``number``, bigint), ``row``
            (a struct of the stored columns).

        Raises:
            PipelineError, OptionError: as for ``ScriptState.rows``.
            StateError: the checkpoint belongs to another pipeline, or is too old to be read without input.
        """
        return self._answer(*windows_asked(self.flow, Keeps.ROWS, (start, end), stage, key=key, of=of))

    def keys(self, *, key: Any = None, stage: int | None = None) -> DataFrame:
        """The state that stages without windows store of keys: a row per key and sort of entries.

        Args:
            key, stage: as for ``ScriptState.keys``.

        Returns:
            the key columns, ``stored``, ``entries`` (bigint), ``first``, ``last``, ``values``, ``due``, ``then``, ``ends``: see
            ``bm.StoredKey``.

        Raises:
            PipelineError, OptionError: as for ``ScriptState.keys``.
            StateError: the checkpoint belongs to another pipeline, or has nothing of it.
        """
        return self._answer(*keys_asked(self.flow, stage, key))

    def _answer(self, stage: int, asked: Asked) -> DataFrame:
        from beamish.spark.checkpoint.entries import answer_of

        return answer_of(self.flow, stage, (self.spark, str(self.checkpoint), self.batch), asked)

    def versions(self, name: str | None = None, *, as_of: Any = None) -> DataFrame:
        """The versions of its versioned table.

        Args:
            name, as_of: as for ``ScriptState.versions``.

        Returns:
            the key columns, the values, ``valid_from``, ``valid_to`` (null: still valid).

        Raises:
            PipelineError, OptionError: as for ``ScriptState.versions``.
            StateError: the checkpoint has none.
        """
        return self._answer(*table_asked(self.flow, name, as_of))


def keeping(flow: Flow, what: Keeps) -> dict[int, str | None]:
    """The numbers of the stages with such state, and the name to select each by."""
    return {number: names[what] for number, names in kept(flow).items() if what in names}


def kept(flow: Flow) -> dict[int, Mapping[Keeps, str | None]]:
    """The views that each stage keeps, by its number."""
    return {number: below.stage.keeps(below.takes) for number, below in enumerate(flow.flows, 1)}


def keys_asked(flow: Flow, stage: int | None, key: Any) -> tuple[int, Asked]:
    """The number of the selected stage that stores keys, and the query (PipelineError: no such stage, or several and ``stage`` is missing)."""
    return stage_meant(Keeps.KEYS, stage, kept(flow), Keeps.KEYS), Asked(Keeps.KEYS, key=key)


def windows_asked(flow: Flow, what: Keeps, span: tuple[Any, Any], stage: int | None, **asked: Any) -> tuple[int, Asked]:
    """The number of the selected stage, and the query; ``span``: as given.

    Raises:
        PipelineError: no such stage, or several and ``stage`` is missing.
        OptionError: an invalid or empty span.
    """
    number = stage_meant(what, stage, kept(flow), what)
    return number, Asked(what, span=span_of(flow.flows[number - 1].stage, what, *span), **asked)


def span_of(stage: Stage, call: str, start: Any, end: Any) -> tuple[int, int]:
    """A span of time in microseconds, or of row numbers, depending on the stage's windows; None: unbounded.

    Raises:
        OptionError: an invalid time or number, or an empty span.
    """
    read = _number if stage.counts_rows else instant_us
    start_us = -END_OF_TIME_US if start is None else read(f"{call}(start)", start)
    end_us = END_OF_TIME_US if end is None else read(f"{call}(end)", end)
    if start_us >= end_us:
        raise OptionError(f"{call}(start={start!r}, end={end!r}): the span is empty; end must be after start")
    return start_us, end_us


def _number(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= END_OF_TIME_US:
        raise OptionError(
            f"{where}={value!r}: count windows are bounded by row numbers; must be a whole number of 64 bits"
        )
    return value


def suppressed(flow: Flow) -> dict[int, str | None]:
    """The numbers of the stages with a suppress, and the names of these.

    Raises:
        PipelineError: the pipeline has none.
    """
    stages = keeping(flow, Keeps.HELD)
    if not stages:
        raise PipelineError("held(): the pipeline has no suppress, so nothing is buffered; add .suppress(...)")
    return stages


def table_asked(flow: Flow, name: str | None, as_of: Any) -> tuple[int, Asked]:
    """The number of the selected versioned table's stage, and the query; that of ``versions(...)`` has no name.

    Raises:
        PipelineError: no such table, or several.
        OptionError: ``as_of`` is not a time.
    """
    asked = Asked(Keeps.VERSIONS, as_of=as_of)
    stages = keeping(flow, Keeps.VERSIONS)
    names = list(stages.values())
    if not names:
        raise PipelineError("versions(): the pipeline has no versioned table; add .versions(...) or bm.as_of_join(...)")
    if len(names) == 1 and name is None:
        return next(iter(stages)), asked
    if names == [None]:
        raise PipelineError(f"versions({name!r}): the pipeline's only versioned table has no name; leave it out")
    if names.count(name) != 1:
        raise PipelineError(f"versions({name!r}): the pipeline's versioned tables are {names!r}; name one")
    return next(stage for stage, own in stages.items() if own == name), asked
