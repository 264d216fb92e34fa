"""The stage of ``bm.table_join``: the joined rows of two changing tables (docs/rules/joins.md#changing-tables)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.inputs import describe_where
from beamish.contract.operator import Operator
from beamish.contract.relation import PANE_COLUMNS, Relation, SlotSemantics
from beamish.contract.stage import Stage, elsewhere
from beamish.errors import PipelineError
from beamish.kernels.column_names import is_reserved
from beamish.kinds.table_join.operator import TableJoinOperator
from beamish.kinds.table_join.options import LEFT, RIGHT, TableJoinOptions
from beamish.kinds.table_join.plan import make_table_join_plan

_DECLARED = {"forget_after", "with_dropped"}


@attrs.frozen
class TableJoinStage(Stage):
    """A join of changing tables (see ``contract/stage.py``).

    Attributes:
        options: its options.
        is_final: whether the input is complete, as in a batch: each joined row is emitted once.
    """

    options: TableJoinOptions
    is_final: bool = False

    @property
    def with_dropped(self) -> bool:
        return self.options.with_dropped

    def declaring(self, call: str, **changes: Any) -> TableJoinStage:
        if not set(changes) <= _DECLARED:
            raise PipelineError(
                f"{call} of a table_join: it emits the rows of a table, and has no windows, trigger or mode; {elsewhere(changes)}"
            )
        return attrs.evolve(self, options=attrs.evolve(self.options, **changes))

    def declared(self, option: str) -> Any:
        return getattr(self.options, option) if option in _DECLARED else None

    @property
    def joined_by(self) -> str:
        return "table_join"

    def call_that_joins(self, takes: Sequence[Relation], inputs: Sequence[tuple[str, str]]) -> str:
        (left, right), ((_, rows), (_, others)) = takes, inputs
        on = dict(zip(left.keys, right.keys, strict=True))
        how = "" if self.options.how == "inner" else f", how={self.options.how!r}"
        return f"table_join({left.name}={rows}, {right.name}={others}, on={on!r}{how})"

    def calls(self) -> Iterable[str]:
        if self.options.forget_after is not None:
            yield f".forget_after({str(self.options.forget_after)!r})"
        if self.with_dropped:
            yield ".with_dropped()"

    def check_call(self, call: str) -> None:
        if call.startswith("where"):
            raise PipelineError(
                f"{call} of a table_join: call it on an input, bm.table_join(orders=orders.then(bm.Pipeline().where(...)), ...); for joined rows add a stage: .then(bm.Pipeline().where(...)...)"
            )
        raise PipelineError(
            f"{call} of a table_join: its inputs declare event_time, and on=... the columns to join on; or add a stage after: .then(bm.Pipeline().key_by(...))"
        )

    def check(self, takes: Sequence[Relation]) -> None:
        for relation in takes:
            call = f"table_join({relation.name}=...)"
            if relation.is_changelog:
                raise PipelineError(
                    f"{call}: changes() emits rows that set or delete others, and the rows they replace are unknown; use upserts() in place of it"
                )
            if relation.follows is SlotSemantics.REPLACING:
                raise PipelineError(
                    f"{call}: its panes replace each other without a retraction, so each would be joined beside the ones before it; make the stage .accumulating_and_retracting()"
                )
            if self.options.forget_after is not None and not relation.has_timestamps:
                raise PipelineError(
                    f"forget_after({str(self.options.forget_after)!r}) of a table_join: the panes of {relation.name} have no timestamp, from which it would count; give their stage a timestamp_combiner, such as .timestamp_combiner(bm.TimestampCombiner.LATEST)"
                )
            for name in relation.keys:
                if isinstance(name, str) and is_reserved(name):
                    raise PipelineError(f"table_join(on={name!r}): such names are reserved; rename the column")
            if str(relation.name).lower() in PANE_COLUMNS:
                raise PipelineError(f"{call}: the output has a column of this name; rename the input")

    def suppressed_by(self, suppress: Any) -> Stage:
        raise PipelineError(
            f"suppress({suppress.until!r}) of a table_join: its rows have no key of their own; suppress the changes of its inputs, or of a stage after it"
        )

    def gives(self, takes: Sequence[Relation]) -> Relation:
        retracts = not self.is_final
        return Relation(
            takes[LEFT].keys,
            retracts=retracts,
            watermarks=tuple(policy for relation in takes for policy in relation.watermarks),
            behind_us=max(relation.behind_us for relation in takes),
            has_timestamps=all(relation.has_timestamps for relation in takes),
            slot=None,
            follows=SlotSemantics.RETRACTING if retracts else SlotSemantics.ONCE,
        )

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        plan = make_table_join_plan(self.options, takes, self.gives(takes), shards=shards, is_final=self.is_final)
        return TableJoinOperator(plan)

    @property
    def final(self) -> TableJoinStage:
        return TableJoinStage(attrs.evolve(self.options, forget_after=None), is_final=True)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.KEYS: None}

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        options, (left, right) = self.options, takes
        on = " and ".join(f"{one} = {other}" for one, other in zip(left.keys, right.keys, strict=True))
        alone = [str(takes[number].name) for number in (LEFT, RIGHT) if options.emits_unmatched(number)]
        unmatched = f"; a row of {' or '.join(alone)} without a match comes with null" if alone else ""
        yield "rows", f"pairs of {left.name} and {right.name} with {on}{unmatched}"
        yield (
            "changes",
            "pairs of changed rows only: those that are gone are retracted, new ones emitted; of a bundle the net change",
        )
        yield from describe_where(takes)
        yield "watermark", "the least of the inputs'"
        yield "late", "a row is joined however late it is; windows after it drop what has expired there"
        ends = (
            "for ever"
            if options.forget_after is None
            else f"until the watermark is {options.forget_after} past the latest of its value"
        )
        yield "bounded", f"a row of either input is stored until it is retracted, or {ends}"
        listed = "each is emitted with its reason" if self.with_dropped else "with_dropped() lists them"
        yield (
            "dropped",
            f"rows with a null in a joined column whose input emits no unmatched rows, removals of rows that are not there, and rows without event time in the years 1 to 9999; {listed}",
        )
        if operator is not None:
            yield "state", f"{operator.shards} shards; the rows of both inputs, and of each value how many there are"
