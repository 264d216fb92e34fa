"""The changes between two runs, one a row; docs/upgrading.md has them as a table (``python -m tests.upgrades.table`` prints it)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import Count, InnerJoin, Max, Min, Sum
from beamish.source import Source
from beamish.testing import TestStream
from tests.kinds.hold_back.stage import held_back
from tests.upgrades.carried import AS_THEY_COME, SHARDS, BothTypes

BOUND = bm.BoundedOutOfOrderness(0)


@attrs.frozen
class Row:
    """A change between two runs.

    Attributes:
        part: the section of the table.
        change: the change; after a colon its effect, or why it is refused.
        then, now: the pipelines of the first and the second run.
        script: the events of both runs.
        first: the number of events in the first run.
        after: the sorted output of the second run, as ``carried.line`` writes it; None: it is refused.
        refused: the changed part, as in ``Change.what``; empty: not refused.
        says: a part of the message.
        migrated: the output of the second run after ``bm.migrate``; None: that refuses it too.
        shards: number of shards of the second run.
        types: the column types of both runs.
        stands_for: the line of the table that it shares with others; empty: a line of its own.
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
    migrated: tuple[str, ...] | None = None
    shards: int = SHARDS
    types: BothTypes = AS_THEY_COME
    stands_for: str = ""

    @property
    def goes_on(self) -> bool:
        """Whether the second run continues."""
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
KEYED = PLAIN.watermark_per_key(0, at_most=30)
RETRACTING = PLAIN.accumulating_and_retracting()
NAMED = PLAIN.window({"tens": bm.FixedWindows(10)})
SESSIONS = PLAIN.window(bm.Sessions(5))
ANCHORED = PLAIN.window(bm.AnchoredWindows(5))


def script_of(a: Any, b: Any) -> TestStream:
    """Rows of two keys."""
    return (
        TestStream()
        .add(rows_of((1, a, 1), (2, b, 2)))
        .advance_watermark_to(10)
        .add(rows_of((11, a, 4), (4, a, 8)))
        # the second run
        .add(rows_of((12, a, 16), (5, b, 32)))
        .advance_watermark_to(20)
        .add(rows_of((13, a, 64), (21, b, 128)))
        .advance_watermark_to(40)
    )


SCRIPT, OF_NUMBERS = script_of("a", "b"), script_of(1, 2)
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
    migrated: tuple[str, ...] | None = None,
) -> Row:
    return Row(part, change, then, now, SCRIPT, FIRST, None, what, says, migrated)


