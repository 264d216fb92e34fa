"""Differences between the pipeline that wrote a checkpoint and the one that continues.

Refused changes are those the engine refuses: each shard is opened on a copy of its metadata, so the result equals that of a run.
Compatible changes are the other options that differ between the specs of the stages, shown as lines of ``explain()``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from beamish.contract.at_rest import Compared
from beamish.contract.operator import Operator
from beamish.contract.stored import ABOUT, DictStore
from beamish.errors import StateError
from beamish.flow import BoundFlow, Description, InputDescription, descriptions
from beamish.kernels.identity import same_identity
from beamish.kernels.spec import shown_spec

_BATCH, _PANE, _ROWS = (f"applies from the next {what} on" for what in ("batch", "pane", "rows"))
_WINDOWS, _ALREADY = f"{_BATCH}, to existing windows too", f"{_ROWS}; earlier rows stay as they are"
OPTIONS = {
    "window": ("windows", "applies from the next rows on; an added windowing starts with them"),
    "grace": ("panes", "applies to rows not yet emitted"),
    "trigger": (
        "panes",
        "the trigger starts in its initial state in every open window, with the rows in no pane yet; closed windows stay closed",
    ),
    "allowed_lateness": ("late", _WINDOWS),
    "late_rows": ("late", _WINDOWS),
    "history": ("late", _WINDOWS),
    "on_time": ("expiry", _WINDOWS),
    "closing": ("expiry", _WINDOWS),
    "combiner": ("timestamp", _PANE),
    "mode": ("a pane holds", _PANE),
    "retract_merged": ("a pane holds", _PANE),
    "only_updated": ("a pane holds", _PANE),
    "derived": ("columns", _PANE),
    "having": ("having", _PANE),
    "explode": ("explode", _PANE),
    "with_dropped": ("dropped", _BATCH),
    "on_error": ("dropped", _BATCH),
    "deduplication": ("duplicates", "deduplication applies from the next rows on"),
    "retention": ("retained", "applies from the next row of a key on; what was evicted does not return"),
    "forget_after": (
        "forgotten",
        "applies from the next move of the watermark on; if it was not set before, each key counts as last seen then",
    ),
    "latest_only": ("versions", _BATCH),
    "until": ("held", "applies to buffered updates too"),
    "name": ("held", "applies to buffered updates too"),
    "buffer": ("buffer", _BATCH),
    "key_watermark": ("watermark", f"{_BATCH}; no key's watermark goes back"),
    "watermarks": ("watermark", f"{_BATCH}; the watermark does not go back"),
    "event_time": ("rows", _ALREADY),
    "where": ("where", _ALREADY),
}
"""Per option its line in explain, and the effect of changing it if the state is not refused."""
_ONE_BY_ONE = frozenset({"accumulations", "allow_data_loss"})
"""Options that are reported elsewhere, or have no effect on the state."""
_OF_INPUTS = ("watermarks", "where", "event_time")
"""Options of the inputs; the rest follows from the stages before."""
_CHANGEABLE = frozenset({"trigger", "allowed_lateness", "late_rows"})
"""Options that the metadata of a shard of windows has too."""
_FORMULAS = frozenset({"where", "columns", "having"})
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LINES_OF = {
    "window": ["windows"],
    "keys": ["rows"],
    "mode": ["a pane holds"],
    "timestamp combiner": ["timestamp"],
    "conditions and computed columns": ["where", "columns", "having", "explode"],
    "deduplication": ["duplicates"],
    "watermark per key": ["watermark"],
}
"""The lines that tell a part of a stage for which its state is refused."""


@attrs.frozen
class Change:
    """A difference between a pipeline and the one that wrote a checkpoint.

    Attributes:
        stage: the number of the stage, from 1; 0: the whole query.
        what: what differs, as in ``explain()`` or the pipeline.
        then, now: the old and the new value, as text; empty: absent.
        refused: whether it is incompatible.
        means: the effect on the state and existing windows; for an incompatible change the cause and the fix.
    """

    stage: int
    what: str
    then: str
    now: str
    refused: bool
    means: str

    @property
    def in_words(self) -> str:
        """As one line."""
        values = f": then {self.then or 'none'}, now {self.now or 'none'}" if self.then or self.now else ""
        return f"{self.what}{values}: {self.means}"


@attrs.frozen(eq=False)
class StoredStage:
    """A stage in a checkpoint.

    Attributes:
        notes: per shard the entries of its store that say what the others hold.
        about: its description.
        shards: how many shards it has; None: none of them has state yet.
    """

    notes: Mapping[int, DictStore]
    about: Description
    shards: int | None

    @classmethod
    def of(cls, notes: Mapping[int, DictStore]) -> StoredStage:
        """From the metadata of its shards."""
        own = [json.loads(stored) for _, store in sorted(notes.items()) if (stored := store.get("spark"))]
        said = [json.loads(stored) for _, store in sorted(notes.items()) if (stored := store.get(ABOUT))]
        return cls(notes, Description.read(said[0] if said else {}), own[0]["shards"] if own else None)


def changes_of(
    stored: Sequence[StoredStage], flow: BoundFlow, *, shards: Sequence[int], clock: tuple[bool, bool]
) -> list[Change]:
    """The differences, incompatible ones first.

    Args:
        stored: the stages of the checkpoint, in the order of ``flow.flows``.
        flow: the pipeline, bound with the number of shards of the checkpoint.
        shards: the new number of shards of each stage.
        clock: whether the query had the clock, and whether it will have.
    """
    said = [Description.read(about) for about in descriptions(flow)]
    of_query = list(_of_query(stored, said, shards, clock))
    if any(change.what in ("stages", "inputs") for change in of_query):
        return of_query  # there is no telling which stage is which
    of_stages = [
        change
        for number, (one, below, now) in enumerate(zip(stored, flow.flows, said, strict=True), 1)
        for change in _of_stage(number, one, below, now)
    ]
    return sorted([*of_query, *of_stages], key=lambda change: not change.refused)


def of_stages(then: int, now: int) -> Change:
    """Another number of stages."""
    return _refused(
        "stages",
        (then, now),
        "Spark matches state to operators by position and rejects a different number; keep the stages, or start from a new checkpoint",
    )


def of_groups(then: Collection[Collection[int]], now: Collection[Collection[int]]) -> list[Change]:
    """Other stages that run together than ``apply`` would choose; empty: the same."""
    if set(map(frozenset, then)) == set(map(frozenset, now)):
        return []
    means = (
        "apply(..., checkpoint=...) keeps what the checkpoint has; without it the first batch is refused. To change it: "
        "bm.migrate(spark, checkpoint, new_checkpoint, pipeline)"
    )
    return [Change(0, "fused stages", _groups_in_words(then), _groups_in_words(now), refused=False, means=means)]


def _groups_in_words(groups: Collection[Collection[int]]) -> str:
    fused = [" with ".join(map(str, sorted(group))) for group in sorted(map(sorted, groups)) if len(group) > 1]
    return "; ".join(fused) or "none"


def _refused(what: str, both: tuple[Any, Any], why: str) -> Change:
    """An incompatible change of the query as a whole."""
    return Change(0, what, str(both[0]), str(both[1]), refused=True, means=why)


def _of_query(
    stored: Sequence[StoredStage], said: Sequence[Description], shards: Sequence[int], clock: tuple[bool, bool]
) -> Iterator[Change]:
    then, now = len(stored), len(said)
    if then != now:
        yield of_stages(then, now)
    inputs = [_sources_in_words(one.about.inputs) for one in stored if one.about.inputs]
    own = [_sources_in_words(one.inputs) for one in said]
    if then == now == len(inputs) and inputs != own:
        yield _refused(
            "inputs",
            ("; ".join(inputs), "; ".join(own)),
            "Spark matches offsets to sources by position, so an input would resume at another input's offset; keep the inputs, their "
            "names and their order, or start from a new checkpoint",
        )
    if clock[0] != clock[1]:
        yield _refused(
            "clock",
            ("needed", "not needed") if clock[0] else ("not needed", "needed"),
            "the clock comes from an extra source, and Spark cannot add or remove sources under a checkpoint; keep what needs the clock "
            "as it was (a processing-time trigger, idle_timeout, ProcessingTimeLag, different watermarks of inputs), or migrate the checkpoint: "
            "bm.migrate(spark, checkpoint, new_checkpoint, pipeline)",
        )
    others = [(one.shards, has) for one, has in zip(stored, shards, strict=False) if one.shards not in (None, has)]
    for had, has in others[:1]:
        yield _refused(
            "shards",
            (had, has),
            f"a key's rows would go to a shard without its state; keep .apply(df, shards={had}) (the default is "
            "spark.sql.shuffle.partitions), or migrate the checkpoint: bm.migrate(spark, checkpoint, new_checkpoint, pipeline, ..., "
            f"shards={has})",
        )


def _sources_in_words(inputs: Sequence[InputDescription]) -> str:
    """The inputs of a stage: rows or panes."""
    return ", ".join(one.name or "rows" if one.stage is None else f"stage {one.stage}" for one in inputs)


def _of_stage(number: int, stored: StoredStage, flow: BoundFlow, now: Description) -> Iterator[Change]:
    changes = list(_of_state(number, stored.notes.values(), flow.operator))
    yield from changes
    if any(change.what == "state" for change in changes):
        return  # it may be of another stage
    said_already = [line for change in changes if change.refused for line in _LINES_OF.get(change.what, [])]
    now_lines = dict(flow.stage.describe(flow.operator.takes, flow.operator))
    found = (
        _carried_over if stored.about.spec else partial(_carried_over_in_lines, stored.notes.values(), flow.operator)
    )
    unsaid = {one.what: one for one in found(stored.about, now, now_lines) if one.what not in said_already}
    yield from (Change(number, **attrs.asdict(one)) for one in unsaid.values())


def _carried_over(then: Description, now: Description, now_lines: Mapping[str, str]) -> Iterator[Compared]:
    """The options that differ, as lines of explain."""
    was, is_ = (_options(of) for of in (then, now))
    for name in {**was, **is_}:
        if same_identity(was.get(name), is_.get(name)):
            continue
        what, means = OPTIONS.get(name[-1], (name[-1], _BATCH))
        said = [_words_of(what, lines.get(what, "")) for lines in (then.lines, now_lines)]
        if said[0] == said[1]:
            said = [shown_spec(of.get(name)) for of in (was, is_)]
        if said[0] != said[1]:
            yield Compared(what, said[0], said[1], means)


def _carried_over_in_lines(
    notes: Collection[DictStore], operator: Operator, then: Description, now: Description, now_lines: Mapping[str, str]
) -> Iterator[Compared]:
    """The same for a description of state format 3, which has lines of explain and no options.

    Their wording is that of an earlier version, so it does not count: of formulas the text does, of the rest the numbers. The trigger and
    the lateness are in the metadata of the shards.
    """
    is_ = _options(now)
    stored = next((one for one in map(operator.changeable, notes) if one is not None), None)
    for name, (what, means) in OPTIONS.items() if then.lines else ():
        was, now_is = (_words_of(what, lines.get(what, "")) for lines in (then.lines, now_lines))
        if name in _CHANGEABLE and stored is not None:
            differs = not same_identity(stored.get(name), is_.get((name,)))
        elif what in _FORMULAS:
            differs = was != now_is
        else:
            differs = bool(was) != bool(now_is) or _NUMBER.findall(was) != _NUMBER.findall(now_is)
        if differs:
            yield Compared(what, was, now_is, means)


def _options(about: Description) -> dict[tuple[str, ...], Any]:
    """The specs of the options of a stage and of its inputs, by name."""
    of_inputs = {
        (str(place), name): one.spec.get(name) for place, one in enumerate(about.inputs) for name in _OF_INPUTS
    }
    return of_inputs | {(name,): spec for name, spec in _leaves(about.spec) if name not in _ONE_BY_ONE}


def _leaves(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The options in the spec of a stage, including nested ones."""
    for name, own in spec.items():
        if isinstance(own, dict) and "is" in own and name not in OPTIONS:
            yield from _leaves(own)
        elif name != "is":
            yield name, own


def _words_of(what: str, line: str) -> str:
    """A line for comparison: accumulations are compared one by one."""
    return line.partition("; accumulated: ")[0] if what == "rows" else line


def _of_state(number: int, notes: Collection[DictStore], operator: Operator) -> Iterator[Change]:
    """Incompatible changes, then compatible ones, without duplicates."""
    changes: dict[tuple[bool, str], Change] = {}
    for one in (part for store in notes for part in operator.compared(store)):
        changes.setdefault((one.refused, one.what), Change(number, **attrs.asdict(one)))
    refused = [change for change in changes.values() if change.refused]
    unreadable = None if refused else _unreadable(notes, operator)
    if unreadable is not None:
        yield Change(number, "state", "", "", refused=True, means=unreadable)
        return
    yield from refused
    yield from (change for change in changes.values() if not change.refused)


def _unreadable(notes: Iterable[DictStore], operator: Operator) -> str | None:
    """Why a shard cannot be opened; None: all can be opened."""
    for store in notes:
        try:
            operator.open(DictStore(store))
        except StateError as error:
            return str(error)
    return None
