"""The stage of ``Pipeline.changes``: upserts and deletes of a table, to be suppressed (docs/rules/suppress.md#changes)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.at_rest import Keeps
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation, SlotSemantics
from beamish.contract.stage import Stage
from beamish.durations import LONGEST_US, Duration
from beamish.errors import PipelineError
from beamish.kernels.column_names import is_reserved
from beamish.kinds.changes.operator import ChangesOperator
from beamish.kinds.changes.options import ChangesOptions
from beamish.kinds.changes.plan import make_plan
from beamish.kinds.suppress.option import Suppress, Until, UntilTimeLimit, UntilWindowCloses
from beamish.kinds.suppress.stage import Suppressed


@attrs.frozen
class ChangesStage(Stage):
    """Upserts and deletes of slots; only valid with a suppress (see ``kinds/suppress/stage.py``).

    Attributes:
        options: its options.
        suppress: its suppress; None: not yet declared.
    """

    options: ChangesOptions = ChangesOptions()
    suppress: Suppress | None = attrs.field(default=None, repr=False)

    @property
    def with_dropped(self) -> bool:
        return self.options.with_dropped

    def declaring(self, call: str, **changes: Any) -> ChangesStage:
        if set(changes) == {"with_dropped"}:
            return ChangesStage(attrs.evolve(self.options, **changes))
        return super().declaring(call, **changes)  # type: ignore[return-value]

    def calls(self) -> Iterable[str]:
        arguments = self.options.arguments
        return (f".changes({arguments})", *([".with_dropped()"] if self.with_dropped else []))

    def check_form(self, call: str) -> None:
        raise PipelineError(
            f"{call} and changes(): both define what a row does; use changes() for upserts by key, {call} for whole rows"
        )

    def check(self, takes: Sequence[Relation]) -> None:
        if self.suppress is None:
            raise PipelineError(
                "changes() alone: it defines what rows mean, not when they are emitted; add .suppress(bm.UntilTimeLimit('1 minute', "
                "clock='event')), or .suppress(bm.UntilWindowCloses(grace='10 minutes'))"
            )
        until = self.suppress.until
        if not takes[0].keys:
            raise PipelineError("changes() without keys: add .key_by(...) before it, with the key columns of the table")
        if isinstance(until, UntilWindowCloses):
            if self.options.window is None:
                raise PipelineError(
                    f"suppress({until!r}) over changes() without window: nothing ever expires; use .changes(window='window'), or bm.UntilTimeLimit"
                )
            if until.grace is None:
                raise PipelineError(
                    f"suppress({until!r}) over changes(): how long after its end does a window accept changes? Use bm.UntilWindowCloses(grace='10 minutes'), or grace=0"
                )
        for name in (*takes[0].keys, *self.options.columns):
            if isinstance(name, str) and is_reserved(name):
                raise PipelineError(f"changes(): column {name!r}: such names are reserved; rename it")

    def gives(self, takes: Sequence[Relation]) -> Relation:
        keys, watermarks = takes[0].keys, takes[0].watermarks
        return Relation(
            keys, retracts=True, watermarks=watermarks, is_changelog=True, slot=keys, follows=SlotSemantics.SETTING
        )

    def asks(self, takes: Sequence[Relation], number: int) -> Sequence[str]:
        return self.options.columns

    def suppressed_by(self, suppress: Suppress) -> ChangesStage:
        return attrs.evolve(self, suppress=suppress)

    @property
    def final(self) -> Stage:
        suppress = self.suppress
        if suppress is None:
            return self
        until = suppress.until if suppress.holds else UntilTimeLimit(Duration(LONGEST_US), clock="event")
        return Suppressed(attrs.evolve(self, suppress=None), Suppress(until, name=suppress.name))

    def bind(self, takes: Sequence[Relation], *, shards: int) -> Operator:
        assert self.suppress is not None  # noqa: S101 - it is checked
        return ChangesOperator(make_plan(self.options, takes[0], self.gives(takes), self.suppress, shards))

    def keeps(self, takes: Sequence[Relation]) -> Mapping[Keeps, str | None]:
        return {Keeps.KEYS: None}

    def describe(self, takes: Sequence[Relation], operator: Operator | None) -> Iterator[tuple[str, str]]:
        options, relation = self.options, takes[0]
        slot = ", ".join(map(str, relation.keys)) + (f" and the window in {options.window}" if options.window else "")
        newest = options.sequence_by or "event time"
        deleted = f"; it deletes it where {options.deleted} is true" if options.deleted else ""
        yield (
            "rows",
            f"a row sets the value of {slot}{deleted}; of several the one with the greatest {newest} counts",
        )
        yield "watermark", relation.policy.describe()
        yield "bounded", "no state is left of a slot after its last change is emitted"
        yield (
            "dropped",
            "rows without event time, and of windows that had expired when they arrived"
            + ("; they are emitted beside the changes" if self.with_dropped else ""),
        )
        if operator is not None:
            yield "state", f"the newest row of each buffered slot, in {operator.shards} shards"
        if self.suppress is not None:
            yield "held", f"{self.suppress.until.describe()}{_measured(self.suppress.until)}"


def _measured(until: Until) -> str:
    """The start of a wait, for explain."""
    if isinstance(until, UntilWindowCloses):
        return f": the watermark is {until.grace} past its end; one row per key and window, none for what was deleted"
    if until.by_clock or not until.holds:
        return "; one change per slot at a time" * until.holds
    return ": it is the event time of the first buffered row; one change per slot at a time"
