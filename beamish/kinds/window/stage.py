"""The window stage: rows in windows, triggers, panes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.base.gathered import MOST_INPUTS
from beamish.accumulations.base.one_input import OfInput
from beamish.accumulations.joins import Join
from beamish.contract.at_rest import Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import PANE_COLUMNS, Relation
from beamish.contract.stage import Stage
from beamish.contract.stored import Store, noted_takes
from beamish.errors import PipelineError, StateError
from beamish.kernels.column_names import PREFIX, is_reserved
from beamish.kernels.field_paths import parts_of
from beamish.kernels.identity import identity
from beamish.kinds.deduplicate.option import check_deduplication
from beamish.kinds.refine import refined
from beamish.kinds.suppress.option import Suppress
from beamish.kinds.window.checks import (
    behind_us,
    check_closes,
    check_in_time,
    check_numbering,
    check_suppress,
    measured,
)
from beamish.kinds.window.operator import WindowOperator
from beamish.kinds.window.parts.anchors import check_anchored
from beamish.kinds.window.parts.forgetting import check_forgetting
from beamish.kinds.window.parts.key_watermarks import check_key_watermark
from beamish.kinds.window.parts.pairs_once import check_pairs_once, check_pairs_once_suppressed, joins_once
from beamish.kinds.window.parts.planning import make_plan
from beamish.kinds.window.parts.retention import check_retention
from beamish.kinds.window.plan.options import WindowOptions, gives
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.windowings import WindowingsOperator
from beamish.kinds.window.words import calls, describe
from beamish.modes import AccumulationMode, TimestampCombiner
from beamish.tables.entries import INDEX, under
from beamish.triggers.default import Default
from beamish.windows.option import WindowOption
from beamish.windows.time_windows import InheritedWindows
from beamish.windows.windowings import WINDOWING
from beamish.windows.within import Within, WithinInput


@attrs.frozen
class WindowStage(Stage):
    """Rows in windows, with triggers (see ``contract/stage.py``).

    Attributes:
        options: its options.
        suppress: its suppress; None: none.
    """

    options: WindowOptions = WindowOptions()
    suppress: Suppress | None = attrs.field(default=None, repr=False)

    @property
    def with_dropped(self) -> bool:
        return self.options.with_dropped

    @property
    def as_input(self) -> WindowStage:
        return stage_of(self.options.as_input)

    def declaring(self, call: str, **changes: Any) -> WindowStage:
        return stage_of(attrs.evolve(self.options, **changes))

    def declared(self, option: str) -> Any:
        return getattr(self.options, option, None)

    def check_inputs(self, names: Sequence[str]) -> None:
        _check_within_of(self.options.window, names)
        for name, accumulation in self.options.accumulations.items():
            _check_inputs(name, accumulation, self.options, names)

    @property
    def final(self) -> WindowStage:
        return stage_of(self.options.final)

    @property
    def needs_event_time(self) -> bool:
        return not (self.options.counts_rows or _is_timeless(self.options))

    @property
    def is_complete(self) -> bool:
        return bool(self.options.accumulations)

    def call_that_joins(self, takes: Sequence[Relation], inputs: Sequence[tuple[str, str]]) -> str:
        call = super().call_that_joins(takes, inputs)
        return f"{call[:-1]}, wait_for=bm.{self.options.wait_for.name})" if self.options.by_fastest else call

    def calls(self) -> Iterable[str]:
        return calls(self.options)

    def check(self, takes: Sequence[Relation]) -> None:
        check_numbering(self.options, takes)
        options = self._with_inherited(takes)
        for relation in takes:
            check_in_time(options, relation)
        _check_options(attrs.evolve(options, mode=self.options.mode))
        if self.options.window is None:
            _check_windowings_apart(takes)
        _check_names(options, takes)
        _check_retractions(options, takes)
        check_retention(options)
        check_forgetting(options, takes)
        check_key_watermark(options, takes)
        if options.deduplication is not None:
            check_deduplication(options.deduplication, takes)
        check_anchored(options, takes)
        _check_within(options, takes)
        check_pairs_once(attrs.evolve(options, mode=self.options.mode), takes)
        for name, accumulation in options.accumulations.items():
            accumulation.check(name, merging=options.window is not None and options.window.merging)
            _check_inputs(name, accumulation, options, [relation.name for relation in takes if relation.name])
        self._check_key_sets(takes)
        if self.suppress is not None:
            check_suppress(options, self.suppress)
            check_pairs_once_suppressed(self.options, self.suppress)

    def _check_key_sets(self, takes: Sequence[Relation]) -> None:
        """Check that nothing reads a key column that is null in totals, and rows are counted once (PipelineError: they are not)."""
        window = self.options.window
        numbering = None if window is None else window.numbering
        for number, relation in enumerate(takes):
            if relation.key_sets and numbering is not None and numbering.over_stream and numbering.numbered_by is None:
                raise PipelineError(
                    f"{window!r} over several key sets: a row is there once for each set, and would be counted as many rows of the stream; "
                    "count the rows of each key, bm.CountWindows(..., over='key'), or key the rows by columns"
                )
            read = [name for name in self.asks(takes, number) if {name, (parts_of(name) or ("",))[0]} & relation.totals]
            if read:
                name = min(read)
                raise PipelineError(
                    f"{name!r} is read as a value, and is a key column of several key sets, null in totals: add a copy of the column before, "
                    f"df.withColumn({name.replace('.', '_') + '_value'!r}, df[{name!r}])"
                )

    def check_stream(self, takes: Sequence[Relation]) -> None:
        options = self._with_inherited(takes)
        _check_ids_go(options)
        _check_fires(options)
        if self.suppress is not None:
            check_closes(options, self.suppress)

    def gives(self, takes: Sequence[Relation]) -> Relation:
        relation = gives(self._with_inherited(takes), takes)
        if self.suppress is None:
            return relation
        return attrs.evolve(relation, behind_us=max(relation.behind_us, behind_us(self.options, self.suppress)))

    def suppressed_by(self, suppress: Suppress) -> WindowStage:
        return attrs.evolve(self, suppress=suppress)

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        options, name = self.options, takes[number].name
        asked = list(options.window.columns) if options.window else []
        asked += options.numbering.columns if options.numbering else ()
        asked += options.deduplication.columns if options.deduplication else ()
        for accumulation in options.accumulations.values():
            asked += accumulation.columns_of(str(name)) if accumulation.names_of_inputs else accumulation.inputs or ()
        return tuple(dict.fromkeys(asked))

    def asks_whole_rows(self, takes: Sequence[Relation], number: int) -> bool:
        accumulations = self.options.accumulations.values()
        return (
            self.options.lists_dropped
            or (takes[number].where or self.options.where) is not None
            or any(accumulation.inputs is None and not accumulation.names_of_inputs for accumulation in accumulations)
        )

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        plan = self.plan(takes, self.shards_of(takes, shards))
        operator = WindowOperator(plan, waits_for_pane=self._waits_for_pane)
        return refined(operator, self.options.derived, self.options.having, self.options.explode)

    def plan(self, takes: Sequence[Relation], shards: int) -> WindowPlan:
        """The plan for a number of shards."""
        options, suppress = self._with_inherited(takes), self.suppress
        if suppress is not None and suppress.holds:
            options = attrs.evolve(options, retract_merged=None)  # only the suppress knows what was emitted
        return make_plan(options, takes, shards, suppressed=suppress is not None)

    @property
    def _waits_for_pane(self) -> bool:
        return self.suppress is not None and self.options.retracts and not self.options.retracts_at_merge

    def shards_of(self, takes: Sequence[Relation], shards: int) -> int:
        """The maximum number of shards: 1 without keys, or if rows are numbered over the stream."""
        numbering = self.options.numbering
        together = numbering is not None and numbering.over_stream
        return shards if takes[0].keys and not together else 1

    def shard_columns(self, takes: Sequence[Relation]) -> tuple[str, ...]:
        return takes[0].keys if self.shards_of(takes, 2) > 1 else ()

    def _with_inherited(self, takes: Sequence[Relation]) -> WindowOptions:
        """The options, with those implied by upstream stages: inherited windows, and accumulating panes of retracting input."""
        options = self.options
        if options.window is None and any(relation.window is not None for relation in takes):
            options = attrs.evolve(options, window=InheritedWindows(_common_window(takes)))
        if isinstance(options.window, Within):
            names = [relation.name for relation in takes]
            if options.window.of in names:
                beside = _beside(options.window, options.accumulations.values())
                options = attrs.evolve(options, window=WithinInput.of_merge(options.window, names, beside))
        if options.mode is None and any(relation.retracts for relation in takes):
            options = attrs.evolve(options, mode=AccumulationMode.ACCUMULATING)
        return options

    # Stored state (at_rest.py)

    @property
    def counts_rows(self) -> bool:
        return self.options.counts_rows

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.WINDOWS: None, Keeps.ROWS: None}

    def noted(self, takes: Sequence[Relation], notes: Sequence[Store], what: Keeps) -> Sequence[Relation]:
        with_windows = [store for store in notes if store.get(INDEX) is not None]
        if not with_windows:
            raise StateError("it has no state of a window stage")
        return noted_takes(with_windows, takes)

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        options = self._with_inherited(takes)
        yield from describe(options, takes)
        if operator is not None and isinstance(operator.core, WindowOperator | WindowingsOperator):
            yield from operator.core.described()
        if self.suppress is not None:
            yield "held", f"{self.suppress.until.describe()}{measured(options, self.suppress)}"


@attrs.frozen
class WindowingsStage(WindowStage):
    """Several windowings of the same rows: a window stage for each, whose panes have its name."""

    @property
    def each(self) -> Mapping[str, WindowStage]:
        """The stages, by the names of their windowings."""
        each = {}
        for name, window in self.options.windowings.items():
            retracts = self.options.retract_merged if window.merging else None
            forgets = self.options.forget_after if window.is_all_of_time else None
            options = attrs.evolve(self.options, window=window, retract_merged=retracts, forget_after=forgets)
            each[name] = WindowStage(options, self.suppress)
        return each

    @property
    def needs_event_time(self) -> bool:
        return any(one.needs_event_time for one in self.each.values())

    def check(self, takes: Sequence[Relation]) -> None:
        _check_windowings(self.options)
        super().check(takes)
        for name, one in self.each.items():
            try:
                one.check(takes)
            except PipelineError as error:
                raise PipelineError(f"windowing {name!r}: {error}") from None

    def gives(self, takes: Sequence[Relation]) -> Relation:
        relation = super().gives(takes)
        keys = (*relation.keys, WINDOWING)
        return attrs.evolve(relation, keys=keys, slot=None if relation.slot is None else keys)

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return tuple(dict.fromkeys(column for one in self.each.values() for column in one.asks(takes, number)))

    def shards_of(self, takes: Sequence[Relation], shards: int) -> int:
        return min(one.shards_of(takes, shards) for one in self.each.values())

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        shards = self.shards_of(takes, shards)
        plans = {name: one.plan(takes, shards) for name, one in self.each.items()}
        first = next(iter(plans.values()))
        schema = first.pane_schema.insert(len(first.keys), pa.field(WINDOWING, pa.string()))
        gives = attrs.evolve(self.gives(takes), schema=schema)
        waits = self._waits_for_pane
        each = {name: WindowOperator(plan, waits_for_pane=waits) for name, plan in plans.items()}
        return refined(WindowingsOperator(each, gives), self.options.derived, self.options.having, self.options.explode)

    def noted(self, takes: Sequence[Relation], notes: Sequence[Store], what: Keeps) -> Sequence[Relation]:
        return super().noted(takes, [under(name, store) for store in notes for name in (*self.each, None)], what)


def stage_of(options: WindowOptions) -> WindowStage:
    """The stage with these options."""
    return (WindowingsStage if options.windowings else WindowStage)(options)


def _check_fires(options: WindowOptions) -> None:
    """Check that something is emitted before the end of time."""
    if options.waits_for_end_of_time:
        raise PipelineError(
            f"GlobalWindow() with {options.trigger!r}: it waits for the end of time, which a stream does not reach, so nothing "
            "would be emitted; use a trigger that fires before, such as Repeatedly(AfterCount(100)) or "
            "AfterWatermark(early=AfterProcessingTime('1 minute')), add .forget_after('30 days'), which expires idle keys, or use "
            "windows that end"
        )


def _is_timeless(options: WindowOptions) -> bool:
    """Whether nothing depends on event time: global windows, without expiry and retention by time."""
    within = options.deduplication is not None and options.deduplication.within is not None
    keeps_for = any(join.keep_for for _, join in joins_once(options.accumulations))
    asks = within or keeps_for or options.forget_after is not None
    return options.never_ends and not asks and options.combiner is TimestampCombiner.END_OF_WINDOW


def _common_window(takes: Sequence[Relation]) -> WindowOption:
    """The window option of all inputs (PipelineError: they differ, or an input is a source, whose rows have no windows)."""
    first = takes[0].window
    for relation in takes:
        if relation.window is None or first is None:
            raise PipelineError(
                f"merge: no window: rows of {relation.name or takes[0].name} are in none; give the merge a window, such as "
                ".window(bm.FixedWindows('1 minute')): each pane is then assigned by its timestamp"
            )
        if identity(relation.window) != identity(first):
            raise PipelineError(
                f"merge: {takes[0].name} has {first!r}, {relation.name} has {relation.window!r}, so their panes never share a "
                "window; give both the same, or the merge a window of its own"
            )
    assert first is not None  # noqa: S101 - a stage takes something
    return first


def _check_options(options: WindowOptions) -> None:
    """Check the options against each other."""
    once = options.deduplication
    if options.window is None and once is not None and once.within is not None and not options.accumulations:
        raise PipelineError(
            f"{once.call} without windows forwards each row once, so it takes no where(), trigger or lateness; filter the "
            "DataFrame, declare the rest in the next stage: .then(bm.Pipeline()...), or add a window"
        )
    if options.window is None:
        raise PipelineError(
            "no window: add .window(bm.FixedWindows('1 minute')), or .window(bm.GlobalWindow()) for one per key"
        )
    if not options.accumulations:
        raise PipelineError("nothing to accumulate: add .accumulate(count=Count())")
    if options.mode is None and not (options.trigger == Default() and not options.lateness):
        trigger = "the default trigger" if options.trigger == Default() else f"trigger {options.trigger!r}"
        raise PipelineError(
            f"{trigger} with allowed lateness {options.lateness_in_words or '0'!r} may emit several panes per window, so the mode "
            "must be declared: add .discarding(), .accumulating() or .accumulating_and_retracting()"
        )
    for name in options.trigger.asked_values:
        if name not in options.accumulations:
            raise PipelineError(
                f"trigger {options.trigger!r} reads the value of {name!r}, but there is no such accumulation; the accumulations are "
                f"{list(options.accumulations)}"
            )
    if options.only_updated and options.discards:
        raise PipelineError(
            "only_updated_panes with discarding: its panes are increments, so equal panes do not mean that nothing changed; use "
            "accumulating() or accumulating_and_retracting()"
        )
    if options.retract_merged is not None and not options.retracts:
        raise PipelineError(f"retract_merged({options.retract_merged!r}) needs accumulating_and_retracting()")
    if options.retract_merged is not None and not options.window.merging:
        raise PipelineError(
            f"retract_merged({options.retract_merged!r}) with {options.window!r}: only merging windows, such as bm.Sessions, "
            "retract merged panes; leave it out"
        )
    if options.trigger.may_lose_rows(options.lateness) and not options.allow_data_loss:
        raise PipelineError(
            f"trigger {options.trigger!r} may finish while rows can still arrive (allowed lateness "
            f"{options.lateness_in_words or '0'!r}), and they would be dropped: wrap it in Repeatedly(...), give AfterWatermark a "
            "late trigger, or set .trigger(..., allow_data_loss=True)"
        )


def _check_names(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check that output column names differ, ignoring case as Spark does."""
    taken = dict.fromkeys(PANE_COLUMNS, "the output has a column of this name")
    if options.windowings:
        taken[WINDOWING] = "with several windowings the output has a column of this name"
    for name in takes[0].keys:
        _check_name(str(name), "", taken)
        taken[str(name).lower()] = f"{name!r} is a key column too"
    for name in options.accumulations:
        _check_name(name, f"accumulate({name}=...): ", taken)
        taken[name.lower()] = f"{name!r} is accumulated too"
    for name in options.derived:
        _check_name(name, f"with_columns({name}=...): ", taken)
        taken[name.lower()] = f"{name!r} is computed too"


