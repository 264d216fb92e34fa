"""State compatibility: the differences between two specs of a stage (``spec.py``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from beamish.accumulations.base.accumulation import Accumulation
from beamish.contract.at_rest import Compared
from beamish.contract.stored import Store
from beamish.durations import Duration
from beamish.errors import BeamishError, StateError, in_docs
from beamish.kernels.identity import same_identity
from beamish.kernels.spec import read_spec, shown_spec
from beamish.kernels.type_names import same_or_wider
from beamish.kinds.deduplicate.option import Deduplication
from beamish.kinds.window.plan.options import KeyWatermark
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.plan.spec import Spec, null_keys_of, same_state
from beamish.kinds.window.state.segments import LAYOUT
from beamish.modes import AccumulationMode, TimestampCombiner
from beamish.tables.segments import SegmentStore
from beamish.windows.option import WindowOption
from beamish.windows.time_windows import AnchoredWindows

_TABLE = f"({in_docs('Upgrading', 'What may change')})"
REFUSED = f"keep the old one, or start from a new checkpoint {_TABLE}"
REMOVED = f"keep the old one, or migrate the checkpoint without it (bm.migrate), which drops its values {_TABLE}"
NEVER_HAD = (
    "keep the old ones, or start from a new checkpoint: existing rows were never added to the new one, so retracting them would "
    f"corrupt it {_TABLE}"
)
NEVER_STORED = (
    "keep the old ones, or start from a new checkpoint: windows anchored later take stored rows, which were never read for the new "
    f"one {_TABLE}"
)
KEYS_AHEAD = (
    "windows of keys that were ahead have expired, and late rows would open them again; keep it: .watermark_per_key('1 day', at_most=0), with "
    f"at least the delay of the policy, gives all keys the stage's watermark; or start from a new checkpoint {_TABLE}"
)
NULL_KEYS = "null keys"
NULLS_FROM_NOW_ON = "applies from the next rows on"
NULLS_RETRACTED = (
    f"{NULLS_FROM_NOW_ON}; a stored window of a null key with rows of both inputs stops the query, since the joined rows that it emitted "
    "could not be retracted: then keep the old meaning until such windows have expired"
)
BEGINS = "starts with no rows in existing windows"
WIDER = "keeps its values: they are read as the wider type"
_CONTINUES = frozenset({BEGINS, WIDER, NULLS_FROM_NOW_ON, NULLS_RETRACTED})


def check_spec(then: Spec, plan: WindowPlan) -> None:
    """Check that state of this spec can be continued by a plan (else StateError)."""
    for refused in all_refused(then, plan):
        raise StateError(in_words(refused))


def in_words(refused: Compared) -> str:
    """An incompatible difference, as a sentence."""
    named = "=" if refused.what.startswith("accumulation ") else " "
    then = f"the checkpoint was written with {refused.what}{named}{refused.then}"
    return f"{then}, the pipeline now has {refused.now}: {refused.means}"


def all_refused(then: Spec, plan: WindowPlan) -> Iterator[Compared]:
    """The incompatible differences from this spec."""
    return (one for one in differences(then, plan) if one.refused)


def compared(plan: WindowPlan, store: Store) -> Iterator[Compared]:
    """The differences between a plan and a shard's metadata; empty if unreadable, which opening reports."""
    with suppress(BeamishError):
        about = SegmentStore(store, LAYOUT).about
        yield from differences(about["spec"], plan) if about else ()


def changeable(store: Store) -> Mapping[str, Any] | None:
    """The options in a shard's metadata that may change; None: unreadable."""
    with suppress(BeamishError):
        about = SegmentStore(store, LAYOUT).about
        return dict(about["spec"]["changeable"]) if about else None
    return None


def differences(then: Spec, plan: WindowPlan) -> Iterator[Compared]:
    """The differences between a plan and a spec, except options that may change freely."""
    if same_state(then, plan.spec):
        return
    was, now = (dict(_parts(spec, plan)) for spec in (then, plan.spec))
    for what in {**was, **now}:
        means = _means(was.get(what), now.get(what), plan)
        if means is not None and what == NULL_KEYS:
            means = NULLS_RETRACTED if plan.retracts_null_keys else NULLS_FROM_NOW_ON
        if means is not None:
            then_said, now_said = (part.words if part else "none" for part in (was.get(what), now.get(what)))
            yield Compared(what, then_said, now_said, means, refused=means not in _CONTINUES)


