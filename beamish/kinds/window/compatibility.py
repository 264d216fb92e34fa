"""Which stored state a pipeline can go on from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from beamish.contract.at_rest import Compared
from beamish.contract.store import Store
from beamish.errors import BeamishError, StateError
from beamish.kernels.identity import same_identity
from beamish.kernels.widening import same_or_wider
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.read_identity import in_words
from beamish.kinds.window.segments import LAYOUT
from beamish.tables.segment_store import SegmentStore


@attrs.frozen
class Difference:
    """Something in the identity of a stage that is another than it was.

    Attributes:
        what: as a user calls it.
        then, now: its identity in the checkpoint and in the pipeline.
    """

    what: str
    then: Any
    now: Any

    @property
    def is_taken_away(self) -> bool:
        """Whether it is an accumulation that is there no more; one under another name is another."""
        return self.what.startswith("accumulation ") and self.now is None

    @property
    def is_added(self) -> bool:
        """Whether it is an accumulation that was not there."""
        return self.what.startswith("accumulation ") and self.then is None

    @property
    def called(self) -> str:
        """What it is, by itself."""
        return self.what.strip().rstrip("=")

    @property
    def then_in_words(self) -> str:
        """What it was, much as one would write it."""
        return _words(self.then)

    @property
    def now_in_words(self) -> str:
        """What it is."""
        return _words(self.now)

    @property
    def fix(self) -> str:
        """What to do."""
        if self.is_added:
            return (
                "keep the old ones, or start from a new checkpoint: what takes back a row that is there would take it from this one too, which "
                "never had it (docs/upgrading.md has a table of what may change)"
            )
        carry = (
            "carry the checkpoint over without it (bm.migrate), which forgets its values"
            if self.is_taken_away
            else "start from a new checkpoint"
        )
        return f"keep the old one, or {carry} (docs/upgrading.md has a table of what may change)"

    def __str__(self) -> str:
        return f"the checkpoint was written with {self.what}{self.then_in_words}, the pipeline now has {self.now_in_words}: {self.fix}"


def check_identity(stored: Mapping[str, Any], plan: WindowPlan) -> None:
    """Check that a plan means what the one meant that the state was written by.

    Raises:
        StateError: it does not.
    """
    for refused in all_refused(stored, plan):
        raise StateError(str(refused))


def all_refused(stored: Mapping[str, Any], plan: WindowPlan) -> Iterator[Difference]:
    """What of a plan may not be another than what the state was written by, and is; ``stored``: the identity in the state."""
    yield from (one for one in _differences(stored, plan) if not _is_wider(plan, one))


def all_wider(stored: Mapping[str, Any], plan: WindowPlan) -> Iterator[Difference]:
    """What of a plan has a type that holds all that it held before, and is read as that."""
    yield from (one for one in _differences(stored, plan) if _is_wider(plan, one))


def compared(plan: WindowPlan, store: Store) -> Iterator[Compared]:
    """What of a plan differs from what a shard noted: what is refused, accumulations that begin, and types that are wider."""
    try:
        about = SegmentStore(store, LAYOUT).about
    except BeamishError:
        return  # raised when it is opened
    if not about:
        return
    then, refused = about["identity"], list(all_refused(about["identity"], plan))
    for one in refused:
        yield Compared(one.called, one.then_in_words, one.now_in_words, one.fix, refused=True)
    for name, accumulation in plan.options.accumulations.items():
        if name not in then["accumulations"] and not any(one.is_added for one in refused):
            yield Compared(
                f"accumulation {name}", "", repr(accumulation), "begins with no rows in windows that are there"
            )
    for one in all_wider(then, plan):
        means = "holds all that it held: what is kept is read as the wider type"
        yield Compared(one.called, one.then_in_words, one.now_in_words, means)


def _differences(stored: Mapping[str, Any], plan: WindowPlan) -> Iterator[Difference]:
    for what, now in plan.identity.items():
        then: Any = stored.get(what, {})
        if what == "accumulations":
            # One more counts from now on, unless rows may be taken back that it never had. Another meaning under an old name is not safe.
            names = {**then, **now} if plan.signed else then
            each = [(f"accumulation {name}=", then.get(name), now.get(name)) for name in names]
        elif what == "deduplication" and not then:
            continue  # rows are known again from now on
        elif what == "conditions and computed columns":
            each = [(f"{what} ", _lasting(then, plan), _lasting(now, plan))]
        else:
            each = [(f"{what} ", then, now)]
        yield from (Difference(*one) for one in each if not same_identity(*one[1:]))


def _lasting(conditions: Mapping[str, Any], plan: WindowPlan) -> dict[str, Any]:
    """The conditions that may not change: of rows, or of panes, that are retracted, since a retraction must meet the same one."""
    lasts = {"where": plan.signed, "having": plan.options.retracts, "with_columns": plan.options.retracts}
    return {name: of for name, of in conditions.items() if lasts[name]}


def _is_wider(plan: WindowPlan, of: Difference) -> bool:
    """Whether a part of an identity differs only in types that hold all that they held, and what is kept can be read as these.

    What a suppress holds is not; and how many bytes a key may keep counts those of the types.
    """
    retention = plan.options.retention
    if plan.suppressed or (retention is not None and retention.bytes is not None):
        return False
    what, then, now = of.what, of.then, of.now
    if what == "keys ":
        return same_or_wider(then, now, ": ")
    if what == "deduplication ":
        return now is not None and _known_by_wider(then, now)
    if not what.startswith("accumulation ") or then is None or now is None:
        return False
    return same_identity(then["is"], now["is"]) and same_or_wider(then["reads"], now["reads"], " ")


def _known_by_wider(then: str, now: str) -> bool:
    """Whether rows are known again by the same call, of columns of wider types (``kinds/window/identity.py``)."""
    (call, _, columns), (own, _, others) = then.partition(" of "), now.partition(" of ")
    return call == own and same_or_wider(_columns_in(columns), _columns_in(others), " ")


def _columns_in(words: str) -> list[str]:
    """Columns with their types, which commas stand between, and in types."""
    columns, depth, begin = [], 0, 0
    for at, sign in enumerate(words):
        depth += (sign in "<([") - (sign in ">)]")
        if depth == 0 and words.startswith(", ", at):
            columns.append(words[begin:at])
            begin = at + 2
    return [*columns, words[begin:]]


def _words(identity: Any) -> str:
    """A part of the identity of a stage, much as one would write it."""
    if identity is None or identity == {}:
        return "none"
    if isinstance(identity, Mapping) and "reads" in identity:
        return f"{in_words(identity['is'])} of {', '.join(identity['reads']) or 'rows'}"
    return repr(identity) if isinstance(identity, str) else in_words(identity)
