"""The program of the peer Beam Python: cases as JSON lines in, panes as JSON lines out. Run by the Python of build/peers/beam_python."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MethodType
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2 as messages
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.direct.test_stream_impl import _TestStream
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms import core, window
from apache_beam.transforms.trigger import TriggerFn
from apache_beam.utils.timestamp import Duration, Timestamp
from google.protobuf.json_format import ParseDict

from beamish.beam import described

FOREVER = 10**9
"""Seconds on the clock after the script: all timers fire, since the runner waits for them."""


SET_UP = 3
"""Events of the runner's own before the script."""


class Record(beam.DoFn):  # type: ignore[misc]
    """Collects the panes of the event that the runner processes; the runner is in this process."""

    step = -1
    panes: list[dict[str, Any]]

    def process(
        self,
        element: Any,
        timestamp: Any = beam.DoFn.TimestampParam,
        where: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> None:
        key, rows = element
        bounded = isinstance(where, window.IntervalWindow)
        one = {
            "step": Record.step,
            "key": key,
            "start": where.start.micros if bounded else None,
            "end": where.end.micros if bounded else None,
            "timestamp": timestamp.micros if bounded or timestamp != where.max_timestamp() else None,
            "timing": {0: "EARLY", 1: "ON_TIME", 2: "LATE"}[pane.timing],
            "index": pane.index,
            "on_time_index": pane.nonspeculative_index,
            "is_first": pane.is_first,
            "rows": sorted(rows),
        }
        Record.panes.append(one)


def counted(events: Iterable[Any]) -> Iterator[Any]:
    """The events of the runner, which takes the next one when it is done with the last."""
    for at, event in enumerate(events):
        Record.step = at - SET_UP
        yield event


def windowing(strategy: Mapping[str, Any]) -> Any:
    """A WindowInto from Beam's own description."""
    message = ParseDict({"trigger": strategy["trigger"]}, messages.WindowingStrategy())
    return beam.WindowInto(
        window_fn(dict(strategy["window_fn"])),
        trigger=TriggerFn.from_runner_api(message.trigger, None),
        accumulation_mode=messages.AccumulationMode.Enum.Value(strategy["accumulation_mode"]),
        timestamp_combiner=messages.OutputTime.Enum.Value(strategy["output_time"]),
        allowed_lateness=int(strategy.get("allowed_lateness", 0)) / 1000,
    )


def window_fn(fields: dict[str, Any]) -> Any:
    """A window function."""
    urn = fields.pop("urn")
    of_urn = {
        "beam:window_fn:fixed_windows:v1": window.FixedWindows,
        "beam:window_fn:sliding_windows:v1": window.SlidingWindows,
        "beam:window_fn:session_windows:v1": window.Sessions,
        "beam:window_fn:global_windows:v1": window.GlobalWindows,
    }
    types = {"offset": Timestamp}
    return of_urn[urn](**{name: types.get(name, Duration)(micros=us) for name, us in fields.items()})


def script(events: list[dict[str, Any]]) -> TestStream:
    """The script of a case; an event of it is an event of the stream."""
    stream, clock = TestStream(), 0
    for event in events:
        match event:
            case {"rows": rows}:
                stream = stream.add_elements(
                    [window.TimestampedValue((row["key"], row["n"]), Timestamp(micros=row["ts"])) for row in rows]
                )
            case {"watermark": "infinity"}:
                stream = stream.advance_watermark_to_infinity()
            case {"watermark": us}:
                stream = stream.advance_watermark_to(Timestamp(micros=us))
            case {"clock": us}:
                stream = stream.advance_processing_time((us - clock) / 1e6)
                clock = us
    return stream


def built(case: Mapping[str, Any], *options: str) -> Any:
    """The pipeline of a case; its panes go to Record."""
    pipeline = beam.Pipeline(BundleBasedDirectRunner(), PipelineOptions(["--streaming", *options]))
    stream = script(case["script"]).advance_processing_time(FOREVER)
    rows = pipeline | stream | beam.Map(lambda row: row)
    rows | windowing(case["windowing"]) | beam.GroupByKey() | beam.ParDo(Record())
    return pipeline


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a case."""
    Record.panes = []
    try:
        pipeline, refused = built(case), False
    except ValueError:
        pipeline, refused = built(case, "--allow_unsafe_triggers"), True
    run(pipeline, len(case["script"]))
    return {
        "refused": refused,
        "described": described(windowing(case["windowing"])),
        "panes": [pane for pane in Record.panes if 0 <= pane["step"] < len(case["script"])],
    }


def run(pipeline: Any, steps: int) -> None:
    """Run a pipeline; that the runner stalls after the script, since a trigger left a hold behind, is no matter."""
    try:
        pipeline.run(test_runner_api=False).wait_until_finish()
    except TypeError:  # it raises a tuple with the exception
        if Record.step < steps:
            raise


def memoize() -> None:
    """Compute once per process what takes most of a case's time, as Beam computes it for each pipeline: arguments of functions, and options."""
    of_function, parsed = cache(core.get_function_args_defaults), cache(lambda view, flags: vars(view(list(flags))))

    def arguments(method: Any) -> Any:
        args, defaults = of_function(getattr(method, "__func__", method))
        return args[isinstance(method, MethodType) :], defaults

    def view_as(options: Any, view: Any) -> Any:
        values = vars(options)["_all_options"]
        fields = parsed(view, tuple(vars(options)["_flags"]))
        for name, value in fields["_all_options"].items():
            values.setdefault(name, value)
        found = view.__new__(view)
        vars(found).update(fields | {"_all_options": values})
        return found

    core.get_function_args_defaults = arguments
    PipelineOptions.view_as = view_as
    PipelineOptions.get_all_options = lambda *_, **__: {}  # only for warnings of unknown ones


def main() -> None:
    """A line per case."""
    logging.disable(logging.CRITICAL)
    memoize()
    _TestStream.events_from_script = staticmethod(counted)
    for line in sys.stdin:
        try:
            answered = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - an answer too
            answered = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answered), flush=True)


if __name__ == "__main__":
    main()
