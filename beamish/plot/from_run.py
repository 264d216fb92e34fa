"""The picture of a script's run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from beamish.checkpoint.of_script import ScriptStages
from beamish.checkpoint.words import rows_of
from beamish.contract.at_rest import Asked, Keeps
from beamish.errors import PipelineError
from beamish.flow import Flow
from beamish.instants import instant_us
from beamish.kernels.field_paths import value_of
from beamish.local import StageStep, trace_stages
from beamish.pane import Pane, PaneKind, RowWindow
from beamish.plot.picture import (
    Box,
    Chosen,
    OpenWindow,
    Panel,
    Picture,
    Point,
    Watermark,
    boxes_of,
    judged,
    key_name,
    key_of,
    since_of,
    value_label,
    values_label,
)
from beamish.script import Event, Row, clock_of, of_inputs, steps_of
from beamish.source import Source
from beamish.windows.option import WindowOption
from beamish.windows.windowings import WINDOWING
from beamish.windows.within import Within

_DAY_US = 86_400_000_000
_Key = tuple[Any, ...]


@attrs.frozen
class _Moment:
    """An event of a script, its effect on each stage, and its times.

    Attributes:
        event: the event.
        done: its effect, by stage.
        rows_at, moves_at, at: processing time of its rows, of its clock moves, and of its panes.
    """

    event: Event
    done: Sequence[StageStep]
    rows_at: float
    moves_at: float
    at: float


@attrs.frozen
class _Came:
    """An input row of a stage.

    Attributes:
        at: processing time of its panes.
        row: its columns.
        point: its appearance.
    """

    at: float
    row: Row
    point: Point


def picture_of_run(
    flow: Flow,
    events: Sequence[Event],
    *,
    key: Any,
    title: str | None,
    ideal: bool,
    clock: bool | None,
    initial: Any,
) -> Picture:
    """Run a script, and record each stage.

    Raises:
        PipelineError: count windows; else as for ``Pipeline.run``.
        ScriptError: invalid script.
        OptionError: no such key, or too many keys.
    """
    by_clock = any(clock_of(event) is not None for event in events) if clock is None else clock
    moments = _moments(flow.listing_dropped, events, initial, by_clock=by_clock)
    after, last = ScriptStages.after(flow, events, initial), moments[-1].at if moments else 0.0
    chosen = Chosen(key, [below.gives.keys for below in flow.flows])
    panels: list[Panel] = []
    for stage, below in enumerate(flow.flows):
        panes = [(moment.at, pane) for moment in moments for pane in moment.done[stage].panes]
        if below is not flow:
            panes += _dropped_within(below, events, initial, by_clock=by_clock)
        _check_event_time(pane for _, pane in panes)
        came, watermarks = _came(flow, stage, moments), _watermarks(flow, stage, moments)
        still_open = _open_windows(after, stage, below, watermarks[-1])
        names = [str(name) for name in below.gives.keys]
        of_stage = []
        for of in chosen.keys(stage, _keys(came, [*_keys_of(panes), *still_open], len(names))):
            own = [(at, pane) for at, pane in panes if key_of(pane.key.values()) == of]
            rows = next((rows for known, rows in came.items() if of[: len(known)] == known), ())
            points = _fates(rows, of, own, below.gives.window)
            boxes = boxes_of(own, points, by_clock=by_clock)
            named = dict(zip(names, of, strict=True))
            shown = (*judged(points, boxes), *_without_windows(below, rows, own))
            open_ = tuple(_seen_open(one, boxes, points, last, by_clock=by_clock) for one in still_open.get(of, ()))
            of_stage.append(Panel(_name(stage, len(flow.flows), named), stage, named, shown, watermarks, boxes, open_))
        panels = [*of_stage, *panels]
    chosen.check(panels)
    return Picture(tuple(panels), title, by_clock, ideal and by_clock)


def _open_windows(
    after: ScriptStages, stage: int, below: Flow, watermark: Watermark
) -> dict[_Key, list[Mapping[str, Any]]]:
    """The windows of a stage that are open at the end of a script, by key, as ``rows_of`` has them."""
    found: dict[_Key, list[Mapping[str, Any]]] = {}
    if Keeps.WINDOWS not in below.stage.keeps(below.takes) or below.stage.counts_rows:
        return found
    answer = after.answer(stage + 1, Asked(Keeps.WINDOWS))
    reached_us = watermark.steps[-1][1] if watermark.steps else None
    for window in rows_of(answer[1]) if answer is not None else ():
        has_ended = reached_us is not None and window["end"] <= reached_us
        if not window["closed"] and (window["new_rows"] or not has_ended):
            key = [*window.get("key", {}).values(), *([window[WINDOWING]] if WINDOWING in window else [])]
            found.setdefault(key_of(key), []).append(window)
    return found


def _seen_open(
    window: Mapping[str, Any], boxes: Sequence[Box], points: Sequence[Point], last: float, *, by_clock: bool
) -> OpenWindow:
    start_us, end_us = window["start"], window["end"]
    since = since_of(boxes, points, start_us, end_us, last)
    label = values_label(window["values"]) if window["new_rows"] and window["values"] else ""
    return OpenWindow(start_us, end_us, since if by_clock else float(math.floor(since)), label)


def _keys_of(panes: Iterable[tuple[float, Pane]]) -> Iterator[_Key]:
    yield from (key_of(pane.key.values()) for _, pane in panes)


def _keys(came: Mapping[_Key, Sequence[_Came]], of_windows: Sequence[_Key], size: int) -> list[_Key]:
    """The keys of a stage, in order of appearance; with several windowings those of windows have the windowing's name appended."""
    of_windows = list(dict.fromkeys(of_windows))
    keys: list[_Key] = []
    for of in came:
        longer = [key for key in of_windows if key[: len(of)] == of]
        keys += longer or [(*of, *[None] * (size - len(of)))]
    return [*keys, *of_windows]