@attrs.frozen
class _Part:
    """A part of a spec that restricts changes.

    Attributes:
        value: its spec.
        kind: the type of its option; None: not an option.
        columns: the columns it reads, with their types.
    """

    value: Any
    kind: Any = None
    columns: Sequence[Sequence[Any]] = ()

    @property
    def words(self) -> str:
        """In source form."""
        if self.kind is None:
            return repr([": ".join(column) for column in self.columns] if self.value is None else self.value)
        columns = ", ".join(" ".join(filter(None, column)) for column in self.columns)
        if self.kind is KeyWatermark:
            return f"{read_spec(self.value, KeyWatermark).call}"
        if self.kind is Deduplication:
            return f"{read_spec(self.value, Deduplication).call} of {columns}"
        shown = shown_spec(self.value, self.kind)
        return shown if self.kind is WindowOption else f"{shown} of {columns or 'rows'}"

    def is_read_as(self, now: _Part) -> bool:
        """Whether it equals the present one, except for wider column types."""
        return same_identity(self.value, now.value) and same_or_wider(self.columns, now.columns)


def _parts(spec: Spec, plan: WindowPlan) -> Iterator[tuple[str, _Part]]:
    """The parts of a spec, by their names for users."""
    options = spec["options"]
    yield "shards", _Part(spec["shards"])
    yield "inputs", _Part(spec["inputs"])
    yield "keys", _Part(None, columns=spec["keys"])
    yield "window", _Part(options["window"], WindowOption)
    if isinstance(plan.window, AnchoredWindows):
        yield "allowed lateness", _Part(str(Duration(options.get("allowed_lateness", 0))))
    yield "mode", _Part(options.get("mode", AccumulationMode.DISCARDING.value))
    yield "timestamp combiner", _Part(options.get("combiner", TimestampCombiner.END_OF_WINDOW.value))
    conditions = _lasting_conditions(options, plan)
    if conditions:
        yield "conditions and computed columns", _Part(conditions)
    if "deduplication" in options:
        yield "deduplication", _Part(options["deduplication"], Deduplication, spec["ids"])
    if "key_watermark" in options:
        yield "watermark per key", _Part(options["key_watermark"], KeyWatermark)
    for name, accumulation in options.get("accumulations", ()):
        yield f"accumulation {name}", _Part(accumulation, Accumulation, spec["reads"][name])
    yield NULL_KEYS, _Part(null_keys_of(spec))
    if spec["keeps_rows"]:
        yield "rows stored for on_error('drop')", _Part("all")


def _lasting_conditions(options: Mapping[str, Any], plan: WindowPlan) -> dict[str, Any]:
    """The conditions that may not change: of rows, or of panes, that are retracted, since a retraction must meet the same one."""
    lasting = {"where": options.get("where")} if plan.signed else {}
    if plan.options.retracts:
        lasting |= {"having": options.get("having"), "with_columns": dict(options.get("derived", ()))}
        lasting |= {"explode": options.get("explode")}
    return {call: of for call, of in lasting.items() if of}


def _means(then: _Part | None, now: _Part | None, plan: WindowPlan) -> str | None:
    """The effect of a changed part on the state; None: unchanged, or it may change freely."""
    kind = (then or now or _Part(None)).kind
    if kind is KeyWatermark:  # the watermark of no key goes back
        return KEYS_AHEAD if now is None else None
    if then is None or now is None:
        if kind is Accumulation and isinstance(plan.window, AnchoredWindows):
            return REFUSED if now is None else NEVER_STORED
        if kind is Accumulation:
            return REMOVED if now is None else NEVER_HAD if plan.signed else BEGINS
        return None if kind is Deduplication and then is None else REFUSED
    if not then.is_read_as(now):
        return REFUSED
    if then.columns == now.columns:
        return None
    return WIDER if _reads_wider(plan) else REFUSED


def _reads_wider(plan: WindowPlan) -> bool:
    """Whether stored values can be read as wider types: not buffered updates, nor with a budget of bytes, which depend on the types."""
    retention = plan.options.retention
    return not plan.suppressed and (retention is None or retention.bytes is None)
