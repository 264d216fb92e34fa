"""Rows and scripts for pipelines of one stage."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.testing import TestStream
from tests.declared_options import stages
from tests.strategies.windows import unit

scores = st.none() | st.integers(-3, 5)
ratios = st.none() | st.sampled_from([0.0, -0.0, 0.25, -1.5, 3.0, float("nan"), float("inf"), 0.25])
plain_ratios = st.none() | st.sampled_from([0.0, -0.0, 0.25, -1.5, 3.0])
names = st.none() | st.sampled_from(["", "a", "b", "ab", "é", "𝄞", "\uffee"])
costs = st.none() | st.sampled_from([Decimal("0.00"), Decimal("1.25"), Decimal("-3.10"), Decimal("99.99")])
flags = st.none() | st.booleans()
teams = st.sampled_from(["red", "red", "red", "blue", None])
parts = st.sampled_from([0.0, -0.0, float("nan"), None, 1.0])


@st.composite
def rows(
    draw: st.DrawFn, about: int, scale: int, nulls: bool, least: int | None = None, *, values: bool = True
) -> dict[str, Any]:
    """A row with an event time near ``about`` (in seconds, times ``scale``)."""
    time: float = about + draw(
        st.one_of(st.integers(-8, 8), st.integers(0, 4), st.sampled_from([0.5, 2.5, 4.999999, 25]))
    )
    without_time = nulls and draw(st.integers(0, 19)) == 19
    if least is not None:
        time = max(time, least)
    row: dict[str, Any] = {"ts": None if without_time else float(time * scale), "team": draw(teams)}
    if not values:
        return row
    return row | {
        "part": draw(parts),
        "score": draw(scores),
        "ratio": draw(ratios if nulls else plain_ratios),
        "name": draw(names),
        "cost": draw(costs),
        "flag": draw(flags),
        "mark": None,
    }


@st.composite
def scripts(
    draw: st.DrawFn,
    pipeline: bm.Pipeline,
    *,
    ends: bool | None = None,
    nulls: bool = True,
    least: int | None = None,
    values: bool = True,
) -> TestStream:
    """A script for a pipeline: late rows, rows before the epoch, ties, empty bundles, jumps of either clock, whole steps.

    Without ``values`` its rows have only a time and a team, and are drawn in half the time.
    """
    first = stages(pipeline)[0]
    scale = unit(first.window)
    lags = isinstance(first.watermark, bm.ProcessingTimeLag)
    script, clock = TestStream(), 0
    now = draw(st.sampled_from([0, 0, 5, -10])) if least is None else 1
    kinds = st.sampled_from(["rows", "rows", "rows", "watermark", "clock", "step", "step"])
    for kind in draw(st.lists(kinds, min_size=draw(st.sampled_from([1, 4, 8])), max_size=14)):
        bundle: list[dict[str, Any]] = []
        if kind in ("rows", "step"):
            size = draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3, 5]))
            bundle = draw(st.lists(rows(now, scale, nulls, least, values=values), min_size=size, max_size=size))
        if kind == "rows":
            script = script.add(bundle)
            continue
        by = draw(st.sampled_from([0, 1, 1, 2, 3, 5, 10, 40]))
        if kind == "clock" or lags or (kind == "step" and draw(st.booleans())):
            clock += by
        if kind != "clock" or lags:
            now += by
        if kind == "step":
            moves = not lags and draw(st.booleans())
            script = script.step(bundle, watermark=now * scale if moves else None, clock=clock * scale)
        elif kind == "clock" or lags:
            script = script.advance_processing_time_to(clock * scale)
        else:
            script = script.advance_watermark_to(now * scale)
    if (draw(st.booleans()) if ends is None else ends) and not lags:
        script = script.advance_watermark_to_infinity()
        if draw(st.integers(0, 3)) == 3:
            script = script.add([draw(rows(now, scale, nulls, least, values=values))])
    return script


def random_row(chance: random.Random, time: float, offsets: list[float]) -> dict[str, Any]:
    """A row near a time, in seconds, by one of the offsets; some have no event time."""
    return {
        "ts": None if chance.random() < 0.03 else float(time) + chance.choice(offsets),
        "team": chance.choice(["red", "red", "blue", None]),
        "part": chance.choice([0.0, -0.0, 1.0]),
        "score": chance.choice([None, 0, 1, 1, 2, -3]),
        "ratio": chance.choice([None, 0.25, -0.0, 3.0, -1.5]),
        "name": chance.choice([None, "a", "b", ""]),
        "cost": None,
        "flag": chance.choice([None, True, False]),
        "mark": None,
    }


def dense_script(number: int) -> TestStream:
    """A long script of one key with interacting windows; dense, not shrinkable. Integer scores."""
    chance = random.Random(number)
    script, now, clock = TestStream(), 0, 0
    spread = chance.choice([4, 8, 15])
    for _ in range(30):
        kind = chance.choice("rrrrrwwcss")
        times = [float(now + chance.randint(-spread, spread)) for _ in range(chance.choice([1, 1, 2, 3]))]
        bundle = [{"ts": ts, "score": chance.choice([None, 0, 1, 2, 3, 5])} for ts in times]
        now += chance.choice([1, 1, 2, 3, 5, 9]) if kind in "ws" else 0
        clock += chance.choice([1, 1, 2, 3]) if kind in "cs" else 0
        match kind:
            case "r":
                script = script.add(bundle)
            case "w":
                script = script.advance_watermark_to(now)
            case "c":
                script = script.advance_processing_time_to(clock)
            case _:
                script = script.step(bundle, watermark=chance.choice([None, now]), clock=chance.choice([None, clock]))
    return script if chance.random() < 0.5 else script.advance_watermark_to_infinity()


dense_scripts = st.integers(0, 2**40).map(dense_script)
