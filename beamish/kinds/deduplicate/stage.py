"""The stage of ``Pipeline.deduplicate`` without windows: rows are forwarded, each once (docs/rules/output.md#duplicates)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.stage import Stage
from beamish.errors import PipelineError
from beamish.kinds.deduplicate.operator import DuplicatesOperator
from beamish.kinds.deduplicate.option import FOREVER, Deduplication, check_deduplication, describe_deduplication
from beamish.kinds.deduplicate.plan import make_duplicates_plan


@attrs.frozen
class DeduplicateStage(Stage):
    """Deduplicated rows; any other window option turns it into a window stage (see ``contract/stage.py``).

    Attributes:
        options: the options.
        in_windows: the window stage that it becomes when another option is set.
        with_dropped: whether dropped rows are emitted.
    """

    options: Deduplication
    in_windows: Stage
    with_dropped: bool = False

    def declaring(self, call: str, **changes: Any) -> Stage:
        in_windows = self.in_windows.declaring(call, **changes)
        return attrs.evolve(self, in_windows=in_windows, **changes) if set(changes) == {"with_dropped"} else in_windows

    def declared(self, option: str) -> Any:
        return self.options if option == "deduplication" else None

    @property
    def is_complete(self) -> bool:
        return self.options.within is not None

    def names_of_rows(self, takes: Sequence[Relation]) -> Sequence[str]:
        return [*takes[0].columns.names, *(["dropped"] if self.with_dropped else [])]

    def calls(self) -> Iterable[str]:
        return (f".{self.options.call}", *([".with_dropped()"] if self.with_dropped else []))

    def check(self, takes: Sequence[Relation]) -> None:
        check_deduplication(self.options, takes)
        if self.options.within is None:
            raise PipelineError(
                f"{self.options.call} without windows: how long are ids stored? Add within='1 hour'; or give the pipeline windows, in each of which a row counts once"
            )

    def gives(self, takes: Sequence[Relation]) -> Relation:
        # An event time of this name becomes the pane's.
        keys = [name for name in takes[0].keys or self.options.columns if str(name).lower() != "timestamp"]
        return Relation(tuple(keys), watermarks=takes[0].watermarks, behind_us=takes[0].behind_us)

    def shard_columns(self, takes: Sequence[Relation]) -> tuple[str, ...]:
        return takes[0].keys or tuple(self.options.columns)

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return self.options.columns

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        return DuplicatesOperator(
            make_duplicates_plan(self.options, takes[0], self.gives(takes), shards, with_dropped=self.with_dropped)
        )

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.KEYS: None}

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        relation = takes[0]
        time = "the panes' timestamp" if relation.is_panes else str(relation.event_time)
        yield "rows", f"each is emitted once, unchanged; its event time is {time}"
        yield "duplicates", describe_deduplication(self.options, relation)
        yield "watermark", "that of the stage before" if relation.is_panes else relation.policy.describe()
        yield (
            "bounded",
            f"the state of a key without new rows is deleted when the watermark is {self.options.span} past its latest row"
            if self.options.within != FOREVER
            else "nothing: ids are stored forever",
        )
        listed = "each is emitted with its reason" if self.with_dropped else "with_dropped() lists them"
        by_time = "rows without event time or with one outside the years 1 to 9999"
        yield "dropped", f"duplicates, rows so late that their ids may have expired, {by_time}; {listed}"
        if isinstance(operator, DuplicatesOperator):
            ids = ", ".join(f"{field.name} {field.type}" for field in operator.plan.id_schema)
            yield "state", f"{operator.shards} shards; {ids} of each row for {self.options.span} of event time"