def _emission() -> Iterator[Row]:
    part = "a stage of windows"
    yield carried(part, "nothing", PLAIN, *USUAL)
    yield carried(
        part,
        "another trigger: starts as new in open windows, counts the rows in no pane yet, and is evaluated "
        "at the window's end; closed windows stay closed",
        PLAIN.trigger(t.AfterWatermark(early=t.AfterCount(1), late=t.AfterCount(1))),
        "a 10-20 n=2 s=20 EARLY",
        "a 10-20 n=2 s=20 ON_TIME",
        "a 10-20 n=3 s=84 LATE",
        "b 0-10 n=2 s=34 LATE",
        "b 20-30 n=1 s=128 EARLY",
        "b 20-30 n=1 s=128 ON_TIME",
    )
    yield carried(
        part,
        "a greater `allowed_lateness`: from the next step on, for open windows too; triggers keep their state",
        PLAIN.allowed_lateness(30),
        *USUAL,
    )
    yield carried(
        part,
        "a smaller `allowed_lateness`: from the next step on, for open windows too; triggers keep their state",
        PLAIN.allowed_lateness(0),
        "a 10-20 n=2 s=20 ON_TIME",
        "b 20-30 n=1 s=128 ON_TIME",
    )
    yield carried(
        part,
        "`closing_behavior`: from the next step on",
        PLAIN.closing_behavior(bm.ClosingBehavior.FIRE_ALWAYS),
        *USUAL,
        "a 0-10 n=2 s=9 LATE",
        "a 10-20 n=3 s=84 LATE",
        "b 0-10 n=2 s=34 LATE",
    )
    yield carried(
        part,
        "`on_time_behavior`: from the next step on",
        PLAIN.on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY),
        *USUAL,
    )
    yield carried(
        part,
        "`only_updated_panes` added: from the next step on; without retractions each window's next pane is emitted, since the last one "
        "was not stored",
        PLAIN.only_updated_panes(),
        *USUAL,
    )
    yield carried(part, "`with_dropped` added: from the next step on", PLAIN.with_dropped(), *USUAL)
    yield carried(
        part, "`only_updated_panes` removed: from the next step on", PLAIN, *USUAL, then=PLAIN.only_updated_panes()
    )
    yield carried(part, "`with_dropped` removed: from the next step on", PLAIN, *USUAL, then=PLAIN.with_dropped())
    yield carried(
        part,
        "`retract_merged`: from the next merge on; panes gathered before are retracted with the next pane",
        SESSIONS.accumulating_and_retracting().retract_merged(bm.WITH_NEXT_PANE),
        *_of_sessions(),
        then=SESSIONS.accumulating_and_retracting(),
    )
    yield carried(
        part, "a smaller delay of the watermark: from the next step on", PLAIN, *USUAL, then=_delayed("5 seconds")
    )
    yield carried(
        part,
        "a greater delay of the watermark: from the next step on; the watermark does not go back",
        _delayed("5 seconds"),
        *USUAL,
    )


def _watermarks() -> Iterator[Row]:
    part = "a stage of windows"
    yield carried(
        part,
        "`watermark_per_key` added: from the next step on; no key is behind the watermark so far",
        KEYED,
        "b 0-10 n=2 s=34 LATE",
    )
    yield carried(
        part,
        "another `watermark_per_key`: from the next step on; no key goes back",
        PLAIN.watermark_per_key(0, at_most=5),
        "a 0-10 n=2 s=9 ON_TIME",
        "a 10-20 n=3 s=84 ON_TIME",
        "b 0-10 n=2 s=34 ON_TIME",
        "b 20-30 n=1 s=128 ON_TIME",
        then=KEYED,
    )
    yield refused(part, "`watermark_per_key` removed", PLAIN, "watermark per key", "would open them again", then=KEYED)


def _additions() -> Iterator[Row]:
    part = "a stage of windows"
    yield carried(
        part,
        "an added accumulation: starts with no rows in existing windows; retractions of earlier panes have null for it; a table of `sinks.sql` needs its column first",
        PLAIN.accumulate(least=Min("v")),
        "a 10-20 n=2 s=20 least=16 ON_TIME",
        "a 10-20 n=3 s=84 least=16 LATE",
        "b 0-10 n=2 s=34 least=32 LATE",
        "b 20-30 n=1 s=128 least=128 ON_TIME",
    )
    yield carried(
        part, "`deduplicate` added: rows are remembered from the next step on", PLAIN.deduplicate("v"), *USUAL
    )
    yield carried(
        part,
        "an added windowing, beside named ones: starts with the next rows",
        PLAIN.window({"tens": bm.FixedWindows(10), "all": bm.FixedWindows(1000)}),
        "atens 10-20 n=2 s=20 ON_TIME",
        "atens 10-20 n=3 s=84 LATE",
        "btens 0-10 n=2 s=34 LATE",
        "btens 20-30 n=1 s=128 ON_TIME",
        then=NAMED,
    )


