"""What is to be known of a stage from what its shards note, whatever of it is windows or not (docs/rules/running.md#inspect)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.input_schemas import TAKES, widest
from beamish.contract.store import Store
from beamish.kernels.identity import same_identity
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.read_identity import ReadPlan, read_plan
from beamish.kinds.window.stored_windows import read_index
from beamish.kinds.window.window_facts import WindowReader
from beamish.tables.notes import check_format
from beamish.tables.prefixed import under
from beamish.tables.stored_tables import DUPLICATES, INDEX, WINDOWINGS, segment_name
from beamish.watermarks import NO_WATERMARK_US
from beamish.windows.windowings import WINDOWING

_OF_OTHERS = ("table", "changes", DUPLICATES)
"""The entries in which stages that have no windows note their clocks."""
ABOUT = "about"
"""The entry of the stage's description."""
REPORTS = "reports"
"""The entry of what tasks report of watermarks, where stages have others than the query."""
NOTES = ("spark", ABOUT, REPORTS, WINDOWINGS, INDEX, TAKES, *_OF_OTHERS)
"""The entries of a shard that say what it is, and under each windowing's name ``INDEX`` and ``TAKES``."""


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
class SegmentFacts:
    """A segment of windows.

    Attributes:
        shard: the shard's id.
        entry: the name of its entry in the store.
        windows: how many there are in it.
        start_us, end_us: their span: microseconds, or numbers of rows.
        due_us: the least watermark at which something in it is due.
        clock_due_us: the least clock.
    """

    shard: int
    entry: str
    windows: int
    start_us: int
    end_us: int
    due_us: int
    clock_due_us: int


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
    plans: Mapping[str | None, ReadPlan]
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
        keys = pa.schema([]) if self.plan is None else self.plan.key_schema
        return keys if None in self.plans or not self.plans else keys.append(pa.field(WINDOWING, pa.string()))

    @property
    def windows_in_words(self) -> str:
        """What its windows are; empty: it has none."""
        each = {name: of.plan.window.describe() for name, of in self.plans.items()}
        return "; ".join(words if name is None else f"{name}: {words}" for name, words in each.items())

    @property
    def windows(self) -> int:
        """How many windows are kept."""
        return sum(segment.windows for segment in self.segments)

    @property
    def reader(self) -> WindowReader:
        """Reads its windows."""
        return WindowReader(self.plans, self.watermark_us, self.clock_us)


def stage_facts(
    notes: Mapping[int, Store],
    about: Mapping[str, Any] | None = None,
    plan: WindowPlan | None = None,
    *,
    query_us: int = NO_WATERMARK_US,
) -> StageFacts:
    """What the notes of a stage's shards say.

    Args:
        notes: per shard the entries in ``NOTES``, and more.
        about: its description; None: that in the notes, if there is one.
        plan: the pipeline's, which has been compared with the state (``compatibility.py``); None: what the notes say.
        query_us: the query's watermark. Shards in which nothing is due are not woken by it, so they may not know it yet.

    Raises:
        StateError: they cannot be read.
    """
    notes = dict(sorted(notes.items()))  # the first is called in each batch with rows: it knows the pipeline that runs
    if about is None:
        stored = next((one for store in notes.values() if (one := store.get(ABOUT)) is not None), None)
        about = {} if stored is None else json.loads(stored)
    names = next((json.loads(one) for store in notes.values() if (one := store.get(WINDOWINGS)) is not None), [None])
    spark = [json.loads(one) for store in notes.values() if (one := store.get("spark")) is not None]
    indices = {(shard, name): read_index(under(name, store)) for shard, store in notes.items() for name in names}
    known = {at: index for at, index in indices.items() if index.about}
    plans = {name: found for name in names if (found := _plan(name, known, notes, about, plan)) is not None}
    abouts: list[Mapping[str, Any]] = [index.about for index in known.values()] or list(_of_others(notes))
    unknown = list(dict.fromkeys(sentence for of in plans.values() for sentence in of.unknown))
    if not about:
        unknown.append(
            "the checkpoint was written by a version of beamish that did not describe its stages: which stage takes which, how "
            "watermarks move and the lines of explain() are not known"
        )
    dropped: Counter[str] = Counter()
    for said in abouts:
        dropped.update(said.get("dropped", {}))
    held = [index.about["held"] for (_, name), index in known.items() if name == names[0] and index.about.get("held")]
    clock_us = max((said["clocks"]["clock_us"] for said in abouts), default=0)
    follows_query = _follows_query(notes, about, clock_us)
    query_us = query_us if follows_query else NO_WATERMARK_US
    return StageFacts(
        number=about.get("stage", 0),
        of=about.get("stages", 0),
        about=about,
        plans=plans,
        inputs=_inputs(abouts, about, next(iter(plans.values()), None), query_us),
        watermark_us=max([query_us, *(said["clocks"]["watermark_us"] for said in abouts)]),
        clock_us=clock_us,
        follows_query=follows_query,
        shards=spark[0]["shards"] if spark else len(notes),
        stored_shards=sorted(notes),
        segments=[segment for at, index in known.items() for segment in _segments(*at, index.segments)],
        dropped=dict(sorted(dropped.items())),
        rows_out=sum(one.get("rows", 0) for one in spark) if spark else None,
        held=(held[0]["name"], sum(one["updates"] for one in held)) if held else None,
        unknown=unknown,
    )


