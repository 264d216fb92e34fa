"""The stage of ``Pipeline.upserts``: rows that set or delete the row of their key, as changes of a table (docs/rules/upserts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation, SlotSemantics
from beamish.contract.stage import Stage
from beamish.errors import PipelineError
from beamish.kernels.column_names import is_reserved
from beamish.kinds.refine import describe_explode, refined
from beamish.kinds.upserts.operator import UpsertsOperator
from beamish.kinds.upserts.options import UpsertsOptions
from beamish.kinds.upserts.plan import make_upserts_plan

_DECLARED = {"forget_after", "with_dropped", "explode"}


@attrs.frozen
class UpsertsStage(Stage):
    """The changes of a table whose rows are set and deleted by key (see ``contract/stage.py``).

    Attributes:
        options: its options.
        is_final: whether the input is complete, as in a batch: the last row of each key is emitted.
    """

    options: UpsertsOptions
    is_final: bool = False

    @property
    def with_dropped(self) -> bool:
        return self.options.with_dropped

    def declaring(self, call: str, **changes: Any) -> UpsertsStage:
        if not set(changes) <= _DECLARED:
            raise PipelineError(
                f"{call} after {self.options.call}: it gives the rows of a table; add {_what(changes)} in a stage after it: "
                ".then(bm.Pipeline()....)"
            )
        return attrs.evolve(self, options=attrs.evolve(self.options, **changes))

    def declared(self, option: str) -> Any:
        if option == "upserts":
            return self.options
        return getattr(self.options, option) if option in _DECLARED else None

    def check_form(self, call: str) -> None:
        raise PipelineError(
            f"{call} and {self.options.call}: both define what a row does; use upserts() for rows that set their key, {call} for whole rows"
        )

    def check_call(self, call: str) -> None:
        if call.startswith("where"):
            raise PipelineError(
                f"{call} with {self.options.call}: a row that it leaves out would not replace the row before it; put it in a stage "
                "after, where it selects rows of the table: .then(bm.Pipeline().where(...)...)"
            )

    def calls(self) -> Iterable[str]:
        yield f".{self.options.call}"
        if self.options.forget_after is not None:
            yield f".forget_after({str(self.options.forget_after)!r})"
        if self.with_dropped:
            yield ".with_dropped()"
        if self.options.explode is not None:
            yield f".explode({self.options.explode!r})"

    def check(self, takes: Sequence[Relation]) -> None:
        relation, call = takes[0], self.options.call
        if not relation.keys:
            raise PipelineError(
                f"{call} without keys: every row would replace the one before; add .key_by(...) before it, with the key of the table"
            )
        if relation.retracts or relation.is_changelog:
            raise PipelineError(
                f"{call} over rows that are retracted: which of them sets the key is unknown; make the stage before accumulating() "
                "or discarding(), or leave upserts() out, since the retractions are changes already"
            )
        if not relation.has_timestamps:
            raise PipelineError(
                f"{call} of panes without timestamp: each would be dropped; give the stage before a timestamp_combiner, such as "
                ".timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
            )
        for name in self.options.columns:
            if name in relation.keys:
                raise PipelineError(f"{call}: {name!r} is a key column, the same in all rows of a key; name another")
        for name in (*relation.keys, *self.options.columns):
            if isinstance(name, str) and is_reserved(name):
                raise PipelineError(f"{call}: column {name!r}: such names are reserved; rename it")

    def suppressed_by(self, suppress: Any) -> Stage:
        raise PipelineError(
            f"suppress({suppress.until!r}) after {self.options.call}: each change is emitted at once; to limit the changes of a table, use "
            "changes() in place of upserts(): .changes(deleted=..., sequence_by=...).suppress(...)"
        )

    def gives(self, takes: Sequence[Relation]) -> Relation:
        relation, retracts = takes[0], not self.is_final
        return Relation(
            relation.keys,
            retracts=retracts,
            watermarks=relation.watermarks,
            behind_us=relation.behind_us,
            slot=None if self.options.explode else relation.keys,
            follows=SlotSemantics.RETRACTING if retracts else SlotSemantics.ONCE,
        )

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return self.options.columns

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        plan = make_upserts_plan(self.options, takes[0], self.gives(takes), shards, is_final=self.is_final)
        return refined(UpsertsOperator(plan), {}, None, self.options.explode)

    @property
    def final(self) -> UpsertsStage:
        kept = attrs.evolve(self.options, keep_deleted=None, forget_after=None)
        return UpsertsStage(kept, is_final=True)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.KEYS: None}

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        options, relation = self.options, takes[0]
        keys = ", ".join(map(str, relation.keys))
        time = "timestamp" if relation.is_panes else str(relation.event_time)
        deletes = f"; it deletes it where {options.deleted} is true" if options.deleted else ""
        yield (
            "rows",
            f"a row sets the row of {keys}{deletes}; it replaces those with a smaller {options.sequence_by or time}",
        )
        yield "changes", "the row before is retracted, and the new one emitted; of a bundle the net change"
        if options.explode is not None:
            yield "explode", describe_explode(options.explode)
        yield "watermark", "that of the stage before" if relation.is_panes else relation.policy.describe()
        yield "late", "a row is applied however late it is; windows after it drop what has expired there"
        yield "bounded", self._describe_bounded()
        listed = "each is emitted with its reason" if self.with_dropped else "with_dropped() lists them"
        yield (
            "dropped",
            f"rows older than the one of their key, with a null in a key column, or without event time in the years 1 to 9999; {listed}",
        )
        if operator is not None and isinstance(operator.core, UpsertsOperator):
            stored = ", ".join(f"{field.name} {field.type}" for field in operator.core.plan.value_schema)
            yield "state", f"{operator.shards} shards; the last row of each key{f': {stored}' if stored else ''}"

    def _describe_bounded(self) -> str:
        options = self.options
        row = "for ever, unless a row deletes it" if options.deleted else "for ever"
        if options.forget_after is not None:
            row = f"until the watermark is {options.forget_after} past it"
        spans = [span for span in (options.keep_deleted, options.forget_after) if span is not None]
        deletes = f"until the watermark is {min(spans)} past it" if spans else "for ever"
        return f"the row of a key is stored {row}" + (f"; a delete {deletes}" if options.deleted else "")


def _what(changes: Mapping[str, Any]) -> str:
    """The option that it does not have, in words."""
    return {"having": "where(...)", "derived": "with_columns(...)", "mode": "the mode"}.get(next(iter(changes)), "it")
