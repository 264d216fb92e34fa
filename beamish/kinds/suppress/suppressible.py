"""The contract of a stage whose output can be suppressed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.stage import Stage
from beamish.contract.updates import UpdatingOperator
from beamish.kinds.suppress.option import Suppress


class Suppressible(Stage, Protocol):
    """A stage that can be suppressed."""

    def check_suppressed(self, takes: Sequence[Relation], suppress: Suppress) -> None:
        """Check it with the suppress, as ``check`` does.

        Raises:
            PipelineError: something is missing, or things do not go together.
        """
        ...

    def check_stream_suppressed(self, takes: Sequence[Relation], suppress: Suppress) -> None:
        """As ``check_stream``, with the suppress.

        Raises:
            PipelineError: nothing would ever come out.
        """
        ...

    def final_suppressed(self, suppress: Suppress) -> Stage:
        """What a batch needs of it."""
        return self.final

    def bind_suppressed(self, takes: Sequence[Relation], suppress: Suppress, *, shards: int) -> UpdatingOperator:
        """Bind it, as ``bind`` does, to give updates to a suppress."""
        ...

    def refined(self, operator: Operator) -> Operator:
        """The operator of what comes out at last, with what is computed and left out then."""
        return operator

    def measured(self, takes: Sequence[Relation], suppress: Suppress) -> str:
        """From what a wait is measured, for explain: what follows "until ..."."""
        ...

    def behind_us(self, takes: Sequence[Relation], suppress: Suppress) -> int:
        """How far past a pane's time the watermark is at least when it comes out, microseconds."""
        ...
