"""The changes between two runs, one a row; docs/upgrading.md has them as a table (``python -m tests.upgrades.rows`` prints it)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow.compute as pc

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import Count, Max, Min, Sum
from beamish.testing import TestStream
from tests.upgrades.carried import SHARDS

BOUND = bm.BoundedOutOfOrderness(0)


@attrs.frozen
class Row:
    """A change between two runs.

    Attributes:
        part: of what it is.
        change: in words.
        then, now: the pipelines.
        script: what is run.
        first: so many of its events in the first run.
        after: what comes out in the second run, as ``carried.line`` writes it, sorted; None: it is refused.
        refused: what for, as ``Change.what``; empty: it is not.
        says: words that stand in the refusal.
        migrates: whether ``bm.migrate`` carries the checkpoint over, where it is refused.
        shards: with how many shards the second run is to be.
    """

    part: str
    change: str
    then: bm.Pipeline
    now: bm.Pipeline
    script: TestStream
    first: int
    after: tuple[str, ...] | None = None
    refused: str = ""
    says: str = ""
    migrates: bool = False
    shards: int = SHARDS

    @property
    def goes_on(self) -> bool:
        """Whether it is not refused."""
        return self.after is not None


def rows_of(*values: tuple[float, Any, int]) -> list[dict[str, object]]:
    return [{"ts": float(time), "k": key, "v": value, "w": -value} for time, key, value in values]


BARE = (
    bm.Pipeline()
    .event_time("ts", BOUND)
    .key_by("k")
    .window(bm.FixedWindows(10))
    .trigger(t.AfterWatermark(late=t.AfterCount(1)))
    .allowed_lateness(10)
    .accumulating()
)
PLAIN = BARE.accumulate(n=Count(), s=Sum("v"))
RETRACTING = PLAIN.accumulating_and_retracting()
NAMED = PLAIN.window({"tens": bm.FixedWindows(10)})
SESSIONS = PLAIN.window(bm.Sessions(5))
SCRIPT = (
    TestStream()
    .add(rows_of((1, "a", 1), (2, "b", 2)))
    .advance_watermark_to(10)
    .add(rows_of((11, "a", 4), (4, "a", 8)))
    # the second run
    .add(rows_of((12, "a", 16), (5, "b", 32)))
    .advance_watermark_to(20)
    .add(rows_of((13, "a", 64), (21, "b", 128)))
    .advance_watermark_to(40)
)
FIRST = 3
USUAL = ("a 10-20 n=2 s=20 ON_TIME", "a 10-20 n=3 s=84 LATE", "b 0-10 n=2 s=34 LATE", "b 20-30 n=1 s=128 ON_TIME")


def carried(part: str, change: str, now: bm.Pipeline, *after: str, then: bm.Pipeline = PLAIN) -> Row:
    return Row(part, change, then, now, SCRIPT, FIRST, tuple(sorted(after)))


def refused(
    part: str,
    change: str,
    now: bm.Pipeline,
    what: str,
    says: str = "",
    *,
    then: bm.Pipeline = PLAIN,
    migrates: bool = False,
) -> Row:
    return Row(part, change, then, now, SCRIPT, FIRST, None, what, says, migrates)


def _options() -> Iterator[Row]:
    yield carried("a stage of windows", "nothing", PLAIN, *USUAL)
    part = "a stage of windows"
    yield carried(
        part,
        "another trigger: it begins as new in open windows",
        PLAIN.trigger(t.AfterWatermark(early=t.AfterCount(1), late=t.AfterCount(1))),
        "a 10-20 n=2 s=20 EARLY",
        "a 10-20 n=2 s=20 ON_TIME",
        "a 10-20 n=3 s=84 LATE",
        "b 0-10 n=2 s=34 LATE",
        "b 20-30 n=1 s=128 EARLY",
        "b 20-30 n=1 s=128 ON_TIME",
    )
    yield carried(part, "a greater `allowed_lateness`", PLAIN.allowed_lateness(30), *USUAL)
    yield carried(
        part,
        "a smaller `allowed_lateness`",
        PLAIN.allowed_lateness(0),
        "a 10-20 n=2 s=20 ON_TIME",
        "b 20-30 n=1 s=128 ON_TIME",
    )
    yield carried(
        part,
        "`closing_behavior`",
        PLAIN.closing_behavior(bm.ClosingBehavior.FIRE_ALWAYS),
        *USUAL,
        "a 0-10 n=2 s=9 LATE",
        "a 10-20 n=3 s=84 LATE",
        "b 0-10 n=2 s=34 LATE",
    )
    yield carried(part, "`on_time_behavior`", PLAIN.on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY), *USUAL)
    yield carried(part, "`only_updated_panes` said", PLAIN.only_updated_panes(), *USUAL)
    yield carried(part, "`with_dropped` said", PLAIN.with_dropped(), *USUAL)
    yield carried(part, "`only_updated_panes` no longer", PLAIN, *USUAL, then=PLAIN.only_updated_panes())
    yield carried(part, "`with_dropped` no longer", PLAIN, *USUAL, then=PLAIN.with_dropped())
    yield carried(
        part,
        "`retract_merged`: from the next merge on",
        SESSIONS.accumulating_and_retracting().retract_merged(bm.WITH_NEXT_PANE),
        *_of_sessions(),
        then=SESSIONS.accumulating_and_retracting(),
    )
    yield carried(part, "a smaller delay of the watermark", PLAIN, *USUAL, then=_delayed("5 seconds"))
    yield carried(part, "a greater delay of the watermark", _delayed("5 seconds"), *USUAL)
    yield carried(
        part,
        "an accumulation more: it begins with no rows in windows that are there",
        PLAIN.accumulate(least=Min("v")),
        "a 10-20 n=2 s=20 least=16 ON_TIME",
        "a 10-20 n=3 s=84 least=16 LATE",
        "b 0-10 n=2 s=34 least=32 LATE",
        "b 20-30 n=1 s=128 least=128 ON_TIME",
    )
    yield carried(part, "`deduplicate` said: rows are known from then on", PLAIN.deduplicate("v"), *USUAL)
    yield carried(part, "`retain` said", RETRACTING.retain(windows=9), *_retained(), then=RETRACTING)
    yield carried(
        part,
        "a windowing more, beside named ones: it begins with the next rows",
        PLAIN.window({"tens": bm.FixedWindows(10), "all": bm.FixedWindows(1000)}),
        "atens 10-20 n=2 s=20 ON_TIME",
        "atens 10-20 n=3 s=84 LATE",
        "btens 0-10 n=2 s=34 LATE",
        "btens 20-30 n=1 s=128 ON_TIME",
        then=NAMED,
    )
    yield refused(part, "the windows", PLAIN.window(bm.FixedWindows(5)), "window", "FixedWindows(size=5000000)")
    yield refused(part, "the windows, to sessions", SESSIONS, "window", "Sessions")
    yield refused(
        part, "the gap of sessions", PLAIN.window(bm.Sessions(6)), "window", "Sessions(gap=6000000)", then=SESSIONS
    )
    yield refused(part, "the keys", PLAIN.key_by("v"), "keys", "v: int64")
    yield refused(part, "a key more or less", PLAIN.key_by("k", "v"), "keys", "v: int64")
    yield refused(part, "the mode", PLAIN.discarding(), "mode", "discarding")
    yield refused(
        part,
        "the timestamp combiner",
        PLAIN.timestamp_combiner(bm.TimestampCombiner.EARLIEST),
        "timestamp combiner",
        "earliest",
    )
    yield refused(part, "an accumulation less", BARE.accumulate(n=Count()), "accumulation s", "none", migrates=True)
    yield refused(
        part, "an accumulation renamed", BARE.accumulate(n=Count(), t=Sum("v")), "accumulation s", "none", migrates=True
    )
    yield refused(
        part, "an accumulation of another kind", BARE.accumulate(n=Count(), s=Max("v")), "accumulation s", "Max"
    )
    yield refused(
        part, "an accumulation of another column", BARE.accumulate(n=Count(), s=Sum("w")), "accumulation s", "'w'"
    )
    yield refused(
        part,
        "`deduplicate` taken away, or of other columns",
        PLAIN.deduplicate("v", "w"),
        "deduplication",
        "w int64",
        then=PLAIN.deduplicate("v"),
    )
    for name, now in (
        ("where", PLAIN.where(pc.field("v") > 0)),
        ("having", PLAIN.having(pc.field("n") > 1)),
        ("with_columns", PLAIN.with_columns(double=pc.field("s") * 2)),
    ):
        yield refused(part, f"`{name}`", now, "conditions and computed columns", name)
    yield refused(part, "from one window option to several named ones", NAMED, "state", "without a name")
    yield refused(part, "from several named ones to one window option", PLAIN, "state", "'tens'", then=NAMED)
    yield refused(
        part,
        "a windowing taken away, or renamed",
        PLAIN.window({"ten": bm.FixedWindows(10)}),
        "state",
        "'tens'",
        then=NAMED,
    )


def _retained() -> tuple[str, ...]:
    return (
        "-a 10-20 n=2 s=20 ON_TIME",
        "-b 0-10 n=1 s=2 ON_TIME",
        *USUAL,
    )


def _of_sessions() -> tuple[str, ...]:
    return (
        "-b 2-7 n=1 s=2 ON_TIME",
        "b 2-10 n=2 s=34 LATE",
        "a 11-17 n=2 s=20 ON_TIME",
        "-a 11-17 n=2 s=20 ON_TIME",
        "a 11-18 n=3 s=84 LATE",
        "b 21-26 n=1 s=128 ON_TIME",
    )


def _delayed(delay: str) -> bm.Pipeline:
    return PLAIN.event_time("ts", bm.BoundedOutOfOrderness(delay))


SUPPRESSED = PLAIN.suppress(bm.UntilTimeLimit(15, clock="event"))
_held = "a suppress"


def _suppressed() -> Iterator[Row]:
    held = "a 10-20 n=3 s=84 LATE", "b 0-10 n=2 s=34 LATE"
    yield carried(_held, "begins: what comes from then on is held", SUPPRESSED, *held)
    yield carried(
        _held,
        "another wait",
        PLAIN.suppress(bm.UntilTimeLimit(3, clock="event")),
        "a 0-10 n=2 s=9 LATE",
        *held,
        USUAL[-1],
        then=SUPPRESSED,
    )
    smaller = PLAIN.suppress(bm.UntilTimeLimit(15, clock="event"), buffer=bm.Buffer(max_records=1))
    yield carried(_held, "a smaller buffer", smaller, "a 0-10 n=2 s=9 LATE", *held, then=SUPPRESSED)
    yield refused(_held, "taken away while it holds something", PLAIN, "state", "holds", then=SUPPRESSED)
    yield refused(
        _held,
        "renamed while it holds something",
        PLAIN.suppress(bm.UntilTimeLimit(15, clock="event"), name="other"),
        "state",
        "'other'",
        then=SUPPRESSED,
    )


SECOND = bm.Pipeline().key_by("k").window(bm.FixedWindows(20)).accumulating().accumulate(t=Sum("s"))
CHAIN = PLAIN.discarding().then(SECOND)
TABLE = bm.Pipeline().event_time("ts", BOUND).key_by("k").versions("60 seconds", values=["v"])
CHANGES = bm.Pipeline().event_time("ts", BOUND).key_by("k").changes().suppress(bm.UntilTimeLimit(15, clock="event"))
ONCE = bm.Pipeline().event_time("ts", BOUND).key_by("k").deduplicate("v", within="60 seconds")


def _chains() -> Iterator[Row]:
    part = "a chain"
    yield carried(
        part,
        "a trigger of one of its stages",
        PLAIN.discarding().then(SECOND.trigger(t.AfterWatermark(early=t.AfterCount(1)))),
        "a 0-20 t=29 EARLY",
        "a 0-20 t=29 ON_TIME",
        "b 0-20 t=34 EARLY",
        "b 0-20 t=34 ON_TIME",
        "b 20-40 t=128 EARLY",
        "b 20-40 t=128 ON_TIME",
        then=CHAIN,
    )
    yield refused(part, "a stage more at its end", CHAIN, "stages", "place")
    yield refused(part, "a stage taken away", PLAIN, "stages", "place", then=CHAIN)
    yield refused(part, "its stages the other way round", _turned(), "window", "FixedWindows", then=CHAIN)
    yield refused(
        part,
        "a stage's windows",
        PLAIN.discarding().then(SECOND.window(bm.FixedWindows(40))),
        "window",
        "40000000",
        then=CHAIN,
    )
    kinds = {"windows": PLAIN, "a versioned table": TABLE, "changes()": CHANGES, "rows once each": ONCE}
    for then_words, then in kinds.items():
        for now_words, now in kinds.items():
            if then is not now:
                change = f"{now_words} in the place of {then_words}"
                yield refused(part, change, now, "state", "forgotten", then=then)


def _turned() -> bm.Pipeline:
    first = BARE.window(bm.FixedWindows(20)).accumulate(s=Sum("v"))
    return first.discarding().then(
        bm.Pipeline().key_by("k").window(bm.FixedWindows(10)).accumulating().accumulate(t=Sum("s"))
    )


def _versions() -> tuple[str, ...]:
    return (
        "-a v=16 valid_from=12 valid_to=None ON_TIME",
        "-a v=4 valid_from=11 valid_to=None LATE",
        "-b v=2 valid_from=2 valid_to=None ON_TIME",
        "-b v=32 valid_from=5 valid_to=None LATE",
        "a v=16 valid_from=12 valid_to=13 LATE",
        "a v=16 valid_from=12 valid_to=None ON_TIME",
        "a v=4 valid_from=11 valid_to=12 ON_TIME",
        "a v=64 valid_from=13 valid_to=None LATE",
        "b v=128 valid_from=21 valid_to=None ON_TIME",
        "b v=2 valid_from=2 valid_to=5 LATE",
        "b v=32 valid_from=5 valid_to=21 ON_TIME",
        "b v=32 valid_from=5 valid_to=None LATE",
    )


def _tables() -> Iterator[Row]:
    part = "a versioned table"
    changes = bm.Pipeline().event_time("ts", BOUND).key_by("k")
    yield carried(part, "a smaller `history`", changes.versions("30 seconds", values=["v"]), *_versions(), then=TABLE)
    yield refused(
        part,
        "a greater `history`",
        changes.versions("90 seconds", values=["v"]),
        "state",
        "may only shrink",
        then=TABLE,
    )
    yield refused(part, "its values", changes.versions("60 seconds", values=["w"]), "state", "w: int64", then=TABLE)
    yield refused(
        part,
        "`sequence_by`",
        changes.versions("60 seconds", values=["v"], sequence_by="w"),
        "state",
        "sequence_by",
        then=TABLE,
    )
    yield refused(
        part,
        "`only_updated`",
        changes.versions("60 seconds", values=["v"], only_updated=True),
        "state",
        "only_updated",
        then=TABLE,
    )
    part = "rows once each"
    once = bm.Pipeline().event_time("ts", BOUND).key_by("k")
    yield refused(part, "`within`", once.deduplicate("v", within="90 seconds"), "state", "within", then=ONCE)
    yield refused(part, "its columns", once.deduplicate("v", "w", within="60 seconds"), "state", "w int64", then=ONCE)


def _clock() -> Iterator[Row]:
    part = "the query"
    waiting = PLAIN.trigger(t.AfterWatermark(early=t.AfterProcessingTime("5 seconds"), late=t.AfterCount(1)))
    yield refused(
        part, "a trigger of processing time, where there was none", waiting, "clock", "bm.migrate", migrates=True
    )
    yield refused(
        part, "no trigger of processing time any more", PLAIN, "clock", "bm.migrate", then=waiting, migrates=True
    )
    idle = PLAIN.event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout="1 minute"))
    yield refused(part, "`idle_timeout` said, or no longer", idle, "clock", "bm.migrate", migrates=True)
    lag = PLAIN.event_time("ts", bm.ProcessingTimeLag("1 minute"))
    yield refused(
        part, "`ProcessingTimeLag` in the place of a watermark of rows", lag, "clock", "bm.migrate", migrates=True
    )


def _side() -> bm.Pipeline:
    return bm.Pipeline().event_time("ts", BOUND).key_by("k")


def _merged(**inputs: bm.Pipeline) -> bm.Pipeline:
    return bm.merge(**inputs).window(bm.FixedWindows(10)).accumulating().accumulate(n=Count())


MERGED = _merged(left=_side(), right=_side())
OF_TWO = (
    TestStream()
    .add(rows_of((1, "a", 1)), input="left")
    .add(rows_of((2, "a", 2)), input="right")
    .add(rows_of((3, "a", 4)), input="left")
    .advance_watermark_to(10)
)


def _merges() -> Iterator[Row]:
    part = "a merge"
    yield Row(
        part,
        "an accumulation of an input more",
        MERGED,
        MERGED.accumulate(s=Sum("v").of("left")),
        OF_TWO,
        2,
        ("a 0-10 n=3 s=4 ON_TIME",),
    )
    turned, renamed = _merged(right=_side(), left=_side()), _merged(left=_side(), other=_side())
    yield Row(part, "the order of its inputs", MERGED, turned, OF_TWO, 2, None, "inputs", "right, left")
    yield Row(part, "the name of an input", MERGED, renamed, OF_TWO, 2, None, "inputs", "left, other")
    yield Row(
        part,
        "an input more or less",
        MERGED,
        _merged(left=_side(), right=_side(), more=_side()),
        OF_TWO,
        2,
        None,
        "inputs",
        "more",
    )

    def join(**how: Any) -> bm.Pipeline:
        left = bm.Pipeline().event_time("ts", BOUND)
        return bm.as_of_join(on="k", left=left, right=TABLE, **how)

    joined = join()
    part = "an as-of join"
    yield Row(
        part,
        "`grace`",
        joined,
        join(grace="2 seconds"),
        OF_TWO,
        2,
        ("a ts=3.0 v=4 w=-4 right={'v': 2, 'valid_from': '2'} ON_TIME",),
    )
    yield Row(part, "`how`", joined, join(how="left"), OF_TWO, 2, None, "state", "how")
    yield Row(part, "`tolerance`", joined, join(tolerance="5 seconds"), OF_TWO, 2, None, "state", "tolerance")


def _query() -> Iterator[Row]:
    part = "the query"
    yield Row(
        part,
        "the number of shards",
        PLAIN,
        PLAIN,
        SCRIPT,
        FIRST,
        None,
        "shards",
        ".apply(df, shards=2)",
        migrates=True,
        shards=3,
    )


ROWS: list[Row] = [*_query(), *_clock(), *_options(), *_suppressed(), *_chains(), *_tables(), *_merges()]
