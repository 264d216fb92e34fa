"""Stages that hold rows back: alone, over windows, under windows, under a suppress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.source import Source
from beamish.testing import TestStream
from tests.kinds.hold_back.stage import held_back
from tests.kinds.suppress.strategy import patient, until_limit
from tests.kinds.window.strategy_of_errors import changed
from tests.strategies.scripts import dense_scripts

SOURCE = Source("ts", bm.BoundedOutOfOrderness(0), ("team",))
COUNTS = bm.Pipeline().key_by("team").window(bm.FixedWindows(3)).accumulate(n=Count(), sum=Sum("score"))
before = st.sampled_from([SOURCE, COUNTS.event_time("ts", bm.BoundedOutOfOrderness(0))])
after = st.sampled_from([None, bm.Pipeline().key_by("team").window(bm.FixedWindows(5)).accumulate(of=Count())])
spans = st.integers(1, 9)
holding = st.builds(
    lambda span, before, after: held_back(span, before).then(after) if after else held_back(span, before),
    spans,
    before,
    after,
)
suppressed = st.builds(
    lambda span, until, buffer: held_back(span, SOURCE).suppress(until, buffer=buffer),
    spans,
    until_limit("event", "processing"),
    patient,
)


def scripts(_pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Long scripts of two keys, after the epoch: a watermark that is held back begins there."""
    return dense_scripts.map(lambda script: changed(script, of_two_keys))


def of_two_keys(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "ts": abs(row["ts"]), "team": "ab"[int(row["ts"]) % 2]}


CASES = {"rows held back": (holding, scripts)}
FLOWS = [holding, suppressed]