def _identity() -> Iterator[Row]:
    part = "a stage of windows"
    yield refused(part, "the windows", PLAIN.window(bm.FixedWindows(5)), "window", "FixedWindows(size='5 seconds')")
    yield refused(part, "the windows, to sessions", SESSIONS, "window", "Sessions")
    yield refused(
        part, "the gap of sessions", PLAIN.window(bm.Sessions(6)), "window", "Sessions(gap='6 seconds')", then=SESSIONS
    )
    late = TestStream().add(rows_of((21, "a", 1))).advance_watermark_to(33).add(rows_of((18, "a", 2), (40, "b", 4)))
    by_session = PLAIN.window(bm.Sessions(5, late_rows="session"))
    for then, now, added in ((SESSIONS, by_session, ("a 18-26 n=2 s=3 LATE",)), (by_session, SESSIONS, ())):
        yield Row(
            part,
            "`late_rows` of sessions: from the next rows on",
            then,
            now,
            late.advance_watermark_to(45),
            2,
            (*added, "b 40-45 n=1 s=4 ON_TIME"),
        )
    yield refused(
        part,
        "the allowed lateness of anchored windows: their rows are stored for it",
        ANCHORED.allowed_lateness(30),
        "allowed lateness",
        "30 seconds",
        then=ANCHORED,
    )
    yield refused(
        part,
        "an added accumulation of anchored windows: stored rows lack its columns",
        ANCHORED.accumulate(m=Max("w")),
        "accumulation m",
        "Max",
        then=ANCHORED,
    )
    yield refused(
        part,
        "a removed accumulation of anchored windows",
        BARE.window(bm.AnchoredWindows(5)).accumulate(n=Count()),
        "accumulation s",
        "none",
        then=ANCHORED,
    )
    yield refused(part, "the keys", PLAIN.key_by("v"), "keys", "v: int64")
    yield refused(part, "an added key", PLAIN.key_by("k", "v"), "keys", "v: int64")
    yield refused(part, "a removed key", PLAIN, "keys", "['k: string']", then=PLAIN.key_by("k", "v"))
    yield refused(part, "the mode", PLAIN.discarding(), "mode", "discarding")
    yield refused(
        part,
        "the timestamp combiner",
        PLAIN.timestamp_combiner(bm.TimestampCombiner.EARLIEST),
        "timestamp combiner",
        "earliest",
    )


def _accumulations() -> Iterator[Row]:
    part = "a stage of windows"
    yield refused(
        part,
        "a removed accumulation: its values are dropped",
        BARE.accumulate(n=Count()),
        "accumulation s",
        "drops its values",
        migrated=("a 10-20 n=2 ON_TIME", "a 10-20 n=3 LATE", "b 0-10 n=2 LATE", "b 20-30 n=1 ON_TIME"),
    )
    yield refused(
        part,
        "a renamed accumulation: the old one's values are dropped, the new one starts with no rows",
        BARE.accumulate(n=Count(), t=Sum("v")),
        "accumulation s",
        "drops its values",
        migrated=(
            "a 10-20 n=2 t=16 ON_TIME",
            "a 10-20 n=3 t=80 LATE",
            "b 0-10 n=2 t=32 LATE",
            "b 20-30 n=1 t=128 ON_TIME",
        ),
    )
    yield refused(
        part, "an accumulation of another kind", BARE.accumulate(n=Count(), s=Max("v")), "accumulation s", "Max"
    )
    yield refused(
        part, "an accumulation of another column", BARE.accumulate(n=Count(), s=Sum("w")), "accumulation s", "'w'"
    )


def _deduplication() -> Iterator[Row]:
    part = "a stage of windows"
    known = PLAIN.deduplicate("v")
    yield refused(part, "`deduplicate` removed", PLAIN, "deduplication", "none", then=known)
    yield refused(
        part,
        "`deduplicate` of other columns: the stored IDs are of the old ones",
        PLAIN.deduplicate("v", "w"),
        "deduplication",
        "w int64",
        then=known,
    )
    yield refused(
        part,
        "`deduplicate`, its `within`",
        PLAIN.deduplicate("v", within="60 seconds"),
        "deduplication",
        "within",
        then=known,
    )


