"""The stage of ``Pipeline.fill_gaps``: rows are forwarded, and a row is added for each cell of a grid without one (docs/rules/gaps.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation, SlotSemantics
from beamish.contract.stage import Stage
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.kinds.gaps.operator import GapsOperator
from beamish.kinds.gaps.option import FillBy, GapFilling
from beamish.kinds.gaps.plan import make_gaps_plan

_VALUES = {
    FillBy.LAST: "with the values of the row before",
    FillBy.LINEAR: "with numbers on the line between the rows before and after, other values null",
    FillBy.NULL: "with null values",
}
_OPTIONS = {"allowed_lateness": "lateness", "with_dropped": "with_dropped"}


@attrs.frozen
class GapsStage(Stage):
    """Rows of keys, with gaps filled (see ``contract/stage.py``).

    Attributes:
        options: the options.
        lateness: how late rows may be.
        with_dropped: whether dropped rows are emitted.
    """

    options: GapFilling
    lateness: Duration = Duration(0)
    with_dropped: bool = False

    def declaring(self, call: str, **changes: Any) -> Stage:
        if changes.pop("late_rows", 0) or not set(changes) <= set(_OPTIONS):
            raise PipelineError(
                f"{call} with {self.options.call}: it has no windows; add them in a stage before, or one after: .then(bm.Pipeline().window(...))"
            )
        return attrs.evolve(self, **{_OPTIONS[name]: value for name, value in changes.items()})

    def declared(self, option: str) -> Any:
        return getattr(self, _OPTIONS[option]) if option in _OPTIONS else None

    def calls(self) -> Iterable[str]:
        yield f".{self.options.call}"
        if self.lateness.us:
            yield f".allowed_lateness({str(self.lateness)!r})"
        if self.with_dropped:
            yield ".with_dropped()"

    def check(self, takes: Sequence[Relation]) -> None:
        relation, call = takes[0], self.options.call
        if relation.name is not None:
            raise PipelineError(
                f"{call} of a merge: gaps are those of one input; fill them before: bm.merge(a=bm.Pipeline()....fill_gaps(...), ...)"
            )
        if relation.retracts:
            raise PipelineError(
                f"{call} over rows that are retracted: a filled row cannot depend on a row that goes; make the stage before "
                "discarding() or accumulating(), without retractions"
            )
        if relation.is_changelog:
            raise PipelineError(
                f"{call} of changes(): it emits no rows of its own; leave changes() and its suppress out"
            )
        if not relation.has_timestamps:
            raise PipelineError(
                f"{call} of panes without timestamp: they lie in no cell of the grid; give the stage before a timestamp_combiner, such as "
                ".timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
            )
        if relation.behind_us > self.options.step.us + self.lateness.us:
            raise PipelineError(
                f"{call}: panes of a suppress, or of an expiring window, are emitted when the watermark is {Duration(relation.behind_us)} past their "
                f"time, and their cell would be closed; add .allowed_lateness({str(Duration(relation.behind_us))!r})"
            )

    def gives(self, takes: Sequence[Relation]) -> Relation:
        relation, retracts = takes[0], bool(self.lateness.us)
        keys = tuple(name for name in relation.keys if str(name).lower() != "timestamp")
        return Relation(
            keys,
            watermarks=relation.watermarks,
            retracts=retracts,
            behind_us=relation.behind_us,
            slot=None,
            follows=SlotSemantics.RETRACTING if retracts else SlotSemantics.ONCE,
        )

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        relation = takes[0]
        plan = make_gaps_plan(
            self.options,
            self.lateness,
            relation,
            self.gives(takes),
            shards if relation.keys else 1,
            with_dropped=self.with_dropped,
        )
        return GapsOperator(plan)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.KEYS: None}

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        relation, options = takes[0], self.options
        key = ", ".join(map(str, relation.keys))
        of_key = f"of {key} " if key else ""
        yield "rows", "each is emitted at once, unchanged; filled = false"
        yield (
            "filled",
            f"a row for each {options.step} {of_key}without one, {_VALUES[options.by]}, until {options.within} after a row; filled = true",
        )
        yield "watermark", "that of the stage before" if relation.is_panes else relation.policy.describe()
        corrected = f"until the watermark is {self.lateness} past a cell of the grid, late rows correct filled rows, by retractions"
        yield "late", corrected if self.lateness.us else "rows of cells that the watermark has passed are dropped"
        yield (
            "bounded",
            f"the state of a key is deleted when the watermark is {options.within + options.step + self.lateness} past its latest row",
        )
        listed = "each is emitted with its reason" if self.with_dropped else "with_dropped() lists them"
        yield "dropped", f"rows without event time or with one outside the years 1 to 9999, and rows too late; {listed}"
        if isinstance(operator, GapsOperator):
            yield (
                "state",
                f"{operator.shards} shards; the last row of each key and cell"
                + " and its first" * (options.by is FillBy.LINEAR),
            )