def _name(stage: int, stages: int, key: Mapping[str, Any]) -> str:
    words = [f"stage {stage + 1} of {stages}"] if stages > 1 else []
    return ", ".join([*words, *([key_name(key)] if key else [])])


def _moments(flow: Flow, events: Sequence[Event], initial: Any, *, by_clock: bool) -> list[_Moment]:
    """Run it. In a step without a clock, rows are in the middle and panes at the end; a watermark that its rows are compared with, before."""
    run = trace_stages(flow, events, initial)
    clocks = _clocks(events)
    moments = []
    for number, (event, done) in enumerate(run, start=1):
        at = clocks[number - 1] if by_clock else float(number)
        early = 0.75 if any(step.rows for step in steps_of(event)) else 0.0
        moments.append(_Moment(event, done, *((at, at, at) if by_clock else (at - 0.5, at - early, at))))
    return moments


def _clocks(events: Iterable[Event]) -> list[float]:
    """The clock at each event. It begins in 1970: events before it is set to a date are shown at that date."""
    moves = list(map(clock_of, events))
    first = next((us for us in moves if us), 0)
    clock, clocks = first if first > _DAY_US else 0, []
    for us in moves:
        clock = clock if us is None else us
        clocks.append(float(clock))
    return clocks


def _dropped_within(
    flow: Flow, events: Sequence[Event], initial: Any, *, by_clock: bool
) -> Iterator[tuple[float, Pane]]:
    """The dropped rows of a stage with a later stage: found by running it alone."""
    names = {source.name for source in flow.sources}
    own = [of_inputs(event, names) for event in events]
    changed = flow.listing_dropped
    given = initial if any(stage.stage.may_begin_with(number) for _, stage, number in changed.leaves) else None
    for moment in _moments(changed, own, given, by_clock=by_clock):
        yield from ((moment.at, pane) for pane in moment.done[-1].panes if pane.kind is PaneKind.DROPPED)


def _check_event_time(panes: Iterable[Pane]) -> None:
    for pane in panes:
        if isinstance(pane.window, RowWindow):
            raise PipelineError(
                f"timeline: {pane} is in a count window; a timeline shows event-time windows, such as "
                "bm.FixedWindows('2 minutes')"
            )


def _watermarks(flow: Flow, stage: int, moments: Sequence[_Moment]) -> tuple[Watermark, ...]:
    """The watermarks of the inputs, if there are several, and the merged one."""
    judges = _rising(None, [(moment.moves_at, moment.done[stage].watermark_us) for moment in moments])
    inputs = flow.flows[stage].inputs
    if len(inputs) == 1:
        return (judges,)
    of_inputs = [
        _rising(taken.name, [(moment.moves_at, moment.done[stage].inputs_us[number]) for moment in moments])
        for number, taken in enumerate(inputs)
    ]
    return (*of_inputs, judges)


def _rising(name: str | None, stood: Iterable[tuple[float, int | None]]) -> Watermark:
    steps: list[tuple[float, int]] = []
    for time, us in stood:
        if us is not None and (not steps or us > steps[-1][1]):
            steps.append((time, us))
    return Watermark(name, tuple(steps))