def _conditions() -> Iterator[Row]:
    part = "a stage of windows"
    conditions = "conditions and computed columns"
    some, other = (PLAIN.where(pc.field("v") > least) for least in (8, 2))
    yield carried(part, "`where` added: from the next rows on, for an input too", some, *USUAL)
    yield carried(
        part, "another `where`: from the next rows on", some, *USUAL[:2], "b 0-10 n=1 s=32 LATE", USUAL[3], then=other
    )
    only_new = ("a 10-20 n=1 s=16 ON_TIME", "a 10-20 n=2 s=80 LATE", "b 0-10 n=1 s=32 LATE", USUAL[3])
    yield carried(part, "`where` removed: from the next rows on", PLAIN, *only_new, then=some)
    many, more = (PLAIN.having(pc.field("n") > least) for least in (1, 2))
    three = ("a 10-20 n=3 s=84 LATE",)
    yield carried(part, "`having` added: from the next pane on; a later stage has panes of both", more, *three)
    yield carried(part, "another `having`: from the next pane on", more, *three, then=many)
    yield carried(part, "`having` removed: from the next pane on", PLAIN, *USUAL, then=more)
    double, half = (PLAIN.with_columns(other=of) for of in (pc.field("s") * 2, pc.divide(pc.field("s"), 2)))
    halves = (
        "a 10-20 n=2 s=20 other=10 ON_TIME",
        "a 10-20 n=3 s=84 other=42 LATE",
        "b 0-10 n=2 s=34 other=17 LATE",
        "b 20-30 n=1 s=128 other=64 ON_TIME",
    )
    yield carried(part, "`with_columns` added: from the next pane on; a later stage has panes of both", half, *halves)
    yield carried(part, "other `with_columns`: from the next pane on", half, *halves, then=double)
    yield carried(part, "`with_columns` removed: from the next pane on", PLAIN, *USUAL, then=double)
    for name, must, now in (
        ("having", "meet the condition", RETRACTING.having(pc.field("n") > 1)),
        ("with_columns", "repeat the columns", RETRACTING.with_columns(double=pc.field("s") * 2)),
    ):
        yield refused(
            part,
            f"`{name}`, where panes are retracted: a retraction must {must} of its pane",
            now,
            conditions,
            name,
            then=RETRACTING,
        )


def _windowings() -> Iterator[Row]:
    part = "a stage of windows"
    yield refused(part, "from one window option to several named ones", NAMED, "state", "one unnamed windowing")
    yield refused(part, "from several named ones to one window option", PLAIN, "state", "'tens'", then=NAMED)
    both = PLAIN.window({"tens": bm.FixedWindows(10), "all": bm.FixedWindows(1000)})
    yield refused(part, "a removed windowing", NAMED, "state", "'all'", then=both)
    renamed = PLAIN.window({"ten": bm.FixedWindows(10)})
    yield refused(part, "a renamed windowing", renamed, "state", "'tens'", then=NAMED)


LATE = PLAIN.allowed_lateness(1000)
FALLING = (
    TestStream()
    .add(rows_of((1, 1, 1), (11, 1, 2), (21, 1, 4)))
    .advance_watermark_to(22)
    # the second run
    .add(rows_of((2, 1, 8), (12, 1, 16)))
    .add(rows_of((31, 1, 32)))
    .advance_watermark_to(50)
)
FELL = ("1 20-30 n=1 s=4 ON_TIME", "1 30-40 n=1 s=32 ON_TIME")
"""The output where the windows of 0 to 20 expired in the first run."""
FALLS = (
    "1 0-10 n=2 s=9 LATE",
    "1 10-20 n=2 s=18 LATE",
    "1 20-30 n=1 s=4 EARLY",
    "1 30-40 n=1 s=32 ON_TIME",
)
"""And where only the latest window stays from the second run on."""


