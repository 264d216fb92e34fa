"""The stage below one that calls ``event_time``: panes with a column of theirs as timestamp (docs/rules/stage-rows.md#event-time-of-stages)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from beamish.contract.inputs import describe_where
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.stage import Stage
from beamish.durations import Duration
from beamish.errors import OptionError, PipelineError
from beamish.kernels.column_names import is_reserved
from beamish.kinds.retime.operator import RetimeOperator, make_retime_plan
from beamish.watermarks import BoundedOutOfOrderness, Watermark


@attrs.frozen
class RetimeStage(Stage):
    """Panes whose timestamp is one of their columns (see ``contract/stage.py``).

    Attributes:
        column: the column.
        delay: how far the forwarded watermark is behind that of the stage before.
    """

    column: str
    delay: Duration

    @property
    def call(self) -> str:
        """The call that declares it."""
        return f"event_time({self.column!r}, BoundedOutOfOrderness({str(self.delay)!r}))"

    def declared(self, option: str) -> Any:
        return self.column if option == "event_time" else None

    def calls(self) -> Iterable[str]:
        return (f".{self.call}",)

    def check(self, takes: Sequence[Relation]) -> None:
        (relation,) = takes
        if relation.is_changelog:
            raise PipelineError(
                f"{self.call} after changes(): its rows set or delete others, and are not rows of their own; leave changes() and its suppress out"
            )
        if is_reserved(self.column):
            raise PipelineError(f"{self.call}: column {self.column!r}: such names are reserved; rename it")

    def gives(self, takes: Sequence[Relation]) -> Relation:
        relation = takes[0]
        return Relation(
            relation.keys,
            retracts=relation.retracts,
            watermarks=relation.watermarks,
            behind_us=max(relation.behind_us - self.delay.us, 0),
            slot=None,
            follows=relation.follows,
        )

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return (self.column,)

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        shards = shards if takes[0].keys else 1
        return RetimeOperator(make_retime_plan(self, takes[0], self.gives(takes), shards))

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        yield "rows", f"the panes of the stage before, each at the time in {self.column}"
        yield from describe_where(takes)
        behind = f"{self.delay} behind that of the stage before" if self.delay else "that of the stage before"
        yield "watermark", behind
        yield "bounded", "no rows are stored"
        yield "dropped", f"rows without {self.column}, or with one outside the years 1 to 9999"


def read_retime(column: Any, watermark: Watermark) -> RetimeStage:
    """Read the arguments of ``event_time`` in a later stage (OptionError: not a name, or another policy)."""
    call = f"event_time({column!r}, {watermark!r}) in a later stage"
    if not isinstance(column, str):
        raise OptionError(f"{call}: the rows are panes, not a DataFrame; give the name of a column")
    if watermark != BoundedOutOfOrderness(watermark.delay):
        raise OptionError(
            f"{call}: its watermark is that of the stage before, less a delay; use bm.BoundedOutOfOrderness('1 hour') without other options"
        )
    return RetimeStage(column, watermark.delay)
