"""The stage of rolling spans: values over the last spans of each key (docs/rules/rolling.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import PANE_COLUMNS, Relation, SlotSemantics
from beamish.contract.stage import Stage
from beamish.contract.stored import Store, noted_takes
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.kernels.column_names import PREFIX, is_reserved
from beamish.kinds.refine import refined
from beamish.kinds.rolling.at_rest import NAME
from beamish.kinds.rolling.operator import RollingOperator
from beamish.kinds.rolling.plan import TIME, RollingPlan, value_name
from beamish.kinds.suppress.option import Suppress, UntilWindowCloses
from beamish.kinds.window.checks import behind_us
from beamish.kinds.window.parts.planning import make_plan
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.stage import WindowStage, stage_of
from beamish.kinds.window.words import describe, describe_shuffled
from beamish.modes import AccumulationMode, ClosingBehavior, OnTimeBehavior, TimestampCombiner
from beamish.triggers import AfterCount, AfterWatermark, Always, Default, Repeatedly
from beamish.triggers.trigger import Trigger
from beamish.windows.rolling import Rolling

_EVERY = (AfterCount(1), Always())
"""Triggers that fire with every bundle that has rows."""


@attrs.frozen
class RollingStage(WindowStage):
    """Values over rolling spans; another window option turns it into a window stage (see ``contract/stage.py``).

    Attributes:
        is_final: whether the input is complete, as in a batch: final rows are emitted.
    """

    is_final: bool = False

    def declaring(self, call: str, **changes: Any) -> WindowStage:
        return rolling_or(super().declaring(call, **changes))

    @property
    def as_input(self) -> WindowStage:
        return self

    @property
    def final(self) -> RollingStage:
        return RollingStage(self.options.final, is_final=True)

    @property
    def rolling(self) -> Rolling:
        """Its window option."""
        window = self.options.window
        assert isinstance(window, Rolling)  # noqa: S101 - it is one of these
        return window

    @property
    def effective(self) -> WindowOptions:
        """The options, with the default mode."""
        return attrs.evolve(self.options, mode=self.options.mode or AccumulationMode.ACCUMULATING)

    def check(self, takes: Sequence[Relation]) -> None:
        _check_options(self.options)
        _check_inputs(self.options, takes)
        WindowStage(attrs.evolve(self.effective, forget_after=None), self.suppress).check(takes)
        _check_spans(self.options)
        _check_names(self.options, takes)

    def check_stream(self, takes: Sequence[Relation]) -> None:
        return

    def _with_inherited(self, takes: Sequence[Relation]) -> WindowOptions:
        return self.effective

    def gives(self, takes: Sequence[Relation]) -> Relation:
        options, keys = self.effective, takes[0].keys
        keys = (*keys, TIME) if self.rolling.keep == "history" else keys
        follows = SlotSemantics.RETRACTING if options.retracts else SlotSemantics.REPLACING
        return Relation(
            keys=keys,
            behind_us=0 if self.suppress is None else behind_us(options, self.suppress),
            retracts=options.retracts,
            watermarks=tuple(policy for relation in takes for policy in relation.watermarks),
            slot=None if options.explode else keys,
            follows=SlotSemantics.ONCE if self.is_final else follows,
        )

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        options, forget = attrs.evolve(self.effective, forget_after=None), self.options.forget_after
        of = make_plan(options, takes, self.shards_of(takes, shards))
        forget_us = None if forget is None else forget.us
        plan = RollingPlan(of, self.gives(takes), emits_early(options.trigger), self.is_final, forget_us)
        operator = RollingOperator(plan, suppressed=self.suppress is not None)
        return refined(operator, options.derived, options.having, options.explode)

    def suppressed_by(self, suppress: Suppress) -> WindowStage:
        if isinstance(suppress.until, UntilWindowCloses):
            raise PipelineError(
                f"suppress({suppress.until!r}) of window({self.rolling!r}): rows of rolling spans are in no window that closes; use "
                "bm.UntilTimeLimit('1 minute', clock='processing')"
            )
        return attrs.evolve(self, suppress=suppress)

    # Stored state

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.HELD: NAME, Keeps.KEYS: None}

    def noted(self, takes: Sequence[Relation], notes: Sequence[Store], what: Keeps) -> Sequence[Relation]:
        return noted_takes(notes, takes)

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        options = self.effective
        for subject, words in describe(options, takes):
            said = _words(options, subject, words)
            if said:
                yield subject, said
        if operator is not None and isinstance(operator.core, RollingOperator):
            yield "carried", describe_shuffled(operator.core.plan.of)
            columns = ", ".join(f"{field.name} {field.type}" for field in operator.core.plan.of.state_schema)
            yield (
                "state",
                f"{operator.shards} shards; one row per key and slice of {self.rolling.step} with {columns}, and the last emitted row of each key",
            )


def rolling_or(stage: Stage) -> WindowStage:
    """The stage of a window option that was declared: of rolling spans, or of windows."""
    options = cast("WindowStage", stage).options
    return RollingStage(options) if isinstance(options.window, Rolling) else stage_of(options)


def emits_early(trigger: Trigger) -> bool:
    """Whether a trigger has an early part."""
    return isinstance(trigger, AfterWatermark) and trigger.early is not None


def _check_options(options: WindowOptions) -> None:
    """Check that each option means something for rolling spans."""
    rolling = options.window
    assert isinstance(rolling, Rolling)  # noqa: S101 - it is one of these
    where = f"window({rolling!r})"
    _check_trigger(options, where)
    if options.mode is AccumulationMode.DISCARDING:
        raise PipelineError(
            f"{where} with discarding(): values over a span are not increments that add up; use accumulating(), the default, or "
            "accumulating_and_retracting()"
        )
    if rolling.empty == "remove" and options.mode is not AccumulationMode.ACCUMULATING_AND_RETRACTING:
        raise PipelineError(
            f"{where}: empty='remove' retracts a key's row, and only accumulating_and_retracting() emits retractions; add it, or "
            "use empty='emit'"
        )
    for is_set, call, fix in (
        (
            options.deduplication is not None,
            "deduplicate(...)",
            "deduplicate in the stage before: .deduplicate('id', within='1 hour').then(...)",
        ),
        (options.retention is not None, "retain(...)", "leave it out: a span bounds what is stored"),
        (
            options.key_watermark is not None,
            "watermark_per_key(...)",
            "leave it out: rows of all keys are emitted at the same boundaries; use allowed_lateness for slow keys",
        ),
        (
            options.forget_after is not None and not rolling.has_lifetime,
            "forget_after(...)",
            "leave it out: without a bm.Lifetime() a key expires when its rows have left the longest span",
        ),
        (
            options.on_time is not OnTimeBehavior.FIRE_ALWAYS,
            "on_time_behavior(...)",
            "leave it out: a row is emitted where values change",
        ),
        (
            options.closing is not ClosingBehavior.FIRE_IF_NON_EMPTY,
            "closing_behavior(...)",
            "leave it out: see empty='emit'",
        ),
        (
            options.combiner is not TimestampCombiner.END_OF_WINDOW,
            "timestamp_combiner(...)",
            "leave it out: the timestamp of a row is its boundary",
        ),
        (options.retract_merged is not None, "retract_merged(...)", "leave it out: nothing merges"),
        (options.only_updated, "only_updated_panes()", "leave it out: a row is emitted only where values change"),
        (options.drops_errors, "on_error('drop')", "leave it out, and remove such rows by .where(...)"),
        (
            bool(options.late_rows),
            f"allowed_lateness(rows={options.late_rows})",
            "give a duration: .allowed_lateness('1 hour')",
        ),
    ):
        if is_set:
            raise PipelineError(f"{where} with {call}: it does not apply to rolling spans; {fix}")
    _check_forgetting(options, rolling, where)


def _check_forgetting(options: WindowOptions, rolling: Rolling, where: str) -> None:
    """Check that a key is in no other span when it is dropped (PipelineError: it may be)."""
    span = options.forget_after
    if span is None:
        return
    call, reach = f"forget_after({str(span)!r})", Duration(rolling.reach_us)
    if span.us % rolling.step.us:
        raise PipelineError(
            f"{where} with {call}: it is not a multiple of the step, and a key has its last row at a boundary; use a multiple of "
            f"{str(rolling.step)!r}"
        )
    if span < reach:
        raise PipelineError(
            f"{where} with {call}: spans reach back {reach}, so a key would be dropped while it has rows in them; use at least "
            f"{str(reach)!r}"
        )


def _check_trigger(options: WindowOptions, where: str) -> None:
    trigger = options.trigger
    if trigger == Default():
        return
    fix = "use AfterWatermark(early=AfterCount(1), late=AfterCount(1)), or leave the trigger out"
    if not isinstance(trigger, AfterWatermark):
        raise PipelineError(
            f"{where} with trigger {trigger!r}: a row is emitted as the watermark reaches a boundary; {fix}"
        )
    for name, part in (("early", trigger.early), ("late", trigger.late)):
        one = part.trigger if isinstance(part, Repeatedly) else part
        if one is not None and one not in _EVERY:
            raise PipelineError(
                f"{where} with trigger {trigger!r}: its {name} part must be AfterCount(1), which emits what each bundle changes; {fix}"
            )
    if trigger.late is None and options.allowed_lateness:
        raise PipelineError(
            f"{where} with trigger {trigger!r} and allowed lateness {options.lateness_in_words!r}: late rows correct what was "
            "emitted, but the trigger has only an on-time part; add late=AfterCount(1)"
        )


def _check_inputs(options: WindowOptions, takes: Sequence[Relation]) -> None:
    where = f"window({options.window!r})"
    for relation in takes:
        if not relation.has_timestamps:
            raise PipelineError(
                f"{where} over panes without timestamp: when do they leave a span? Give the stage before a timestamp_combiner, "
                "such as .timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
            )
    for name, accumulation in options.accumulations.items():
        if accumulation.explodes:
            raise PipelineError(
                f"accumulate({name}={accumulation!r}) in {where}: it emits several rows, not a value; use another accumulation"
            )
        if not accumulation.preaggregates:
            raise PipelineError(
                f"accumulate({name}={accumulation!r}) in {where}: values over spans are merged from slices, and it has no merge "
                "function; give merge=, a function of two accumulators"
            )
        accumulation.check(name, merging=True)


def _check_spans(options: WindowOptions) -> None:
    """Check the accumulations that spans name."""
    rolling, known = options.window, list(options.accumulations)
    assert isinstance(rolling, Rolling)  # noqa: S101 - it is one of these
    for name, span in rolling.spans.items():
        for one in span.only or ():
            if one not in known:
                raise PipelineError(
                    f"Rolling: span {name!r} has only={one!r}, and accumulations are {known}; name one of these"
                )
    for one in known:
        if not any(span.has(one) for span in rolling.spans.values()):
            raise PipelineError(
                f"accumulate({one}=...) in window({rolling!r}): no span has it; add it to only= of one, or leave it out"
            )


def _check_names(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check that the names of output columns differ, ignoring case as Spark does."""
    rolling = options.window
    assert isinstance(rolling, Rolling)  # noqa: S101 - it is one of these
    taken: dict[str, str] = dict.fromkeys((*PANE_COLUMNS, TIME), "the output has a column of this name")
    own = [(str(name), "key column") for name in takes[0].keys]
    own += [
        (value_name(name, span), f"accumulate({name}=...) over span {span!r}: column")
        for name in options.accumulations
        for span, of in rolling.spans.items()
        if of.has(name)
    ]
    own += [(name, f"with_columns({name}=...): column") for name in options.derived]
    for name, what in own:
        if name.lower() in taken:
            raise PipelineError(f"{what} {name!r}: {taken[name.lower()]}, and Spark ignores case; choose another name")
        if is_reserved(name):
            raise PipelineError(f"{what} {name!r}: names that begin with {PREFIX!r} are reserved; choose another")
        taken[name.lower()] = f"{what} {name!r} has it too"