def _check_name(name: str, where: str, taken: dict[str, str]) -> None:
    if name.lower() in taken:
        raise PipelineError(f"{where}column {name!r}: {taken[name.lower()]}, and Spark ignores case; choose another")
    if is_reserved(name):
        raise PipelineError(f"{where}column {name!r}: names that begin with {PREFIX!r} are reserved; choose another")


def _check_windowings(options: WindowOptions) -> None:
    """Check that windowings are all time windows or all count windows, and none is bm.Within."""
    each = options.windowings
    by_rows = [name for name, window in each.items() if window.counts_rows]
    if by_rows and len(by_rows) < len(each):
        of_time = next(name for name in each if name not in by_rows)
        raise PipelineError(
            f"window({options.window!r}): {by_rows[0]!r} are count windows, {of_time!r} time windows; give each a pipeline of its "
            "own"
        )
    if any(isinstance(window, Within) for window in each.values()):
        raise PipelineError(
            f"window({options.window!r}): bm.Within defines the interval of a join, and cannot be one of several windowings; give "
            "it a merge of its own"
        )


def _check_windowings_apart(takes: Sequence[Relation]) -> None:
    """Check that a stage that inherits several windowings distinguishes them."""
    window = _common_window(takes)
    if not window.windowings:
        return
    if any(WINDOWING not in relation.keys for relation in takes):
        raise PipelineError(
            f"a stage without a window of its own over several windowings must be keyed by their name: key_by({WINDOWING!r}, ...); "
            "or give it a window"
        )
    if any(option.is_all_of_time for option in window.windowings.values()):
        raise PipelineError(
            f"a stage without a window of its own over {window!r}: it cannot inherit global windows and others together; give it a "
            "window"
        )


