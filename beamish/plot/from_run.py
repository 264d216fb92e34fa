"""The picture of a script's run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from beamish.errors import PipelineError
from beamish.flow import Flow, Panes
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.local import StageStep, trace_stages
from beamish.pane import Pane, PaneKind, RowWindow
from beamish.plot.keys import Chosen, key_name
from beamish.plot.picture import Panel, Picture, Point, Watermark, boxes_of, judged, value_label, values_label
from beamish.script.events import Event, Row, as_step
from beamish.source import Source

_DAY_US = 86_400_000_000
_PaneAt = tuple[float, Pane]
_Run = list[tuple[Event, list[StageStep]]]


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
    """Run a script, and see what each stage did.

    Raises:
        PipelineError: windows are counted in rows, or no stage gives panes; else as ``Pipeline.run``.
        ScriptError: the script cannot be run.
        OptionError: no such key, or too many to show.
    """
    run = list(trace_stages(_with_dropped(flow), events, initial))
    by_clock = any(as_step(event).clock_us is not None for event in events) if clock is None else clock
    times = _clock_times(events) if by_clock else [float(number) for number in range(1, len(events) + 1)]
    chosen = Chosen(key, [flow.gives.keys for flow in flow.flows])
    panels: list[Panel] = []
    for stage, below in enumerate(flow.flows):
        steps = [(time, done[stage]) for time, (_, done) in zip(times, run, strict=False)]
        panes = [(time, pane) for time, step in steps for pane in step.panes]
        if below is not flow:
            panes += _dropped_inside(below, events, times, initial)
        _check_event_time(panes)
        points = _points(flow, stage, run, times, panes)
        watermarks = _watermarks(below, steps)
        panels += [
            _panel(below, stage, of, points, panes, watermarks, chosen)
            for of in chosen.keys(stage, [*points, *(tuple(pane.key.values()) for _, pane in panes)])
        ]
    panels.reverse()
    chosen.check(panels)
    several = len(flow.flows) > 1
    named = [attrs.evolve(panel, name=_name(panel, len(flow.flows) if several else 0)) for panel in panels]
    return Picture(tuple(named), title, by_clock, ideal and by_clock)


def _name(panel: Panel, stages: int) -> str:
    words = [f"stage {panel.stage + 1} of {stages}"] if stages else []
    return ", ".join([*words, *([key_name(panel.key)] if panel.key else [])])


def _panel(
    flow: Flow,
    stage: int,
    key: tuple[Any, ...],
    points: Mapping[tuple[Any, ...], Sequence[Point]],
    panes: Sequence[_PaneAt],
    watermarks: tuple[Watermark, ...],
    chosen: Chosen,
) -> Panel:
    own = points.get(key, ())
    boxes = boxes_of([(time, pane) for time, pane in panes if tuple(pane.key.values()) == key], own)
    names = [str(name) for name in flow.gives.keys]
    return Panel("", stage, dict(zip(names, key, strict=True)), judged(own, boxes, watermarks[-1]), watermarks, boxes)


def _with_dropped(flow: Flow) -> Flow:
    """The same, and dropped rows come out of its last stage, where it has windows."""
    try:
        changed = attrs.evolve(flow, stage=flow.stage.declaring("with_dropped()", with_dropped=True))
        changed.check()
    except PipelineError:
        return flow
    return changed


def _dropped_inside(flow: Flow, events: Sequence[Event], times: Sequence[float], initial: Any) -> list[_PaneAt]:
    """What a stage drops whose panes another one takes: run alone, it says so."""
    names = {source.name for source in flow.sources}
    own = [(event, time) for event, time in zip(events, times, strict=True) if as_step(event).input in {None, *names}]
    changed = _with_dropped(flow)
    run = trace_stages(changed, [event for event, _ in own], initial if changed.stage.may_begin_with(0) else None)
    return [
        (time, pane)
        for (_, time), (_, done) in zip(own, run, strict=False)
        for pane in done[-1].panes
        if pane.kind is PaneKind.DROPPED
    ]


def _clock_times(events: Iterable[Event]) -> list[float]:
    """The clock at each event. It begins in 1970: what comes before it is set to a date is shown at that date."""
    steps = [as_step(event).clock_us for event in events]
    first = next((us for us in steps if us), 0)
    clock, times = first if first > _DAY_US else 0, []
    for us in steps:
        clock = clock if us is None else us
        times.append(float(clock))
    return times


def _check_event_time(panes: Iterable[_PaneAt]) -> None:
    for _, pane in panes:
        if isinstance(pane.window, RowWindow):
            raise PipelineError(
                f"timeline: {pane} is of a window counted in rows; a timeline shows windows of event time, such as "
                "bm.FixedWindows('2 minutes')"
            )


def _watermarks(flow: Flow, steps: Sequence[tuple[float, StageStep]]) -> tuple[Watermark, ...]:
    """Those of the inputs, where there are several, and the one that rows are judged by."""
    of_inputs = [
        _rising(taken.name or f"input {number + 1}", [(time, step.inputs_us[number]) for time, step in steps])
        for number, taken in enumerate(flow.inputs)
    ]
    judges = _rising(None, [(time, step.watermark_us) for time, step in steps])
    return (*of_inputs, judges) if len(of_inputs) > 1 else (judges,)


def _rising(name: str | None, stood: Iterable[tuple[float, int | None]]) -> Watermark:
    steps: list[tuple[float, int]] = []
    for time, us in stood:
        if us is not None and (not steps or us > steps[-1][1]):
            if steps and steps[-1][0] == time:
                steps.pop()
            steps.append((time, us))
    return Watermark(name, tuple(steps))


def _points(
    flow: Flow, stage: int, run: _Run, times: Sequence[float], panes: Sequence[_PaneAt]
) -> dict[tuple[Any, ...], list[Point]]:
    """What came to a stage, by key."""
    below = flow.flows[stage]
    gone: dict[float, list[Pane]] = {}
    for time, pane in panes:
        if pane.kind is PaneKind.DROPPED:
            gone.setdefault(time, []).append(pane)
    found: dict[tuple[Any, ...], list[Point]] = {}
    for number, taken in enumerate(below.inputs):
        keys = [str(name) for name in taken.relation.keys]
        for time, (event, done) in zip(times, run, strict=False):
            if isinstance(taken, Source):
                step = as_step(event)
                rows = step.rows if step.input == taken.name else ()
                columns = [name for name in below.stage.asks(below.takes, number) if name not in keys]
                for row in rows:
                    point = _row_point(row, taken, time, columns, gone.get(time, []))
                    found.setdefault(tuple(row.get(name) for name in keys), []).append(point)
            elif isinstance(taken, Panes):
                given = done[flow.flows.index(taken.flow)].panes
                for pane in given:
                    all_of_it = {**pane.key, **pane.values}
                    found.setdefault(tuple(all_of_it.get(name) for name in keys), []).append(_pane_point(pane, time, taken.name))
    return {key: sorted(points, key=lambda point: point.time) for key, points in found.items()}


def _row_point(row: Row, source: Source, time: float, columns: Sequence[str], gone: list[Pane]) -> Point:
    at = row.get(source.event_time) if isinstance(source.event_time, str) else None
    us = None if at is None else instant_us(source.event_time, at)
    label = ", ".join(value_label(row.get(name)) for name in columns)
    dropped = next((pane for pane in gone if _is_row(pane, row)), None)
    if dropped is not None:
        gone.remove(dropped)
    return Point(us, time, label, source.name, dropped=dropped and dropped.reason)


def _is_row(pane: Pane, row: Row) -> bool:
    """Whether a dropped row is this one; it has all columns of the script, and times are instants."""
    return all(_plain(pane.values.get(name)) == _plain(value) for name, value in row.items())


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value


def _pane_point(pane: Pane, time: float, name: str | None) -> Point:
    us = None if pane.timestamp is None else instant_us("timestamp", pane.timestamp)
    retracts = pane.kind is PaneKind.RETRACTION
    label = ", ".join(value_label(value) for value in pane.values.values())
    return Point(us, time, f"\N{MINUS SIGN}{label}" if retracts else label, name, is_pane=True, retracts=retracts)


__all__ = ["END_OF_TIME_US", "picture_of_run", "values_label"]