def _kept() -> Iterator[Row]:
    part = "a stage of windows"

    def row(change: str, then: bm.Pipeline, now: bm.Pipeline, after: tuple[str, ...]) -> Row:
        return Row(part, change, then, now, FALLING, 2, after)

    one, three = LATE.retain(windows=1), LATE.retain(windows=3)
    yield row("`retain` added: from the next row of a key on; earlier rows do not count", LATE, one, FALLS)
    yield row("a smaller `retain`: from the next row of a key on", three, one, FALLS)
    yield row("a greater `retain`: what was evicted does not return", one, three, FELL)
    yield row("`retain` removed: what was evicted does not return", one, LATE, FELL)
    part = "the global window"
    forever = PLAIN.window(bm.GlobalWindow()).trigger(t.Repeatedly(t.AfterCount(1)))
    short, long = forever.forget_after("10 seconds"), forever.forget_after("100 seconds")
    script = (
        TestStream()
        .add(rows_of((1, "a", 1)))
        .advance_watermark_to(2)
        # the second run
        .advance_watermark_to(11.5)
        .add(rows_of((3, "a", 2)))
        .advance_watermark_to(14)
        .add(rows_of((15, "a", 4)))
        .advance_watermark_to(30)
    )
    stays = ("a - n=2 s=3 EARLY", "a - n=3 s=7 EARLY")
    goes = (
        *("a - n=1 s=1 ON_TIME", "a - n=1 s=2 EARLY", "a - n=1 s=2 ON_TIME"),
        *("a - n=1 s=4 EARLY", "a - n=1 s=4 ON_TIME"),
    )
    for change, then, now, after in (
        (
            "`forget_after` added: from the next move of the watermark on, as if each key's latest row was at the watermark after the first step",
            forever,
            short,
            (*stays, "a - n=3 s=7 ON_TIME"),
        ),
        ("a longer `forget_after`: from the next move of the watermark on", short, long, stays),
        ("a shorter `forget_after`: from the next move of the watermark on", long, short, goes),
        ("`forget_after` removed: from the next move of the watermark on", short, forever, stays),
    ):
        yield Row(part, change, then, now, script, 2, after)


def _errors() -> Iterator[Row]:
    part = "a stage of windows"
    script = (
        TestStream()
        .add(rows_of((1, "a", 1)))
        .advance_watermark_to(2)
        .add(rows_of((3, "a", 2**63 - 1)))
        .add(rows_of((5, "a", 2)))
        .advance_watermark_to(10)
    )
    dropping = PLAIN.on_error("drop")
    yield Row(
        part,
        "`on_error`, from fail to drop: from the next step on",
        PLAIN,
        dropping,
        script,
        2,
        ("a 0-10 n=2 s=3 ON_TIME", "a 0-10 ts=3.0 k=a v=9223372036854775807 w=-9223372036854775807 UNKNOWN"),
    )
    yield Row(
        part,
        "`on_error`, from drop to fail: from the next step on",
        dropping,
        PLAIN,
        script,
        3,
        ("a 0-10 n=2 s=3 ON_TIME",),
    )
    what, over = "rows stored for on_error('drop')", "over panes that are retracted"
    fails, drops = (RETRACTING.then(one) for one in (SECOND, SECOND.on_error("drop")))
    yield refused(part, f"`on_error`, from fail to drop, {over}", drops, what, "all", then=fails)
    yield refused(part, f"`on_error`, from drop to fail, {over}", fails, what, "none", then=drops)


THREES = bm.Pipeline().event_time("ts", BOUND).key_by("k").window(bm.CountWindows(3)).accumulate(n=Count(), s=Sum("v"))
IN_THREES = TestStream().add(rows_of((1, 1, 1), (2, 1, 2))).add(rows_of((3, 1, 4)))


def _of_rows() -> Iterator[Row]:
    part = "count windows"

    def row(change: str, now: bm.Pipeline, says: str, then: bm.Pipeline = THREES) -> Row:
        return Row(part, change, then, now, IN_THREES, 1, None, "window", says)

    yield row("their size", THREES.window(bm.CountWindows(4)), "CountWindows(size=4)")
    yield row("their period", THREES.window(bm.CountWindows(3, 1)), "period=1")
    yield row("`idle`", THREES.window(bm.CountWindows(3, idle="1 day")), "idle")
    in_time = THREES.window(bm.FixedWindows(10))
    yield row("replaced by time windows", in_time, "FixedWindows")
    yield row("in place of time windows", THREES, "CountWindows", in_time)


