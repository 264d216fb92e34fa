"""Strategies of rows and functions that raise."""

from __future__ import annotations

import operator
from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from tests.declared_options import evolve
from tests.laws.batches import numbered
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.strategies.windows import windows

POISON = 4
HUGE = {5: 2**62, -3: -(2**62), 3: 2**61}


@attrs.frozen
class Picky(a.Accumulation):
    """A user's own sum, which raises for a score."""

    column: str = "score"
    result_type = "bigint"

    def create(self):
        return 0

    def add(self, accumulator, value):
        if value == POISON:
            raise ValueError(f"{value}!")
        return accumulator + ((value or 0) % 7)

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


def picky(accumulator: int, value: Any) -> int:
    return Picky().add(accumulator, value)


def narrow(accumulator: int, value: Any) -> int:
    """An accumulation that raises for one row among others."""
    if accumulator + abs(value or 0) % 1000 > 6:
        raise OverflowError("too much")
    return accumulator + abs(value or 0) % 1000


poisonable = st.one_of(
    st.just(a.Sum("score")),
    st.just(a.Sum("score")),
    st.sampled_from([Picky(), a.Count(), a.Mean("score"), a.Collect("score"), a.Fold(0, picky, "score", operator.add)]),
)
in_order = st.one_of(poisonable, st.sampled_from([a.Fold(0, picky, "score"), a.Fold(0, narrow, "score")]))


def dropping(pipeline: bm.Pipeline) -> bm.Pipeline:
    return evolve(pipeline, on_error="drop", with_dropped=True)


@st.composite
def poisoned(draw, /, window=windows, accumulation=in_order, **what):
    """A pipeline that drops rows for errors, and accumulations that raise."""
    option = draw(window)
    accumulation = poisonable if option.merging else accumulation
    return dropping(draw(pipelines(window=st.just(option), accumulation=accumulation, **what)))


def poisoned_scripts(pipeline):
    """Numbered scripts with scores that take sums over."""
    return scripts(pipeline).map(numbered).map(huge)


def huge(script):
    """The script with some scores as great as can be."""
    return changed(script, lambda row: {**row, "score": HUGE.get(row["score"], row["score"])})


def changed(script, change):
    """The script with other rows; None: without the row."""
    events = [
        attrs.evolve(event, rows=tuple(row for row in map(change, event.rows) if row is not None))
        if hasattr(event, "rows")
        else event
        for event in script.events
    ]
    return attrs.evolve(script, events=tuple(events))
