"""What differs between the pipeline that wrote a checkpoint and the one that is to go on from it.

What is refused is what the engine refuses: each shard is opened on a copy of its notes, so this can say nothing that a run would not.
What is carried over is told by the lines of ``explain()``, which the checkpoint holds of the pipeline that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from beamish.contract.operator import Operator
from beamish.contract.store import ABOUT, DictStore
from beamish.description import descriptions
from beamish.errors import StateError
from beamish.flow import BoundFlow

MEANINGS = {
    "rows": "holds from the next rows on; what was taken before stays as it is",
    "where": "holds from the next rows on; what was taken before stays as it is",
    "duplicates": "rows are known again from the next rows on",
    "windows": "a windowing more begins with the next rows",
    "watermark": "holds from the next batch on; the watermark does not go back",
    "clock": "whether the query brings the clock to its shards",
    "panes": "the trigger begins as new in every open window, and is shown the rows that are in no pane yet; closed windows stay closed",
    "late": "holds from the next batch on, for windows that are there too",
    "closing": "holds from the next batch on, for windows that are there too",
    "retained": "holds from the next row of a key on; what fell out before does not come back",
    "forgotten": "holds from the next move of the watermark on; where it was not said before, as if each key's latest row had come there",
    "a pane holds": "holds from the next pane on",
    "columns": "holds from the next pane on",
    "having": "holds from the next pane on",
    "dropped": "holds from the next batch on",
    "held": "holds for what is held too",
    "buffer": "holds from the next batch on",
    "versions": "holds from the next batch on",
}
"""What becomes of a stage whose line of this subject differs, where the state is not refused."""
_LINES_OF = {
    "window": ["windows"],
    "keys": ["rows"],
    "mode": ["a pane holds"],
    "timestamp combiner": ["timestamp"],
    "conditions and computed columns": ["where", "columns", "having"],
    "deduplication": ["duplicates"],
    "inputs": ["takes"],
}
"""The lines that say the same as a part of a stage's identity."""


@attrs.frozen
class Change:
    """Something in which a pipeline differs from the one that wrote a checkpoint.

    Attributes:
        stage: the number of the stage, from 1; 0: it is of the whole query.
        what: what differs, as ``explain()`` or the pipeline calls it.
        then, now: what it was and what it is, in words; empty: absent.
        refused: whether a query with it is refused.
        means: what becomes of the state and the windows that are there; of what is refused, why, and what to do.
    """

    stage: int
    what: str
    then: str
    now: str
    refused: bool
    means: str

    @property
    def in_words(self) -> str:
        """In a line."""
        values = f": then {self.then or 'none'}, now {self.now or 'none'}" if self.then or self.now else ""
        return f"{self.what}{values}: {self.means}"


@attrs.frozen(eq=False)
class StoredStage:
    """What a checkpoint says of a stage.

    Attributes:
        notes: per shard the entries of its store that say what the others hold.
        about: its description (``description.py``); empty: it has none.
        shards: how many shards it has; None: none of them has state yet.
    """

    notes: Mapping[int, DictStore]
    about: Mapping[str, Any]
    shards: int | None

    @classmethod
    def of(cls, notes: Mapping[int, DictStore]) -> StoredStage:
        """From the notes of its shards."""
        own = [json.loads(stored) for _, store in sorted(notes.items()) if (stored := store.get("spark"))]
        said = [json.loads(stored) for _, store in sorted(notes.items()) if (stored := store.get(ABOUT))]
        return cls(notes, said[0] if said else {}, own[0]["shards"] if own else None)


def changes_of(
    stored: Sequence[StoredStage], flow: BoundFlow, *, shards: Sequence[int], clock: tuple[bool, bool]
) -> list[Change]:
    """What differs, the refused first.

    Args:
        stored: the stages of the checkpoint, in the order of ``flow.flows``.
        flow: the pipeline, bound with the number of shards that the checkpoint has.
        shards: how many each stage is to have.
        clock: whether the query brought the clock, and whether it is to.
    """
    of_query = list(_of_query(stored, flow, shards, clock))
    if any(change.what in ("stages", "inputs") for change in of_query):
        return of_query  # there is no telling which stage is which
    flows = flow.flows
    said = descriptions(flow)
    of_stages = [
        change
        for number, (one, below) in enumerate(zip(stored, flows, strict=True), 1)
        for change in _of_stage(number, one, below, said[number - 1])
    ]
    return sorted([*of_query, *of_stages], key=lambda change: not change.refused)


