"""What a flow will do, in words: each stage's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import fill
from typing import TYPE_CHECKING

from beamish.engine.operator import Operator
from beamish.flow import BoundFlow, Flow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Line = tuple[str, str]
"""Subject and words."""

_WIDTH, _INDENT = 110, 13


def explain(flow: Flow, df: DataFrame | None, inputs: Mapping[str, DataFrame]) -> str:
    """Say what a flow will do; with DataFrames also its columns' types, state and shards.

    Args:
        flow: what is explained.
        df: the rows of its only source; optional.
        inputs: in place of ``df`` the rows of each source by its name.
    """
    flow.check()
    frames = [*inputs.values(), *([] if df is None else [df])]
    if not frames:
        return _stages(one.stage.describe(one.takes, None) for one in flow.flows)
    from beamish.spark import bind, describe_batch

    bound = bind(flow, df, inputs)
    of_stage = _of_stream if any(frame.isStreaming for frame in frames) else describe_batch
    return _stages((*of_stage(one), _columns(one.operator)) for one in bound.flows)


def _of_stream(flow: BoundFlow) -> Iterator[Line]:
    return flow.stage.describe(flow.operator.takes, flow.operator)


def _columns(operator: Operator) -> Line:
    """The output's columns and their types."""
    return "columns", ", ".join(f"{field.name} {field.type}" for field in operator.gives.schema or [])


def _stages(stages: Iterable[Iterable[Line]]) -> str:
    texts = [_text(lines) for lines in stages]
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"stage {number} of {len(texts)}\n{text}" for number, text in enumerate(texts, 1))


def _text(lines: Iterable[Line]) -> str:
    return "\n".join(
        fill(f"{subject:<{_INDENT - 1}} {words}", _WIDTH, subsequent_indent=" " * _INDENT) for subject, words in lines
    )
