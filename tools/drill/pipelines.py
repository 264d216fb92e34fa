"""The drilled pipelines, one of each kind of stage, their rows, and their guarantees."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import beamish as bm
from beamish.accumulations import Collect, Count, InnerJoin, LeftOuterJoin, Max, Reduce, Sum
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always
from tools.drill.halting import halt

SIDES = ("a", "b")
_CLOSING = 2
"""Chunks whose rows are far ahead: after the first everything is due, and the second emits it."""


def _function(name: str, this: int, other: int) -> int:
    halt(name, "function")
    return max(this, other)


def _greatest(this: int, other: int) -> int:
    """A user function that the drill can halt."""
    return _function("a user's function", this, other)


_ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).key_by("k")
_TIMED = (
    _ROWS.window(bm.FixedWindows(20)).allowed_lateness(40).trigger(AfterWatermark(early=AfterCount(2), late=Always()))
)
_TABLE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).key_by("k").versions(100)
_BOTH = bm.merge(a=_ROWS, b=_ROWS)
_PATIENT = _ROWS.event_time("ts", bm.BoundedOutOfOrderness(20, idle_timeout="1 day"))
"""Its watermark is not the query's; the clock never moves it, so that runs can be compared."""


@attrs.frozen
class Drilled:
    """A pipeline that is drilled.

    Attributes:
        pipeline: that.
        by_clock: when its windows fire early depends on the wall clock: only the last pane of each window is compared.
        has_function: a user function in it can be halted.
    """

    pipeline: bm.Pipeline
    by_clock: bool = False
    has_function: bool = False

    @property
    def sides(self) -> tuple[str | None, ...]:
        """The names of its inputs; None: it has one, which gets all rows."""
        return tuple(source.name for source in self.pipeline.flow.sources)


DRILLED: dict[str, Drilled] = {
    "fixed windows": Drilled(_TIMED.accumulating().with_dropped().accumulate(n=Count(), s=Sum("x"), all=Collect("t"))),
    "sessions": Drilled(
        _TIMED.window(bm.Sessions(7)).accumulating_and_retracting().accumulate(n=Count(), most=Max("x"))
    ),
    "a chain": Drilled(
        _TIMED.accumulating_and_retracting()
        .accumulate(n=Count())
        .then(bm.Pipeline().key_by("n").window(bm.FixedWindows(60)).accumulating().accumulate(keys=Count()))
    ),
    "outer join": Drilled(
        _BOTH.window(bm.FixedWindows(20)).allowed_lateness(40).accumulating().accumulate(p=LeftOuterJoin("a", "b"))
    ),
    "watermarks of their own": Drilled(
        bm.merge(a=_ROWS, b=_PATIENT)
        .window(bm.FixedWindows(20))
        .allowed_lateness(40)
        .trigger(AfterWatermark(early=AfterCount(2), late=Always()))
        .accumulating()
        .with_dropped()
        .accumulate(n=Count(), a=Sum("x").of("a"), b=Sum("x").of("b"))
    ),
    "merged stages": Drilled(
        bm.merge(a=_TIMED.discarding().accumulate(n=Count()), b=_TIMED.discarding().accumulate(n=Count()))
        .window(bm.FixedWindows(60))
        .allowed_lateness(60)
        .trigger(AfterWatermark(late=Always()))
        .accumulating()
        .accumulate(a=Sum("n").of("a"), b=Sum("n").of("b"))
    ),
    "each pair once": Drilled(
        _BOTH.window(bm.FixedWindows(20))
        .trigger(Always())
        .discarding()
        .accumulate(p=InnerJoin("a", "b", once=True, keep_rows={"a": 9, "b": 9}))
    ),
    "by the clock": Drilled(
        _ROWS.window(bm.FixedWindows(20))
        .allowed_lateness(40)
        .trigger(AfterWatermark(early=AfterProcessingTime(1), late=Always()))
        .accumulating()
        .accumulate(n=Count(), s=Sum("x")),
        by_clock=True,
    ),
    "suppressed": Drilled(_TIMED.accumulating().accumulate(n=Count()).suppress(bm.UntilWindowCloses())),
    "changes": Drilled(_ROWS.changes().suppress(bm.UntilTimeLimit(30, clock="event"))),
    "rows": Drilled(
        _ROWS.window(bm.CountWindows(4, 2)).allowed_lateness(rows=9).accumulating().accumulate(of=Collect("x"))
    ),
    "retained": Drilled(_TIMED.retain(windows=2).accumulating().accumulate(n=Count())),
    "once per window": Drilled(_TIMED.deduplicate("x").accumulating().accumulate(n=Count())),
    "rows, each once": Drilled(bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).deduplicate("x", within=50)),
    "two windowings": Drilled(
        _TIMED.window({"a": bm.FixedWindows(10), "b": bm.Sessions(5)}).accumulating().accumulate(n=Count())
    ),
    "as-of join": Drilled(bm.as_of_join(a=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)), b=_TABLE)),
    "a user's function": Drilled(_TIMED.accumulating().accumulate(greatest=Reduce(_greatest, "x")), has_function=True),
}


def write_rows(folder: Path, chance: random.Random, chunks: int) -> None:
    """Rows in chunks, a file each; Spark's source of files takes them in this order."""
    folder.mkdir(parents=True)
    for number in range(chunks + _CLOSING):
        closing = number >= chunks
        rows = [_row(chance, 20 * number) for _ in range(30)] if not closing else _closing_rows(number)
        path = folder / f"{number:04}.json"
        path.write_text("\n".join(map(json.dumps, rows)))
        os.utime(path, (1_700_000_000 + number,) * 2)


def _row(chance: random.Random, at: int) -> dict[str, Any]:
    x = chance.randint(0, 30)
    ts = 1_000 + at + chance.choice([chance.randint(-5, 20), chance.randint(-70, 20)])
    return {"ts": _text(ts), "k": chance.choice("abcd"), "x": x, "t": "v" * (x % 5), "side": chance.choice(SIDES)}


def _closing_rows(number: int) -> list[dict[str, Any]]:
    return [
        {"ts": _text(1_000_000 + number), "k": "closing", "x": 100 + number, "t": "", "side": side} for side in SIDES
    ]


def _text(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def lasting(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The values of each window's last pane: the guarantee where the clock decides how often a window fires.

    Whether a window that was still open at the end ever fired depends on the clock.
    """
    last = {repr((row["k"], row["window"])): row for row in sorted(rows, key=lambda row: int(row["pane"]["sequence"]))}
    return [{**row, "pane": row["pane"]["timing"]} for row in last.values() if row["pane"]["timing"] != "EARLY"]
