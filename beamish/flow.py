"""A flow is a tree: its leaves are sources, its nodes stages.

The inputs of a stage, a ``Source`` or the ``Panes`` of another flow, share an interface, so the tree is walked without type checks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation, SlotSemantics
from beamish.contract.stage import Stage
from beamish.contract.stand_ins import STAND_INS
from beamish.errors import PipelineError
from beamish.kernels.expressions import Formula
from beamish.kernels.field_paths import as_columns, parts_of
from beamish.kernels.identity import identity
from beamish.kernels.spec import UnreadableError, read_spec, shown_spec
from beamish.source import Source
from beamish.tables.older import described
from beamish.triggers import Never
from beamish.watermarks import Watermark


@attrs.frozen
class Panes:
    """The panes of a flow, as an input of a stage.

    Attributes:
        flow: the flow that emits them.
        keys: the columns the stage groups them by; None: their own keys.
        name: the name of the input, if the stage has several.
        where: the condition on the panes, as an input of a merge or join, or as a table's changes; None: all.
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
        """The stages below it, each after those it depends on."""
        return self.flow.flows

    @property
    def final(self) -> Panes:
        """The requirements on a batch."""
        return attrs.evolve(self, flow=self.flow.final)

    @property
    def relation(self) -> Relation:
        """Its relation as an input, as far as known without data."""
        gives = self.flow.gives
        keys = gives.keys if self.keys is None else self.keys
        return attrs.evolve(gives, keys=keys, name=self.name, where=self.where)

    def named(self, name: str) -> Panes:
        """The same under another name; renames its source too, if it has only one."""
        only_one = len(self.sources) == 1
        flow = self.flow.on_sources(lambda source: source.named(name)) if only_one else self.flow
        return attrs.evolve(self, flow=flow, name=name)

    def on_sources(self, change: Callable[[Source], Input]) -> Panes:
        """The same over other leaves."""
        return attrs.evolve(self, flow=self.flow.on_sources(change))

    def check(self) -> None:
        """Check that panes can be passed to another stage (PipelineError: the output includes dropped rows)."""
        if self.flow.stage.with_dropped:
            raise PipelineError(
                "with_dropped() before another stage: only panes are forwarded; move it to the last stage; or make this stage a "
                "query of its own, whose foreachBatch writes bm.panes(batch) to one table and bm.dropped(batch) to another, and "
                "read the first in a second query"
            )

    def bind(self, schemas: Mapping[str | None, pa.Schema], *, shards: int) -> tuple[BoundFlow, pa.Schema]:
        """The bound flow that emits them, and its columns."""
        bound = attrs.evolve(self.flow, stage=self.flow.stage.as_input).bind(schemas, shards=shards)
        return bound, as_columns(bound.operator.gives.schema)


Input = Source | Panes


