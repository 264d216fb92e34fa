"""A source: the rows that come in, as far as a pipeline says what they are."""

from __future__ import annotations

from typing import Any

import attrs

from beamish.errors import PipelineError
from beamish.plan.relation import Relation
from beamish.watermarks import Watermark
from beamish.windows.option import WindowOption


@attrs.frozen
class Source:
    """Rows from outside: a leaf of a flow.

    Attributes:
        event_time: the column that holds a row's event time; None where nothing was declared.
        watermark: how the watermark follows it.
        keys: by which columns the stage that takes the rows groups them.
        name: what the rows are called in a script and where DataFrames are named; None where there is one source only.
    """

    event_time: Any = None
    watermark: Watermark | None = None
    keys: tuple[Any, ...] = ()
    name: str | None = None

    def check(self) -> None:
        """Check that it is complete.

        Raises:
            PipelineError: it has no event time.
        """
        if self.event_time is None or self.watermark is None:
            of = "" if self.name is None else f" of {self.name}"
            raise PipelineError(
                f"no event time{of}: say .event_time(column, bm.BoundedOutOfOrderness('30 seconds')); without a watermark "
                "no window would ever close"
            )

    @property
    def relation(self) -> Relation:
        """What a stage takes of it, as far as it is known without data."""
        watermarks = () if self.watermark is None else (self.watermark,)
        return Relation(self.keys, self.event_time, watermarks=watermarks, name=self.name)


@attrs.frozen
class StoredPanes(Source):
    """The panes that some query gave, as a leaf: no more is known of its stage than their columns.

    So they may hold retractions, and the watermark is whatever the runner says.

    Attributes:
        retracts: whether they may hold retractions.
    """

    retracts: bool = True

    def check(self) -> None:
        pass

    @property
    def relation(self) -> Relation:
        return Relation(self.keys, window=UnknownWindows(), retracts=self.retracts, name=self.name)


@attrs.frozen
class UnknownWindows(WindowOption):
    """Windows that are known from panes alone."""

    def describe(self) -> str:
        return "those of the stage that gave them"
