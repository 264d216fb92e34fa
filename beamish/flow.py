"""A flow is a tree: its leaves are sources, its nodes stages. Everything else about pipelines walks it.

What a stage takes, a ``Source`` or the ``Panes`` of another flow, answers the same questions, so that the tree is walked
without asking what kind an input is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.stage import Stage
from beamish.errors import PipelineError
from beamish.kernels.formulas import Formula
from beamish.source import Source
from beamish.watermarks import Watermark


@attrs.frozen
class Panes:
    """The panes of a flow, as an input of a stage.

    Attributes:
        flow: what gives them.
        keys: by which columns the stage that takes them groups them; None: by their own keys.
        name: what the stage calls them, where it takes several inputs.
        where: which of them are taken, where they are an input of a merge or join, or a table's changes; None: all.
    """

    flow: Flow
    keys: tuple[Any, ...] | None = None
    name: str | None = None
    where: Formula | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The leaves below it, from left to right."""
        return self.flow.sources

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The stages below it, each after those whose panes it takes."""
        return self.flow.flows

    @property
    def final(self) -> Panes:
        """What a batch needs of it."""
        return attrs.evolve(self, flow=self.flow.final)

    @property
    def relation(self) -> Relation:
        """What a stage takes of it, as far as it is known without data."""
        gives = self.flow.gives
        keys = gives.keys if self.keys is None else self.keys
        return attrs.evolve(gives, keys=keys, name=self.name, where=self.where)

    def named(self, name: str) -> Panes:
        """The same under a name, and its source too, if it has only one."""
        only_one = len(self.sources) == 1
        flow = self.flow.on_sources(lambda source: source.named(name)) if only_one else self.flow
        return attrs.evolve(self, flow=flow, name=name)

    def on_sources(self, change: Callable[[Source], Input]) -> Panes:
        """The same over other leaves."""
        return attrs.evolve(self, flow=self.flow.on_sources(change))

    def check(self) -> None:
        """Check that they can be taken.

        Raises:
            PipelineError: dropped rows would come with them.
        """
        if self.flow.stage.with_dropped:
            raise PipelineError(
                "with_dropped() in a stage whose panes another stage takes: only panes go on; say it in the last stage; or let this "
                "stage be a query of its own, whose foreachBatch writes bm.panes(batch) to one table and bm.dropped(batch) to another, and "
                "read the first in a second query"
            )

    def bind(self, schemas: Mapping[str | None, pa.Schema], *, shards: int) -> tuple[BoundFlow, pa.Schema]:
        """The bound flow that gives them, and its columns."""
        bound = attrs.evolve(self.flow, stage=self.flow.stage.going_on).bind(schemas, shards=shards)
        return bound, bound.operator.gives.schema


Input = Source | Panes


@attrs.frozen
class Flow:
    """A stage and what it takes."""

    stage: Stage
    inputs: tuple[Input, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The leaves, from left to right."""
        return tuple(source for taken in self.inputs for source in taken.sources)

    @property
    def completed(self) -> Flow:
        """The same, and rows of sources have no event time where none is said and their stage needs none."""
        return attrs.evolve(self, inputs=tuple(self._completed(taken) for taken in self.inputs))

    def _completed(self, taken: Input) -> Input:
        if isinstance(taken, Panes):
            return attrs.evolve(taken, flow=taken.flow.completed)
        return taken if self.stage.needs_event_time else taken.untimed()

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The stages with what they take, each after those whose panes it takes; the last is itself."""
        return (*(flow for taken in self.inputs for flow in taken.flows), self)

    @property
    def leaves(self) -> Iterator[tuple[Source, Flow, int]]:
        """Each source, the flow whose stage takes it, and the number that it has among what the stage takes."""
        for flow in self.flows:
            for number, taken in enumerate(flow.inputs):
                if isinstance(taken, Source):
                    yield taken, flow, number

    def initial(self, given: Any) -> dict[str | None, Any]:
        """What tables begin with, by the names of their sources.

        Args:
            given: by name; or where there is one table only, itself; None: nothing.

        Raises:
            PipelineError: there is no such table, or several.
        """
        if given is None:
            return {}
        tables = [source.name for source, flow, number in self.leaves if flow.stage.may_begin_with(number)]
        if not tables:
            raise PipelineError(
                f"initial={given!r}: only a table of a source's rows begins with some; say .versions(...) of them, or leave it out"
            )
        if not isinstance(given, Mapping) and len(tables) > 1:
            raise PipelineError(
                f"initial={given!r}: the pipeline has tables {tables!r}; say whose it is: initial={{{tables[0]!r}: ...}}"
            )
        named = given if isinstance(given, Mapping) else dict.fromkeys(tables, given)
        for name in named:
            if name not in tables:
                known = f"its tables are {tables!r}" if tables != [None] else "give its only table's rows as they are"
                raise PipelineError(f"initial={{{name!r}: ...}}: the pipeline has no such table; {known}")
        return dict(named)

    def on_sources(self, change: Callable[[Source], Input]) -> Flow:
        """The same flow over other leaves."""
        return attrs.evolve(self, inputs=tuple(taken.on_sources(change) for taken in self.inputs))

    @property
    def final(self) -> Flow:
        """What a batch needs of it."""
        return Flow(self.stage.final, tuple(taken.final for taken in self.inputs))

    @property
    def takes(self) -> tuple[Relation, ...]:
        """What the stage takes, as far as it is known without data."""
        relations = tuple(taken.relation for taken in self.inputs)
        return relations if len(relations) > 1 else (attrs.evolve(relations[0], name=None),)

    @property
    def gives(self) -> Relation:
        """What it gives, as far as it is known without data."""
        return self.stage.gives(self.takes)

    def check(self) -> None:
        """Check all stages, before it is applied, run or explained.

        Raises:
            PipelineError: something is missing, or things do not go together.
        """
        for flow in self.flows:
            for taken in flow.inputs:
                taken.check()
            flow.stage.check(flow.takes)

    def bind(self, schemas: Mapping[str | None, pa.Schema], *, shards: int) -> BoundFlow:
        """Bind all stages to columns and types.

        Args:
            schemas: the columns of each source, by its name.
            shards: number of shards of each stage that is keyed.

        Raises:
            ColumnError: a column is missing or of the wrong type.
        """
        bound = [taken.bind(schemas, shards=shards) for taken in self.inputs]
        takes = [attrs.evolve(known, schema=schema) for known, (_, schema) in zip(self.takes, bound, strict=True)]
        return BoundFlow(self.stage, self.stage.bind(takes, shards=shards), tuple(taken for taken, _ in bound))


@attrs.frozen(eq=False)
class BoundFlow:
    """A flow whose stages are bound to columns and types.

    Attributes:
        stage: the last stage.
        operator: what it is bound to.
        inputs: for each input of the stage its source, or the flow whose panes it takes.
    """

    stage: Stage
    operator: Operator
    inputs: tuple[Source | BoundFlow, ...]

    @property
    def flows(self) -> tuple[BoundFlow, ...]:
        """Each after those whose panes it takes; the last is itself."""
        return (*(flow for taken in self.inputs for flow in taken.flows), self)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The leaves, from left to right."""
        return tuple(source for taken in self.inputs for source in taken.sources)

    @property
    def takes_source(self) -> bool:
        """Whether an input of the stage is a source."""
        return any(not taken.flows for taken in self.inputs)

    @property
    def needs_clock(self) -> bool:
        """Whether the processing-time clock must be brought in."""
        return any(flow.operator.needs_clock for flow in self.flows)

    @property
    def policies(self) -> tuple[Watermark, ...]:
        """How the watermarks of its sources move, as far as they count."""
        return tuple(
            source.watermark for source in self.sources if source.watermark is not None and source.is_waited_for
        )
