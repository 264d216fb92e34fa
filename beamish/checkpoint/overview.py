"""An overview of a checkpoint: plain facts of a batch, counted in the shards, however many windows are stored (docs/watch.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import takewhile
from math import gcd
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beamish.addresses import printable_text
from beamish.checkpoint.inspection import Inspection
from beamish.checkpoint.question import Question, bounds_in_words, check_no_window, read_question, read_texts
from beamish.checkpoint.stored_keys import why_of_keys
from beamish.checkpoint.words import QueryFacts, held_back_by, holding, rows_of, why
from beamish.contract.at_rest import Asked, First, Keeps, Order, Waits
from beamish.contract.stored_keys import DUE, ENDS, ENTRIES, STORED, THEN
from beamish.errors import OptionError, StateError, shown
from beamish.instants import END_OF_TIME_US, EPOCH
from beamish.stage_facts import StageFacts
from beamish.watermarks import NO_WATERMARK_US
from beamish.windows.windowings import WINDOWING

SECOND_US = 1_000_000
_MOST_ASKED = 100
"""Maximum number of windows of a shard, or of entries of keys, that an answer describes or counts."""
_BINS = 40
"""Maximum number of bins of a histogram."""
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_DAY_S = 86_400
_STEPS_US = (
    *(second * SECOND_US for second in _STEPS_S),
    *(days * _DAY_S * SECOND_US for days in (1, 2, 7, 14, 30, 91, 365)),
)


@attrs.frozen
class Bin:
    """The windows that end in a span.

    Attributes:
        start_us, end_us: the span, half-open, microseconds or row numbers; None: windows without an end.
        windows: their number by what they wait for.
        new_rows: rows in no pane yet.
    """

    start_us: int | None
    end_us: int | None
    windows: Mapping[Waits, int]
    new_rows: int


@attrs.frozen
class ShardOverview:
    """A shard with state.

    Attributes:
        shard: its id.
        windows, keys: the number of windows, and of keys with windows; 0 in stages without windows.
        size: bytes of state.
    """

    shard: int
    windows: int
    keys: int
    size: int


@attrs.frozen
class InputOverview:
    """An input of a stage.

    Attributes:
        name: its name; None: the only one.
        of_stage: the stage whose panes it is; None: a source, or unknown.
        watermark_us: its watermark; None: none yet.
        latest_us: the latest event time of its rows; None: unknown.
        moves: how its watermark moves, in words; None: unknown.
        holds_back: whether it holds the stage's watermark back.
    """

    name: str | None
    of_stage: int | None
    watermark_us: int | None
    latest_us: int | None
    moves: str | None
    holds_back: bool


@attrs.frozen
class HeldOverview:
    """Buffered updates of a suppress.

    Attributes:
        name: the suppress.
        updates: their number.
        due: bins by the time at which they are due, on its clock: start, end, number.
        undated: how many are not due by themselves.
        unknown: why it is not known when they are due; empty: it is.
    """

    name: str
    updates: int
    due: Sequence[tuple[int, int, int]] = ()
    undated: int = 0
    unknown: str = ""


@attrs.frozen
class Standing:
    """Since when a watermark has not moved.

    Attributes:
        batch: the first batch of the log with it.
        clock_us: when that batch began.
        is_oldest: whether it is the oldest batch in the log, so that it may have begun earlier.
    """

    batch: int
    clock_us: int
    is_oldest: bool


@attrs.frozen
class StageOverview:
    """A stage.

    Attributes:
        number: as ``explain`` numbers them.
        operator: the id of its stateful operator; stages with the same one run fused.
        lines: the lines of ``explain``.
        fires: when its windows fire, in words; empty: no windows.
        counts_rows: whether bounds of windows are row numbers.
        keys: its key columns.
        inputs: its inputs.
        watermark_us: its watermark; None: none yet.
        clock_us: its clock; None: it needs none.
        held_back: the input that holds the watermark back, as a sentence; empty: none.
        standing: since when the watermark has not moved; None: it moves, or that is unknown.
        windows: the number of stored windows.
        bins: these by their end.
        shards: its shards with state.
        shard_count: how many there may be.
        size: bytes of state.
        rows_out: number of emitted rows; None: unknown.
        dropped: number of dropped rows by reason.
        held: the buffer of its suppress; None: no suppress.
        has_windows, has_keys: whether its windows, or the keys of its state, can be listed.
        unknown: facts that are unavailable, as sentences.
    """

    number: int
    operator: int
    lines: Mapping[str, str]
    fires: str
    counts_rows: bool
    keys: Sequence[str]
    inputs: Sequence[InputOverview]
    watermark_us: int | None
    clock_us: int | None
    held_back: str
    standing: Standing | None
    windows: int
    bins: Sequence[Bin]
    shards: Sequence[ShardOverview]
    shard_count: int
    size: int
    rows_out: int | None
    dropped: Mapping[str, int]
    held: HeldOverview | None
    has_windows: bool
    has_keys: bool
    unknown: Sequence[str]

    def waiting(self, waits: Waits) -> int:
        """The number of windows that wait for this."""
        return sum(one.windows.get(waits, 0) for one in self.bins)


@attrs.frozen
class BatchOverview:
    """A micro-batch in the log.

    Attributes:
        number: its number.
        clock_us: when it began.
        watermark_us: Spark's watermark in it; None: none yet.
        seconds: its duration: until its commit was written; None: not committed, or unknown since the folder was copied.
        committed: whether it is committed.
    """

    number: int
    clock_us: int
    watermark_us: int | None
    seconds: float | None
    committed: bool


@attrs.frozen
class Overview:
    """A checkpoint as of its last committed batch.

    Attributes:
        checkpoint: its folder, without secrets.
        batch: that batch.
        clock_us: when it began.
        next_watermark_us: Spark's watermark for the next one; None: unknown.
        batches: the batches in the log, in order; later ones than ``batch`` are not committed.
        stages: the stages, in order.
    """

    checkpoint: str
    batch: int
    clock_us: int
    next_watermark_us: int | None
    batches: Sequence[BatchOverview]
    stages: Sequence[StageOverview]

    def as_json(self) -> dict[str, Any]:
        """Dicts, lists, texts and numbers."""
        return attrs.asdict(self)


def overview(found: Inspection) -> Overview:
    """The overview of a checkpoint.

    Raises:
        StateError: the state cannot be read.
    """
    query, stages = found._query, found._stages  # noqa: SLF001 - of this room
    batches = batches_of(found._batches)  # noqa: SLF001 - of this room
    each = []
    for place, stage in enumerate(stages):
        facts = stage.facts
        edges = edges_of(facts)
        counted = stage.read(facts.counted(edges), by_shard=True) if facts.windows else None
        keys_of = {} if counted is None else _most(counted["shard"], counted["keys"])
        sizes = _sums(stage.sizes)
        shards = [
            ShardOverview(
                shard,
                sum(one.windows for one in facts.segments if one.shard == shard),
                keys_of.get(shard, 0),
                sizes.get(shard, 0),
            )
            for shard in facts.stored_shards
        ]
        each.append(
            stage_overview(
                facts,
                number=facts.about.number or place + 1,
                operator=stage.operator,
                bins=[] if counted is None else list(bins_of(counted, edges)),
                shards=shards,
                held=_held(found, place),
                standing=_standing(facts, query, batches),
                keys=_keys(found, place),
            )
        )
    return Overview(
        printable_text(found.checkpoint), query.batch, query.clock_us, _known(query.next_watermark_us), batches, each
    )


def stage_overview(
    facts: StageFacts,
    *,
    number: int,
    operator: int,
    bins: Sequence[Bin],
    shards: Sequence[ShardOverview],
    held: HeldOverview | None,
    standing: Standing | None,
    keys: Sequence[str] | None,
) -> StageOverview:
    """A stage, from its facts and what was counted; ``keys``: its key columns, None: they cannot be listed."""
    plan, holds = facts.plan, holding(facts)
    return StageOverview(
        number=number,
        operator=operator,
        lines=dict(facts.about.lines) or ({"windows": facts.windows_in_words} if plan is not None else {}),
        fires="" if plan is None else plan.options.trigger.describe(),
        counts_rows=plan is not None and plan.window.counts_rows,
        keys=keys or [],
        inputs=[
            InputOverview(one.name, one.stage, _known(one.watermark_us), _known(one.latest_us), one.moves, one is holds)
            for one in facts.inputs
        ],
        watermark_us=_known(facts.watermark_us),
        clock_us=facts.clock_us or None,
        held_back=held_back_by(facts),
        standing=standing,
        windows=facts.windows,
        bins=bins,
        shards=shards,
        shard_count=facts.shards,
        size=sum(one.size for one in shards),
        rows_out=facts.rows_out,
        dropped=dict(facts.dropped),
        held=held,
        has_windows=plan is not None,
        has_keys=plan is None and keys is not None,
        unknown=list(facts.unknown),
    )


def batches_of(batches: Sequence[Any]) -> list[BatchOverview]:
    """The batches of a log.

    A commit that is older than its batch, or written after the next one began, is a copy: then no duration is known.
    """
    ends = [one.committed_us for one in batches]
    begins = [*(one.clock_us for one in batches[1:]), None]
    is_copy = any(
        end and (end + SECOND_US < one.clock_us or (after is not None and after + SECOND_US < end))
        for one, end, after in zip(batches, ends, begins, strict=True)
    )
    return [
        BatchOverview(
            one.number,
            one.clock_us,
            _known(one.watermark_us),
            None if is_copy or not end else max(end - one.clock_us, 0) / SECOND_US,
            one.committed,
        )
        for one, end in zip(batches, ends, strict=True)
    ]


def edges_of(facts: StageFacts) -> list[int]:
    """The bounds of a histogram's bins, at round times or numbers; from the index of segments, without reading them."""
    with_windows = [one for one in facts.segments if one.windows]
    if not with_windows:
        return []
    first = min(one.start_us for one in with_windows)
    last = max([one.end_us for one in with_windows if one.end_us != END_OF_TIME_US], default=first)
    counts_rows = facts.plan is not None and facts.plan.window.counts_rows
    return round_edges(first, max(last, first), counts_rows=counts_rows)


