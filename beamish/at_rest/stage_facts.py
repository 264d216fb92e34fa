"""Facts about a stage, read from the metadata of its shards (docs/rules/running.md#inspect)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, AtRest, Keeps
from beamish.contract.input_schemas import TAKES
from beamish.contract.store import ABOUT, REPORTS, DictStore, Store
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.stored_windows import SegmentFacts
from beamish.kinds.window.windowings import (
    Plans,
    answer_of_each,
    dropped_of_windowings,
    key_schema,
    noted_windowings,
)
from beamish.tables.notes import kind_entries
from beamish.watermarks import NO_WATERMARK_US


def note_names() -> tuple[str, ...]:
    """The entries of a shard that say what it is; those of windows stand under the name of each windowing too."""
    return ("spark", ABOUT, REPORTS, TAKES, *kind_entries())


@attrs.frozen
class InputFacts:
    """An input of a stage.

    Attributes:
        name: what the stage calls it; None: it is the only one.
        stage: the number of the stage whose panes it is; None: a source's rows, or it is not known.
        watermark_us: its own watermark.
        latest_us: the latest event time of its rows that came; NO_WATERMARK_US: it is not known.
        about: how its watermark moves (``description.py``); empty: it is not known.
    """

    name: str | None
    stage: int | None
    watermark_us: int
    latest_us: int
    about: Mapping[str, Any]

    @property
    def reaches_us(self) -> int:
        """How far its rows would take the watermark, if it were up to them alone; NO_WATERMARK_US: it is not known."""
        if self.about.get("delay_us") is None or self.latest_us == NO_WATERMARK_US:
            return self.watermark_us
        return max(self.watermark_us, self.latest_us - int(self.about["delay_us"]))


@attrs.frozen(eq=False)
class StageFacts:
    """A stage.

    Attributes:
        number, of: its number, from 1, and how many there are; 0: not known.
        about: its description; empty: there is none.
        plans: of windows, by the name of the windowing, None for one without; empty: it is no stage of windows.
        inputs: what it takes.
        watermark_us, clock_us: how far it has come; clock 0: it needs none.
        follows_query: whether its watermark moves with the query's, as far as it is known.
        shards: how many there may be.
        stored_shards: the ids of those that have state.
        segments: of its windows.
        dropped: number of dropped rows by reason.
        rows_out: how many rows came out; None: it is not known.
        held: of a suppress, its name and how many updates it holds; None: there is none.
        unknown: what cannot be known, as sentences.
    """

    number: int
    of: int
    about: Mapping[str, Any]
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
        """The plan of its first windowing; None: it is no stage of windows."""
        return next((of.plan for of in self.plans.values()), None)

    @property
    def key_schema(self) -> pa.Schema:
        """By which columns its windows are told apart: the keys, and under several windowings ``windowing``."""
        return key_schema(self.plans)

    @property
    def windows_in_words(self) -> str:
        """What its windows are; empty: it has none."""
        each = {name: of.plan.window.describe() for name, of in self.plans.items()}
        return "; ".join(words if name is None else f"{name}: {words}" for name, words in each.items())

    @property
    def windows(self) -> int:
        """How many windows are kept."""
        return sum(segment.windows for segment in self.segments)

    def asked(self, asked: Asked, *, segment: str | None = None) -> Answer:
        """Its windows that are meant, with what they wait for; ``segment``: only those of this entry.

        Raises:
            OptionError: there is no such key column.
        """
        return answer_of_each(self.plans, asked, clocks=(self.watermark_us, self.clock_us), segment=segment)


def stage_facts(
    notes: Mapping[int, DictStore],
    about: Mapping[str, Any] | None = None,
    known: AtRest | None = None,
    *,
    query_us: int = NO_WATERMARK_US,
) -> StageFacts:
    """What the notes of a stage's shards say.

    Args:
        notes: per shard the entries of ``note_names``, and more.
        about: its description; None: that in the notes, if there is one.
        known: the pipeline's stage of windows, which has been compared with the state; None: what the notes say.
        query_us: the query's watermark. Shards in which nothing is due are not woken by it, so they may not know it yet.

    Raises:
        StateError: they cannot be read.
    """
    notes = dict(sorted(notes.items()))  # the first is called in each batch with rows: it knows the pipeline that runs
    if about is None:
        stored = next((one for store in notes.values() if (one := store.get(ABOUT)) is not None), None)
        about = {} if stored is None else json.loads(stored)
    spark = [json.loads(one) for store in notes.values() if (one := store.get("spark")) is not None]
    noted = noted_windowings(notes, about, None if known is None else known.answer(Asked(Keeps.WINDOWS)))
    plans = {name: one.plan for name, one in noted.items() if one.plan is not None}
    first = next(iter(noted.values()))
    of_shards = [[one.abouts[shard] for one in noted.values() if shard in one.abouts] for shard in notes]
    of_shards = of_shards if plans else [[said] for said in _json_notes(notes)]
    abouts = [said for of_shard in of_shards for said in of_shard]
    dropped: Counter[str] = Counter()
    for of_shard in of_shards:
        dropped.update(dropped_of_windowings(said["dropped"] for said in of_shard))
    clock_us = max((said["clocks"]["clock_us"] for said in abouts), default=0)
    follows_query = _follows_query(notes, about, clock_us)
    query_us = query_us if follows_query else NO_WATERMARK_US
    return StageFacts(
        number=about.get("stage", 0),
        of=about.get("stages", 0),
        about=about,
        plans=plans,
        inputs=_inputs(abouts, about, query_us, has_windows=bool(plans)),
        watermark_us=max([query_us, *(said["clocks"]["watermark_us"] for said in abouts)]),
        clock_us=clock_us,
        follows_query=follows_query,
        shards=spark[0]["shards"] if spark else len(notes),
        stored_shards=sorted(notes),
        segments=sorted((of for one in noted.values() for of in one.segments), key=lambda of: of.shard),
        dropped=dict(sorted(dropped.items())),
        rows_out=sum(one.get("rows", 0) for one in spark) if spark else None,
        held=_held([held for said in first.abouts.values() if (held := said.get("held"))]),
        unknown=list(_unknown(plans, about)),
    )


def _held(held: Sequence[Mapping[str, Any]]) -> tuple[str, int] | None:
    """The name of a suppress, and how many updates all shards hold."""
    return (held[0]["name"], sum(one["updates"] for one in held)) if held else None


def _unknown(plans: Plans, about: Mapping[str, Any]) -> Iterator[str]:
    yield from dict.fromkeys(sentence for of in plans.values() for sentence in of.unknown)
    if not about:
        yield (
            "the checkpoint was written by a version of beamish that did not describe its stages: which stage takes which, how "
            "watermarks move and the lines of explain() are not known"
        )


def _follows_query(notes: Mapping[int, Store], about: Mapping[str, Any], clock_us: int) -> bool:
    """Whether a stage's watermark moves with the query's: tasks report none, and its policy does not follow the clock."""
    follows_clock = any(one.get("lag_us") is not None for one in about.get("inputs", ())) if about else clock_us > 0
    return not follows_clock and all(store.get(REPORTS) is None for store in notes.values())


def _json_notes(notes: Mapping[int, Store]) -> Iterator[Mapping[str, Any]]:
    """The metadata of shards without windows."""
    for store in notes.values():
        for entry in kind_entries():
            stored = store.get(entry) or b""
            if stored.startswith(b"{") and "clocks" in (about := json.loads(stored)):
                yield about


def _inputs(
    abouts: Sequence[Mapping[str, Any]], about: Mapping[str, Any], query_us: int, *, has_windows: bool
) -> list[InputFacts]:
    described = about.get("inputs", ())
    identities = [one["identity"]["inputs"] for one in abouts if "inputs" in one.get("identity", ())]
    names = [one["name"] for one in (identities[0] if has_windows and identities else described)]
    each = []
    for number, name in enumerate(names):
        progress = [one["clocks"]["inputs"][number] for one in abouts if number < len(one["clocks"]["inputs"])]
        more = described[number] if number < len(described) else {}
        watermark_us = max([query_us, *(one["watermark_us"] for one in progress)])
        latest_us = max((one.get("latest_us", NO_WATERMARK_US) for one in progress), default=NO_WATERMARK_US)
        each.append(InputFacts(name, more.get("stage"), watermark_us, latest_us, more))
    return each
