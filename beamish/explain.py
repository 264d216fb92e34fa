"""What a flow will do, in words: each stage's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import fill
from typing import TYPE_CHECKING

from beamish.engine.operator import Operator
from beamish.flow import BoundFlow, Flow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WIDTH, _INDENT = 110, 13


def explain(flow: Flow, df: DataFrame | None, inputs: Mapping[str, DataFrame]) -> str:
    """Say what a flow will do; with DataFrames also its columns' types, state and shards.

    Args:
        flow: what is explained.
        df: the rows of its only source; optional.
        inputs: in place of ``df`` the rows of each source by its name.
    """
    flow.check()
    if df is None and not inputs:
        return _stages(one.stage.describe(one.takes, None) for one in flow.flows)
    from beamish.spark import bind

    bound = bind(flow, df, inputs)
    frames = [df] if df is not None else inputs.values()
    if any(frame.isStreaming for frame in frames if frame is not None):
        return _stages(_of_stream(one) for one in bound.flows)
    from beamish.spark import describe_batch

    return _stages(describe_batch(one) for one in bound.flows)


def _of_stream(flow: BoundFlow) -> list[tuple[str, str]]:
    described = list(flow.stage.describe(flow.operator.takes, flow.operator))
    at = next((i for i, (subject, _) in enumerate(described) if subject == "carried"), len(described))
    return [*described[:at], columns(flow.operator), *described[at:]]


def columns(operator: Operator) -> tuple[str, str]:
    """The output's columns and their types."""
    schema = operator.gives.schema
    return "columns", ", ".join(f"{field.name} {field.type}" for field in schema or [])


def _stages(stages: Iterable[Iterable[tuple[str, str]]]) -> str:
    texts = [_text(lines) for lines in stages]
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"stage {number} of {len(texts)}\n{text}" for number, text in enumerate(texts, 1))


def _text(subjects: Iterable[tuple[str, str]]) -> str:
    return "\n".join(
        fill(f"{subject:<{_INDENT - 1}} {words}", _WIDTH, subsequent_indent=" " * _INDENT)
        for subject, words in subjects
    )
