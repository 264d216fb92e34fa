"""Micro-batches as the steps of a script, and the fewest of them that give the same panes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import attrs

from beamish.durations import Duration
from beamish.errors import OptionError
from beamish.flow import Flow
from beamish.instants import instant, instant_in_words, instant_us
from beamish.kernels.field_paths import value_of
from beamish.pane import Pane, PaneKind, RowWindow
from beamish.replays.subject import Subject
from beamish.script import Event, MicroBatch, Row, Step, of_inputs, steps_of


@attrs.frozen
class BatchStep:
    """A micro-batch: its number, and its step."""

    batch: int
    event: Event

    @property
    def has_rows(self) -> bool:
        """Whether it has rows."""
        return any(part.rows for part in steps_of(self.event))


Steps = Sequence[BatchStep]
Select = Callable[[Pane], bool]


@attrs.define
class Stepper:
    """Makes the step of each batch; times that do not move are left out.

    Attributes:
        names: of the inputs; None: the only one.
    """

    names: Sequence[str | None]
    _clock_us: int | None = None
    _watermarks: dict[str | None, int] = attrs.Factory(dict)

    def step(
        self,
        batch: int,
        rows: Mapping[str | None, Sequence[Row]],
        watermarks: Mapping[str | None, int | None],
        clock_us: int | None,
    ) -> BatchStep:
        """The step of a batch.

        Args:
            batch: its number.
            rows: of each input.
            watermarks: of each input; of all under None.
            clock_us: its clock; None: it has none.
        """
        if clock_us is not None:
            clock_us = None if self._clock_us is not None and clock_us <= self._clock_us else clock_us
            self._clock_us = self._clock_us if clock_us is None else clock_us
        moved = {name: us for name, us in watermarks.items() if us is not None and us > self._watermarks.get(name, 0)}
        self._watermarks |= moved
        came = {name: tuple(given) for name, given in rows.items() if given}
        if list(self.names) == [None]:
            return BatchStep(batch, Step(came.get(None, ()), None, moved.get(None), clock_us))
        parts = [
            Step(came.get(name, ()), name, moved.get(name)) for name in (None, *self.names) if name in {*came, *moved}
        ]
        return BatchStep(batch, MicroBatch(tuple(parts), clock_us))


def lines(subject: Subject, steps: Steps, select: Select) -> list[tuple[int, Pane]]:
    """The selected output of a script, each with the number of its batch."""
    run = subject.trace([step.event for step in steps])
    each = zip(steps, run, strict=True)
    return [(step.batch, pane) for step, (_, panes) in each for pane in panes if select(pane)]


def dropped(subject: Subject, steps: Steps) -> list[tuple[int, str]]:
    """The rows that each stage dropped, in words, with the number of the batch."""
    found, parts = [], subject.parts
    for number, part in enumerate(parts, 1):
        names = {source.name for source in part.flow.sources}
        own = [attrs.evolve(step, event=of_inputs(step.event, names)) for step in steps]
        stage = f" by stage {number}" if len(parts) > 1 else ""
        for batch, pane in lines(part, own, lambda pane: not is_pane(pane)):
            late = (
                "" if pane.late_by_us is None else f", {Duration(pane.late_by_us)} after the watermark passed its time"
            )
            row = ", ".join(f"{name}={_shown(value)}" for name, value in pane.values.items())
            found.append((batch, f"dropped{stage} as {pane.reason}{late}: {row}"))
    return found


def _shown(value: Any) -> str:
    return instant_in_words(instant_us("row", value)) if isinstance(value, datetime) and value.tzinfo else repr(value)


def fewest(subject: Subject, steps: Steps, select: Select) -> Steps:
    """Without the steps in which nothing happens, if the selected output stays the same."""
    wanted = lines(subject, steps, select)
    busy = {batch for batch, _ in wanted}
    fewer = [step for step in steps if step.has_rows or step.batch in busy]
    last = steps[-1:] if fewer and steps[-1] not in fewer else []
    for candidate in (fewer, [*fewer, *last]):
        if candidate and lines(subject, candidate, select) == wanted:
            return candidate
    return steps


def within(subject: Subject, steps: Steps, select: Select) -> Steps:
    """With only the rows whose event times are in the selected windows, if the selected output stays the same."""
    wanted = lines(subject, steps, select)
    windows = [pane.window for _, pane in wanted if pane.window is not None and not isinstance(pane.window, RowWindow)]
    bounds = [(one.start, one.end) for one in windows if one.start is not None and one.end is not None]
    if not bounds:
        return steps
    start, end = min(one for one, _ in bounds), max(one for _, one in bounds)
    times = {source.name: source.event_time for source in subject.flow.sources}

    def is_in(row: Row, name: str | None) -> bool:
        time = value_of(row, times[name])
        return time is None or instant_us("start", start) <= instant_us("row", time) < instant_us("end", end)

    fewer = [attrs.evolve(step, event=_kept(step.event, is_in)) for step in steps]
    return fewer if lines(subject, fewer, select) == wanted else steps


def _kept(event: Event, is_in: Callable[[Row, str | None], bool]) -> Event:
    parts = tuple(
        attrs.evolve(part, rows=tuple(row for row in part.rows if is_in(row, part.input))) for part in steps_of(event)
    )
    return attrs.evolve(event, parts=parts) if isinstance(event, MicroBatch) else parts[0]


_TIME_OF_DAY = re.compile(r"\d\d?:\d\d(:\d\d(\.\d+)?)?")


def selection(key: Mapping[str, Any], window: Any, panes: Sequence[Pane], days: Collection[date] = ()) -> Select:
    """Selects the panes of a key, and of the windows that contain a time.

    Args:
        key: values of key columns.
        window: a time (aware datetime, seconds, text such as 2026-01-01T10:14), a time of day on the only day with such a window, or
            the number of a row; None: all.
        panes: all panes of the key.
        days: those of its rows, for windows without a pane.

    Raises:
        OptionError: not a time, or a time of day on several days.
    """
    if window is None:
        return lambda pane: _has(pane, key)
    if isinstance(window, str) and _TIME_OF_DAY.fullmatch(window):
        window = _on_its_day(window, [pane for pane in panes if _has(pane, key)], days)
    elif isinstance(window, str):
        try:
            time = datetime.fromisoformat(window)
        except ValueError:
            raise OptionError(
                f"replay(window={window!r}): must be a time such as 2026-01-01T10:14, in UTC by default"
            ) from None
        window = time if time.utcoffset() is not None else time.replace(tzinfo=UTC)
    return lambda pane: _has(pane, key) and _contains(pane, window)


def _has(pane: Pane, key: Mapping[str, Any]) -> bool:
    return all(pane.key.get(name) == value for name, value in key.items())


def _contains(pane: Pane, time: Any) -> bool:
    if isinstance(pane.window, RowWindow):
        return isinstance(time, int) and pane.window.start <= time < pane.window.end
    if pane.window is None or pane.window.start is None or pane.window.end is None:
        return pane.window is not None
    us = instant_us("replay(window)", time, OptionError)
    return instant_us("start", pane.window.start) <= us < instant_us("end", pane.window.end)


def _on_its_day(text: str, panes: Sequence[Pane], days: Collection[date]) -> datetime:
    """A time of day on the day of the only window that contains it, or on the only day with rows."""
    bounds = [bound for pane in panes if isinstance(pane.window, tuple) for bound in pane.window]
    known = {bound.date() for bound in bounds if isinstance(bound, datetime)}
    padded = f"0{text}" if text[1] == ":" else text
    times = [datetime.fromisoformat(f"{day}T{padded}+00:00") for day in sorted({*known, *days})]
    found = [time for time in times if any(_contains(pane, time) for pane in panes)] or times
    if len(found) != 1:
        words = ", ".join(f"{time:%Y-%m-%d}" for time in found[:5]) or "no day"
        raise OptionError(f"replay(window={text!r}): it may be on {words}; give the date: 2026-01-01T{padded}")
    return found[0]


def days_of(flow: Flow, steps: Steps) -> set[date]:
    """The days of the rows' event times."""
    times = {source.name: source.event_time for source in flow.sources}
    found = set()
    for part in (part for step in steps for part in steps_of(step.event)):
        for value in (value_of(row, times[part.input]) for row in part.rows):
            if value is not None:
                found.add(instant(instant_us("row", value)).date())
    return found


def is_pane(pane: Pane) -> bool:
    """Whether it is a pane or a retraction, not a dropped row."""
    return pane.kind is not PaneKind.DROPPED
