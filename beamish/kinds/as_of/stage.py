"""The stage of ``bm.as_of_join``: each row is joined with the version that was valid at its time (docs/rules/tables.md#as-of-joins)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.at_rest import AtRest, Keeps
from beamish.contract.inputs import describe_where
from beamish.contract.operator import Operator
from beamish.contract.relation import PANE_COLUMNS, Relation, SlotSemantics
from beamish.contract.stage import Stage, elsewhere
from beamish.contract.stored import DictStore
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.kinds.as_of.operator import AsOfOperator
from beamish.kinds.as_of.plan import TABLE, make_as_of_plan
from beamish.kinds.versions.options import AsOfOptions, VersionsOptions
from beamish.kinds.versions.reading import TableAtRest
from beamish.kinds.versions.stage import check_changes, describe_changes, describe_dropped, describe_late
from beamish.modes import AccumulationMode, WaitFor


@attrs.frozen
class AsOfStage(Stage):
    """An as-of join of rows with a table (see ``contract/stage.py``).

    Attributes:
        options: the options of the join.
        table: the options of the table.
        is_final: whether the input is complete, as in a batch: each row is emitted once, final.
    """

    options: AsOfOptions
    table: VersionsOptions
    is_final: bool = False

    @property
    def with_dropped(self) -> bool:
        return self.options.with_dropped

    def declaring(self, call: str, **changes: Any) -> AsOfStage:
        if set(changes) - {"with_dropped", "mode"}:
            raise PipelineError(
                f"{call} of an as-of join: it keeps the windows of its left input and has no trigger; {elsewhere(changes)}"
            )
        if changes.get("mode") is AccumulationMode.ACCUMULATING:
            raise PipelineError(
                "accumulating() of an as-of join: a corrected row would not replace the wrong one; use accumulating_and_retracting(), or discarding() for each row once"
            )
        return attrs.evolve(self, options=attrs.evolve(self.options, **changes))

    def check_call(self, call: str) -> None:
        if call.startswith("where"):
            raise PipelineError(
                f"{call} of an as-of join: call it on an input, bm.as_of_join(orders=bm.Pipeline().event_time(...).where(...), ...); for joined rows add a stage: .then(bm.Pipeline().where(...).window(...)...)"
            )
        raise PipelineError(
            f"{call} of an as-of join: its left input declares event_time, its table key_by, and on=... joins them; declare it there, or in a stage after: .then(bm.Pipeline().key_by(...))"
        )

    @property
    def joined_by(self) -> str:
        return "as_of_join"

    def call_that_joins(self, takes: Sequence[Relation], inputs: Sequence[tuple[str, str]]) -> str:
        (left, table), ((_, rows), (changes, _)) = takes, inputs
        on = dict(zip(left.keys, table.keys, strict=True))
        named = f"{left.name}={rows}, {table.name}={changes}.versions({self.table.arguments})"
        return f"as_of_join({', '.join(filter(None, [named, f'on={on!r}' if on else '', self.options.arguments]))})"

    def calls(self) -> Iterable[str]:
        retracts, dropped = self.options.retracts, self.with_dropped
        return (".accumulating_and_retracting()",) * retracts + (".with_dropped()",) * dropped

    def check(self, takes: Sequence[Relation]) -> None:
        left, changes = takes
        check_changes(changes, self.table)
        if self.table.latest_only:
            raise PipelineError(
                f"as_of_join({changes.name}=...): a table of latest versions only has no earlier versions; leave latest_only out"
            )
        if self.options.waits > self.table.history:
            named = {"grace": self.options.grace, "tolerance": self.options.ahead}
            given = ", ".join(f"{name}={str(one)!r}" for name, one in named.items() if one)
            raise PipelineError(
                f"as_of_join({given}) above the table's history {str(self.table.history)!r}: the matching version would expire before the row is joined; give a longer history"
            )
        if self.options.tolerance is not None and self.table.only_updated:
            raise PipelineError(
                f"as_of_join(tolerance={str(self.options.tolerance)!r}) with a table of only_updated: the age of a version would be "
                "unknown, since equal changes start no version; leave one of them out"
            )
        if left.is_changelog:
            raise PipelineError(
                f"as_of_join({left.name}=...): changes() emits no rows to join; leave it and its suppress out"
            )
        if not left.has_timestamps:
            raise PipelineError(
                f"as_of_join({left.name}=...): panes without timestamp have no time to join at; give their stage a "
                "timestamp_combiner, or windows that end"
            )
        if self.options.at_arrival and (left.retracts or self.options.retracts):
            what = f"{left.name} retracts" if left.retracts else "accumulating_and_retracting()"
            raise PipelineError(
                f"as_of_join(as_of='arrival'): {what}: a row is joined once with what the table holds at that moment, which cannot be "
                "corrected later; use as_of='event_time'"
            )
        if left.retracts and not self.options.retracts:
            raise PipelineError(
                f"discarding over {left.name}, which retracts: a retracted row has already been emitted; use .accumulating_and_retracting()"
            )
        if str(changes.name).lower() in PANE_COLUMNS:
            raise PipelineError(
                f"as_of_join({changes.name}=...): the output has a column of this name; rename the table"
            )

    def gives(self, takes: Sequence[Relation]) -> Relation:
        left, changes = takes
        watermarks = left.watermarks
        if self.options.wait_for is WaitFor.BOTH_INPUTS:
            watermarks += changes.watermarks
        follows = SlotSemantics.RETRACTING if self.options.retracts else SlotSemantics.ONCE
        return Relation(
            left.keys,
            window=left.window,
            retracts=self.options.retracts,
            watermarks=watermarks,
            behind_us=max(0, left.behind_us - self.options.waits.us),
            slot=None,
            follows=follows,
        )

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return self.table.columns if number else ()

    def asks_whole_rows(self, takes: Sequence[Relation], number: int) -> bool:
        whole = self.table.values is None or self.with_dropped or takes[number].where is not None
        return number == 0 or whole

    def may_begin_with(self, number: int) -> bool:
        return number == TABLE

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        plan = make_as_of_plan(
            self.options,
            self.table,
            takes,
            self.gives(takes),
            shards=shards if takes[0].keys else 1,
            is_final=self.is_final,
        )
        return AsOfOperator(plan)

    @property
    def final(self) -> AsOfStage:
        options = attrs.evolve(self.options, mode=AccumulationMode.DISCARDING, early=False, grace=Duration(0))
        options = attrs.evolve(options, wait_for=WaitFor.BOTH_INPUTS)
        return AsOfStage(options, self.table, is_final=True)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.VERSIONS: takes[TABLE].name, Keeps.KEYS: None}

    def at_rest(self, takes: Sequence[Relation], notes: Sequence[DictStore], what: Keeps, *, shards: int) -> AtRest:
        if what is Keeps.KEYS:
            return super().at_rest(takes, notes, what, shards=shards)
        return TableAtRest.of(notes, takes[TABLE].name)

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        options, (left, changes) = self.options, takes
        on = " and ".join(f"{row} = {key}" for row, key in zip(left.keys, changes.keys, strict=True)) or "one key"
        time = "their timestamp" if left.is_panes else str(left.event_time)
        unmatched = "null" if options.how == "left" else "no row"
        meets = self._describe_match(time)
        yield (
            "rows",
            f"{left.name}, on {on}: each is joined with the version of {changes.name} {meets}; without one: {unmatched}",
        )
        yield str(changes.name), describe_changes(changes, self.table)
        yield from describe_where(takes)
        yield "watermark", self._describe_watermark(left, changes)
        if options.at_arrival:
            yield "panes", "a row is emitted on arrival, once; later changes do not correct it"
        waits = "on arrival, EARLY" if options.early else f"when the watermark is past its time{self._describe_grace()}"
        corrected = (
            f"; when a late change alters its match, until the watermark is {self.table.allowed_lateness + options.ahead} past it, it is retracted and the corrected row emitted"
            if options.retracts
            else "; it is not corrected, and changes too late for rows joined before are listed as joined_already"
        )
        if not options.at_arrival:
            yield "panes", f"a row is emitted {waits}{corrected}"
        yield "late", describe_late(self.table)
        latest = f"the latest version of each key of {changes.name} {self._describe_latest()}"
        yield "bounded", f"a row of {left.name} is stored until no change can affect it; {latest}"
        yield "dropped", describe_dropped(attrs.evolve(self.table, with_dropped=self.with_dropped))
        if isinstance(operator, AsOfOperator):
            yield "carried", operator.plan.table.describe_shuffled()
            yield "state", f"{operator.shards} shards; {operator.plan.describe_stored()}"

    def _describe_latest(self) -> str:
        if self.options.tolerance is None:
            return "for ever, unless a change deletes it"
        return f"until the watermark is {self.table.history} plus {self.options.tolerance} past its start, or a change deletes it"

    def _describe_match(self, time: str) -> str:
        """Which version a row matches."""
        options = self.options
        if options.at_arrival:
            return "that is its key's latest when the row arrives"
        exact, tolerance = options.allow_exact_matches, options.tolerance
        before = f"that began {'at or before' if exact else 'before'} {time} and was still valid"
        after = f"that begins first {'at or after' if exact else 'after'} {time}"
        if options.direction == "backward":
            return before + ("" if tolerance is None else f", begun at most {tolerance} earlier")
        if options.direction == "forward":
            return f"{after}, at most {tolerance} later"
        return f"{before}, or {after}, whichever began nearer, at most {tolerance} away"

    def _describe_grace(self) -> str:
        return f" by {self.options.waits}" if self.options.waits else ""

    def _describe_watermark(self, left: Relation, changes: Relation) -> str:
        if self.options.wait_for is WaitFor.LEFT_INPUT:
            return f"that of {left.name} alone: {changes.name} does not hold it back, so its changes may be late"
        words = f"the least of {left.name}'s and {changes.name}'s: while one has none, or is idle, rows wait"
        stalls = [
            str(relation.name)
            for relation in (left, changes)
            if any(policy.moved_by_rows and policy.idle_timeout is None for policy in relation.watermarks)
        ]
        has = "has" if len(stalls) == 1 else "have"
        return words + (f" ({' and '.join(stalls)} {has} no idle_timeout)" if stalls else "")
