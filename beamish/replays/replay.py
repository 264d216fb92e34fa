"""``bm.replay``: from a checkpoint to a test with the rows, the watermarks and the clock of the query's own micro-batches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from beamish.addresses import printable, printable_text
from beamish.checkpoint.of_script import ScriptStages
from beamish.checkpoint.words import rows_of
from beamish.contract.at_rest import EVER, Asked, Keeps
from beamish.errors import BeamishError, OptionError, StateError
from beamish.flow import Flow
from beamish.fusion.groups import FUSE
from beamish.instants import instant, instant_in_words
from beamish.pane import Pane, PaneList
from beamish.pipeline import Pipeline
from beamish.plot import Figure, timeline
from beamish.recording import read_record
from beamish.replays.comparison import Came, came_from, compared, first_differing
from beamish.replays.masking import Masks
from beamish.replays.steps import (
    BatchStep,
    Select,
    Stepper,
    Steps,
    days_of,
    dropped,
    fewest,
    is_pane,
    lines,
    selection,
    within,
)
from beamish.replays.subject import Initial, Subject
from beamish.replays.written import Written, test_name
from beamish.script import Bundle, steps_of
from beamish.statement.query import Query
from beamish.testing import TestStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from beamish.spark.replay.log import PastBatch, PastQuery
    from beamish.spark.replay.rows import PastRows
    from beamish.spark.replay.sources import PastInputs


@attrs.frozen(eq=False, repr=False)
class Replay:
    """The work of a query with the rows of a key, as a script; created by ``bm.replay``. It prints as a summary.

    Attributes:
        pipeline: the pipeline, with its dropped rows where it can list them; or the query.
        initial: the rows that its tables began with, by the name of their input.
        script: a step for each micro-batch.
        batches: the number of each step's batch.
        panes: the pipeline's output for the key and window.
        came: what the query emitted for them; None: unknown.
        differs_in: the first batch in which these differ; None: in no batch, or unknown.
        notes: sentences: what the replay rests on, and what it lacks.
    """

    pipeline: Pipeline | Query
    initial: Initial
    script: TestStream
    batches: Sequence[int]
    panes: PaneList
    came: PaneList | None
    differs_in: int | None
    notes: Sequence[str]
    _title: str
    _key: Mapping[str, Any]
    _given: Sequence[tuple[int, Pane]]
    _only: Mapping[str, Any]
    _selects_windows: bool
    _plain: Subject
    _beside: Came | None
    _dropped: Sequence[tuple[int, str]]

    def picture(self) -> Figure:
        """The timeline of the script.

        Raises:
            PipelineError: count windows.
            OptionError: too many keys, or matplotlib is missing.
        """
        events = tuple(self._plain.events(self.script.events))
        key = self._plain.inner_key(self._key) or None
        pipeline = Pipeline(self._plain.flow)
        return timeline(pipeline, TestStream(events), key=key, title=self._title, initial=self.initial or None)

    def test(self, pipeline: str | None = None) -> str:
        """The script as the text of a pytest file, which asserts what the query emitted, or, where that is unknown, the pipeline's output.

        Args:
            pipeline: the pipeline's module or file and name, ``"app:scores"``; None: the name that it has in its module.

        Raises:
            OptionError: the pipeline has no name.
        """
        where = pipeline or _place_of(self._plain.what)
        steps = [BatchStep(batch, event) for batch, event in zip(self.batches, self.script.events, strict=True)]
        known = self._beside is not None and self._beside.is_log
        lists_dropped = self._plain.what is not self.pipeline and not known
        batches = {str(pane): batch for batch, pane in reversed(self._given)}
        expected = (
            [(batches.get(str(pane)), pane) for pane in self._beside.panes] if self._beside and known else self._given
        )
        difference = None
        if self.differs_in is not None and self._beside is not None:
            own = [str(pane) for _, pane in self._given if is_pane(pane)] if known else []
            place = next(
                (at for at, (_, pane) in enumerate(expected) if at >= len(own) or str(pane) != own[at]), len(expected)
            )
            difference = (place if known else 0, f"batch {self.differs_in}: {self._beside.difference}")
        windows = [pane.window for _, pane in expected if pane.window is not None] if self._selects_windows else []
        about = [f"{self._title}.", *self.notes]
        name = test_name(" ".join(["replay of", *(f"{one} {value}" for one, value in self._key.items())]))
        written = Written(
            where,
            about,
            steps,
            self._dropped,
            expected,
            name,
            self._only,
            list(dict.fromkeys(windows)),
            with_dropped=lists_dropped,
            initial=self.initial,
            hides_dropped=known
            and any(not is_pane(pane) for _, of in self._plain.trace(self.script.events) for pane in of),
            difference=difference,
        )
        return written.text()

    def save(self, path: str | Path, pipeline: str | None = None) -> Path:
        """Write the test, and beside it the timeline, ``.html``, if it can be drawn.

        Args:
            path: of the test: ``test_red.py``.
            pipeline: as for ``test``.

        Returns:
            the path.

        Raises:
            OptionError: not a Python file, or the pipeline has no name.
        """
        path = Path(path)
        if path.suffix != ".py":
            raise OptionError(f"save({str(path)!r}): must be a Python file, such as test_replay.py")
        path.write_text(self.test(pipeline), encoding="utf-8")
        try:
            self.picture().save(path.with_suffix(".html"))
        except BeamishError:
            path.with_suffix(".html").unlink(missing_ok=True)
        return path

    def __str__(self) -> str:
        rows = sum(len(part.rows) for event in self.script.events for part in steps_of(event))
        count = f"{rows} rows in {len(self.batches)} steps, {len(self.panes)} rows of output"
        return "\n".join([f"{self._title}: {count}.", *self.notes])

    def __repr__(self) -> str:
        return str(self)


def replay(
    spark: SparkSession,
    checkpoint: str | Path,
    pipeline: Any,
    *,
    key: Any = None,
    window: Any = None,
    input: Any = None,  # noqa: A002 - as scripts call it
    panes: Any = None,
    record: str | Path | None = None,
    mask: Iterable[str] = (),
    initial: Any = None,
) -> Replay:
    """Reproduce what a query did with the rows of a key: its micro-batches as a script, and the script as a test.

    The rows are read from the source again, by the offsets in the checkpoint; each batch's watermark and clock are the checkpoint's. A
    running query is not disturbed.

    Args:
        spark: the session, classic or Connect.
        checkpoint: the query's ``checkpointLocation``.
        pipeline: the pipeline, or the query of ``bm.sql``, as it is now.
        key: the key columns of the output and their values; or the value of the only one; None: all keys.
        window: a time: only the windows that contain it are compared. An aware datetime, or text such as ``"2026-01-01T10:14"``, UTC
            by default, or ``"10:14"`` where only one day has such a window.
        input: the function that makes the query's stream from a session, ``def events(spark): return spark.readStream...``, with all
            that comes before the pipeline. It is called with a session whose ``readStream`` gives the rows of one batch. For a merge it
            returns a dict of the inputs, or is a dict of functions. None: files whose columns are the pipeline's.
        panes: what the query emitted: a DataFrame of its panes, or of the live rows that a sink keeps; or a list of ``Pane``. None: the
            windows in the checkpoint are compared.
        record: the file of ``bm.Listener(record=...)``, for batches that Spark has deleted from the checkpoint.
        mask: columns whose values are replaced by pseudonyms: equal values by equal ones, in the same order.
        initial: what a versioned table held before the first replayed batch, as for ``apply(initial=...)``: a batch DataFrame, or a
            function that makes it from a session; for several tables a dict by input.

    Returns:
        a ``Replay``: ``print`` it, ``save("test_red.py")``.

    Raises:
        StateError: not the checkpoint of a query, or it has no batch whose rows can be read again.
        OptionError: an argument is invalid; no row of the key; the source needs its function.
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or a row is invalid.

    Example:
        ``bm.replay(spark, "/checkpoints/scores", scores, key={"team": "red"}, input=events).save("test_red.py")``
    """
    if not hasattr(spark, "read") or not hasattr(spark, "createDataFrame"):
        raise OptionError(
            f"replay({printable(spark)}, ...): must be a SparkSession: replay(spark, checkpoint, pipeline)"
        )
    subject = Subject.of(pipeline)
    subject.flow.check()
    tables = subject.tables(initial)
    query, inputs = _opened(spark, str(checkpoint), subject.flow, input, record)
    given_key = subject.read(key)
    lost = inputs.lost(query.batches)
    if lost == len(query.batches):
        raise StateError(
            f"replay: the source no longer has all rows of batch {query.batches[-1].number}, the last one of checkpoint "
            f"{printable(str(checkpoint))}: nothing can be replayed"
        )
    batches = query.batches[lost:]
    made = _made(subject, query, inputs, batches, key=given_key, tables=tables)
    subject = made.subject
    typed = subject.typed(given_key, [one.event for one in made.steps])
    notes = _notes(query, batches, lost, made)
    masks = Masks.of(mask, made.all_rows, [name for of in made.past.columns.values() for name in of])
    steps = [attrs.evolve(one, event=_masked(one.event, masks)) for one in made.steps] if mask else made.steps
    if mask:
        subject = _masked_subject(subject, masks, made.steps, steps)
    shown = masks.row(typed)
    listing = subject.listing
    every = [pane for _, pane in lines(listing, steps, lambda _: True)]
    select = selection(shown, window, every, days_of(subject.flow, steps))
    beside = _Sides(spark, str(checkpoint), subject, steps, typed, masks)
    came: Came | None = None
    if panes is None:
        differs_in, said = beside.stored()
    else:
        came, said = beside.came(panes, select, batches)
        differs_in = came.differs_in
    notes.append(said)
    fewer = within(listing, steps, select) if window is not None else steps
    fewer = fewest(listing, fewer, select)
    given = lines(listing, fewer, select)
    others = [pane for _, pane in lines(listing, fewer, lambda _: True) if not select(pane)]
    has_other_keys = any(any(pane.key.get(name) != value for name, value in shown.items()) for pane in others)
    words = ", ".join(f"{name}={value!r}" for name, value in shown.items()) or "all keys"
    title = (
        f"Replay of {words}, batches {batches[0].number} to {batches[-1].number} of {printable_text(str(checkpoint))}"
    )
    return Replay(
        listing.what,
        subject.initial,
        TestStream(tuple(one.event for one in fewer)),
        [one.batch for one in fewer],
        PaneList(pane for _, pane in given),
        None if came is None else PaneList(came.panes),
        differs_in,
        notes,
        title,
        shown,
        given,
        shown if has_other_keys else {},
        bool(others) and window is not None,
        subject,
        came,
        dropped(subject, fewer),
    )


@attrs.frozen(eq=False)
class _Made:
    """The steps of a query.

    Attributes:
        subject: the pipeline, with the initial rows of its tables.
        steps: of its batches.
        past: their rows.
        unknown_watermark: whether the watermark of the first batches is unknown.
    """

    subject: Subject
    steps: Steps
    past: PastRows
    unknown_watermark: bool

    @property
    def all_rows(self) -> list[Mapping[str, Any]]:
        """The rows of all inputs and batches."""
        rows = [row for of in self.past.rows.values() for rows in of.values() for row in rows]
        return rows + [row for rows in self.subject.initial.values() for row in rows]


def _opened(
    spark: SparkSession, checkpoint: str, flow: Flow, given: Any, record: str | Path | None
) -> tuple[PastQuery, PastInputs]:
    from beamish.spark.replay.log import past_query
    from beamish.spark.replay.sources import PastInputs, files_as_they_are, made_by, past_sources

    query = past_query(spark, checkpoint, [] if record is None else read_record(record))
    sources = past_sources(spark, checkpoint, query)
    names = [source.name for source in flow.sources]
    make = files_as_they_are(sources, names) if given is None else made_by(given, names)
    return query, PastInputs.of(spark, sources, make, query)


def _made(
    subject: Subject,
    query: PastQuery,
    inputs: PastInputs,
    batches: Sequence[PastBatch],
    *,
    key: Mapping[str, Any],
    tables: Mapping[str | None, Any],
) -> _Made:
    """The steps of batches, with the rows that decide the panes of a key."""
    from beamish.spark.compile.stream import needs_reports
    from beamish.spark.replay.rows import read_initial, read_rows

    flow, several = subject.flow, len(subject.flow.sources) > 1
    where = subject.needed(key)
    read = partial(read_rows, flow, inputs, batches, reports=several, statement=subject.statement, named=subject.named)
    past = read(where)
    names = [source.name for source in flow.sources]
    if not any(rows for of in past.rows.values() for rows in of.values()):
        first, last = batches[0].number, batches[-1].number
        before = f"; the batches before {first} cannot be read, unless record= has them" if first else ""
        raise OptionError(
            f"replay(key={printable(dict(key))}): batches {first} to {last} have no row of it{before}. A key is given by the output's columns, "
            f"{list(subject.keys or ())}"
        )
    frames = {name: one(inputs.spark) if callable(one) else one for name, one in tables.items()}
    subject = attrs.evolve(subject, initial=read_initial(flow, frames, where, past.read))
    bound = subject.bound([Bundle(tuple(rows), name) for name in names for rows in past.rows[name].values()])
    if any(below.operator.holds_watermark for below in bound.flows[:-1]) and any(where.values()):
        past = read({})  # rows of any key hold the next stage's watermark back
    own = several and needs_reports(FUSE.grouped(bound))
    followed = [
        source.name for source in flow.sources if source.watermark is not None and source.watermark.moved_by_rows
    ]
    stepper, reached, steps = Stepper(names), dict[str | None, int](), []
    for batch in batches:
        watermarks: dict[str | None, int | None] = {None: batch.watermark_us} if followed else {}
        if own:
            watermarks = dict(reached)
            for name in names:
                us = past.reported_us[name].get(batch.number)
                if us is not None:
                    reached[name] = max(us, reached.get(name, us))
        clock_us = batch.heartbeat_us() if query.has_heartbeats else batch.clock_us
        rows = {name: past.rows[name].get(batch.number, ()) for name in names}
        steps.append(stepper.step(batch.number, rows, watermarks, clock_us))
    return _Made(subject, steps, past, own and batches[0].number > 0)


def _notes(query: PastQuery, batches: Sequence[PastBatch], lost: int, made: _Made) -> list[str]:
    first, last = batches[0], batches[-1]
    span = f"{instant_in_words(first.clock_us)} and {instant_in_words(last.clock_us)} UTC"
    notes = [
        f"Query {query.query}; its batches {first.number} to {last.number} began at {span}. Their rows are read from the source again; watermarks and clock are the checkpoint's."
    ]
    if lost:
        notes.append(
            f"The source no longer has all rows of the batches before {first.number}: windows that had rows from these are incomplete."
        )
    elif first.number:
        notes.append(
            f"The checkpoint's log begins with batch {first.number}: windows that had rows from batches before it are incomplete. To keep more: "
            "spark.sql.streaming.minBatchesToRetain, or bm.Listener(record=...)."
        )
    if made.unknown_watermark:
        notes.append(
            "The watermark of each input is computed from the rows of these batches, so at first it is behind."
        )
    return notes


def _masked_subject(subject: Subject, masks: Masks, steps: Steps, masked: Steps) -> Subject:
    """With pseudonyms in the initial rows (OptionError: a query computes with the masked values)."""
    found = subject.masked(masks)
    if subject.statement is not None:
        shapes = [
            [(batch, pane.kind, masks.row(pane.key), pane.window) for batch, pane in lines(one, of, lambda _: True)]
            for one, of in ((subject, steps), (found, masked))
        ]
        if shapes[0] != shapes[1]:
            names = ", ".join(map(repr, sorted(masks.columns)))
            raise OptionError(
                f"replay(mask): the statement computes with the values of {names}: under pseudonyms its output is another; mask other columns"
            )
    return found


def _masked(event: Any, masks: Masks) -> Any:
    def of(part: Any) -> Any:
        return attrs.evolve(part, rows=tuple(map(masks.row, part.rows)))

    return attrs.evolve(event, parts=tuple(map(of, event.parts))) if hasattr(event, "parts") else of(event)


@attrs.frozen(eq=False)
class _Sides:
    """The steps of a query, to be compared with what it emitted.

    Attributes:
        spark, checkpoint: of the query.
        subject: the pipeline.
        steps: all steps, with pseudonyms.
        key: without pseudonyms.
        masks: the pseudonyms.
    """

    spark: SparkSession
    checkpoint: str
    subject: Subject
    steps: Steps
    key: Mapping[str, Any]
    masks: Masks

    def came(self, panes: Any, select: Select, batches: Sequence[PastBatch]) -> tuple[Came, str]:
        """The emitted rows, compared, and the result as a sentence."""
        table = panes.toArrow() if hasattr(panes, "toArrow") else panes
        came = came_from(table, self.subject.keys_after([one.event for one in self.steps]))
        came = attrs.evolve(came, panes=[pane for pane in map(self.masks.pane, came.panes) if select(pane)])
        watermarks: dict[int, datetime | None] = {
            one.number: None if one.watermark_us is None else instant(one.watermark_us) for one in batches
        }
        came = compared(came, lines(self.subject, self.steps, select), watermarks)
        if came.differs_in is None:
            return came, "The pipeline gives what the query emitted."
        return (
            came,
            f"The pipeline differs from what the query emitted, first in batch {came.differs_in}: {came.difference}.",
        )

    def stored(self) -> tuple[int | None, str]:
        """The first batch after which the windows of the key in the checkpoint are not those of the pipeline, and the result as a sentence."""
        flow = self.subject.flow
        if Keeps.WINDOWS not in flow.stage.keeps(flow.takes):
            return None, "The last stage keeps no windows: to compare with what the query emitted, give panes."
        busy = [one.batch for one in self.steps if one.has_rows or one is self.steps[-1]]
        try:
            differs = first_differing(busy, self._is_stored)
        except BeamishError as error:
            return None, f"The windows in the checkpoint could not be compared: {error}."
        if differs is None:
            return None, "The windows that the checkpoint keeps are those of the pipeline."
        return (
            differs,
            f"The windows that the checkpoint keeps are not those of the pipeline, first after batch {differs}.",
        )

    def _is_stored(self, batch: int) -> bool:
        """Whether the windows after a batch are those of the checkpoint."""
        from beamish.spark.replay.stored import stored_windows

        events = [one.event for one in self.steps if one.batch <= batch]
        key, flow = self.subject.inner_key(self.key), self.subject.flow
        asked = Asked(Keeps.WINDOWS, self.masks.row(key), EVER)
        stages = ScriptStages.after(flow, self.subject.events(events), self.subject.initial or None)
        found = stages.answer(len(flow.flows), asked)
        ours = {} if found is None else _kept(found[1], Masks(frozenset(), {}))
        return _agree(_kept(stored_windows(self.spark, self.checkpoint, batch, key), self.masks), ours)


_COMPARED = ("values", "new_rows", "panes", "closed")


def _kept(windows: Any, masks: Masks) -> dict[str, dict[str, Any]]:
    """Stored windows by key and bounds."""
    return {
        repr((masks.row(row.get("key") or {}), row["start"], row["end"])): {
            name: masks.value(row[name]) for name in _COMPARED
        }
        for row in rows_of(windows)
    }


def _agree(stored: Mapping[str, Mapping[str, Any]], ours: Mapping[str, Mapping[str, Any]]) -> bool:
    if stored.keys() != ours.keys():
        return False
    for slot, there in stored.items():
        here = ours[slot]
        if any(there[name] != here[name] for name in _COMPARED[1:]):
            return False
        values, own = there["values"] or {}, here["values"] or {}
        if any(values[name] != own[name] for name in values.keys() & own.keys()):
            return False
    return True


def _place_of(pipeline: Any) -> str:
    """The module and name of a pipeline."""
    for name, module in list(sys.modules.items()):
        for attribute, value in list(vars(module).items()) if name != "__main__" else ():
            if value is pipeline:
                return f"{name}:{attribute}"
    raise OptionError(
        "replay: the pipeline has no name in a module, so a test cannot import it; give it: save('test_red.py', 'app:scores')"
    )