def _follows_query(notes: Mapping[int, Store], about: Mapping[str, Any], clock_us: int) -> bool:
    """Whether a stage's watermark moves with the query's: tasks report none, and its policy does not follow the clock."""
    follows_clock = any(one.get("lag_us") is not None for one in about.get("inputs", ())) if about else clock_us > 0
    return not follows_clock and all(store.get(REPORTS) is None for store in notes.values())


def _of_others(notes: Mapping[int, Store]) -> Iterator[Mapping[str, Any]]:
    """What shards without windows note."""
    for store in notes.values():
        for entry in _OF_OTHERS:
            stored = store.get(entry)
            if stored is not None and "clocks" in (about := json.loads(stored)):
                yield about


def _plan(
    name: str | None,
    known: Mapping[Any, Any],
    notes: Mapping[int, Store],
    about: Mapping[str, Any],
    plan: WindowPlan | None,
) -> ReadPlan | None:
    """The plan of a windowing; None: no shard says one."""
    shards = [shard for shard, of in known if of == name]
    if not shards:
        return None
    noted = (under(name, notes[shard]).get(TAKES) for shard in shards)
    schemas = widest(stored for stored in noted if stored is not None)
    index = known[shards[0], name]
    check_format(index.about["format"])
    stored, changeable = index.about["identity"], index.about["changeable"]
    own = plan if plan is None or name is None else plan.windowings.get(name)
    if own is not None and same_identity(changeable, own.changeable):
        return ReadPlan(own)
    return read_plan(stored, changeable, schemas, about)


def _inputs(
    abouts: Sequence[Mapping[str, Any]], about: Mapping[str, Any], plan: ReadPlan | None, query_us: int
) -> list[InputFacts]:
    described = about.get("inputs", ())
    identities = [one["identity"]["inputs"] for one in abouts if "inputs" in one.get("identity", ())]
    names = [one["name"] for one in (identities[0] if plan is not None and identities else described)]
    each = []
    for number, name in enumerate(names):
        progress = [one["clocks"]["inputs"][number] for one in abouts if number < len(one["clocks"]["inputs"])]
        more = described[number] if number < len(described) else {}
        watermark_us = max([query_us, *(one["watermark_us"] for one in progress)])
        latest_us = max((one.get("latest_us", NO_WATERMARK_US) for one in progress), default=NO_WATERMARK_US)
        each.append(InputFacts(name, more.get("stage"), watermark_us, latest_us, more))
    return each


def _segments(shard: int, name: str | None, segments: pa.Table) -> list[SegmentFacts]:
    prefix = "" if name is None else f"{name}/"
    return [
        SegmentFacts(
            shard,
            prefix + segment_name(row["segment"]),
            row["windows"],
            row["start_us"],
            row["end_us"],
            row["due_us"],
            row["wake_us"],
        )
        for row in segments.to_pylist()
    ]