INTS, LONGS = (dict.fromkeys("kvw", type_) for type_ in (pa.int32(), pa.int64()))
SHORT, LONG, FINE = (dict.fromkeys("kvw", pa.decimal128(*digits)) for digits in ((10, 2), (20, 2), (20, 3)))
AGAIN = TestStream().add(rows_of((1, 1, 1))).add(rows_of((3, 1, 1), (4, 1, 2))).advance_watermark_to(10)


def _types() -> Iterator[Row]:
    part = "types of columns"
    wider = "`int` to `bigint`"

    def goes_on(change: str, of: bm.Pipeline, script: TestStream, first: int, *after: str) -> Row:
        return Row(part, change, of, of, script, first, tuple(sorted(after)), types=(INTS, LONGS))

    by_number = tuple(line.replace("a ", "1 ").replace("b ", "2 ") for line in USUAL)
    yield goes_on(f"{wider}, of a key and of what an accumulation reads", PLAIN, OF_NUMBERS, FIRST, *by_number)
    in_decimals = (
        "1.00 10-20 n=2 s=20.00 ON_TIME",
        "1.00 10-20 n=3 s=84.00 LATE",
        "2.00 0-10 n=2 s=34.00 LATE",
        "2.00 20-30 n=1 s=128.00 ON_TIME",
    )
    yield Row(
        part,
        "`decimal(10,2)` to `decimal(20,2)` of these",
        PLAIN,
        PLAIN,
        OF_NUMBERS,
        FIRST,
        in_decimals,
        types=(SHORT, LONG),
    )
    yield goes_on(f"{wider} under `retain(windows=, rows=)`", LATE.retain(windows=1), FALLING, 2, *FALLS[2:])
    once = "1 0-10 n=2 s=3 ON_TIME"
    yield goes_on(f"{wider} of the columns of `deduplicate`", PLAIN.deduplicate("v"), AGAIN, 1, once)
    for_a_time = PLAIN.deduplicate("v", within="60 seconds")
    yield goes_on("the same with `within`", for_a_time, AGAIN, 1, once)
    yield goes_on(f"{wider} in count windows", THREES, IN_THREES, 1, "1 n=3 s=7 ON_TIME")

    def is_refused(change: str, of: bm.Pipeline, types: BothTypes, what: str, says: str) -> Row:
        return Row(part, change, of, of, OF_NUMBERS, FIRST, None, what, says, types=types)

    both = INTS, LONGS
    yield is_refused(f"{wider} under a suppress", SUPPRESSED, both, "keys", "k: int64")
    yield is_refused(f"{wider} under `retain(bytes=)`", PLAIN.retain(bytes=999), both, "keys", "k: int64")
    yield is_refused(f"{wider} in a versioned table", TABLE, both, "state", "int64")
    yield is_refused(f"{wider} in deduplication without windows", ONCE, both, "state", "int64")
    yield is_refused("`bigint` to `int`", PLAIN, (LONGS, INTS), "keys", "k: int32")
    of_values = {"v": pa.int32()}, {"v": pa.float64()}
    yield is_refused("`int` to `double`", PLAIN, of_values, "accumulation s", "double")
    yield is_refused("a decimal of another scale", PLAIN, (SHORT, FINE), "keys", "decimal128(20, 3)")


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
    yield carried(_held, "added: later updates are held", SUPPRESSED, *held)
    yield carried(
        _held,
        "another wait: applies to what is held at once",
        PLAIN.suppress(bm.UntilTimeLimit(3, clock="event")),
        "a 0-10 n=2 s=9 LATE",
        *held,
        USUAL[-1],
        then=SUPPRESSED,
    )
    smaller = PLAIN.suppress(bm.UntilTimeLimit(15, clock="event"), buffer=bm.Buffer(max_records=1))
    yield carried(_held, "a smaller buffer", smaller, "a 0-10 n=2 s=9 LATE", *held, then=SUPPRESSED)
    less = PLAIN.having(pc.field("s") < 10).suppress(bm.UntilTimeLimit(15, clock="event"))
    yield carried(_held, "`having` added: for what is held too", less, "a 0-10 n=2 s=9 LATE", then=SUPPRESSED)
    yield refused(
        _held,
        "removed while it holds something: run once with a wait of zero before",
        PLAIN,
        "state",
        "has 2 buffered updates",
        then=SUPPRESSED,
    )
    yield refused(
        _held,
        "renamed while it holds something: run once with a wait of zero before",
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
    yield refused(part, "an added stage at its end", CHAIN, "stages", "position")
    yield refused(part, "a removed stage", PLAIN, "stages", "position", then=CHAIN)
    yield refused(part, "its stages reordered", _turned(), "window", "FixedWindows", then=CHAIN)
    yield refused(
        part,
        "a stage's windows",
        PLAIN.discarding().then(SECOND.window(bm.FixedWindows(40))),
        "window",
        "40 seconds",
        then=CHAIN,
    )
    corrected = RETRACTING.then(SECOND)
    yield refused(
        part,
        "an added accumulation, over panes that are retracted: earlier panes were never added to it, so retracting them would corrupt it",
        RETRACTING.then(SECOND.accumulate(t=Sum("s"), n=Count())),
        "accumulation n",
        "would corrupt it",
        then=corrected,
    )
    yield refused(
        part,
        "`where`, over rows that are retracted: a retraction must meet the condition of its row",
        RETRACTING.then(SECOND.where(pc.field("s") > 8)),
        "conditions and computed columns",
        "where",
        then=corrected,
    )
    keyed = bm.Pipeline().event_time("ts", BOUND).key_by("k")
    kinds = {
        "windows": PLAIN,
        "a versioned table": TABLE,
        "changes()": CHANGES,
        "deduplication without windows": ONCE,
        "gaps": keyed.fill_gaps(5, by="last", within=20),
        "upserts": keyed.upserts(),
        "over": keyed.over(bm.Preceding(5)).accumulate(n=Count()),
        "rolling spans": keyed.window(bm.Rolling({"short": 4}, step=1)).accumulate(n=Count()),
        "a kind of a user's own": held_back(5, Source("ts", BOUND, ("k",))),
    }
    # All pairs are in tests/kinds/test_alone.py.
    for before, after in pairwise([*kinds, "windows"]):
        for then, now in ((before, after), (after, before)):
            row = refused(part, f"{now} in place of {then}", kinds[now], "state", "would be lost", then=kinds[then])
            yield attrs.evolve(row, stands_for="a stage replaced by one of another kind")


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
    yield carried(
        part,
        "a smaller `history`: older versions are deleted",
        changes.versions("30 seconds", values=["v"]),
        *_versions(),
        then=TABLE,
    )
    yield refused(
        part,
        "a greater `history`: older versions are no longer stored",
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
    part = "deduplication without windows"
    once = bm.Pipeline().event_time("ts", BOUND).key_by("k")
    yield refused(part, "`within`", once.deduplicate("v", within="90 seconds"), "state", "within", then=ONCE)
    yield refused(part, "its columns", once.deduplicate("v", "w", within="60 seconds"), "state", "w: int64", then=ONCE)


def _clock() -> Iterator[Row]:
    part = "the query"
    waiting = PLAIN.trigger(t.AfterWatermark(early=t.AfterProcessingTime("5 seconds"), late=t.AfterCount(1)))
    idle = PLAIN.event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout="1 minute"))
    lag = PLAIN.event_time("ts", bm.ProcessingTimeLag("1 minute"))
    for change, then, now in (
        ("an added processing-time trigger", PLAIN, waiting),
        ("a removed processing-time trigger", waiting, PLAIN),
        ("`idle_timeout` added", PLAIN, idle),
        ("`idle_timeout` removed", idle, PLAIN),
        ("`ProcessingTimeLag` in place of an event-time watermark", PLAIN, lag),
        ("an event-time watermark in place of `ProcessingTimeLag`", lag, PLAIN),
    ):
        yield refused(part, change, now, "clock", "bm.migrate", then=then, migrated=USUAL)


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


