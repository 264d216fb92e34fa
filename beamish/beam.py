"""Pipelines from Apache Beam: a ``WindowInto`` of its Python SDK as a pipeline.

apache_beam (the extra ``beam``) is imported only when one is read. What is read is the description that the SDK gives to runners, the
``WindowingStrategy`` of Beam's portability API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from beamish.durations import Duration
from beamish.errors import OptionError
from beamish.modes import AccumulationMode, ClosingBehavior, OnTimeBehavior, TimestampCombiner
from beamish.packages import installed
from beamish.pipeline import Pipeline
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
from beamish.windows import FixedWindows, GlobalWindow, Sessions, SlidingWindows, WindowOption

if TYPE_CHECKING:
    from apache_beam import WindowInto

__all__ = ["pipeline"]

_MODES = {"DISCARDING": AccumulationMode.DISCARDING, "ACCUMULATING": AccumulationMode.ACCUMULATING}
_COMBINERS = {
    "END_OF_WINDOW": TimestampCombiner.END_OF_WINDOW,
    "EARLIEST_IN_PANE": TimestampCombiner.EARLIEST,
    "LATEST_IN_PANE": TimestampCombiner.LATEST,
}
_ON_TIME = {
    "FIRE_ALWAYS": OnTimeBehavior.FIRE_ALWAYS,
    "FIRE_IF_NONEMPTY": OnTimeBehavior.FIRE_IF_NON_EMPTY,
}
_CLOSING = {
    "EMIT_ALWAYS": ClosingBehavior.FIRE_ALWAYS,
    "EMIT_IF_NONEMPTY": ClosingBehavior.FIRE_IF_NON_EMPTY,
}


def __dir__() -> list[str]:
    return list(__all__)


def pipeline(into: WindowInto, *, allow_data_loss: bool = False) -> Pipeline:
    """A pipeline with the windows, trigger, mode, lateness and timestamps of a ``beam.WindowInto``.

    Add ``event_time``, ``key_by`` and ``accumulate``; any other call replaces a setting of Beam's.

    All of Beam's defaults are set: without a trigger, ``Default()`` and discarding. Beam's Python SDK has no argument for the on-time
    and closing behavior and describes both as *always*, so a window's last pane is emitted even if it is empty; Java's default is
    ``.closing_behavior(bm.ClosingBehavior.FIRE_IF_NON_EMPTY)``.

    Args:
        into: the transform, with or without a label: ``"fixed" >> beam.WindowInto(...)``.
        allow_data_loss: allow a trigger that can finish while rows may still arrive (Beam: ``--allow_unsafe_triggers``).

    Raises:
        ModuleNotFoundError: apache-beam is not installed.
        OptionError: not a ``WindowInto``; or it has no counterpart: a custom ``WindowFn`` or trigger, a part of ``AfterAny``,
            ``AfterAll`` or ``OrFinally`` that repeats, ``OUTPUT_AT_EARLIEST_TRANSFORMED``, a delay that is not of type int, an
            allowed lateness with a fraction of a millisecond.

    Example:
        ``bm.beam.pipeline(beam.WindowInto(window.FixedWindows(60))).event_time("ts", ...).key_by("team").accumulate(n=Count())``
    """
    return pipeline_of(described(into), allow_data_loss=allow_data_loss)


def described(into: Any) -> dict[str, Any]:
    """A ``WindowInto`` as the SDK describes it to runners, in plain values.

    The fields of a ``WindowingStrategy`` that hold values, as JSON; ``window_fn`` has the fields of its payload, in microseconds.

    Raises:
        ModuleNotFoundError: apache-beam is not installed.
        OptionError: not a ``WindowInto``, or the SDK cannot describe it.
    """
    if not installed("apache_beam"):
        raise ModuleNotFoundError(
            'beam.pipeline(...): the package apache_beam is not installed: pip install "beamish[beam]"',
            name="apache_beam",
        )
    from apache_beam import Windowing, WindowInto
    from apache_beam.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows

    transform = getattr(into, "transform", into)  # of one with a label
    if not isinstance(transform, WindowInto):
        raise OptionError(
            f"beam.pipeline(into)={into!r}: must be a beam.WindowInto, such as beam.WindowInto(FixedWindows(60))"
        )
    windowing: Windowing = transform.windowing
    if type(windowing.windowfn) not in (FixedWindows, GlobalWindows, Sessions, SlidingWindows):
        raise OptionError(
            f"beam.pipeline(...): {type(windowing.windowfn).__name__} is a custom WindowFn, which has no counterpart: give "
            "beam.WindowInto(GlobalWindows(), ...) and replace its windows: .window(...) with a bm.WindowOption of your own"
        )
    if isinstance(windowing.timestamp_combiner, str):
        raise OptionError(
            f"beam.pipeline(...): timestamp_combiner={windowing.timestamp_combiner} has no counterpart: use OUTPUT_AT_EARLIEST, or "
            "shift the event time before .event_time(...)"
        )
    check_lateness(windowing.allowed_lateness.micros)
    return _message(windowing)


def check_lateness(us: int) -> None:
    """Check the allowed lateness of a ``WindowInto`` (OptionError: it has a fraction of a millisecond, which Beam cuts off)."""
    if us % 1000:
        raise OptionError(
            f"beam.pipeline(...): allowed_lateness of {us} microseconds: Beam gives runners whole milliseconds, {us // 1000}; give "
            f"allowed_lateness={us // 1000 / 1000} for that, or {-(-us // 1000) / 1000}"
        )


def _message(windowing: Any) -> dict[str, Any]:
    from apache_beam.runners.pipeline_context import PipelineContext
    from google.protobuf.json_format import MessageToDict

    try:
        message = windowing.to_runner_api(PipelineContext())
    except Exception as error:
        raise OptionError(
            f"beam.pipeline(...): Beam cannot describe the trigger {windowing.triggerfn!r} to runners ({error}): the delay of an "
            "AfterProcessingTime must be an int; for a trigger of your own use .trigger(...) with a subclass of triggers.Trigger"
        ) from error
    strategy = MessageToDict(message, preserving_proto_field_name=True)
    of_sdk = ("environment_id", "merge_status", "window_coder_id")
    urn, payload = windowing.windowfn.to_runner_api_parameter(None)
    fields = [] if payload is None else payload.ListFields()
    window_fn = {"urn": urn, **{field.name: value.ToMicroseconds() for field, value in fields}}
    return {name: value for name, value in strategy.items() if name not in of_sdk} | {"window_fn": window_fn}


def pipeline_of(strategy: Mapping[str, Any], *, allow_data_loss: bool = False) -> Pipeline:
    """A pipeline from a description (OptionError: a part of it has no counterpart)."""
    return (
        Pipeline()
        .window(_window(strategy["window_fn"]))
        .trigger(_trigger(strategy["trigger"]), allow_data_loss=allow_data_loss)
        .accumulation_mode(_counterpart(_MODES, strategy, "accumulation_mode"))
        .allowed_lateness(Duration(_milliseconds(strategy.get("allowed_lateness", 0))))
        .timestamp_combiner(_counterpart(_COMBINERS, strategy, "output_time"))
        .on_time_behavior(_counterpart(_ON_TIME, strategy, "on_time_behavior"))
        .closing_behavior(_counterpart(_CLOSING, strategy, "closing_behavior"))
    )


def _counterpart(known: Mapping[str, Any], strategy: Mapping[str, Any], field: str) -> Any:
    if strategy[field] not in known:
        raise OptionError(
            f"beam.pipeline(...): {field} {strategy[field]} has no counterpart; known are {', '.join(known)}"
        )
    return known[strategy[field]]


def _milliseconds(number: str | int) -> int:
    """Milliseconds, which JSON has as text, in microseconds."""
    return int(number) * 1000


def _window(window_fn: Mapping[str, Any]) -> WindowOption:
    given = {name: Duration(us) for name, us in window_fn.items() if name != "urn"}
    match window_fn["urn"].split(":")[2]:
        case "fixed_windows":
            return FixedWindows(**given)
        case "sliding_windows":
            return SlidingWindows(**given)
        case "session_windows":
            return Sessions(given["gap_size"])
        case "global_windows":
            return GlobalWindow()
    raise OptionError(f"beam.pipeline(...): the windows {window_fn['urn']} have no counterpart: use .window(...)")


def _trigger(described: Mapping[str, Any]) -> Trigger:
    ((kind, fields),) = described.items()
    match kind:
        case "default":
            return Default()
        case "always":
            return Always()
        case "never":
            return Never()
        case "element_count":
            return AfterCount(fields["element_count"])
        case "after_processing_time":
            return AfterProcessingTime(_delay(fields))
        case "after_end_of_window":
            return AfterWatermark(_part(fields, "early_firings"), _part(fields, "late_firings"))
        case "after_any":
            return AfterAny(*(_once("AfterAny", part) for part in fields["subtriggers"]))
        case "after_all":
            return AfterAll(*(_once("AfterAll", part) for part in fields["subtriggers"]))
        case "after_each":
            return AfterEach(*map(_trigger, fields["subtriggers"]))
        case "repeat":
            return Repeatedly(_trigger(fields["subtrigger"]))
        case "or_finally":
            return OrFinally(_trigger(fields["main"]), _once("OrFinally", fields["finally"]))
    raise OptionError(f"beam.pipeline(...): the trigger {kind} has no counterpart: use .trigger(...)")


def _delay(fields: Mapping[str, Any]) -> Duration:
    (transform,) = fields["timestamp_transforms"]
    return Duration(_milliseconds(transform["delay"].get("delay_millis", 0)))


def _part(fields: Mapping[str, Any], name: str) -> Trigger | None:
    return _trigger(fields[name]) if name in fields else None


def _once(composite: str, described: Mapping[str, Any]) -> Trigger:
    """A part that finishes whenever it fires: with others a composite never finishes in Beam's Python SDK, here it does."""
    part = _trigger(described)
    if not _finishes(part):
        raise OptionError(
            f"beam.pipeline(...): {part!r} in {composite}(...) repeats, which has no counterpart: put the repetition around it, as in "
            f"Repeatedly({composite}(AfterCount(10), AfterProcessingTime(60)))"
        )
    return part


def _finishes(trigger: Trigger) -> bool:
    match trigger:
        case AfterWatermark(early=early, late=late):
            return early is None and late is None
        case OrFinally(main=main):
            return _finishes(main)
    return isinstance(trigger, AfterCount | AfterProcessingTime | AfterAny | AfterAll | Never)
