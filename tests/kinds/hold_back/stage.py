"""A stage kind of a user's own: rows are held back for a span of event time, and let go in the order of their times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish import Pipeline
from beamish.contract.at_rest import Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.stage import Stage
from beamish.durations import Duration, DurationLike, read_positive
from beamish.errors import PipelineError
from beamish.flow import Flow, Panes
from beamish.source import Source
from tests.kinds.hold_back.operator import NAME, HoldBackOperator


@attrs.frozen
class HoldBack(Stage):
    """A row is emitted when the watermark is ``span`` past its event time; a row without event time immediately."""

    span: Duration = attrs.field(converter=read_positive)

    def check(self, takes: Sequence[Relation]) -> None:
        if len(takes) > 1 or takes[0].retracts:
            raise PipelineError(f"{self!r}: takes one input, which does not retract; let it be accumulating()")

    def gives(self, takes: Sequence[Relation]) -> Relation:
        return Relation(takes[0].keys, watermarks=takes[0].watermarks)

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        return HoldBackOperator(takes, self.gives(takes), shards if takes[0].keys else 1, self.span.us)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.HELD: NAME}

    def suppressed_by(self, suppress: Any) -> HoldBack:
        return self

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        yield "rows", f"held back until the watermark is {self.span} past their event time, then let go in its order"


def held_back(span: DurationLike, before: Pipeline | Source) -> Pipeline:
    return Pipeline(Flow(HoldBack(span), (before if isinstance(before, Source) else Panes(before.flow),)))