def of_stages(then: int, now: int) -> Change:
    """Another number of stages."""
    return Change(
        0,
        "stages",
        str(then),
        str(now),
        refused=True,
        means="Spark finds a stage's state again by the stage's place, and takes no other number of them; keep the stages, or start "
        "from a new checkpoint",
    )


def _of_query(
    stored: Sequence[StoredStage], flow: BoundFlow, shards: Sequence[int], clock: tuple[bool, bool]
) -> Iterator[Change]:
    then, now = len(stored), len(flow.flows)
    if then != now:
        yield of_stages(then, now)
    inputs = [_sources_in_words(one.about["inputs"]) for one in stored if one.about]
    known = then == now and len(inputs) == then
    own = [_sources_in_words(said["inputs"]) for said in descriptions(flow)]
    if known and inputs != own:
        yield Change(
            0,
            "inputs",
            _joined(inputs),
            _joined(own),
            refused=True,
            means="Spark knows a source by its place, so one would go on from where another was; keep the inputs, their names and their "
            "order, or start from a new checkpoint",
        )
    if clock[0] != clock[1]:
        brought = ("needed", "not needed") if clock[0] else ("not needed", "needed")
        yield Change(
            0,
            "clock",
            *brought,
            refused=True,
            means="it comes from a source of its own, and Spark takes no other number of sources; keep what needs the clock as it was (a "
            "trigger of processing time, idle_timeout, ProcessingTimeLag, watermarks of inputs that differ), or carry the checkpoint over: "
            "bm.migrate(spark, checkpoint, new_checkpoint, pipeline)",
        )
    others = [(one.shards, has) for one, has in zip(stored, shards, strict=False) if one.shards not in (None, has)]
    for had, has in others[:1]:
        yield Change(
            0,
            "shards",
            str(had),
            str(has),
            refused=True,
            means=f"a key's rows would go to a shard that does not know it; keep it at .apply(df, shards={had}) (the default follows "
            "spark.sql.shuffle.partitions), or carry the checkpoint over: bm.migrate(spark, checkpoint, new_checkpoint, pipeline, ..., "
            f"shards={has})",
        )


def _sources_in_words(inputs: Sequence[Mapping[str, Any]]) -> str:
    """Which inputs of a stage are rows, and which are panes."""
    return ", ".join(f"{one['name'] or 'rows'}" if one["stage"] is None else f"stage {one['stage']}" for one in inputs)


def _joined(stages: Sequence[str]) -> str:
    return "; ".join(stages)


def _of_stage(number: int, stored: StoredStage, flow: BoundFlow, now: Mapping[str, Any]) -> Iterator[Change]:
    changes = list(_of_state(number, stored.notes.values(), flow.operator))
    yield from changes
    said_already = [line for change in changes if change.refused for line in _LINES_OF.get(change.what, [])]
    then_lines, now_lines = (dict(of.get("lines", ())) for of in (stored.about, now))
    if not then_lines:
        return
    for what, means in MEANINGS.items():
        then_said, now_said = (_words_of(what, lines.get(what, "")) for lines in (then_lines, now_lines))
        if then_said != now_said and what not in said_already:
            yield Change(number, what, then_said, now_said, refused=False, means=means)


def _words_of(what: str, line: str) -> str:
    """A line as it is compared: accumulations are told one by one."""
    return line.partition("; accumulated: ")[0] if what == "rows" else line


def _of_state(number: int, notes: Collection[DictStore], operator: Operator) -> Iterator[Change]:
    """Changes that the engine refuses, then those that it carries over, without duplicates."""
    told: dict[tuple[bool, str], Change] = {}
    for one in (part for store in notes for part in operator.compared(store)):
        told.setdefault((one.refused, one.what), Change(number, **attrs.asdict(one)))
    refused = [change for change in told.values() if change.refused]
    unreadable = None if refused else _unreadable(notes, operator)
    if unreadable is not None:
        yield Change(number, "state", "", "", refused=True, means=unreadable)
        return
    yield from refused
    yield from (change for change in told.values() if not change.refused)


def _unreadable(notes: Iterable[DictStore], operator: Operator) -> str | None:
    """Why a shard cannot be opened; None: all can."""
    for store in notes:
        try:
            operator.open(DictStore(store))
        except StateError as error:
            return str(error)
    return None
