"""The stage of ``Pipeline.versions``: changes become versions with a validity interval (docs/rules/tables.md#versions)."""

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
from beamish.kernels.column_names import is_reserved
from beamish.kinds.versions.operator import VersionsOperator
from beamish.kinds.versions.options import VALID_FROM, VALID_TO, VersionsOptions
from beamish.kinds.versions.plan import make_versions_plan
from beamish.kinds.versions.reading import TableAtRest


@attrs.frozen
class VersionsStage(Stage):
    """Versions of a table from its changes (see ``contract/stage.py``).

    Attributes:
        options: its options.
        is_final: whether the input is complete, as in a batch: final versions are emitted.
    """

    options: VersionsOptions
    is_final: bool = False

    @property
    def with_dropped(self) -> bool:
        return self.options.with_dropped

    def declaring(self, call: str, **changes: Any) -> VersionsStage:
        if set(changes) == {"with_dropped"}:
            return VersionsStage(attrs.evolve(self.options, **changes))
        raise PipelineError(f"{call} after versions(...): versions have no window and no trigger; {elsewhere(changes)}")

    def declared(self, option: str) -> Any:
        return self.options if option == "versions" else None

    def calls(self) -> Iterable[str]:
        return (f".versions({self.options.arguments})", *([".with_dropped()"] if self.with_dropped else []))

    def check(self, takes: Sequence[Relation]) -> None:
        check_changes(takes[0], self.options)

    def gives(self, takes: Sequence[Relation]) -> Relation:
        keys, follows = takes[0].keys, SlotSemantics.ONCE if self.is_final else SlotSemantics.RETRACTING
        retracts, watermarks = not self.is_final, takes[0].watermarks
        return Relation(
            keys,
            retracts=retracts,
            watermarks=watermarks,
            behind_us=takes[0].behind_us,
            slot=(*keys, VALID_FROM),
            follows=follows,
        )

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return self.options.columns

    def asks_whole_rows(self, takes: Sequence[Relation], number: int) -> bool:
        return self.options.values is None or self.options.with_dropped or takes[number].where is not None

    def may_begin_with(self, number: int) -> bool:
        return True

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        shards = shards if takes[0].keys else 1
        plan = make_versions_plan(self.options, takes[0], self.gives(takes), shards, is_final=self.is_final)
        return VersionsOperator(plan)

    @property
    def final(self) -> VersionsStage:
        return VersionsStage(self.options, is_final=True)

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.VERSIONS: None, Keeps.KEYS: None}

    def at_rest(self, takes: Sequence[Relation], notes: Sequence[DictStore], what: Keeps, *, shards: int) -> AtRest:
        if what is Keeps.KEYS:
            return super().at_rest(takes, notes, what, shards=shards)
        return TableAtRest.of(notes, None)

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        options, relation = self.options, takes[0]
        yield "rows", describe_changes(relation, options)
        yield from describe_where(takes)
        yield "watermark", "that of the stage before" if relation.is_panes else relation.policy.describe()
        shown = "latest versions only" if options.latest_only else "all versions"
        altered = "when a change alters one, it is retracted and the corrected version emitted"
        yield "versions", f"{shown}, each from its valid_from until before its valid_to (null: still valid); {altered}"
        yield "late", describe_late(options)
        yield (
            "bounded",
            "the latest version of each key is stored for ever, unless a change deletes it",
        )
        yield "dropped", describe_dropped(options)
        if isinstance(operator, VersionsOperator):
            yield "carried", operator.plan.table.describe_shuffled()
            yield "state", f"{operator.shards} shards; {operator.plan.table.describe_stored()}"


def check_changes(relation: Relation, options: VersionsOptions) -> None:
    """Check that an input can be the changes of a table (else PipelineError)."""
    call = f"versions({options.arguments})"
    if relation.is_changelog:
        raise PipelineError(
            f"{call} after changes(): its rows are upserts and deletes, which versions() applies itself; leave changes() and its suppress out"
        )
    if not relation.has_timestamps:
        raise PipelineError(
            f"{call} of panes without timestamp: they have no start of validity; give the stage before a timestamp_combiner, such as "
            ".timestamp_combiner(bm.TimestampCombiner.LATEST), or windows that end"
        )
    if relation.behind_us > options.allowed_lateness.us:
        least = Duration(relation.behind_us)
        raise PipelineError(
            f"{call}: panes of a suppress, or of an expiring window, are emitted when the watermark is {least} past their time, so all would be too late where it moves in small steps; use allowed_lateness={str(least)!r} or more, and a history as long"
        )
    taken = {*PANE_COLUMNS, VALID_FROM, VALID_TO}
    for name in (*relation.keys, *(options.values or ())):
        if str(name).lower() in taken or is_reserved(str(name)):
            raise PipelineError(f"{call}: column {name!r}: the output has a column of this name; rename yours")
    for name in options.values or ():
        if name in relation.keys:
            raise PipelineError(f"{call}: {name!r} is a key column, which is emitted anyway; leave it out of values")


def describe_changes(relation: Relation, options: VersionsOptions) -> str:
    """The meaning of a table's changes, for explain."""
    keys = ", ".join(map(str, relation.keys))
    words = f"a row sets what is valid for {keys}" if keys else "a row sets what is valid (not keyed: one key)"
    time = "its timestamp" if relation.is_panes else str(relation.event_time)
    words += f" from {time} on, until the next"
    if options.deleted:
        words += f"; it deletes where {options.deleted} is true"
    if relation.retracts:
        words += "; a retraction removes the change that it repeats"
    counts = (
        "that of the later bundle"
        if options.sequence_by is None
        else f"the one with the greatest {options.sequence_by}"
    )
    words += f"; of several of the same key and time {counts} counts"
    return words + ("; one equal to the current version is ignored" if options.only_updated else "")


def describe_late(options: VersionsOptions) -> str:
    """The handling of late changes, for explain."""
    return f"changes are accepted until the watermark is {options.allowed_lateness} past them, and reads are exact until it is {options.history} past; further back only each key's latest change is stored"


def describe_dropped(options: VersionsOptions) -> str:
    """The dropped changes, for explain."""
    words = "changes without event time or with one outside the years 1 to 9999, with a null in a key column, and late ones; "
    return words + ("each is emitted with its reason" if options.with_dropped else "with_dropped() lists them")