def _came(flow: Flow, stage: int, moments: Sequence[_Moment]) -> dict[_Key, list[_Came]]:
    """The input rows of a stage, by key."""
    below, found = flow.flows[stage], dict[_Key, list[_Came]]()
    for number, taken in enumerate(below.inputs):
        keys = [str(name) for name in taken.relation.keys]
        for moment in moments:
            if isinstance(taken, Source):
                came = _rows(below, number, taken, moment, moment.done[stage].watermark_us)
            else:
                came = _panes(moment.done[flow.flows.index(taken.flow)].panes, moment.at, taken.name)
            for one in came:
                found.setdefault(key_of(value_of(one.row, name) for name in keys), []).append(one)
    return {key: sorted(came, key=lambda one: one.point.time) for key, came in found.items()}


def _rows(below: Flow, number: int, source: Source, moment: _Moment, watermark_us: int | None) -> Iterator[_Came]:
    """The rows of an event for an input of a stage, and its watermark, which moved before them."""
    for row in (row for step in steps_of(moment.event) if step.input == source.name for row in step.rows):
        at = value_of(row, source.event_time) if isinstance(source.event_time, str) else None
        us = None if at is None else instant_us(source.event_time, at)
        label = ", ".join(value_label(value_of(row, name)) for name in _label_columns(below, number, source, row))
        yield _Came(moment.at, row, Point(us, moment.rows_at, label, source.name, watermark_us))


def _panes(panes: Iterable[Pane], at: float, name: str | None) -> Iterator[_Came]:
    """The panes that a stage receives from the one before, as rows."""
    for pane in panes:
        us = None if pane.timestamp is None else instant_us("timestamp", pane.timestamp)
        retracts = pane.kind is PaneKind.RETRACTION
        label = ", ".join(value_label(value) for value in pane.values.values())
        words = f"\N{MINUS SIGN}{label}" if retracts else label
        yield _Came(at, {**pane.key, **pane.values}, Point(us, at, words, name, is_pane=True, retracts=retracts))


def _without_windows(below: Flow, came: Iterable[_Came], panes: Iterable[tuple[float, Pane]]) -> Iterator[Point]:
    """The panes and retractions of a stage without windows, but for rows that it forwards unchanged."""
    times = {"time", *(str(taken.event_time) for taken in below.takes)}
    rows = [one.row for one in came]
    for at, pane in panes:
        values = {**pane.key, **pane.values}
        forwarded = any(len(row) == len(values) and _is_row(values, row) for row in rows)
        if pane.window is None and pane.kind is not PaneKind.DROPPED and not forwarded:
            shown = {n: value for n, value in pane.values.items() if n not in times and not isinstance(value, bool)}
            for one in _panes([attrs.evolve(pane, values=shown)], at, None):
                yield attrs.evolve(one.point, is_output=True)


def _fates(
    came: Iterable[_Came], key: _Key, panes: Iterable[tuple[float, Pane]], window: WindowOption | None
) -> list[Point]:
    """The rows of a key, and which of them were dropped. A row may be dropped from each of its windows."""
    gone: dict[float, list[Pane]] = {}
    for at, pane in panes:
        if pane.kind is PaneKind.DROPPED:
            gone.setdefault(at, []).append(pane)
    points = []
    for one in came:
        dropped: dict[Any, Pane] = {}
        for pane in gone.get(one.at, []):
            if pane.window not in dropped and not one.point.is_pane and _is_row(pane.values, one.row):
                dropped[pane.window] = pane
        for pane in dropped.values():
            gone[one.at].remove(pane)
        reason = next((pane.reason for pane in dropped.values()), None)
        kept = reason is not None and len(dropped) < _windows(window, key, one.point.event_us)
        points.append(attrs.evolve(one.point, dropped=reason, kept=kept))
    return points


def _windows(option: WindowOption | None, key: _Key, event_us: int | None) -> int:
    """The number of windows of a row."""
    if option is not None and option.windowings:
        option = option.windowings.get(key[-1])
    if option is None or event_us is None or option.merging or option.columns or isinstance(option, Within):
        return 1
    return len(option.assign_columns(np.array([event_us]))[0])


def _label_columns(below: Flow, number: int, source: Source, row: Row) -> list[str]:
    """The label of a row: the column that the stage accumulates; or its only other column."""
    known = (*source.keys, source.event_time)
    asked = [name for name in below.stage.asks(below.takes, number) if name not in known]
    others = [name for name in row if name not in known]
    return asked or (others if len(others) == 1 else [])


def _is_row(values: Mapping[str, Any], row: Row) -> bool:
    """Whether values are those of a row."""
    return all(name in values and _same(values[name], value) for name, value in row.items())


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124 - not a number is not itself
