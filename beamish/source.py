"""A source: the input rows, as declared by a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Never, TypeVar

import attrs
import pyarrow as pa

from beamish.contract.relation import Relation
from beamish.contract.stand_ins import UnknownWindows
from beamish.errors import PipelineError
from beamish.forms import InputForm
from beamish.kernels.column_names import NO_EVENT_TIME
from beamish.kernels.expressions import Formula
from beamish.kernels.key_sets import GROUPING_ID, KeySets
from beamish.watermarks import NoWatermark, Watermark

_T = TypeVar("_T")


@attrs.frozen
class Source:
    """External rows: a leaf of a flow.

    Attributes:
        event_time: the event-time column; None: not declared.
        watermark: its policy.
        keys: the grouping columns of the consuming stage.
        name: its name in scripts and for DataFrames; None for a single source.
        is_waited_for: whether its watermark counts for the consuming stage.
        form: its change format; None: inserts only.
        where: its condition, as an input of a merge or join, or a table's changes; None: all.
        key_sets: the sets of its keys that rows are grouped by, in one pass; None: by all.
    """

    event_time: Any = None
    watermark: Watermark | None = None
    keys: tuple[Any, ...] = ()
    name: str | None = None
    is_waited_for: bool = True
    form: InputForm | None = None
    where: Formula | None = None
    key_sets: KeySets | None = None

    @property
    def gives_panes(self) -> bool:
        """Whether its rows are the panes of a query."""
        return False

    def untimed(self) -> Source:
        """The same, without an event time if it declares none and its stage needs none."""
        if self.event_time is not None:
            return self
        return attrs.evolve(self, event_time=NO_EVENT_TIME, watermark=NoWatermark())

    def check(self) -> None:
        """Check that it is complete (PipelineError: the event time is missing)."""
        if self.event_time is None or self.watermark is None:
            of = "" if self.name is None else f" of {self.name}"
            raise PipelineError(
                f"no event time{of}: add .event_time(column, bm.BoundedOutOfOrderness('30 seconds')); without a watermark "
                "no window would ever end"
            )

    @property
    def relation(self) -> Relation:
        """Its relation as an input, as far as known without data."""
        watermarks = () if self.watermark is None else (self.watermark,)
        return Relation(
            self.keys,
            self.event_time,
            retracts=self.form is not None,
            watermarks=watermarks,
            name=self.name,
            where=self.where,
            key_sets=() if self.key_sets is None else self.key_sets.sets,
        )

    def without_retractions(self) -> Source:
        """The same if it is known to have no retractions."""
        return self

    @property
    def _keys(self) -> tuple[Any, ...]:
        """Its keys as they were declared."""
        if self.key_sets is None:
            return self.keys
        at = self.keys.index(self.key_sets.columns[0])
        rest = [name for name in self.keys if name not in (*self.key_sets.columns, GROUPING_ID)]
        return (*rest[:at], self.key_sets, *rest[at:])

    def calls(self) -> str:
        """The pipeline calls that declare it."""
        times = "" if self.event_time is None else f".event_time({self.event_time!r}, {self.watermark!r})"
        return (
            ("" if self.form is None else self.form.call()) + times + key_by_call(self._keys) + where_call(self.where)
        )

    # As an input of a flow (flow.py): it is its own only leaf, and has no stages.

    @property
    def sources(self) -> tuple[Source, ...]:
        """Itself."""
        return (self,)

    @property
    def flows(self) -> tuple[Never, ...]:
        """None."""
        return ()

    @property
    def final(self) -> Source:
        """Its requirements on a batch."""
        return self

    def named(self, name: str) -> Source:
        """The same under another name."""
        return attrs.evolve(self, name=name)

    def on_sources(self, change: Callable[[Source], _T]) -> _T:
        """Its replacement."""
        return change(self)

    def bind(self, schemas: Mapping[str | None, pa.Schema], *, shards: int) -> tuple[Source, pa.Schema]:
        """Itself and its columns."""
        return self, schemas[self.name]


@attrs.frozen
class StoredPanes(Source):
    """The panes of a query, as a leaf: only their columns are known.

    They may have retractions, and the watermark comes from the runner.

    Attributes:
        retracts: whether they may have retractions.
    """

    retracts: bool = True

    @property
    def gives_panes(self) -> bool:
        return True

    def check(self) -> None:
        pass

    @property
    def relation(self) -> Relation:
        return Relation(
            self.keys,
            window=UnknownWindows("those of the stage that gave the panes"),
            retracts=self.retracts,
            name=self.name,
        )

    def untimed(self) -> StoredPanes:
        return self

    def without_retractions(self) -> StoredPanes:
        return attrs.evolve(self, retracts=False)


def key_by_call(keys: tuple[Any, ...]) -> str:
    """The call that declares keys; empty without keys."""
    return f".key_by({', '.join(map(repr, keys))})" if keys else ""


def where_call(where: Formula | None) -> str:
    """The call that declares a condition; empty without one."""
    return "" if where is None else f".where({where!r})"
