"""Variants of pipelines and scripts that a law compares, and why a pipeline has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.accumulations import Count
from beamish.contract.relation import SlotSemantics
from beamish.errors import BeamishError
from beamish.flow import Flow, Panes
from beamish.instants import END_OF_TIME_US, instant_us
from beamish.kernels.field_paths import value_of
from beamish.kinds.upserts.options import UpsertsOptions
from beamish.kinds.window.plan.options import WindowOptions
from beamish.modes import AccumulationMode
from beamish.script import ClockTo, Event, Row, Step, WatermarkTo, as_step, watermark_of
from beamish.source import Source
from beamish.testing.laws.adders import adders_of
from beamish.testing.laws.runs import OfFlow, remembered
from beamish.testing.strategies.spans import parts
from beamish.testing.stream import Runnable, TestStream
from beamish.windows.option import WindowOption

ROWS = "number_of_rows"
"""An accumulation beside those of the pipeline."""


def declaring(pipeline: Runnable, **options: Any) -> Runnable:
    """The pipeline with other options of its last stage, suppressed or not.

    Raises:
        PipelineError: it does not have them, or they do not work together.
    """
    flow = pipeline.flow
    core = flow.stage.core.declaring("laws", **options)
    stage = core if flow.stage.core is flow.stage else attrs.evolve(flow.stage, of=core)  # type: ignore[misc]
    changed = attrs.evolve(flow, stage=stage)
    changed.completed.check()
    return OfFlow(changed)


@remembered
def listing(pipeline: Runnable) -> Runnable:
    """The pipeline, which lists dropped rows.

    Raises:
        PipelineError: it cannot.
    """
    return pipeline if pipeline.flow.stage.with_dropped else declaring(pipeline, with_dropped=True)


def of_windows(flow: Flow) -> WindowOptions | None:
    """The options of the last stage, if it has windows."""
    core = flow.stage.core
    if core.declared("accumulations") is None:
        return None
    options: WindowOptions = core.options  # type: ignore[attr-defined]
    return options


def window_options(flow: Flow) -> Sequence[WindowOption]:
    """The windows of the last stage; several for several windowings."""
    window = flow.stage.core.declared("window")
    return () if window is None else tuple(window.windowings.values()) or (window,)


def merges(flow: Flow) -> bool:
    """Whether windows of the last stage merge."""
    return any(option.merging for option in window_options(flow))


def takes_sources(flow: Flow) -> bool:
    """Whether all inputs of the last stage are sources."""
    return all(isinstance(taken, Source) for taken in flow.inputs)


@remembered
def with_final_panes(pipeline: Runnable) -> Runnable:
    """The pipeline, if its live panes do not depend on how often it fires; else the same, retracting.

    Raises:
        PipelineError: it cannot retract.
    """
    options = of_windows(pipeline.flow)
    follows = pipeline.flow.completed.gives.follows
    stays = follows is SlotSemantics.ADDING or (follows is SlotSemantics.REPLACING and merges(pipeline.flow))
    if options is None or not stays:
        return pipeline
    return declaring(pipeline, mode=AccumulationMode.ACCUMULATING_AND_RETRACTING)


@remembered
def why_not_in_one_batch(pipeline: Runnable) -> str | None:
    """Why the live panes may depend on the order and the batches in which rows arrive; None: they do not."""
    flow = pipeline.flow.completed
    for number, below in enumerate(flow.flows, 1):
        if reason := _why_arrival_counts(below):
            return f"stage {number}: {reason}" if len(flow.flows) > 1 else reason
        gives = below.gives
        if below is flow:
            break
        if gives.follows not in (SlotSemantics.RETRACTING, SlotSemantics.ONCE):
            return (
                f"stage {number + 1} takes panes that are neither final nor retracted, so it counts how often they fire"
            )
        if gives.window is not None and gives.has_timestamps and not gives.at_window_ends:
            return f"the timestamps of the panes of stage {number} depend on their late rows"
    try:
        follows = with_final_panes(pipeline).flow.completed.gives.follows
    except BeamishError as error:
        return f"its panes are parts of a result, and it cannot retract: {error}"
    return "its panes are parts of a result, and it cannot retract" if follows is SlotSemantics.ADDING else None


def _why_arrival_counts(flow: Flow) -> str | None:
    stage = flow.stage.core
    numbered = [option.numbering for option in window_options(flow) if option.numbering is not None]
    if any(numbering.numbered_by is None for numbering in numbered):
        return "rows are numbered as they arrive"
    if any(isinstance(part, UpsertsOptions) and part.keep_deleted is not None for part in parts(stage)):
        return "a deleted key may be brought back by an older row"
    if stage.declared("forget_after") is not None or any(numbering.idle for numbering in numbered):
        return "a key that was idle begins again"
    trigger, lateness = stage.declared("trigger"), stage.declared("allowed_lateness")
    if merges(flow) and trigger is not None and trigger.may_lose_rows(lateness.us):
        return "its trigger may finish a window before it merges"
    return None


def ended(pipeline: Runnable, script: TestStream) -> TestStream:
    """The script to the end of time; the same if it is there, or if a watermark follows the clock."""
    steps = list(map(as_step, script.events))
    sources = pipeline.flow.completed.sources
    if any(source.watermark is not None and not source.watermark.moved_by_rows for source in sources):
        return script
    moves = {source.name: [watermark_of(source, step) for step in steps] for source in sources}
    if all(END_OF_TIME_US in of for of in moves.values()):
        return script
    return script.advance_watermark_to_infinity()


def in_one_batch(pipeline: Runnable, script: TestStream) -> TestStream:
    """The rows of a script in one bundle for each input, in the order of time; then its last moves."""
    flow = pipeline.flow.completed
    bundles = [Step(rows, name) for name, rows in _in_order(flow, script).items() if rows]
    return TestStream((*bundles, *_last_moves(flow, script)))


def in_order_of_time(pipeline: Runnable, script: TestStream) -> TestStream:
    """The script whose rows are in the order of time, in bundles of the same sizes; then its last moves."""
    flow = pipeline.flow.completed
    left = {name: list(rows) for name, rows in _in_order(flow, script).items()}
    bundles = []
    for step in map(as_step, script.events):
        if step.rows:
            of = left[step.input]
            bundles.append(Step(tuple(of[: len(step.rows)]), step.input))
            del of[: len(step.rows)]
    return TestStream((*bundles, *_last_moves(flow, script)))


def as_arrived(pipeline: Runnable, script: TestStream) -> TestStream:
    """The bundles of the script; then its last moves."""
    bundles = [Step(step.rows, step.input) for step in map(as_step, script.events) if step.rows]
    return TestStream((*bundles, *_last_moves(pipeline.flow.completed, script)))


def _in_order(flow: Flow, script: TestStream) -> dict[str | None, tuple[Row, ...]]:
    """The rows of each input in the order of time; changes of a table in the order of arrival."""
    found = {}
    for source in flow.sources:
        rows = [row for step in map(as_step, script.events) if step.input == source.name for row in step.rows]
        found[source.name] = tuple(
            rows if source.form is not None else sorted(rows, key=lambda row: _time(source, row))
        )
    return found


def _time(source: Source, row: Row) -> int:
    time = value_of(row, source.event_time)
    return -END_OF_TIME_US if time is None else instant_us("row", time)


def _last_moves(flow: Flow, script: TestStream) -> Iterator[Event]:
    """The last moves of the clock, and where the watermarks are in the end."""
    steps = list(map(as_step, script.events))
    clocks = [step.clock_us for step in steps if step.clock_us is not None]
    yield from map(ClockTo, sorted(set(clocks))[-2:])
    for source in flow.sources:
        known = [us for step in steps if (us := watermark_of(source, step)) is not None]
        if known:
            yield WatermarkTo(max(known), source.name)


def may_begin_again(pipeline: Runnable, script: TestStream) -> bool:
    """Whether a row may arrive that overlaps an expired window that it would have merged with (docs/rules/panes.md#ledger)."""
    flow = pipeline.flow.completed
    merging = [below for below in flow.flows if merges(below)]
    if not merging:
        return False
    if any(below.stage.core.declared("key_watermark") is not None for below in merging):
        return True  # a key may be ahead of the script's watermark
    patience_us = min(
        below.stage.core.declared("allowed_lateness").us if takes_sources(below) else 0 for below in merging
    )
    for source in flow.sources:
        follows_clock = source.watermark is not None and source.watermark.needs_clock
        watermark_us: int | None = None
        for step in map(as_step, script.events):
            moved_us = watermark_of(source, step)
            watermark_us = watermark_us if moved_us is None else moved_us
            if follows_clock and step.clock_us is not None:
                watermark_us = END_OF_TIME_US
            if step.input == source.name and watermark_us is not None:
                times = (_time(source, row) for row in step.rows)
                if any(time < watermark_us - patience_us for time in times):
                    return True
    return False


def shorter(script: TestStream) -> Iterator[TestStream]:
    """The script without some of its parts, each of its events, rows and moves being one: many at first, then one alone."""
    steps = list(map(as_step, script.events))
    places: list[tuple[int, int | str]] = []
    for at, step in enumerate(steps):
        moves = [name for name in ("watermark_us", "clock_us") if getattr(step, name) is not None]
        places += [(at, part) for part in (*range(len(step.rows)), *moves)]
    size = len(places) // 2
    while size:
        for start in range(0, len(places), size):
            yield _without(script.events, set(places[start : start + size]))
        size //= 2


def _without(events: Sequence[Event], gone: set[tuple[int, int | str]]) -> TestStream:
    """A script without these rows and moves; an event that is empty then goes too."""
    left: list[Event] = []
    for at, event in enumerate(events):
        parts_gone = {part for place, part in gone if place == at}
        step = as_step(event)
        if parts_gone:
            moves: dict[str, Any] = {part: None for part in parts_gone if isinstance(part, str)}
            rows = tuple(row for number, row in enumerate(step.rows) if number not in parts_gone)
            step = attrs.evolve(step, rows=rows, **moves)
        if not parts_gone or step.rows or step.watermark_us is not None or step.clock_us is not None:
            left.append(step if parts_gone else event)
    return TestStream(tuple(left))


def follows_its_rows(pipeline: Runnable, script: TestStream) -> bool:
    """Whether the watermark trails the rows as the policies say, until the end of time."""
    newest: dict[str | None, int] = {}
    sources = pipeline.flow.completed.sources
    for step in map(as_step, script.events):
        for source in sources:
            moved_us = watermark_of(source, step)
            delay_us = 0 if source.watermark is None else source.watermark.delay.us
            if (
                moved_us not in (None, END_OF_TIME_US)
                and moved_us > newest.get(source.name, -END_OF_TIME_US) - delay_us
            ):
                return False
            if step.input == source.name:
                newest[source.name] = max(
                    [newest.get(source.name, -END_OF_TIME_US), *(_time(source, row) for row in step.rows)]
                )
    return True


@remembered
def in_parts(pipeline: Runnable) -> Runnable:
    """The pipeline whose panes are discarding, with the number of their rows, and of its accumulations those that can be added up.

    Raises:
        PipelineError: it cannot.
    """
    options, adders = of_windows(pipeline.flow), adders_of(pipeline)
    accumulations: Mapping[str, Any] = {} if options is None else options.accumulations
    asked = set() if options is None else {part for part in parts(options.trigger) if isinstance(part, str)}
    made = {
        name: adders[name].made if name in adders and name not in asked else of for name, of in accumulations.items()
    }
    whole: dict[str, Any] = {
        "having": None,
        "derived": {},
        "only_updated": False,
        "retract_merged": None,
        "explode": None,
    }
    return declaring(pipeline, mode=AccumulationMode.DISCARDING, accumulations={**made, ROWS: Count()}, **whole)


@remembered
def why_not_counted(pipeline: Runnable) -> str | None:
    """Why the rows of its windows cannot be counted from outside; None: they can."""
    flow = pipeline.flow.completed
    if not takes_sources(flow):
        return "its last stage takes panes" if any(isinstance(one, Panes) for one in flow.inputs) else "it takes panes"
    options = of_windows(flow)
    if options is None:
        return "it has no windows"
    if any(option.counts_rows for option in window_options(flow)):
        return "its windows are of rows"
    if options.where is not None or any(source.where is not None for source in flow.sources):
        return "it takes only rows that satisfy a condition"
    if any(source.form is not None for source in flow.sources):
        return "its rows are changes of a table"
    if options.forget_after is not None:
        return "a key that was idle begins again"
    if options.explode is not None or any(one.explodes for one in options.accumulations.values()):
        return "a pane is several rows"
    if any(option.columns for option in window_options(flow)) and len(flow.sources) > 1:
        return "its windows depend on the input of a row"
    try:
        in_parts(pipeline)
    except BeamishError as error:
        return str(error)
    return None


@remembered
def why_no_ledger(pipeline: Runnable) -> str | None:
    """Why the changes of its panes do not replace each other; None: they do."""
    flow = pipeline.flow.completed
    gives = flow.gives
    if gives.follows is SlotSemantics.SETTING:
        return "its rows are upserts and deletes"
    if gives.follows is SlotSemantics.ADDING:
        return "its panes are parts of a result"
    if gives.slot is None:
        return "its rows have no identity"
    if flow.stage.core.declared("having") is not None and not gives.retracts:
        return "having leaves out panes that others replace"
    numberings = [option.numbering for option in window_options(flow)]
    if flow.stage.core.declared("forget_after") is not None or any(one is not None and one.idle for one in numberings):
        return "a key that was idle begins again"
    return None


def why_no_retractions(pipeline: Runnable) -> str | None:
    """Why there are no retractions that repeat a live pane; None: there are."""
    if pipeline.flow.completed.gives.follows is not SlotSemantics.RETRACTING:
        return "its panes are not retracted"
    return why_no_ledger(pipeline) or (None if may_replace(pipeline) else "a window has one pane")


def may_replace(pipeline: Runnable) -> bool:
    """Whether a pane may replace another one, or be retracted."""
    flow = pipeline.flow.completed
    return flow.may_fire_again and flow.gives.follows is not SlotSemantics.ONCE


@remembered
def firings_counted(pipeline: Runnable) -> str | None:
    """Why a stage counts how often the one before it fires; None: none does."""
    reasons = (below.counted_firings for below in pipeline.flow.completed.flows)
    return next(filter(None, reasons), None)


def may_be_early(pipeline: Runnable) -> bool:
    """Whether the trigger of the last stage may fire before the end of a window, and the pane is emitted."""
    flow = pipeline.flow.completed
    options = of_windows(flow)
    if options is None or options.counts_rows or options.having is not None or flow.stage.core is not flow.stage:
        return False
    return takes_sources(flow) and options.trigger.can_fire_before_end()


def why_not_folded(pipeline: Runnable) -> str | None:
    """Why the changes do not fold to the live panes; None: they do."""
    flow = pipeline.flow.completed
    stays = flow.gives.follows is SlotSemantics.REPLACING and merges(flow)
    return "panes of windows that merged away stay" if stays else why_no_ledger(pipeline)


def why_not_numbered(pipeline: Runnable) -> str | None:
    """Why the numbers of the panes of a window have gaps, or begin again; None: they do not."""
    flow = pipeline.flow.completed
    options = of_windows(flow)
    if options is None:
        return "it has no windows"
    if flow.gives.slot is None:
        return "its panes are joined rows"
    if flow.stage.core is not flow.stage or options.having is not None:
        return "some panes are not emitted"
    return why_no_ledger(pipeline) if flow.gives.follows is not SlotSemantics.ADDING or options.forget_after else None


@remembered
def why_no_parts(pipeline: Runnable) -> str | None:
    """Why its discarding panes do not add up; None: they do."""
    flow = pipeline.flow.completed
    options = of_windows(flow)
    if options is None:
        return "it has no windows"
    if options.having is not None or options.only_updated:
        return "some panes are not emitted"
    if options.derived:
        return "it has computed columns"
    if not adders_of(pipeline):
        return "its values do not add up"
    return why_not_counted(pipeline)