def _check_retractions(options: WindowOptions, takes: Sequence[Relation]) -> None:
    retracting = [relation for relation in takes if relation.retracts]
    if not retracting:
        return
    of_source = retracting[0].is_signed
    what = "a changelog" if of_source else "a stage that retracts"
    if options.window is not None and options.window.merging:
        fix = "" if of_source else ", or make the stage before accumulating() or discarding()"
        raise PipelineError(
            f"window({options.window!r}) over {what}: a retraction may split a merged window; use windows that do not merge{fix}"
        )
    if options.discards:
        raise PipelineError(
            f"discarding over {what}: the removed rows are in an earlier pane; use accumulating() or accumulating_and_retracting()"
        )


def _check_within(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check that an interval join accumulates a join, and has each left row in one window."""
    within = options.window
    if not isinstance(within, Within):
        return
    names = [relation.name for relation in takes if relation.name is not None]
    _check_within_of(within, names)
    for name, join in options.accumulations.items():
        if not join.explodes or within.of not in join.names_of_inputs:
            raise PipelineError(
                f"accumulate({name}={join!r}) in {within!r}: it defines which rows of {within.of} match those of another input; "
                f"accumulate a join of {within.of}, such as InnerJoin({within.of!r}, "
                f"{next(one for one in names if one != within.of)!r})"
            )
        left, _ = join.names_of_inputs
        if isinstance(join, Join) and join.gives_alone == (left == within.of, left != within.of):
            (other,) = (one for one in join.names_of_inputs if one != within.of)
            same = within.from_the_other(other)
            raise PipelineError(
                f"accumulate({name}={join!r}) in {within!r}: a row of {within.of} is in two windows, and neither knows whether it "
                f"had a match in the other, so only unmatched rows of {other} can be emitted; window({same!r}) matches the same "
                f"rows and can emit those of {within.of}"
            )
        if _beside(within, [join]) is None:
            continue
        if options.retention is not None:
            raise PipelineError(
                f"{options.retention.call} of accumulate({name}={join!r}) in {within!r}: a row is in two windows, of which one may be "
                "evicted, so its match would be unknown; leave it out: all windows expire by themselves"
            )
        if isinstance(join, Join) and join.keep_rows:
            raise PipelineError(
                f"accumulate({name}={join!r}) in {within!r}: a row is in two windows, of which one may keep it and the other not, so "
                "its match would be unknown; use keep_for"
            )


def _beside(within: Within, accumulations: Iterable[Accumulation]) -> str | None:
    """The input besides ``of``, if unmatched rows of both are emitted."""
    for join in accumulations:
        if isinstance(join, Join) and all(join.gives_alone):
            return next((one for one in join.names_of_inputs if one != within.of), None)
    return None


def _check_within_of(window: WindowOption | None, names: Sequence[str]) -> None:
    """Check that an interval join is of an input."""
    if isinstance(window, Within) and window.of not in names:
        have = (
            f"the merge has {', '.join(names)}" if names else "this pipeline has one input; use it in a bm.merge(...)"
        )
        raise PipelineError(f"window({window!r}): there is no input {window.of!r}; {have}")


def _check_ids_go(options: WindowOptions) -> None:
    """Check that the ids of rows expire."""
    once = options.deduplication
    if once is not None and once.within is None and options.forget_after is None and options.never_ends:
        raise PipelineError(
            f"{once.call} in {options.window!r}: the global window never expires, so each id would be stored for ever; add "
            "within='1 day' or .forget_after('30 days'), or use windows that end"
        )


def _check_inputs(name: str, accumulation: Accumulation, options: WindowOptions, names: Sequence[str]) -> None:
    where = f"accumulate({name}={accumulation!r})"
    if accumulation.explodes and len(options.accumulations) > 1 and not accumulation.names_of_inputs:
        raise PipelineError(
            f"{where}: it emits several rows per pane, so it must be the only accumulation; use TopN with others, or a second pipeline"
        )
    if accumulation.explodes and names and not accumulation.names_of_inputs:
        OfInput(accumulation, names[0]).check(name, merging=False)
    if not accumulation.names_of_inputs:
        if names and accumulation.inputs != ():
            raise PipelineError(
                f"{where}: the merge has inputs {', '.join(names)}; name the input: {OfInput(accumulation, names[0])!r}"
            )
        return
    if not names:
        raise PipelineError(
            f"{where}: this pipeline has one unnamed input; bm.merge(orders=..., clicks=...) names inputs"
        )
    for of in accumulation.names_of_inputs:
        if of not in names:
            raise PipelineError(f"{where}: there is no input {of!r}; the merge has {', '.join(names)}")
        marks = isinstance(accumulation, Join) and (all(accumulation.gives_alone) or bool(accumulation.match_if))
        if marks and names.index(of) >= MOST_INPUTS:
            raise PipelineError(
                f"{where}: {of} is input {names.index(of) + 1} of the merge, and such a join is of the first {MOST_INPUTS}: name its inputs first"
            )
    if accumulation.explodes and len(options.accumulations) > 1:
        raise PipelineError(
            f"{where}: a join emits one row per pair, so it must be the only accumulation; use CoGroup with others, or a second "
            "pipeline"
        )
