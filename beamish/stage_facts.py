"""Facts about stages, read from what their shards store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, AtRest, First, Keeps
from beamish.contract.stored import ABOUT, REPORTS, RUNNER, TAKES, DictStore, Store
from beamish.flow import Description, InputDescription
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.stored.stored_windows import SegmentFacts
from beamish.kinds.window.windowings import (
    Plans,
    answer_of_each,
    counted_of_each,
    dropped_of_windowings,
    key_schema,
    noted_windowings,
)
from beamish.tables.entries import FUSED
from beamish.tables.notes import KIND_ENTRIES
from beamish.watermarks import NO_WATERMARK_US


def note_names() -> tuple[str, ...]:
    """A shard's metadata entries; those of windows are stored under the name of each windowing too."""
    return (RUNNER, ABOUT, REPORTS, TAKES, FUSED, *KIND_ENTRIES)


@attrs.frozen
class InputFacts(InputDescription):
    """An input of a stage.

    Attributes:
        watermark_us: its own watermark.
        latest_us: the latest event time of its rows that came; NO_WATERMARK_US: it is not known.
    """

    watermark_us: int = NO_WATERMARK_US
    latest_us: int = NO_WATERMARK_US

    @property
    def reaches_us(self) -> int:
        """How far its rows would take the watermark, if it were up to them alone; NO_WATERMARK_US: it is not known."""
        if self.delay_us is None or self.latest_us == NO_WATERMARK_US:
            return self.watermark_us
        return max(self.watermark_us, self.latest_us - self.delay_us)


@attrs.frozen(eq=False)
class StageFacts:
    """Facts about a stage.

    Attributes:
        about: its description.
        plans: of windows, by the name of the windowing, None for a single one; empty: not a window stage.
        inputs: what it takes.
        watermark_us, clock_us: how far it has come; clock 0: it needs none.
        follows_query: whether its watermark moves with the query's, as far as it is known.
        shards: how many there may be.
        stored_shards: the ids of those that have state.
        segments: of its windows.
        dropped: number of dropped rows by reason.
        rows_out: number of rows emitted; None: unknown.
        held: the name of its suppress and the number of buffered updates; None: no suppress.
        unknown: facts that are unavailable, as sentences.
    """

    about: Description
    plans: Plans
    inputs: Sequence[InputFacts]
    watermark_us: int
    clock_us: int
    follows_query: bool
    shards: int
    stored_shards: Sequence[int]
    segments: Sequence[SegmentFacts]
    dropped: Mapping[str, int]
    rows_out: int | None
    held: tuple[str, int] | None
    unknown: Sequence[str]

    @property
    def plan(self) -> WindowPlan | None:
        """The plan of its first windowing; None: not a window stage."""
        return next((of.plan for of in self.plans.values()), None)

    @property
    def key_schema(self) -> pa.Schema:
        """The columns that identify a window: the keys, and ``windowing`` if there are several."""
        return key_schema(self.plans)

    @property
    def windows_in_words(self) -> str:
        """Its window option in words; empty: no windows."""
        each = {name: of.plan.window.describe() for name, of in self.plans.items()}
        return "; ".join(words if name is None else f"{name}: {words}" for name, words in each.items())

    @property
    def windows(self) -> int:
        """The number of stored windows."""
        return sum(segment.windows for segment in self.segments)

    def asked(self, asked: Asked, *, segment: str | None = None, first: First | None = None) -> Answer:
        """Its selected windows, with what they wait for.

        Args:
            asked: the selection.
            segment: only those of this entry; None: all.
            first: only the first of each shard; None: all.

        Raises:
            OptionError: no such key column.
        """
        return answer_of_each(self.plans, asked, clocks=self._clocks, segment=segment, first=first)

    def counted(self, edges: Sequence[int]) -> Answer:
        """Its windows, counted by the bins of these bounds and by what they wait for (``kinds/window/stored/counted.py``)."""
        return counted_of_each(self.plans, clocks=self._clocks, edges=tuple(edges))

    @property
    def _clocks(self) -> tuple[int, int]:
        return self.watermark_us, self.clock_us


