"""Pipelines of changes, suppressed, and scripts for them: windows, deletions, ties of sequences, nulls."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.testing import TestStream
from tests.declared_options import stages
from tests.kinds.suppress.strategy import any_buffer, until_limit
from tests.strategies.watermarks import watermarks

key_columns = st.sampled_from([("team",), ("team",), ("team", "part"), ("part",)])
closes = st.builds(bm.UntilWindowCloses, grace=st.sampled_from([0, 2, 10]))


@st.composite
def changes(
    draw: st.DrawFn,
    *,
    buffers: st.SearchStrategy[bm.Buffer] = any_buffer,
    until: st.SearchStrategy[bm.UntilWindowCloses | bm.UntilTimeLimit] | None = None,
    watermark: st.SearchStrategy[bm.Watermark] = watermarks,
) -> bm.Pipeline:
    """Any valid pipeline of changes."""
    window = draw(st.sampled_from([None, "span"]))
    limit = until_limit("event", "processing")
    chosen = draw(until if until is not None else st.one_of(closes, limit) if window else limit)
    if isinstance(chosen, bm.UntilWindowCloses):
        window = "span"
    buffer = draw(buffers)
    if isinstance(chosen, bm.UntilWindowCloses) and not buffer.strict:
        buffer = bm.Buffer()
    pipeline = (
        bm.Pipeline()
        .event_time(draw(st.sampled_from(["ts", "ts", "timestamp"])), draw(watermark))
        .key_by(*draw(key_columns))
        .changes(
            deleted=draw(st.sampled_from([None, "gone", "gone"])),
            sequence_by=draw(st.sampled_from([None, "seq", "seq", "name"])),
            window=window,
        )
    )
    pipeline = pipeline.with_dropped() if draw(st.booleans()) else pipeline
    return pipeline.suppress(chosen, buffer=buffer)


def second(number: int) -> datetime:
    return datetime.fromtimestamp(number, UTC)


@st.composite
def rows(draw: st.DrawFn, event_time: str, about: int) -> dict[str, Any]:
    """A row with an event time near ``about``, in seconds. All columns are present, in one order."""
    time = None if draw(st.integers(0, 19)) == 19 else about + draw(st.one_of(st.integers(-8, 8), st.integers(0, 2)))
    start = (about + draw(st.sampled_from([-6, 0, 0, 1]))) // 3 * 3
    span = {"start": second(start), "end": second(start + draw(st.sampled_from([3, 3, 6])))}
    return {
        event_time: None if time is None else float(time),
        "team": draw(st.sampled_from(["red", "red", "blue", None])),
        "part": draw(st.sampled_from([0.0, -0.0, float("nan"), None, 1.0])),
        "span": None if draw(st.integers(0, 9)) == 9 else span,
        "seq": draw(st.sampled_from([None, 1, 1, 2, 3])),
        "gone": draw(st.sampled_from([None, False, False, True])),
        "name": draw(st.none() | st.sampled_from(["", "a", "b", "é"])),
        "score": draw(st.none() | st.integers(-1, 2)),
        "tags": draw(st.none() | st.lists(st.sampled_from(["x", "y", None]), max_size=3)),
    }


@st.composite
def scripts(draw: st.DrawFn, pipeline: bm.Pipeline, *, ends: bool | None = None) -> TestStream:
    """A script for a pipeline whose first stage takes changes: late rows, ties, empty bundles, jumps of either clock, whole steps."""
    options = stages(pipeline)[0]
    lags = isinstance(options.watermark, bm.ProcessingTimeLag)
    script, clock, now = TestStream(), 0, draw(st.sampled_from([0, 5]))
    kinds = st.sampled_from(["rows", "rows", "rows", "watermark", "clock", "step", "step"])
    for kind in draw(st.lists(kinds, min_size=draw(st.sampled_from([1, 4, 8])), max_size=14)):
        size = draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3, 5])) if kind in ("rows", "step") else 0
        bundle = draw(st.lists(rows(options.event_time, now), min_size=size, max_size=size))
        if kind == "rows":
            script = script.add(bundle)
            continue
        by = draw(st.sampled_from([0, 1, 1, 2, 3, 5, 10, 40]))
        clock += by if kind == "clock" or lags or draw(st.booleans()) else 0
        now += by if kind != "clock" or lags else 0
        if kind == "step":
            moves = not lags and draw(st.booleans())
            script = script.step(bundle, watermark=now if moves else None, clock=clock)
        elif kind == "clock" or lags:
            script = script.advance_processing_time_to(clock)
        else:
            script = script.advance_watermark_to(now)
    if (draw(st.booleans()) if ends is None else ends) and not lags:
        script = script.advance_watermark_to_infinity()
    return script
