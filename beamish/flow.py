"""A flow: a tree of which the leaves are sources and the nodes stages. Everything else about pipelines walks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pyarrow as pa

from beamish.engine.operator import Operator
from beamish.errors import PipelineError
from beamish.plan.relation import Relation
from beamish.source import Source
from beamish.stages.stage import Stage
from beamish.watermarks import Watermark


@attrs.frozen
class Panes:
    """The panes of a flow, as an input of a stage.

    Attributes:
        flow: what gives them.
        keys: by which columns the stage that takes them groups them; None: by their own keys.
        name: what the stage calls them, where it takes several inputs.
    """

    flow: Flow
    keys: tuple[Any, ...] | None = None
    name: str | None = None


Input = Source | Panes


@attrs.frozen
class Flow:
    """A stage and what it takes."""

    stage: Stage
    inputs: tuple[Input, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The leaves, from left to right."""
        return tuple(
            source for one in self.inputs for source in ((one,) if isinstance(one, Source) else one.flow.sources)
        )

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The stages with what they take, each after those whose panes it takes; the last is itself."""
        before = (flow for one in self.inputs if isinstance(one, Panes) for flow in one.flow.flows)
        return (*before, self)

    def on_sources(self, change: Callable[[Source], Input]) -> Flow:
        """The same flow over other leaves."""
        inputs = tuple(
            change(one) if isinstance(one, Source) else attrs.evolve(one, flow=one.flow.on_sources(change))
            for one in self.inputs
        )
        return attrs.evolve(self, inputs=inputs)

    @property
    def final(self) -> Flow:
        """What a batch needs of it."""
        inputs = tuple(
            one if isinstance(one, Source) else attrs.evolve(one, flow=one.flow.final) for one in self.inputs
        )
        return Flow(self.stage.final, inputs)

    @property
    def takes(self) -> tuple[Relation, ...]:
        """What the stage takes, as far as it is known without data."""
        relations = tuple(_relation(one) for one in self.inputs)
        return relations if len(relations) > 1 else tuple(attrs.evolve(one, name=None) for one in relations)

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
            for one in flow.inputs:
                if isinstance(one, Source):
                    one.check()
            flow.check_inputs()
            flow.stage.check(flow.takes)

    def check_inputs(self) -> None:
        """Check that other stages' panes can be taken.

        Raises:
            PipelineError: dropped rows would come with them.
        """
        for one in self.inputs:
            if isinstance(one, Panes) and one.flow.stage.with_dropped:
                raise PipelineError(
                    "with_dropped() in a stage whose panes another stage takes: only panes go on; say it in the last stage, "
                    "or apply the stages one by one and split the first one's output by bm.dropped"
                )

    def bind(self, schemas: Mapping[str | None, pa.Schema], *, shards: int) -> BoundFlow:
        """Bind all stages to columns and types.

        Args:
            schemas: the columns of each source, by its name.
            shards: number of shards of each stage that is keyed.

        Raises:
            ColumnError: a column is missing or of the wrong type.
        """
        inputs: list[Source | BoundFlow] = []
        takes = []
        for one, known in zip(self.inputs, self.takes, strict=True):
            if isinstance(one, Source):
                inputs.append(one)
                takes.append(attrs.evolve(known, schema=schemas[one.name]))
            else:
                bound = one.flow.bind(schemas, shards=shards)
                inputs.append(bound)
                takes.append(attrs.evolve(known, schema=bound.operator.gives.schema))
        return BoundFlow(self.stage, self.stage.bind(takes, shards=shards), tuple(inputs))


def _relation(one: Input) -> Relation:
    if isinstance(one, Source):
        return one.relation
    gives = one.flow.gives
    return attrs.evolve(gives, keys=gives.keys if one.keys is None else one.keys, name=one.name)


@attrs.frozen(eq=False)
class BoundFlow:
    """A flow whose stages are bound to columns and types.

    Attributes:
        inputs: for each input of the stage its source, or the flow whose panes it takes.
    """

    stage: Stage
    operator: Operator
    inputs: tuple[Source | BoundFlow, ...]

    @property
    def flows(self) -> tuple[BoundFlow, ...]:
        """Each after those whose panes it takes; the last is itself."""
        before = (flow for one in self.inputs if isinstance(one, BoundFlow) for flow in one.flows)
        return (*before, self)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The leaves, from left to right."""
        return tuple(source for one in self.inputs for source in ((one,) if isinstance(one, Source) else one.sources))

    @property
    def needs_clock(self) -> bool:
        """Whether the processing-time clock must be brought in."""
        return any(flow.operator.needs_clock for flow in self.flows)

    @property
    def policies(self) -> tuple[Watermark, ...]:
        """How the watermarks of its sources move."""
        return tuple(source.watermark for source in self.sources if source.watermark is not None)