def stage_facts(
    notes: Mapping[int, DictStore],
    about: Mapping[str, Any] | None = None,
    known: AtRest | None = None,
    *,
    query_us: int = NO_WATERMARK_US,
) -> StageFacts:
    """Facts from the metadata of a stage's shards.

    Args:
        notes: per shard at least the entries of ``note_names``.
        about: its description; None: the stored one, if any.
        known: the pipeline's window stage, already compared with the state; None: use the stored one.
        query_us: the query's watermark. Shards with nothing due are not woken by it, so they may have an earlier one.

    Raises:
        StateError: the metadata cannot be read.
    """
    notes = dict(
        sorted(notes.items())
    )  # the first shard is called in each batch with rows: it has the description of the running pipeline
    if about is None:
        stored = next((one for store in notes.values() if (one := store.get(ABOUT)) is not None), b"{}")
        about = json.loads(stored)
    description = Description.read(about)
    spark = [json.loads(one) for store in notes.values() if (one := store.get(RUNNER)) is not None]
    noted = noted_windowings(
        notes,
        None if known is None else known.answer(Asked(Keeps.WINDOWS)),
        only_updated=description.only_updated,
        keys=[one.keys for one in description.inputs],
    )
    plans = {name: one.plan for name, one in noted.items() if one.plan is not None}
    first = next(iter(noted.values()))
    of_shards = [[one.abouts[shard] for one in noted.values() if shard in one.abouts] for shard in notes]
    of_shards = of_shards if plans else [[said] for said in _json_notes(notes)]
    abouts = [said for of_shard in of_shards for said in of_shard]
    dropped: Counter[str] = Counter()
    for of_shard in of_shards:
        dropped.update(dropped_of_windowings(said["dropped"] for said in of_shard))
    clock_us = max((said["clocks"]["clock_us"] for said in abouts), default=0)
    follows_query = _follows_query(notes, description, clock_us)
    query_us = query_us if follows_query else NO_WATERMARK_US
    return StageFacts(
        about=description,
        plans=plans,
        inputs=_inputs(abouts, description, query_us),
        watermark_us=max([query_us, *(said["clocks"]["watermark_us"] for said in abouts)]),
        clock_us=clock_us,
        follows_query=follows_query,
        shards=spark[0]["shards"] if spark else len(notes),
        stored_shards=sorted(notes),
        segments=sorted((of for one in noted.values() for of in one.segments), key=lambda of: of.shard),
        dropped=dict(sorted(dropped.items())),
        rows_out=sum(one.get("rows", 0) for one in spark) if spark else None,
        held=_held([held for said in first.abouts.values() if (held := said.get("held"))]),
        unknown=list(_unknown(plans, is_described=bool(about))),
    )


def _held(held: Sequence[Mapping[str, Any]]) -> tuple[str, int] | None:
    """The name of a suppress, and the number of buffered updates over all shards."""
    return (held[0]["name"], sum(one["updates"] for one in held)) if held else None


def _unknown(plans: Plans, *, is_described: bool) -> Iterator[str]:
    yield from dict.fromkeys(sentence for of in plans.values() for sentence in of.unknown)
    if not is_described:
        yield (
            "the checkpoint was written by a version of beamish that did not store descriptions: the stages' inputs, how watermarks move and the lines of explain() are unknown"
        )


def _follows_query(notes: Mapping[int, Store], about: Description, clock_us: int) -> bool:
    """Whether a stage's watermark moves with the query's: tasks report none, and its policy does not follow the clock."""
    follows_clock = any(one.lag_us is not None for one in about.inputs) if about.inputs else clock_us > 0
    return not follows_clock and all(store.get(REPORTS) is None for store in notes.values())


def _json_notes(notes: Mapping[int, Store]) -> Iterator[Mapping[str, Any]]:
    """The metadata of shards without windows."""
    for store in notes.values():
        for entry in KIND_ENTRIES:
            stored = store.get(entry) or b""
            if stored.startswith(b"{") and "clocks" in (about := json.loads(stored)):
                yield about


def _inputs(abouts: Sequence[Mapping[str, Any]], description: Description, query_us: int) -> list[InputFacts]:
    specs = [one["spec"]["inputs"] for one in abouts if "spec" in one]
    inputs = description.inputs or [InputDescription(one["name"]) for one in (specs[0] if specs else ())]
    each = []
    for number, about in enumerate(inputs):
        progress = [one["clocks"]["inputs"][number] for one in abouts if number < len(one["clocks"]["inputs"])]
        watermark_us = max([query_us, *(one["watermark_us"] for one in progress)])
        latest_us = max((one.get("latest_us", NO_WATERMARK_US) for one in progress), default=NO_WATERMARK_US)
        each.append(InputFacts(**attrs.asdict(about, recurse=False), watermark_us=watermark_us, latest_us=latest_us))
    return each
