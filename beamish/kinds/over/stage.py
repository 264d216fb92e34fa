"""The stage of ``Pipeline.over``: each row with values over the rows of its key around it (docs/rules/over.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.inputs import describe_where
from beamish.contract.operator import Operator
from beamish.contract.relation import PANE_COLUMNS, Relation, SlotSemantics
from beamish.contract.stage import Stage
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.kernels.column_names import PREFIX, is_reserved
from beamish.kinds.over.operator import WAITING, OverOperator
from beamish.kinds.over.options import OverFunction, OverOptions, Unbounded
from beamish.kinds.over.plan import make_over_plan
from beamish.kinds.refine import describe_explode, refined
from beamish.modes import AccumulationMode
from beamish.triggers import AfterCount, AfterWatermark, Always, Default
from beamish.triggers.trigger import Trigger

_DECLARED = {
    "trigger",
    "allowed_lateness",
    "mode",
    "forget_after",
    "with_dropped",
    "accumulations",
    "derived",
    "having",
    "explode",
}
_AT_ONCE = (None, Always(), AfterCount(1))


@attrs.frozen
class OverStage(Stage):
    """Rows with values over the rows around them (see ``contract/stage.py``).

    Attributes:
        options: its options.
        is_final: whether the input is complete, as in a batch: each row is emitted once, final.
    """

    options: OverOptions
    is_final: bool = False

    @property
    def with_dropped(self) -> bool:
        return self.options.with_dropped

    @property
    def is_complete(self) -> bool:
        return bool(self.options.accumulations)

    def declaring(self, call: str, **changes: Any) -> OverStage:
        if changes.pop("late_rows", 0):
            raise PipelineError(
                f"{call} after over(...): rows=... is for count windows; give a duration, such as '1 hour'"
            )
        changes.pop("allow_data_loss", None)  # no trigger of it loses rows
        other = set(changes) - _DECLARED
        if other:
            raise PipelineError(f"{call} after over(...): {_instead(next(iter(other)))}")
        if changes.get("mode") is AccumulationMode.ACCUMULATING:
            raise PipelineError(
                "accumulating() after over(...): a corrected row would stand beside the wrong one; use accumulating_and_retracting(), or discarding() for each row once"
            )
        return attrs.evolve(self, options=attrs.evolve(self.options, **changes))

    def declared(self, option: str) -> Any:
        return getattr(self.options, option, None) if option in _DECLARED - {"trigger"} else None

    def check_call(self, call: str) -> None:
        if call.startswith("where"):
            raise PipelineError(
                f"{call} after over(...): it selects the rows that over() takes, so call it before: .where(...).over(...); for rows of the output use having(...)"
            )

    def calls(self) -> Iterable[str]:
        options = self.options
        yield f".over({options.arguments})"
        if options.trigger != Default():
            yield f".trigger({options.trigger!r})"
        if options.allowed_lateness:
            yield f".allowed_lateness({str(options.allowed_lateness)!r})"
        if options.mode is not None:
            yield f".accumulation_mode(AccumulationMode.{options.mode.name})"
        if options.forget_after is not None:
            yield f".forget_after({str(options.forget_after)!r})"
        if options.with_dropped:
            yield ".with_dropped()"
        for call, of in (("accumulate", options.accumulations), ("with_columns", options.derived)):
            if of:
                yield f".{call}({', '.join(f'{name}={one!r}' for name, one in of.items())})"
        if options.having is not None:
            yield f".having({options.having!r})"
        if options.explode is not None:
            yield f".explode({options.explode!r})"

    def check(self, takes: Sequence[Relation]) -> None:
        options, relation, call = self.options, takes[0], f"over({self.options.arguments})"
        if len(takes) > 1:
            raise PipelineError(
                f"{call} of several inputs: it takes one; union the DataFrames, or put the merge before it: bm.merge(...)....then(bm.Pipeline().key_by(...).over(...))"
            )
        if not options.accumulations:
            raise PipelineError(
                f"{call}: nothing to compute: add .accumulate(total=Sum('amount'), before=bm.Lag('amount'))"
            )
        _check_trigger(options.trigger)
        if relation.is_changelog:
            raise PipelineError(
                f"{call} after changes(): its rows set or delete others, and are not rows of their own; leave changes() and its suppress out"
            )
        if not relation.has_timestamps:
            raise PipelineError(
                f"{call} of panes without timestamp: they have no order; give the stage before a timestamp_combiner, such as .timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
            )
        if relation.behind_us > options.allowed_lateness.us:
            least = Duration(relation.behind_us)
            raise PipelineError(
                f"{call}: panes of a suppress, or of an expiring window, are emitted when the watermark is {least} past their time, so all would be too late where it moves in small steps; use allowed_lateness({str(least)!r}) or more"
            )
        if relation.retracts and not options.retracts:
            raise PipelineError(
                f"{call} over an input that retracts: a retracted row has already been emitted; use .accumulating_and_retracting()"
            )
        if options.mode is None and (options.early or options.allowed_lateness):
            why = (
                f"trigger {options.trigger!r}"
                if options.early
                else f"allowed lateness {str(options.allowed_lateness)!r}"
            )
            raise PipelineError(
                f"{call} with {why}: a row may change after it was emitted, so the mode must be declared: add .accumulating_and_retracting() to correct it, or .discarding() for each row once"
            )
        _check_forgetting(call, options)
        _check_names(options, relation)
        for name, accumulation in options.accumulations.items():
            _check_accumulation(call, name, accumulation)

    def gives(self, takes: Sequence[Relation]) -> Relation:
        relation, retracts = takes[0], self.options.retracts and not self.is_final
        return Relation(
            relation.keys,
            window=relation.window,
            retracts=retracts,
            watermarks=relation.watermarks,
            behind_us=relation.behind_us,
            slot=None,
            follows=SlotSemantics.RETRACTING if retracts else SlotSemantics.ONCE,
        )

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return self.options.columns

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        shards = shards if takes[0].keys else 1
        plan = make_over_plan(self.options, takes[0], self.gives(takes), shards, is_final=self.is_final)
        return refined(OverOperator(plan), self.options.derived, self.options.having, self.options.explode)

    @property
    def final(self) -> OverStage:
        options = attrs.evolve(
            self.options, mode=None, trigger=Default(), allowed_lateness=Duration(0), forget_after=None
        )
        return OverStage(options, is_final=True)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.HELD: WAITING, Keeps.KEYS: None}

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        options, relation = self.options, takes[0]
        time = "timestamp" if relation.is_panes else str(relation.event_time)
        ties = "then all columns" if options.order_by is None else f"then {options.order_by}, then all columns"
        keys = f"of each {', '.join(map(str, relation.keys))}" if relation.keys else "(not keyed: one key)"
        yield "rows", f"the rows {keys}, in the order of {time}, {ties}"
        yield from describe_where(takes)
        yield "frame", options.frame.describe()
        yield "values", ", ".join(f"{name}={one!r}" for name, one in options.accumulations.items())
        for name, formula in options.derived.items():
            yield "columns", f"{name}={formula!r}"
        if options.having is not None:
            yield "having", f"only rows with {options.having!r}"
        if options.explode is not None:
            yield "explode", describe_explode(options.explode)
        yield "watermark", "that of the stage before" if relation.is_panes else relation.policy.describe()
        yield "panes", f"a row is emitted {self._describe_due()}{self._describe_corrections()}"
        yield "late", self._describe_late()
        yield "bounded", self._describe_bounded()
        yield (
            "dropped",
            "rows without event time or with one outside the years 1 to 9999, and late ones; "
            + ("each is emitted with its reason" if options.with_dropped else "with_dropped() lists them"),
        )
        if operator is not None and isinstance(operator.core, OverOperator):
            yield "state", f"{operator.shards} shards; {operator.core.plan.describe_stored()}"

    def _describe_due(self) -> str:
        options = self.options
        if options.early:
            return "on arrival, EARLY"
        if not options.lead:
            return "when the watermark has passed its time"
        after = "the next row" if options.lead == 1 else f"the {options.lead} rows after it"
        return f"when the watermark has passed {after} of its key; the last ones of a key wait for further rows"

    def _describe_corrections(self) -> str:
        if self.options.retracts:
            return "; when a row comes into its frame, or one of its functions changes, it is retracted and the corrected row emitted"
        return "; it is not corrected"

    def _describe_late(self) -> str:
        lateness = self.options.allowed_lateness
        if not lateness:
            return "rows whose time the watermark has passed are dropped"
        return f"rows are accepted until the watermark is {lateness} past them, and emitted at once"

    def _describe_bounded(self) -> str:
        options = self.options
        kept = Duration(options.allowed_lateness.us + options.frame.span_us)
        words = f"a row is stored until the watermark is {kept} past it"
        ever = [f"its last {options.lag} rows"] if options.lag else []
        ever += ["an accumulator"] if isinstance(options.frame, Unbounded) and options.over_frame else []
        ever += ["a count of its rows"] if any(one.counts for one in options.functions.values()) else []
        until = (
            "for ever"
            if options.forget_after is None
            else f"until the watermark is {options.forget_after} past its latest row"
        )
        return f"{words}; for each key {' and '.join(ever)}, {until}" if ever else words


def _instead(option: str) -> str:
    """The alternative to an option that it does not have."""
    if option == "window":
        return (
            "a row has a frame, not a window; aggregate the rows in a stage after: .then(bm.Pipeline().window(...)...)"
        )
    if option == "deduplication":
        return "deduplicate the rows before: bm.Pipeline().event_time(...).deduplicate('id', within='1 hour').then(bm.Pipeline().key_by(...).over(...))"
    if option == "only_updated":
        return "a row is corrected when its frame changes, also if its values do not; leave it out"
    if option == "on_error":
        return "an error stops the query; filter such rows before: .where(...)"
    return "only trigger, allowed_lateness, the mode, forget_after, with_dropped, accumulate, with_columns, having and explode apply; leave it out"


def _check_trigger(trigger: Trigger) -> None:
    if trigger == Default():
        return
    both = (trigger.early, trigger.late) if isinstance(trigger, AfterWatermark) else None
    if both is None or any(one not in _AT_ONCE for one in both):
        raise PipelineError(
            f"trigger({trigger!r}) after over(...): a row is emitted when the watermark passes its time, or with its bundle; leave it out, or use AfterWatermark(early=Always()) for the latter"
        )


def _check_forgetting(call: str, options: OverOptions) -> None:
    """Check that a key has no other state when it is dropped (PipelineError: it may have)."""
    if options.forget_after is None:
        return
    kept = Duration(options.allowed_lateness.us + options.frame.span_us)
    if not isinstance(options.frame, Unbounded) and not (
        options.lag or options.lead or any(one.counts for one in options.functions.values())
    ):
        raise PipelineError(
            f"{call} with forget_after({str(options.forget_after)!r}): rows alone are stored, until the watermark is {kept} past them; leave it out"
        )
    if options.forget_after <= kept:
        raise PipelineError(
            f"{call} with forget_after({str(options.forget_after)!r}): late rows and frames reach {kept} back, so a key would be dropped while its rows are stored; use more"
        )


def _check_accumulation(call: str, name: str, accumulation: Any) -> None:
    if isinstance(accumulation, OverFunction):
        return
    where = f"accumulate({name}={accumulation!r})"
    if accumulation.explodes and not accumulation.names_of_inputs:
        raise PipelineError(
            f"{where} in {call}: it emits rows of its own, and over() a value per row; use it in windows, or bm.RowNumber() with having(...)"
        )
    if accumulation.names_of_inputs:
        raise PipelineError(
            f"{where} in {call}: it is of the inputs of a bm.merge; over() takes one input; leave out .of(...)"
        )
    if not accumulation.preaggregates:
        raise PipelineError(
            f"{where} in {call}: it cannot merge accumulators, and frames overlap; give it merge=, a function of two accumulators"
        )
    accumulation.check(name, merging=True)


def _check_names(options: OverOptions, relation: Relation) -> None:
    taken = {name.lower() for name in PANE_COLUMNS}
    for name in (*options.accumulations, *options.derived):
        call = "accumulate" if name in options.accumulations else "with_columns"
        if name.lower() in taken:
            raise PipelineError(f"{call}({name}=...): the output has a column of this name; choose another")
        if is_reserved(name):
            raise PipelineError(f"{call}({name}=...): names that begin with {PREFIX!r} are reserved; choose another")
        taken.add(name.lower())
    for key in relation.keys:
        if str(key).lower() in taken:
            raise PipelineError(f"over({options.arguments}): {key!r} is a key column; name the value otherwise")
