"""Spark's window functions, in a batch: frames, first and last values, lag, lead, row numbers, ranks.

Normalised:

- Spark gets all rows of a case at once. Here they arrive in bundles, late ones too, and each row is corrected (``early``: from its arrival on);
  the rows that are left at the end are compared.
- Cases with the same options are one batch; the column ``case`` tells them apart. Times are microseconds, as numbers.
- Floats are compared as text, without the sign of zero; lists are sorted.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Accumulation, Collect, Count, CountDistinct, Max, Mean, Min, Sum
from beamish.pane import PaneKind
from beamish.triggers import AfterWatermark, Always
from peers import over
from peers.cases import without_parts
from peers.peer import Case, Peer, Row

VALUES: Mapping[str, Accumulation] = {
    "count": Count(),
    "count of x": Count("x"),
    "sum": Sum("v"),
    "sum of x": Sum("x"),
    "mean": Mean("v"),
    "least": Min("x"),
    "most": Max("x"),
    "greatest": Max("part"),
    "distinct": CountDistinct("v"),
    "rows": Collect("n"),
    "first": bm.FirstValue("x"),
    "last": bm.LastValue("x"),
    "lag": bm.Lag("x"),
    "lag by 2": bm.Lag("n", 2, -1),
    "lead": bm.Lead("x"),
    "lead by 3": bm.Lead("n", 3, -1),
    "number": bm.RowNumber(),
    "rank": bm.Rank(),
    "dense rank": bm.DenseRank(),
}
_floats = st.sampled_from([None, 0.0, -0.0, 0.5, 5.25, -3.0, float("nan"), float("inf")])
_columns = {"part": over.parts, "o": over.few, "v": over.few, "x": _floats}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A frame, keys, an order of rows of equal time; rows and watermarks."""
    return {
        "kind": "over",
        "frame": draw(over.frames),
        "keys": draw(over.keys),
        "order": draw(st.sampled_from([None, "o"])),
        "early": draw(st.booleans()),
        "script": draw(over.events(_columns)),
    }


def given(case: Case) -> Case:
    """Options, and all rows."""
    rows = [row for event in case["script"] for row in event.get("rows", [])]
    return {"options": {name: case[name] for name in ("frame", "keys", "order")}, "clock": None, "rows": rows}


def there(_: Case, answer: Mapping[str, Any]) -> list[Row]:
    """The answer of Spark."""
    return [_row(n, 0, values) for n, values in answer["rows"]]


def _row(n: int, place: int, values: Mapping[str, Any]) -> Row:
    return {"stream": [n], "place": [place], **{name: _plain(values[name]) for name in VALUES}}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return str(value + 0.0)
    return sorted(value) if isinstance(value, list) else value


def here(case: Case) -> list[Row]:
    """The answer of beamish: what is left at the end, of a row of the input all that is left of it."""
    left: dict[int, list[Row]] = {}
    for _, panes in over.script_of(case).trace(_pipeline(case)):
        for pane in panes:
            row = _row(pane.values["n"], 0, pane.values)
            rows = left.setdefault(pane.values["n"], [])
            if pane.kind is PaneKind.PANE:
                rows.append(row)
            else:
                rows.remove(row)
    return [{**row, "place": [place]} for rows in left.values() for place, row in enumerate(rows)]


def _pipeline(case: Case) -> bm.Pipeline:
    pipeline = over.base.key_by(*case["keys"]).over(over.frame_of(case), order_by=case["order"])
    pipeline = pipeline.trigger(AfterWatermark(early=Always())) if case["early"] else pipeline
    return pipeline.allowed_lateness("100 days").accumulating_and_retracting().accumulate(**VALUES)


def facts(case: Case, _: Row | None, __: Row | None) -> Mapping[str, Any]:
    """Facts for the decisions."""
    return {"frame": case["frame"]["is"], "order": case["order"]}


def command() -> list[str | Path]:
    """The program, in this environment."""
    return [sys.executable, "-m", "peers.spark_over.program"]


PEER = Peer(
    "spark_over",
    "Spark's window functions",
    pyspark.__version__,
    cases(),
    given,
    here,
    there,
    facts,
    ("frame", "order"),
    over.kinds,
    without_parts,
    command=command,
    processes=1,
    together=1_000,
)
