"""Conditions and computed columns, each with its meaning in plain Python, for the twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import beamish as bm
from beamish.flow import Input
from beamish.kernels.expressions import Formula
from beamish.source import Source
from tests.declared_options import evolve, said

Meaning = Callable[[Mapping[str, Any]], Any]
SCORE, COUNT, VALUE, TIMING = pc.field("score"), pc.field("n"), pc.field("value"), pc.field("pane", "timing")


def above(column: str, bound: int) -> Meaning:
    def meaning(row: Mapping[str, Any]) -> Any:
        return None if row.get(column) is None else row[column] > bound

    return meaning


TAKEN: list[tuple[pc.Expression, Meaning]] = [
    (SCORE > 2, above("score", 2)),
    (~(SCORE > 2), lambda row: None if row.get("score") is None else row["score"] <= 2),
    (SCORE.is_null() | (SCORE > 0), lambda row: row.get("score") is None or row["score"] > 0),
]
OF_INPUTS: list[tuple[pc.Expression, Meaning]] = [
    (VALUE > 1, above("value", 1)),
    (VALUE.is_null() | (VALUE != 2), lambda row: row.get("value") is None or row["value"] != 2),
]
SHOWN: list[tuple[pc.Expression, Meaning]] = [
    (COUNT > 1, above("n", 1)),
    ((TIMING != "LATE") & (COUNT > 0), lambda row: row["timing"] != "LATE" and row["n"] > 0),
    (~pc.field("pane", "is_last"), lambda row: not row["is_last"]),
]
COMPUTED: list[tuple[pc.Expression, Meaning]] = [
    (COUNT * 2 + 1, lambda row: row["n"] * 2 + 1),
    (COUNT.cast(pa.float64()) / 4, lambda row: row["n"] / 4),
]
FIRST_ROWS: list[tuple[pc.Expression, Meaning]] = [
    (pc.field("place") <= most, lambda row, most=most: row["place"] <= most)  # type: ignore[misc]
    for most in (1, 2, 3)
]
"""The conditions of a Top-N."""
OF_TRANSCRIPTS: list[tuple[pc.Expression, Meaning]] = [
    (pc.field("id") != name, lambda row, name=name: row["id"] != name)  # type: ignore[misc]
    for name in ("L-5", "R-5")
]
MEANINGS = {
    str(expression): meaning
    for expression, meaning in (*TAKEN, *OF_INPUTS, *SHOWN, *COMPUTED, *FIRST_ROWS, *OF_TRANSCRIPTS)
}


def one_of(some: list[tuple[pc.Expression, Meaning]]) -> st.SearchStrategy[Formula]:
    return st.sampled_from([Formula(expression) for expression, _ in some])


@st.composite
def conditioned(draw: st.DrawFn, pipeline: bm.Pipeline) -> bm.Pipeline:
    """A merge, a join or a table with conditions on its inputs."""

    def conditioned_input(taken: Input) -> Input:
        if isinstance(taken, Source):
            return attrs.evolve(taken, where=draw(st.none() | one_of(OF_INPUTS)))
        return taken

    flow = pipeline.flow
    return bm.Pipeline(attrs.evolve(flow, inputs=tuple(map(conditioned_input, flow.inputs))))


@st.composite
def refined(draw: st.DrawFn, pipeline: bm.Pipeline, *, where: bool = True) -> bm.Pipeline:
    """A pipeline with n=Count(), conditions on rows and panes, computed columns, and an array ``each`` as rows."""
    return evolve(
        pipeline,
        explode=draw(st.sampled_from([None, None, "each"])) if "each" in said(pipeline).accumulations else None,
        where=draw(st.none() | one_of(TAKEN)) if where else None,
        having=draw(st.none() | one_of(SHOWN)),
        derived=draw(st.dictionaries(st.just("more"), one_of(COMPUTED))),
    )


def meaning(formula: Formula) -> Meaning:
    return MEANINGS[str(formula.expression)]


@attrs.frozen
class Shown:
    """The refinement of the output, for the twin."""

    having: Formula | None
    derived: Mapping[str, Formula]
    explode: str | None = None

    def of(self, panes: list[bm.Pane]) -> list[bm.Pane]:
        """Panes with computed columns that satisfy the condition; dropped rows unchanged."""
        out = []
        for pane in panes:
            if pane.kind is bm.PaneKind.DROPPED:
                out.append(pane)
                continue
            row = {**pane.key, **pane.values, "timing": str(pane.timing), "is_last": pane.is_last}
            computed = {name: meaning(formula)(row) for name, formula in self.derived.items()}
            if self.having is None or meaning(self.having)(row | computed):
                out += exploded(attrs.evolve(pane, values={**pane.values, **computed}), self.explode)
        return out


def exploded(pane: bm.Pane, column: str | None) -> list[bm.Pane]:
    """A pane, or one for each item of its array (rules/stage-rows.md#explode)."""
    if column is None:
        return [pane]
    return [attrs.evolve(pane, values={**pane.values, column: item}) for item in pane.values[column] or ()]
