"""The text of explain(): the lines of each stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import fill
from typing import TYPE_CHECKING

from beamish.flow import BoundFlow, Flow, Panes
from beamish.fusion.groups import described

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Line = tuple[str, str]
"""Subject and text."""

_WIDTH, _INDENT = 110, 13


def explain(flow: Flow, df: DataFrame | None, inputs: Mapping[str, DataFrame]) -> str:
    """Explain a flow; with DataFrames also the column types, state and shards.

    Args:
        flow: the flow to explain.
        df: the rows of its only source; optional.
        inputs: in place of ``df`` the rows of each source by name.
    """
    flow.check()
    frames = [*inputs.values(), *([] if df is None else [df])]
    if not frames:
        return _stages(flow, _described(flow))
    from beamish.spark import bind, describe_batch

    bound = bind(flow, df, inputs)
    if not any(frame.isStreaming for frame in frames):
        return _stages(flow, ((*describe_batch(below), _columns(below)) for below in bound.flows))
    fused = described(bound)
    each = enumerate(bound.flows, 1)
    return _stages(flow, ((*_of_stream(below), *fused[number], _columns(below)) for number, below in each))


def explained(flow: Flow) -> list[tuple[str, list[Line]]]:
    """Explain a flow without DataFrames, as titles (empty for a single stage) and lines of its stages."""
    flow.check()
    stages = list(map(list, _described(flow)))
    return list(zip(_titles(flow), stages, strict=True))


def _described(flow: Flow) -> Iterator[Iterable[Line]]:
    fused = described(flow)
    for number, below in enumerate(flow.flows, 1):
        stage = below.stage if below is flow else below.stage.as_input
        yield [*stage.describe(below.takes, None), *fused[number]]


def _of_stream(flow: BoundFlow) -> Iterator[Line]:
    return flow.stage.describe(flow.operator.takes, flow.operator)


def _columns(flow: BoundFlow) -> Line:
    """The output's columns and their types."""
    names = flow.stage.names_of_rows(flow.operator.takes)
    given = flow.operator.gives.schema or []
    fields = [field for field in given if field.name in names] if names else given
    return "columns", ", ".join(f"{field.name} {field.type}" for field in fields)


def _stages(flow: Flow, stages: Iterable[Iterable[Line]]) -> str:
    texts = [text_of(lines) for lines in stages]
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"{title}\n{text}" for title, text in zip(_titles(flow), texts, strict=True))


def _titles(flow: Flow) -> list[str]:
    """The title of each stage, with its number; empty for a single stage."""
    names = _names(flow)
    if len(names) == 1:
        return [""]
    return [f"stage {i} of {len(names)}" + f": {name}" * (name is not None) for i, name in enumerate(names, 1)]


def _names(flow: Flow) -> list[str | None]:
    """The names under which merges take the panes of stages, in the order of ``flow.flows``."""
    names: list[str | None] = []
    for taken in flow.inputs:
        names += [*_names(taken.flow)[:-1], taken.name] if isinstance(taken, Panes) else []
    return [*names, None]


def text_of(lines: Iterable[Line]) -> str:
    """Subjects and texts as paragraphs."""
    return "\n".join(
        fill(f"{subject:<{_INDENT - 1}} {words}", _WIDTH, subsequent_indent=" " * _INDENT) for subject, words in lines
    )