def _words(options: WindowOptions, subject: str, words: str) -> str | None:
    """A line of explain; None: it does not apply."""
    rolling, lateness = options.window, options.lateness_in_words
    assert isinstance(rolling, Rolling)  # noqa: S101 - it is one of these
    match subject:
        case "panes":
            early = (
                ", and with every bundle of rows for the first boundary past it" if emits_early(options.trigger) else ""
            )
            return f"a key has a row at a boundary where its values differ from those before, when the watermark reaches it{early}"
        case "late":
            which = (
                "every emitted boundary that they count at"
                if rolling.keep == "history"
                else "the current row, while they are in a span"
            )
            then = (
                f"they correct {which}, until the watermark is {lateness} past a boundary"
                if lateness
                else "they count at later boundaries only"
            )
            return f"rows behind the watermark are late; {then}"
        case "expiry" if rolling.has_lifetime and options.forget_after is None:
            return "a key stays, unless its rows are retracted"
        case "expiry":
            emits = "it emits a last row, with counts of 0" if rolling.empty == "emit" else "its row is retracted"
            when = f"is {options.forget_after} before" if rolling.has_lifetime else "has left the longest span"
            return f"when a key's last row {when}, {emits}"
        case "forgotten":
            return "state of a key that had its last row is deleted; a later row starts it anew"
        case "bounded" if rolling.has_lifetime and options.forget_after is None:
            return "no: an accumulator of each key is stored forever; .forget_after('30 days') drops idle keys"
        case "bounded":
            at = f" and the watermark is {lateness} past that" if lateness else ""
            when = f"are {options.forget_after} before" if rolling.has_lifetime else "have left the longest span"
            return f"the state of a key is deleted when its rows {when}{at}"
        case "a pane holds":
            held = "the values of each span at its boundary"
            return held + (
                "; before it a RETRACTION repeats the row it replaces"
                if options.retracts
                else "; it replaces the row before"
            )
        case "timestamp":
            return "the boundary, which the column time has too"
        case "dropped":
            return words.replace("rows of expired windows", "rows that count at no boundary that may still change")
    return words