OF_NULLS = TestStream().add(rows_of((1, None, 1), (3, "b", 4)), input="left")


def _merges() -> Iterator[Row]:
    part = "a merge"
    yield Row(
        part,
        "an added accumulation of an input",
        MERGED,
        MERGED.accumulate(s=Sum("v").of("left")),
        OF_TWO,
        2,
        ("a 0-10 n=3 s=4 ON_TIME",),
    )
    turned, renamed = _merged(right=_side(), left=_side()), _merged(left=_side(), other=_side())
    yield Row(part, "the order of its inputs", MERGED, turned, OF_TWO, 2, None, "inputs", "right, left")
    yield Row(part, "the name of an input", MERGED, renamed, OF_TWO, 2, None, "inputs", "left, other")
    three = _merged(left=_side(), right=_side(), more=_side())
    of_three = OF_TWO.add(rows_of((5, "a", 8)), input="more")
    yield Row(part, "an added input", MERGED, three, OF_TWO, 2, None, "inputs", "more")
    yield Row(part, "a removed input", three, MERGED, of_three, 2, None, "inputs", "left, right")

    def pairs(**how: Any) -> bm.Pipeline:
        return (
            bm.merge(left=_side(), right=_side())
            .window(bm.FixedWindows(10))
            .discarding()
            .accumulate(p=InnerJoin("left", "right", **how))
        )

    for change, then, now, says in (
        ("`once` added", {}, {"once": True}, "once=True"),
        ("`once` removed", {"once": True}, {}, "InnerJoin(left='left', right='right')"),
        (
            "`keep_rows` of a join",
            {"once": True, "keep_rows": {"left": 5}},
            {"once": True, "keep_rows": {"left": 9}},
            "9",
        ),
        (
            "`keep_for` of a join",
            {"once": True, "keep_for": {"left": 5}},
            {"once": True, "keep_for": {"left": 9}},
            "'9 seconds'",
        ),
        ("`keep_for` removed", {"once": True, "keep_for": {"left": 5}}, {"once": True}, "once=True"),
    ):
        yield Row(part, change, pairs(**then), pairs(**now), OF_TWO, 2, None, "accumulation p", says)

    nulls = OF_NULLS.add(rows_of((2, None, 16), (4, "b", 32)), input="right").advance_watermark_to(10)
    yield Row(
        part,
        "`null_keys` of a join: from the next rows on",
        pairs(null_keys="pair"),
        pairs(),
        nulls,
        1,
        ("b 0-10 p={'left': {'ts': 3.0, 'v': 4, 'w': -4}, 'right': {'ts': 4.0, 'v': 32, 'w': -32}} ON_TIME",),
    )

    def join(**how: Any) -> bm.Pipeline:
        left = bm.Pipeline().event_time("ts", BOUND)
        return bm.as_of_join(on="k", left=left, right=TABLE, **how)

    joined = join()
    part = "an as-of join"
    yield Row(
        part,
        "`grace`: for rows that are not emitted",
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
        migrated=USUAL,
        shards=3,
    )


ROWS: list[Row] = [
    *_query(),
    *_clock(),
    *_emission(),
    *_additions(),
    *_watermarks(),
    *_identity(),
    *_accumulations(),
    *_deduplication(),
    *_conditions(),
    *_windowings(),
    *_errors(),
    *_kept(),
    *_of_rows(),
    *_types(),
    *_suppressed(),
    *_chains(),
    *_tables(),
    *_merges(),
]
