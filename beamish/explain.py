"""What a pipeline will do, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import attrs

from beamish.modes import ClosingBehavior, OnTimeBehavior, TimestampCombiner
from beamish.options import Options
from beamish.plan import Plan, later_options
from beamish.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    Always,
    Default,
    Never,
    OrFinally,
    Repeatedly,
    Trigger,
)
from beamish.watermarks import BoundedOutOfOrderness, ProcessingTimeLag, Punctuated, Watermark
from beamish.windows import CalendarWindows, FixedWindows, GlobalWindow, Sessions, SlidingWindows
from beamish.windows.inherited import InheritedWindows
from beamish.windows.windowings import WINDOWING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from beamish.pipeline import Pipeline

_WIDTH, _INDENT = 110, 13


def explain(options: Options, df: DataFrame | None) -> str:
    """Say what a pipeline will do; with a DataFrame also its types, state columns and shards."""
    options.check()
    if df is None:
        return _text(_subjects(options, None))
    from beamish.spark import plan_for

    plan = plan_for(options, df)
    if df.isStreaming:
        return _text(_subjects(options, plan))
    from beamish.spark.compile.native import why_not_native

    def how(of: Plan) -> str:
        why_not = why_not_native(of)
        return f"one pass of the engine a shard, since {why_not}" if why_not else "Spark's own aggregation"

    by = "; ".join(f"{name}: {how(of)}" for name, of in plan.windowings.items()) or how(plan)
    words = f"one on-time pane a window, of all its rows, by {by}; triggers, lateness and modes are not asked"
    return _text([("rows", _rows(options)), ("windows", _windows(options)), ("batch", words), _columns(plan)])


def explain_merge(options: Options, inputs: Mapping[str, DataFrame]) -> str:
    """Say what a merge will do; with DataFrames also its types, state columns and shards."""
    options.check()
    if not inputs:
        return _text(_subjects(options, None))
    from beamish.spark import plan_for_merge

    plan = plan_for_merge(options, inputs)
    if any(df.isStreaming for df in inputs.values()):
        return _text(_subjects(options, plan))
    words = (
        "one on-time pane a window, of all its rows, by one pass of the engine a shard; triggers, lateness and modes"
    )
    words += " are not asked"
    return _text([("rows", _rows(options)), ("windows", _windows(options)), ("batch", words), _columns(plan)])


def explain_chain(stages: Sequence[Pipeline], df: DataFrame | None, inputs: Mapping[str, DataFrame]) -> str:
    """Say what the stages of a chain will do."""
    texts = [stages[0].explain(**inputs) if stages[0].options.inputs else stages[0].explain(df)]
    before = stages[0].options
    for options in (stage.options for stage in stages[1:]):
        own = later_options(options, before)
        removal = "; a retraction removes the row it takes back" if before.retracts else ""
        lines = [_line("takes", f"the panes of the stage before, before the clocks move{removal}")]
        before = own
        shown = attrs.evolve(own, event_time="the panes' timestamp")
        for subject, words in _subjects(shown, None):
            lines.append(_line(subject, "that of the stage before" if subject == "watermark" else words))
        texts.append("\n".join(lines))
    return "\n\n".join(f"stage {number} of {len(stages)}\n{text}" for number, text in enumerate(texts, 1))


def _text(subjects: Iterable[tuple[str, str]]) -> str:
    return "\n".join(_line(subject, words) for subject, words in subjects)


def _line(subject: str, words: str) -> str:
    return fill(f"{subject:<{_INDENT - 1}} {words}", _WIDTH, subsequent_indent=" " * _INDENT)


def _subjects(options: Options, plan: Plan | None) -> Iterator[tuple[str, str]]:
    yield "rows", _rows(options)
    yield "windows", _windows(options)
    yield "watermark", _watermark(options)
    yield "clock", _clock(options)
    yield "panes", f"a window fires {_trigger(options.trigger)}"
    yield "late", _late(options)
    yield "closing", _closing(options)
    yield "a pane holds", _mode(options)
    yield "timestamp", _timestamp(options)
    yield "dropped", _dropped(options)
    if plan is not None:
        yield _columns(plan)
        yield "carried", _carried(plan)
        yield "state", _state(plan)


def _columns(plan: Plan) -> tuple[str, str]:
    return "columns", ", ".join(f"{field.name} {field.type}" for field in plan.pane_schema)


def _rows(options: Options) -> str:
    keys = f"by {', '.join(map(str, options.keys))}" if options.keys else "not keyed: all rows are of one key"
    if options.inputs:
        keys = f"of {len(options.inputs)} inputs, {keys}"
    values = ", ".join(f"{name} = {accumulation!r}" for name, accumulation in options.accumulations.items())
    times = "; ".join(
        f"{one.name}: event time in {one.event_time}" + (f", keyed by {', '.join(map(str, one.keys))}" * bool(one.keys))
        for one in options.inputs
    )
    return f"{keys}; {times or f'event time in {options.event_time}'}; accumulated: {values}"


def _windows(options: Options) -> str:
    window = options.window
    if options.windowings:
        each = "; ".join(f"{name}: {_windows(one)}" for name, one in options.windowings.items())
        return f"{len(options.windowings)} windowings in one pass, told apart by the column {WINDOWING}: {each}"
    if isinstance(window, FixedWindows):
        return f"fixed, {window.size} long" + (f", shifted by {window.offset}" if window.offset else "")
    if isinstance(window, SlidingWindows):
        rule = (
            "a row is in every one that holds it"
            if window.period <= window.size
            else "sampled: rows between are in none"
        )
        return f"sliding, {window.size} long, a new one every {window.period}; {rule}"
    if isinstance(window, Sessions):
        return f"sessions: a key's rows less than {window.gap} apart; they grow and merge as rows come"
    if isinstance(window, GlobalWindow):
        return "one, all of time; it never ends while the stream runs"
    if isinstance(window, CalendarWindows):
        return f"calendar periods of {window.timezone}: {window!r}"
    if isinstance(window, InheritedWindows):
        return f"those of the panes it takes: {window.of!r}"
    return f"{window!r}, {'which merge' if options.window and options.window.merging else 'which do not merge'}"


def _watermark(options: Options) -> str:
    if not options.inputs:
        return _policy(options.watermark)
    words = "the least of the inputs', and none until each has one"
    for one in options.inputs:
        words += f". {one.name}: {_policy(one.watermark).partition('; when rows stop')[0]}"
    waited_for = [one.name for one in options.inputs if not isinstance(one.watermark, ProcessingTimeLag)]
    if waited_for:
        words += f". Held back: {' or '.join(waited_for)} holds the others back until it has had a row"
    patient = [one.name for one in options.inputs if not one.watermark.needs_clock]
    if patient:
        words += f"; later {' or '.join(patient)} does whenever its rows stop, having no idle_timeout"
    return words


def _policy(policy: Watermark | None) -> str:
    if policy is None:
        return "that of the stage before"
    if isinstance(policy, BoundedOutOfOrderness):
        words = f"the greatest event time seen, less {policy.delay}; it moves between batches"
        if policy.max_future is not None:
            words += f"; rows later than the clock by more than {policy.max_future} do not move it"
        if policy.idle_timeout is not None:
            words += f"; when nothing has moved it for {policy.idle_timeout} on the clock, it moves on with the clock"
        else:
            words += "; when rows stop it stops, and windows that are open then stay open (idle_timeout closes them)"
        return words
    if isinstance(policy, ProcessingTimeLag):
        return f"the batch's clock, less {policy.lag}"
    if isinstance(policy, Punctuated):
        return f"the greatest value of {policy.column} seen; it moves between batches"
    return repr(policy)


def _clock(options: Options) -> str:
    if not options.needs_clock:
        return "not needed: nothing here depends on processing time"
    return "needed: a heartbeat row brings every shard the batch's clock, so a batch runs at every trigger interval"


def _trigger(trigger: Trigger) -> str:
    if isinstance(trigger, AfterCount):
        return f"after {trigger.n} row{'s' if trigger.n > 1 else ''}"
    if isinstance(trigger, AfterProcessingTime):
        return f"{trigger.delay} on the clock after its first row"
    if isinstance(trigger, AfterWatermark):
        early = f"before its end again and again {_trigger(trigger.early)}, then " if trigger.early else ""
        late = f", then again and again {_trigger(trigger.late)}" if trigger.late else ", and is then finished"
        return f"{early}when the watermark passes its end{late}"
    if isinstance(trigger, Repeatedly):
        return f"again and again {_trigger(trigger.trigger)}"
    if isinstance(trigger, OrFinally):
        return f"{_trigger(trigger.main)}, until it fires one last time {_trigger(trigger.finally_)}"
    if isinstance(trigger, (AfterAny, AfterAll, AfterEach)):
        word = {AfterAny: " or ", AfterAll: " and ", AfterEach: ", then "}[type(trigger)]
        return "(" + word.join(map(_trigger, trigger.parts)) + ")"
    simple: dict[type[Trigger], str] = {
        Always: "with every bundle of rows",
        Never: "only when it expires",
        Default: "when the watermark passes its end, then with every bundle of late rows",
    }
    return simple.get(type(trigger), f"as {trigger!r} says")


def _late(options: Options) -> str:
    lateness = options.allowed_lateness
    after = f"until the watermark is {lateness} past it" if lateness else "not at all"
    return f"rows that come after the watermark has passed their window's end are late; they are taken {after}"


def _closing(options: Options) -> str:
    words = f"a window expires when the watermark is at its end plus {options.allowed_lateness}: what is in no pane yet comes out"
    if options.closing is ClosingBehavior.FIRE_ALWAYS:
        words += " (and a last pane even if nothing is)"
    words += " and its state goes"
    if options.on_time is OnTimeBehavior.FIRE_ALWAYS:
        return words + "; the on-time pane comes even if nothing is new in it"
    return words + "; an on-time pane comes only if something is new in it"


def _mode(options: Options) -> str:
    if options.discards:
        return "what came since the window's last pane"
    words = "all that came so far"
    if options.retracts:
        words += "; before it a RETRACTION repeats the pane it takes back"
        if options.window is not None and options.window.merging:
            when = "at once" if options.retracts_at_merge else "together with the merged window's next pane"
            words += f"; panes of windows merged away are retracted {when}"
    if options.only_updated:
        words += "; a pane with the same values as the one before is left out"
    return words


def _timestamp(options: Options) -> str:
    if options.combiner is TimestampCombiner.END_OF_WINDOW:
        return "null" if isinstance(options.window, GlobalWindow) else "the last microsecond of the window"
    return f"the {options.combiner.value} event time among the rows new in the pane that came in time"


def _dropped(options: Options) -> str:
    words = "rows without event time, rows of expired windows, rows of windows whose trigger has finished; "
    return words + (
        "each comes out with its reason" if options.with_dropped else "counted only: with_dropped() lists them"
    )


def _carried(plan: Plan) -> str:
    if plan.windowings:
        return "; ".join(f"{name}: {_carried(of)}" for name, of in plan.windowings.items())
    if plan.preaggregates:
        return "rows are summed up by key and window before the shuffle"
    return f"rows are packed, not summed up, before the shuffle: {plan.why_not_preaggregated}"


def _state(plan: Plan) -> str:
    columns: list[Any] = [f"{field.name} {field.type}" for field in plan.state_schema]
    live = ", and the values last emitted" if plan.keeps_live else ""
    window = "windowing, key and window" if plan.windowings else "key and window"
    return f"{plan.shards} shards; a row for each {window} with {', '.join(columns)}{live}"