@attrs.frozen
class Flow:
    """A stage and its inputs."""

    stage: Stage
    inputs: tuple[Input, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The leaves, from left to right."""
        return tuple(source for taken in self.inputs for source in taken.sources)

    @property
    def completed(self) -> Flow:
        """The same, but a source without an event time is declared to have none if its stage needs none."""
        return attrs.evolve(self, inputs=tuple(self._completed(taken) for taken in self.inputs))

    def _completed(self, taken: Input) -> Input:
        if isinstance(taken, Panes):
            return attrs.evolve(taken, flow=taken.flow.completed)
        return taken if self.stage.needs_event_time else taken.untimed()

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The stages with their inputs, each after those it depends on; the last is itself."""
        return (*(flow for taken in self.inputs for flow in taken.flows), self)

    @property
    def leaves(self) -> Iterator[tuple[Source, Flow, int]]:
        """Each source, the flow whose stage takes it, and the input number that it has there."""
        for flow in self.flows:
            for number, taken in enumerate(flow.inputs):
                if isinstance(taken, Source):
                    yield taken, flow, number

    @property
    def may_fire_again(self) -> bool:
        """Whether a window of its stage may have several panes."""
        trigger = self.stage.core.declared("trigger")
        if trigger is None:
            return True
        late = bool(self.stage.core.declared("lateness")) and not isinstance(trigger, Never)
        return late or trigger.can_fire_before_end()

    @property
    def counted_firings(self) -> str | None:
        """Why its stage counts how often another one fires: it adds up panes that are neither final nor retracted; None: it does not.

        A condition on the panes may choose one of each window.
        """
        core = self.stage.core
        accumulations = core.declared("accumulations") or {}
        for taken in self.inputs:
            if not isinstance(taken, Panes) or (taken.where or core.declared("where")) is not None:
                continue
            follows = taken.flow.gives.follows
            is_part = follows is SlotSemantics.ADDING
            names = [name for name, of in accumulations.items() if of.inputs == () or not is_part]
            if names and taken.flow.may_fire_again and follows in (SlotSemantics.ADDING, SlotSemantics.REPLACING):
                what = "the parts of a result" if is_part else "results so far, each with the rows of the one before"
                return (
                    f"accumulate({names[0]}={accumulations[names[0]]!r}) counts firings: its rows are the panes of the stage "
                    f"{f'{taken.name!r} ' if taken.name else ''}before, which are {what}; make that stage "
                    ".accumulating_and_retracting(), or give it .suppress(bm.UntilWindowCloses())"
                )
        return None

    def initial(self, given: Any) -> dict[str | None, Any]:
        """The initial rows of tables, by the names of their sources.

        Args:
            given: by name; or the rows themselves for a single table; None: none.

        Raises:
            PipelineError: no such table, or several tables.
        """
        if given is None:
            return {}
        tables = [source.name for source, flow, number in self.leaves if flow.stage.may_begin_with(number)]
        if not tables:
            raise PipelineError(
                f"initial={given!r}: only a table over a source can have initial rows; declare .versions(...), or leave it out"
            )
        if not isinstance(given, Mapping) and len(tables) > 1:
            raise PipelineError(
                f"initial={given!r}: the pipeline has tables {tables!r}; name the table: initial={{{tables[0]!r}: ...}}"
            )
        named = given if isinstance(given, Mapping) else dict.fromkeys(tables, given)
        for name in named:
            if name not in tables:
                known = f"its tables are {tables!r}" if tables != [None] else "pass the rows of its only table directly"
                raise PipelineError(f"initial={{{name!r}: ...}}: the pipeline has no such table; {known}")
        return dict(named)

    @property
    def listing_dropped(self) -> Flow:
        """The same, emitting dropped rows from its last stage if that can."""
        try:
            changed = attrs.evolve(self, stage=self.stage.declaring("with_dropped()", with_dropped=True))
            changed.check()
        except PipelineError:
            return self
        return changed

    def on_sources(self, change: Callable[[Source], Input]) -> Flow:
        """The same flow over other leaves."""
        return attrs.evolve(self, inputs=tuple(taken.on_sources(change) for taken in self.inputs))

    @property
    def final(self) -> Flow:
        """The requirements on a batch."""
        return Flow(self.stage.final, tuple(taken.final for taken in self.inputs))

    @property
    def takes(self) -> tuple[Relation, ...]:
        """The relations of the stage's inputs, as far as known without data."""
        relations = tuple(taken.relation for taken in self.inputs)
        return relations if len(relations) > 1 else (attrs.evolve(relations[0], name=None),)

    @property
    def gives(self) -> Relation:
        """The relation of the output, as far as known without data."""
        return self.stage.gives(self.takes)

    def check(self) -> None:
        """Check all stages, before the flow is applied, run or explained.

        Raises:
            PipelineError: an option is missing, or options do not work together.
        """
        for flow in self.flows:
            for taken in flow.inputs:
                taken.check()
            _check_key_sets(flow)
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
        takes = [known.naming(self.stage.asks(takes, number)) for number, known in enumerate(takes)]
        return BoundFlow(self.stage, self.stage.bind(takes, shards=shards), tuple(taken for taken, _ in bound))


def _check_key_sets(flow: Flow) -> None:
    """Check that only windows over one source are grouped by several key sets (PipelineError: others are)."""
    for taken in flow.inputs:
        if isinstance(taken, Source) and taken.key_sets is not None:
            if len(flow.inputs) > 1:
                raise PipelineError(
                    f"{taken.name}: key_by({taken.key_sets!r}) of a merge: a total has null keys, which never pair; key it by columns, and "
                    "aggregate it in a stage of its own before"
                )
            time = taken.event_time
            if time is not None and not isinstance(time, str):
                raise PipelineError(
                    f"key_by({taken.key_sets!r}): event_time({time}) is computed where key columns are null in totals; add it as a column "
                    "before, df.withColumn('at', ...), and name that"
                )
            if {time, (parts_of(time) or ("",))[0]} & {*taken.key_sets.columns}:
                raise PipelineError(
                    f"key_by({taken.key_sets!r}): {time!r} is the event time, and would be null in totals; add a copy of the column "
                    "before, df.withColumn('day', ...)"
                )
            if flow.stage.core.declared("trigger") is None:
                raise PipelineError(
                    f"key_by({taken.key_sets!r}) of a stage without windows: each row would be there several times; aggregate in windows: "
                    ".window(bm.GlobalWindow())..., or key it by columns"
                )


@attrs.frozen(eq=False)
class BoundFlow:
    """A flow whose stages are bound to columns and types.

    Attributes:
        stage: the last stage.
        operator: the bound stage.
        inputs: for each input of the stage its source, or the flow whose panes it takes.
    """

    stage: Stage
    operator: Operator
    inputs: tuple[Source | BoundFlow, ...]

    @property
    def flows(self) -> tuple[BoundFlow, ...]:
        """Each after those it depends on; the last is itself."""
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
        """Whether the processing-time clock is needed."""
        return any(flow.operator.needs_clock for flow in self.flows)

    @property
    def policies(self) -> tuple[Watermark, ...]:
        """The watermark policies of its sources that matter."""
        return tuple(
            source.watermark for source in self.sources if source.watermark is not None and source.is_waited_for
        )


DESCRIPTION = 2
"""The version of what is written; readers ignore what they do not know."""


def descriptions(flow: BoundFlow) -> list[dict[str, Any]]:
    """The description of each stage, in the order of ``flow.flows``.

    Each has ``stage`` and ``stages`` (its number, from 1, and how many there are), ``spec`` (of the stage), and
    ``inputs`` (the number of the stage, and spec).
    """
    flows = flow.flows
    number = {id(one): place for place, one in enumerate(flows, 1)}
    return [
        {
            "version": DESCRIPTION,
            "stage": number[id(one)],
            "stages": len(flows),
            "spec": identity(one.stage),
            "inputs": [
                {"stage": number.get(id(taken)), "spec": identity(attrs.evolve(relation, schema=None))}
                for relation, taken in zip(one.operator.takes, one.inputs, strict=True)
            ],
        }
        for one in flows
    ]


@attrs.frozen
class InputDescription:
    """The description of an input.

    Attributes:
        name: what the stage calls it; None: it is the only one.
        stage: the number of the stage whose panes it is; None: it is a source, or not known.
        keys: its key columns; empty: it has none, or they are not known.
        moves: how its watermark moves, in words; None: it is that of its stage, or not known.
        delay_us, lag_us: by how much it trails its rows, and the clock; None: not at all, or not known.
        spec: its spec; empty: not known.
    """

    name: str | None = None
    stage: int | None = None
    keys: Sequence[str] = ()
    moves: str | None = None
    delay_us: int | None = None
    lag_us: int | None = None
    spec: Mapping[str, Any] = attrs.field(factory=dict)

    @classmethod
    def of(cls, stage: int | None, spec: Mapping[str, Any], relation: Relation) -> InputDescription:
        """From its entry in a description, and the relation that is read from the spec."""
        if stage is not None or not relation.watermarks:
            return cls(relation.name, stage, relation.keys, spec=spec)
        policy = relation.policy
        lag_us = None if policy.lag is None else policy.lag.us
        return cls(relation.name, None, relation.keys, policy.describe(), policy.delay.us, lag_us, spec)


@attrs.frozen
class Description:
    """The description of a stage, read.

    Attributes:
        number: its number, from 1; 0: not known.
        inputs: what it takes.
        lines: the lines of explain.
        spec: its spec; empty: not known.
        suppress: the name of its suppress; None: it has none.
        only_updated: whether it leaves out panes that change nothing.
        keeps: what it keeps.
    """

    number: int = 0
    inputs: Sequence[InputDescription] = ()
    lines: Mapping[str, str] = attrs.field(factory=dict)
    spec: Mapping[str, Any] = attrs.field(factory=dict)
    suppress: str | None = None
    only_updated: bool = False
    keeps: Collection[Keeps] = ()

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> Description:
        """A description as stored; empty: not stored."""
        if "spec" not in about:
            older, rest = described(about)
            return cls(inputs=[InputDescription(**one) for one in older], **rest)
        try:
            takes = [read_spec(one["spec"], Relation, STAND_INS) for one in about["inputs"]]
        except UnreadableError:  # of a later version
            return cls(about["stage"])
        inputs = [InputDescription.of(**one, relation=of) for one, of in zip(about["inputs"], takes, strict=True)]
        read = partial(cls, about["stage"], inputs, spec=about["spec"])
        try:
            stage: Stage = read_spec(about["spec"], Stage, STAND_INS)
        except UnreadableError:
            return read({"stage": shown_spec(about["spec"])})
        keeps, only_updated = stage.keeps(takes), bool(stage.core.declared("only_updated"))
        lines = dict(stage.describe(takes, None))
        return read(lines, suppress=keeps.get(Keeps.HELD), only_updated=only_updated, keeps=tuple(keeps))

    def rebuilt(self) -> tuple[Stage, list[Relation]]:
        """The stage and its inputs.

        Raises:
            UnreadableError: they have functions or custom classes, or are not known.
        """
        return read_spec(self.spec, Stage, {}), [read_spec(one.spec, Relation, {}) for one in self.inputs]