def round_edges(first: int, last: int, *, counts_rows: bool = False, most: int = _BINS) -> list[int]:
    """Up to this many bins from ``first`` to ``last`` inclusive, with round bounds."""
    decimal = [factor * 10**power for power in range(19) for factor in (1, 2, 5)]
    below_second = [step for step in decimal if step < SECOND_US]
    steps = decimal if counts_rows else [*below_second, *_STEPS_US]
    span = last - first
    step = next((one for one in steps if span // one + 2 <= most), 0) or (span // (most - 2) + 1)
    begin = first // step * step
    return list(range(begin, last + step + 1, step))


def bins_of(counted: pa.Table, edges: Sequence[int]) -> Iterator[Bin]:
    """The bins that have windows, and those between them; windows without an end are the last one.

    Bins are as wide as windows allow: where only every n-th has some, n are one.

    Args:
        counted: rows of ``kinds/window/stored/counted.py``, of all shards.
        edges: the bounds of the bins.
    """
    sums = counted.group_by(["bin", "waits"]).aggregate([("windows", "sum"), ("new_rows", "sum")]).to_pylist()
    by_bin: dict[int, dict[Waits, int]] = {}
    new_rows: dict[int, int] = {}
    for row in sums:
        by_bin.setdefault(row["bin"], {})[Waits(row["waits"])] = row["windows_sum"]
        new_rows[row["bin"]] = new_rows.get(row["bin"], 0) + row["new_rows_sum"]
    ending = sorted(place for place in by_bin if place >= 0)
    first, apart = ending[0] if ending else 0, gcd(*(place - ending[0] for place in ending)) or 1
    for place in range(first, ending[-1] + 1, apart) if ending else ():
        start, step = edges[place], (edges[1] - edges[0]) * apart
        yield Bin(start, start + step, _in_order(by_bin.get(place, {})), new_rows.get(place, 0))
    if -1 in by_bin:
        yield Bin(None, None, _in_order(by_bin[-1]), new_rows[-1])


def _in_order(windows: Mapping[Waits, int]) -> dict[Waits, int]:
    return {waits: windows[waits] for waits in Waits if waits in windows}


def _most(by: pa.ChunkedArray, values: pa.ChunkedArray) -> dict[int, int]:
    """The greatest value of each group: windowings share keys."""
    most = pa.table({"by": by, "value": values}).group_by("by").aggregate([("value", "max")])
    return dict(zip(most["by"].to_pylist(), most["value_max"].to_pylist(), strict=True))


def _sums(sizes: Sequence[tuple[int, str, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for shard, _, size in sizes:
        total[shard] = total.get(shard, 0) + size
    return total


def _held(found: Inspection, place: int) -> HeldOverview | None:
    stage = found._stages[place]  # noqa: SLF001 - of this room
    if stage.facts.held is None:
        return None
    name, updates = stage.facts.held
    if not updates:
        return HeldOverview(name, 0)
    try:
        due = stage.due_of_held(found.flow)
    except StateError as error:
        return HeldOverview(name, updates, unknown=str(error))
    return HeldOverview(name, updates, *due_bins(due))


def due_bins(due: pa.Array) -> tuple[list[tuple[int, int, int]], int]:
    """Due times in bins, and the number of missing ones."""
    times = pc.drop_null(due).cast(pa.int64()).to_numpy()
    if not len(times):
        return [], len(due)
    edges = round_edges(int(times.min()), int(times.max()), most=20)
    counts, _ = np.histogram(times, bins=edges)
    bins = [(edges[place], edges[place + 1], int(count)) for place, count in enumerate(counts) if count]
    return bins, len(due) - len(times)


def _keys(found: Inspection, place: int) -> list[str] | None:
    """The key columns of a stage's windows or state; None: it keeps none, or they cannot be read without the pipeline."""
    stage = found._stages[place]  # noqa: SLF001 - of this room
    if stage.facts.plan is not None:
        return list(stage.facts.key_schema.names)
    try:
        return list(stage.key_columns(found.flow).names) if Keeps.KEYS in stage.keeps else None
    except StateError:
        return None


def _standing(facts: StageFacts, query: QueryFacts, batches: Sequence[BatchOverview]) -> Standing | None:
    """Since when the query's watermark, which the stage follows, has not moved."""
    done = [one for one in batches if one.number <= query.batch]
    moves = query.next_watermark_us > facts.watermark_us
    if not facts.follows_query or not done or done[-1].watermark_us != _known(facts.watermark_us) or moves:
        return None
    same = list(takewhile(lambda one: one.watermark_us == done[-1].watermark_us, reversed(done)))
    return Standing(same[-1].number, same[-1].clock_us, is_oldest=same[-1] is done[0])


def _known(us: int) -> int | None:
    return None if us == NO_WATERMARK_US else us


@attrs.frozen
class StoredRow:
    """A stored window, or the entries of a key, as a row of a list.

    Attributes:
        question: selects it, for ``why``.
        key: values of its key columns, in words.
        window: its bounds, in words; empty: a key.
        waits: what it waits for; None: a key.
        waits_for: the same in words, to follow "waits for"; empty: unknown, or nothing.
        new_rows: rows in no pane yet; of a key its entries.
        panes: number of panes; None: a key.
        last_timing: of its last pane; None: no pane yet.
        stored: of a key, what its entries are; empty: a window.
        at_us: the end of the window, or when something happens to the key; None: no end.
    """

    question: Question
    key: Mapping[str, str]
    window: str
    waits: Waits | None
    waits_for: str
    new_rows: int
    panes: int | None
    last_timing: str | None
    stored: str
    at_us: int | None


@attrs.frozen(eq=False)
class Listing:
    """Windows and keys of a checkpoint, listed and explained.

    Attributes:
        found: the checkpoint.
    """

    found: Inspection

    def rows(self, stage: int, keys: Sequence[str], first: First) -> list[StoredRow]:
        """The first stored windows of a stage; of a stage without windows its keys.

        Args:
            stage: its number.
            keys: ``name=value`` texts; only these keys.
            first: how many, in which order. Keys have no order.

        Raises:
            OptionError: no such stage, or no such key.
        """
        of = self._stage(stage)
        facts = of.facts
        if facts.plan is not None:
            key, _ = read_texts(facts.plan, facts.key_schema, keys, None)
            rows = rows_of(of.read(facts.asked(Asked(Keeps.WINDOWS, key), first=first)))
            return [_window(facts, row) for row in sorted(rows, key=_ORDERS[first.order])[: first.count]]
        key, _ = read_texts(None, of.key_columns(self.found.flow), keys, None)
        _, answer = of.answer_of_keys("watch", key or None, self.found.flow)
        found = of.read(answer).slice(0, first.count)
        return [_key(answer.keys, row) for row in found.to_pylist()]

    def why(self, stage: int, question: Question) -> str:
        """Why a window has not fired, or what is stored of a key (see ``Inspection.why``).

        Raises:
            OptionError: no such stage.
        """
        of, query = self._stage(stage), self.found._query  # noqa: SLF001 - of this room
        if of.facts.plan is not None:
            windows = of.read(of.facts.asked(question.asked, first=First(_MOST_ASKED)))
            return why(of.facts, question, rows_of(windows), query)
        asked, answer = of.answer_of_keys("why", dict(question.key) or None, self.found.flow)
        return why_of_keys(of.facts, asked, answer.keys, of.read(answer).slice(0, _MOST_ASKED).to_pylist(), query)

    def asked(self, stage: int, keys: Sequence[str], window: str | None) -> Question:
        """The question that texts of a form ask: ``name=value``, and a time (OptionError: no such key, or an invalid text)."""
        of = self._stage(stage)
        if of.facts.plan is None:
            key, time = read_texts(None, of.key_columns(self.found.flow), keys, window)
            check_no_window("why", stage, time)
            return Question(key)
        key, time = read_texts(of.facts.plan, of.facts.key_schema, keys, window)
        return read_question(of.facts, "why", key or None, time)

    def _stage(self, number: int) -> Any:
        stages = self.found._stages  # noqa: SLF001 - of this room
        for place, one in enumerate(stages):
            if number == (one.facts.about.number or place + 1):
                return one
        raise OptionError(f"stage {number}: the checkpoint has stages 1 to {len(stages)}")


_ORDERS = {
    Order.NEXT: lambda row: (row["waits"] == Waits.EXPIRY, row["end"], row["start"]),
    Order.LAST: lambda row: (-row["end"], -row["start"]),
    Order.ROWS: lambda row: (-row["new_rows"], row["end"]),
    Order.PANES: lambda row: (-row["panes"], row["end"]),
}


def _window(facts: StageFacts, row: Mapping[str, Any]) -> StoredRow:
    key = {**(row.get("key") or {}), **({WINDOWING: row[WINDOWING]} if WINDOWING in row else {})}
    plan = facts.plans[row.get(WINDOWING)].plan
    return StoredRow(
        question=Question(key, row["start"], row["end"]),
        key={name: shown(value) for name, value in key.items()},
        window=bounds_in_words(plan, row["start"], row["end"]),
        waits=Waits(row["waits"]),
        waits_for=row["waits_for"] or "",
        new_rows=row["new_rows"],
        panes=row["panes"],
        last_timing=row["last_timing"],
        stored="",
        at_us=None if row["end"] == END_OF_TIME_US else row["end"],
    )


def _key(keys: Sequence[str], row: Mapping[str, Any]) -> StoredRow:
    at = row[DUE] or row[ENDS]
    return StoredRow(
        question=Question({name: row[name] for name in keys}),
        key={name: shown(row[name]) for name in keys},
        window="",
        waits=None,
        waits_for=row[THEN] or "",
        new_rows=row[ENTRIES],
        panes=None,
        last_timing=None,
        stored=row[STORED],
        at_us=None if at is None else (at - EPOCH) // timedelta(microseconds=1),
    )
