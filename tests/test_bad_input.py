"""Bad input: each wrong value is refused at the earliest moment, with the value, the rule and the fix."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import (
    Accumulation,
    ApproxCountDistinct,
    Collect,
    Count,
    CountDistinct,
    Fold,
    FullOuterJoin,
    InnerJoin,
    Max,
    Mean,
    Quantiles,
    Reduce,
    RightOuterJoin,
    StdDev,
    Sum,
    TopN,
)
from beamish.contract.store import DictStore
from beamish.instants import EPOCH
from beamish.testing import TestStream
from beamish.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterValue,
    AfterWatermark,
    Always,
    Default,
    Never,
    OrFinally,
    Repeatedly,
    Trigger,
)
from tests.own.accumulations import Range
from tests.own.windows import PlainWindows

CHANGE = {"ts": 1, "cur": "EUR", "rate": 1, "gone": False, "tags": ["a"]}
ONE_CHANGE = TestStream().add([CHANGE])
START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
TABLE = bm.VersionedTable("1 hour")
PLAIN = START.key_by("team").window(bm.FixedWindows("1 minute")).accumulate(plays=Count())
ROW = {"ts": 1, "team": "red", "score": 3, "name": "ann", "tags": ["a"]}
ONE_ROW = TestStream().add([ROW])
FRAME = pd.DataFrame([ROW])


@attrs.frozen
class NoResultType(Accumulation):
    column: str = "score"

    def create(self):
        return 0

    def add(self, accumulator, value):
        return accumulator + value

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


@attrs.frozen
class OwnTrigger(Trigger):
    def should_fire(self, state, context):
        return True


class NoShouldFire(Trigger):
    pass


class NoAssign(bm.WindowOption):
    pass


@attrs.frozen
class OfColumns(bm.WindowOption):
    columns: Any

    def assign(self, timestamp_us, *values):
        yield timestamp_us, timestamp_us + 1


class Opaque(bm.WindowOption):
    def __init__(self):
        self.held = object()


class Seen(Trigger):
    def __init__(self):
        self.held = object()

    def should_fire(self, state, context):
        return True


class Held(Accumulation):
    def __init__(self):
        self.held = object()


# What is written, when it is refused, and what the message must hold: value, rule, fix.
AT_ONCE = [
    ("fixed size 0", lambda: bm.FixedWindows(0), ["FixedWindows(size)=0", "above 0"]),
    ("fixed size negative", lambda: bm.FixedWindows("-1 minute"), ["'-1 minute'", "above 0"]),
    ("size rounds to 0", lambda: bm.FixedWindows(1e-9), ["1e-09", "above 0"]),
    ("size is True", lambda: bm.FixedWindows(True), ["True", "'10 minutes'"]),  # noqa: FBT003
    ("size is nan", lambda: bm.FixedWindows(float("nan")), ["nan", "'10 minutes'"]),
    ("size in microseconds", lambda: bm.FixedWindows(10**20), ["146,000 years"]),
    ("size in months", lambda: bm.FixedWindows("1 month"), ["no fixed length", "CalendarWindows(months=...)"]),
    ("unknown unit", lambda: bm.FixedWindows("1 fortnight"), ["fortnight", "weeks, days"]),
    ("no unit", lambda: bm.FixedWindows("10"), ["'10'", "'10 minutes'"]),
    ("empty", lambda: bm.FixedWindows(""), ["''", "'10 minutes'"]),
    ("size None", lambda: bm.FixedWindows(None), ["None", "'10 minutes'"]),
    ("sliding period 0", lambda: bm.SlidingWindows("1 minute", 0), ["SlidingWindows(period)=0", "above 0"]),
    ("gap 0", lambda: bm.Sessions(timedelta()), ["Sessions(gap)", "above 0"]),
    (
        "within nothing",
        lambda: bm.Within(of="a"),
        ["Within(before='0 seconds', of='a')", "Within('10 minutes'", "after="],
    ),
    ("within negative", lambda: bm.Within(-1, of="a"), ["Within(before)=-1", "not be negative"]),
    ("within of 3", lambda: bm.Within(1, of=3), ["Within(of=3)", "name of an input"]),
    ("no calendar unit", bm.CalendarWindows, ["exactly one of days, weeks, months and years"]),
    ("two calendar units", lambda: bm.CalendarWindows(days=1, weeks=1), ["exactly one"]),
    ("0 days", lambda: bm.CalendarWindows(days=0), ["days=0", "at least 1"]),
    ("1.5 days", lambda: bm.CalendarWindows(days=1.5), ["days=1.5", "whole number"]),
    ("unknown zone", lambda: bm.CalendarWindows(days=1, timezone="Mars/Base"), ["'Mars/Base'", "'Europe/Paris'"]),
    ("zone offset", lambda: bm.CalendarWindows(days=1, timezone=3), ["timezone=3", "IANA"]),
    ("bad start", lambda: bm.CalendarWindows(days=1, starting="spring"), ["'spring'", "'2024-01-01'"]),
    ("count 0", lambda: AfterCount(0), ["AfterCount(n=0)", "at least 1", "Always()"]),
    ("count True", lambda: AfterCount(True), ["n=True", "whole number"]),  # noqa: FBT003
    ("count 1.5", lambda: AfterCount(1.5), ["n=1.5", "whole number"]),
    ("value of nothing", lambda: AfterValue("", at_least=1), ["AfterValue(name='')", "name of an accumulation"]),
    ("value without a bound", lambda: AfterValue("n"), ["one of at_least and at_most", "AfterValue('n', at_least=5)"]),
    ("value with two bounds", lambda: AfterValue("n", at_least=1, at_most=2), ["one of at_least and at_most"]),
    ("value as text", lambda: AfterValue("n", at_least="5"), ["AfterValue(at_least='5')", "a number"]),
    ("value as nan", lambda: AfterValue("n", at_most=float("nan")), ["AfterValue(at_most=nan)", "a number"]),
    ("negative delay", lambda: AfterProcessingTime("-1 second"), ["AfterProcessingTime(delay)", "not be negative"]),
    (
        "why of no key column",
        lambda: PLAIN.why(ONE_ROW, key={"x": 1}),
        ["why(key={'x': 1})", "'x' is no key column", "['team']"],
    ),
    ("why of another type of key", lambda: PLAIN.why(ONE_ROW, key=3), ["why(key={'team': 3})", "'team' is string"]),
    (
        "why of a value of no key",
        lambda: START.window(bm.FixedWindows(1)).accumulate(n=Count()).why(ONE_ROW, key=3),
        ["why(key=3)", "key columns are []"],
    ),
    (
        "why of a window of no time",
        lambda: PLAIN.why(ONE_ROW, window="noon"),
        ["why(window)", "'noon'", "aware datetime"],
    ),
    (
        "why of a window of no span",
        lambda: PLAIN.why(ONE_ROW, window=(60, 60)),
        ["window=(60, 60)", "ends before it begins"],
    ),
    (
        "why of a row by a time",
        lambda: PLAIN.window(bm.CountWindows(2)).why(ONE_ROW, window=0.5),
        ["why(window)=0.5", "number of a row"],
    ),
    ("inspect without a session", lambda: bm.inspect("/c", "/c"), ["inspect('/c', ...)", "SparkSession"]),
    ("windows of no span", lambda: PLAIN.state(TestStream()).windows(5, 5), ["windows(start=5, end=5)", "empty"]),
    ("windows of no time", lambda: PLAIN.state(TestStream()).windows("noon"), ["windows(start)", "'noon'"]),
    (
        "windows of no key",
        lambda: PLAIN.state(TestStream().add([{"ts": 1, "team": "a", "score": 1}])).windows(key={"x": 1}),
        ["key={'x': 1}", "no key column"],
    ),
    ("wait since what", lambda: AfterProcessingTime(1, since="middle"), ["since='middle'", "'first' or 'last'"]),
    ("aligned to nothing", lambda: AfterProcessingTime(aligned_to=0), ["AfterProcessingTime(aligned_to)", "above 0"]),
    ("offset alone", lambda: AfterProcessingTime(offset="1 second"), ["offset='1 second'", "aligned_to='1 minute'"]),
    ("early is text", lambda: AfterWatermark(early="nonsense"), ["AfterWatermark(early)='nonsense'", "trigger"]),
    ("late is a class", lambda: AfterWatermark(late=Always), ["AfterWatermark(late)=Always", "Always(...)"]),
    ("AfterAny()", AfterAny, ["AfterAny()", "at least one"]),
    ("AfterAll()", AfterAll, ["AfterAll()", "at least one"]),
    ("AfterEach()", AfterEach, ["AfterEach()", "at least one"]),
    ("AfterAny([..])", lambda: AfterAny([Always()]), ["one by one"]),
    ("AfterAny(3)", lambda: AfterAny(Always(), 3), ["AfterAny(#2)=3"]),
    ("Repeatedly(3)", lambda: Repeatedly(3), ["Repeatedly(trigger)=3"]),
    ("OrFinally main", lambda: OrFinally(None, Never()), ["OrFinally(main)=None"]),
    ("OrFinally until", lambda: OrFinally(Always(), "x"), ["OrFinally(finally_)='x'"]),
    ("negative watermark delay", lambda: bm.BoundedOutOfOrderness(-1), ["(delay)=-1", "not be negative"]),
    ("max_future 0", lambda: bm.BoundedOutOfOrderness(1, max_future=0), ["(max_future)=0", "above 0"]),
    ("idle_timeout 0", lambda: bm.BoundedOutOfOrderness(1, idle_timeout=0), ["(idle_timeout)=0", "above 0"]),
    ("negative lag", lambda: bm.ProcessingTimeLag(-1), ["(lag)=-1", "not be negative"]),
    ("punctuated by nothing", lambda: bm.Punctuated(""), ["''", "column"]),
    ("no event time column", lambda: bm.Pipeline().event_time(None, bm.Punctuated("w")), ["None", "column"]),
    ("no watermark", lambda: bm.Pipeline().event_time("ts", "30 seconds"), ["'30 seconds'", "BoundedOutOfOrderness"]),
    ("key 3", lambda: START.key_by(3), ["key_by(column)=3", "name of a column"]),
    ("key twice", lambda: START.key_by("a", "a"), ["twice"]),
    ("window text", lambda: START.window("1 minute"), ["'1 minute'", "FixedWindows"]),
    ("trigger text", lambda: START.trigger("always"), ["'always'", "AfterWatermark()"]),
    ("negative lateness", lambda: START.allowed_lateness("-1 hour"), ["'-1 hour'", "not be negative"]),
    ("mode text", lambda: START.accumulation_mode("discarding"), ["'discarding'", "AccumulationMode.DISCARDING"]),
    ("on_error", lambda: START.on_error("ignore"), ["on_error('ignore')", "'fail'", "'drop'"]),
    ("on_error, none", lambda: START.on_error(None), ["on_error(None)", "'fail'", "'drop'"]),
    ("on-time text", lambda: START.on_time_behavior("x"), ["'x'", "OnTimeBehavior"]),
    ("closing text", lambda: START.closing_behavior("x"), ["'x'", "ClosingBehavior"]),
    ("combiner text", lambda: START.timestamp_combiner("x"), ["'x'", "TimestampCombiner"]),
    ("retract_merged text", lambda: START.retract_merged("now"), ["'now'", "bm.AT_MERGE"]),
    ("window of an object", lambda: START.window(Opaque()), ["window(option)=Opaque(", "does not say what", "attrs"]),
    ("trigger of an object", lambda: START.trigger(AfterAny(Seen())), ["trigger(trigger)=AfterAny(Seen(", "attrs"]),
    ("sum of an object", lambda: START.accumulate(n=Count().of("a"), m=Held()), ["accumulate(m)=Held(", "attrs"]),
    ("where text", lambda: START.where("score > 3"), ["where(condition)='score > 3'", "pc.field('score') > 3"]),
    (
        "having function",
        lambda: PLAIN.having(len),
        ["having(condition)=<built-in function len>", "pyarrow.compute as pc"],
    ),
    ("with_columns number", lambda: PLAIN.with_columns(x=3), ["with_columns(x)=3", "expression of pyarrow's"]),
    ("accumulate text", lambda: START.accumulate(n="count"), ["accumulate(n)='count'", "Count()"]),
    (
        "accumulate without a name",
        lambda: START.accumulate(Count()),
        ["accumulate(Count(column=None))", "accumulate(n="],
    ),
    ("accumulate a class without a name", lambda: START.accumulate(Count), ["accumulate(Count())", "(n=Count())"]),
    ("deduplicate by nothing", START.deduplicate, ["deduplicate()", ".deduplicate('event_id')"]),
    ("deduplicate by 3", lambda: START.deduplicate(3), ["deduplicate(3)", "name of a column"]),
    ("deduplicate twice by one", lambda: START.deduplicate("a", "a"), ["'a' is there twice", "once"]),
    ("within 0", lambda: START.deduplicate("a", within=0), ["deduplicate('a'): within=0", "above 0"]),
    ("within text", lambda: START.deduplicate("a", within="a day"), ["within='a day'", "'10 minutes'"]),
    ("once a number", lambda: InnerJoin("a", "b", once=1), ["InnerJoin(once=1)", "True or False"]),
    (
        "keep rows of every pair",
        lambda: InnerJoin("a", "b", keep_rows={"a": 3}),
        ["InnerJoin(keep_rows={'a': 3})", "gives each pair once", "add once=True"],
    ),
    (
        "keep every pair for a time",
        lambda: FullOuterJoin("a", "b", keep_for={"a": 3}),
        ["FullOuterJoin(keep_for={'a': '3 seconds'})", "add once=True"],
    ),
    *[
        (
            f"keep {rows!r} rows",
            lambda rows=rows: InnerJoin("a", "b", once=True, keep_rows={"b": rows}),
            [f"InnerJoin(keep_rows={{'b': {rows!r}}}): {rows!r} rows of b", "at least 1", "leave it out"],
        )
        for rows in (0, -1, 2.0, True, "3", None)
    ],
    (
        "keep rows of no input",
        lambda: InnerJoin("a", "b", once=True, keep_rows={"c": 3}),
        ["InnerJoin(keep_rows={'c': 3}): 'c' is no input", "it has a, b"],
    ),
    (
        "keep for of no input",
        lambda: InnerJoin("a", "b", once=True, keep_for={"c": 3}),
        ["InnerJoin(keep_for={'c': '3 seconds'}): 'c' is no input", "it has a, b"],
    ),
    *[
        (
            f"keep for {kept!r}",
            lambda kept=kept: InnerJoin("a", "b", once=True, keep_for={"a": kept}),
            [f"InnerJoin(keep_for): a={kept!r}", "above 0"],
        )
        for kept in (0, -1, "0 seconds")
    ],
    (
        "keep for a while",
        lambda: InnerJoin("a", "b", once=True, keep_for={"a": "a while"}),
        ["InnerJoin(keep_for): a='a while'", "'10 minutes'"],
    ),
    ("keep 3 rows", lambda: InnerJoin("a", "b", once=True, keep_rows=3), ["keep_rows=3", "by input", "{'a': ...}"]),
    ("live as of noon", lambda: bm.live([], as_of="noon"), ["live(as_of)='noon'", "seconds"]),
    ("trigger that never says", lambda: START.trigger(NoShouldFire()), ["NoShouldFire()", "should_fire(self, state,"]),
    (
        "a part that never says",
        lambda: Repeatedly(NoShouldFire()),
        ["Repeatedly(trigger)=NoShouldFire()", "should_fire"],
    ),
    (
        "window that never says",
        lambda: START.window(NoAssign()),
        ["window(option)=NoAssign()", "assign(self, timestamp_us)"],
    ),
    (
        "window of one column, not several",
        lambda: START.window(OfColumns("gap")),
        ["window(option)=OfColumns(", "OfColumns.columns is 'gap'", "tuple of names", "columns = ('gap',)"],
    ),
    (
        "windowing of no names",
        lambda: START.window({"a": OfColumns((3,))}),
        ["'a'=OfColumns(", "columns is (3,)", "tuple of names", "columns = ('gap',)"],
    ),
    ("windowing that never says", lambda: START.window({"a": NoAssign()}), ["'a'=NoAssign()", "assign(self,"]),
    ("accumulate a class", lambda: START.accumulate(n=Count), ["accumulate(n)=Count:", "a class", "Count(...)"]),
    ("a class of windows", lambda: START.window(bm.Sessions), ["window(option)=Sessions:", "write Sessions(...)"]),
    (
        "a class of watermarks",
        lambda: bm.Pipeline().event_time("ts", bm.ProcessingTimeLag),
        ["event_time(watermark)=ProcessingTimeLag:", "write ProcessingTimeLag(...)"],
    ),
    ("column 3", lambda: Sum(3), ["3", "column"]),
    ("top 0", lambda: TopN(0, "x"), ["0", "at least 1"]),
    ("no probability", lambda: Quantiles("x", (1.5,)), ["1.5"]),
    ("rsd 0", lambda: ApproxCountDistinct("x", rsd=0), ["rsd"]),
    ("no distinct columns", CountDistinct, ["CountDistinct"]),
    ("reduce by text", lambda: Reduce("max", "x"), ["'max'"]),
    ("naive time", lambda: TestStream().advance_watermark_to(datetime(2024, 1, 1)), ["time zone", "tzinfo=UTC"]),  # noqa: DTZ001
    ("time is text", lambda: TestStream().advance_watermark_to("noon"), ["'noon'", "seconds since the epoch"]),
    ("watermark back", lambda: TestStream().advance_watermark_to(5).advance_watermark_to(4), ["5.0", "4.0"]),
    ("clock back", lambda: TestStream().advance_processing_time_to(-1), ["clock would go back"]),
    ("step's watermark back", lambda: TestStream().advance_watermark_to(5).step(watermark=4), ["5.0", "4.0"]),
    ("watermark back after a step", lambda: TestStream().step(watermark=5).advance_watermark_to(4), ["5.0", "4.0"]),
    ("step's clock back", lambda: TestStream().step(clock=5).step(clock=4), ["clock would go back", "5.0", "4.0"]),
    ("step's time is text", lambda: TestStream().step(clock="noon"), ["step(clock)='noon'", "seconds since the epoch"]),
    ("step's row is no dict", lambda: TestStream().step([3]), ["step(3)", "dict"]),
    ("step's rows are no rows", lambda: TestStream().step(3), ["step(3)", "step([{'ts': 1}])"]),
    ("row is no dict", lambda: TestStream().add([3]), ["add(3)", "dict"]),
    ("rows are no rows", lambda: TestStream().add(3), ["add(3)", "dicts"]),
    ("one row is no bundle", lambda: TestStream().add({"ts": 1}), ["add({'ts': 1})", "add([{'ts': 1}])"]),
    ("rows of pandas", lambda: TestStream().add(pd.DataFrame({"ts": [1]})), ["a DataFrame", "to_dict('records')"]),
    ("trace of a number", lambda: ONE_ROW.trace(3), ["trace(3)", "must be a pipeline"]),
    ("on_spark of a number", lambda: ONE_ROW.on_spark(None, 3), ["3", "must be a pipeline"]),
    ("on_spark without a session", lambda: ONE_ROW.on_spark(None, PLAIN), ["(None, ...)", "a SparkSession"]),
    ("script is a list", lambda: START.run([{"ts": 1}]), ["run([{'ts': 1}])", "TestStream().add("]),
]

# What is asked of a versioned table.
OF_TABLES = [
    ("negative history", lambda: bm.VersionedTable(-1), ["VersionedTable(history)=-1", "not be negative"]),
    ("no history", lambda: bm.VersionedTable(None), ["VersionedTable(history)=None", "'10 minutes'"]),
    (
        "negative lateness of a table",
        lambda: bm.VersionedTable(1, allowed_lateness="-1 second"),
        ["VersionedTable(allowed_lateness)='-1 second'", "not be negative"],
    ),
    ("segment 0", lambda: bm.VersionedTable(1, segment=0), ["VersionedTable(segment)=0", "above 0"]),
    ("path 3", lambda: bm.VersionedTable(1, path=3), ["VersionedTable(path=3)", "path of a file", "leave it out"]),
    ("path of bytes", lambda: bm.VersionedTable(1, path=b"x"), ["VersionedTable(path=b'x')", "path of a file"]),
    ("empty path", lambda: bm.VersionedTable(1, path=""), ["VersionedTable(path='')", "leave it out"]),
    ("path :memory:", lambda: bm.VersionedTable(1, path=":memory:"), ["path=':memory:'", "leave it out"]),
    ("null key put", lambda: TABLE.put(None, 1, 1), ["put(key=None)", "must not be None", "leave such rows out"]),
    ("null key deleted", lambda: TABLE.delete(None, 1), ["delete(key=None)", "must not be None"]),
    ("null key asked for", lambda: TABLE.get(None), ["get(key=None)", "must not be None"]),
    ("versions of a null key", lambda: TABLE.versions(None), ["versions(key=None)", "must not be None"]),
    (
        "null key loaded",
        lambda: TABLE.load([(None, 1, 1)]),
        ["load(changes): #0: load(key=None)", "leave such rows out"],
    ),
    ("key is a list", lambda: TABLE.get([1]), ["get(key=[1])", "a builtins.list", "tuples and frozensets"]),
    ("key holds a dict", lambda: TABLE.put((1, {}), 1, 1), ["put(key=(1, {}))", "a builtins.dict", "convert it"]),
    ("key of numpy", lambda: TABLE.get(np.int64(1)), ["get(key=", "a numpy.int64", "convert it"]),
    ("value 1j", lambda: TABLE.put("a", [1j], 1), ["put(value)", "a builtins.complex (1j)", "a value is None, bool"]),
    ("no time", lambda: TABLE.put("a", 1, None), ["put(ts)=None", "seconds since the epoch or an aware datetime"]),
    ("time is True", lambda: TABLE.put("a", 1, ts=True), ["put(ts)=True", "seconds since the epoch"]),
    ("naive time of a change", lambda: TABLE.delete("a", datetime(2024, 1, 1)), ["delete(ts)=", "tzinfo=UTC"]),  # noqa: DTZ001
    (
        "time in milliseconds",
        lambda: TABLE.get("a", 1.7e12),
        ["get(as_of)=1700000000000.0", "years 1 to 9999", "seconds"],
    ),
    ("time of no length", lambda: TABLE.get("a", 10**400), ["get(as_of)=1000", "292,000 years"]),
    ("since nan", lambda: TABLE.versions("a", float("nan")), ["versions(since)=nan", "seconds since the epoch"]),
    ("until text", lambda: TABLE.versions("a", until="noon"), ["versions(until)='noon'", "seconds since the epoch"]),
    (
        "since after until",
        lambda: TABLE.versions("a", 6, 5),
        ["versions(since=6, until=5)", "must not be after", "swap"],
    ),
    ("advance to infinity", lambda: TABLE.advance_to(float("inf")), ["advance_to(ts)=inf", "seconds since the epoch"]),
    ("whole table at noon", lambda: TABLE.to_arrow("noon"), ["to_arrow(as_of)='noon'", "seconds since the epoch"]),
    ("load 3", lambda: TABLE.load(3), ["load(changes=3)", "triples (key, value, ts)"]),
    ("load pairs", lambda: TABLE.load([("a", 1, 1), ("a", 1)]), ["#1 is ('a', 1)", "triple (key, value, ts)"]),
    ("load numbers", lambda: TABLE.load([3]), ["#0 is 3", "triple (key, value, ts)"]),
    (
        "Version(None)",
        lambda: bm.Version(None, EPOCH, None),
        ["Version(value=None)", "has a value", "get() gives None"],
    ),
]


@attrs.frozen
class OwnWindows(bm.WindowOption):
    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + 1


@attrs.frozen
class OwnMergingWindows(OwnWindows):
    merging = True


@attrs.frozen
class Twice(bm.FixedWindows):
    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + 1
        yield timestamp_us, timestamp_us + 2


RETRACTING = (
    START.key_by("k").window(bm.FixedWindows(1)).trigger(Always()).accumulating_and_retracting().accumulate(n=Count())
)
MEETING = bm.merge(a=START.key_by("k"), b=START.key_by("k")).accumulate(n=InnerJoin("a", "b"))

# Pipelines whose parts are fine but do not go together: refused when run, applied or explained.
TOGETHER = [
    ("nothing said", bm.Pipeline(), ["no event time", ".event_time("]),
    ("no window", START.accumulate(n=Count()), ["no window", "bm.GlobalWindow()"]),
    ("no accumulation", START.window(bm.GlobalWindow()), ["nothing to accumulate", "Count()"]),
    ("no mode", PLAIN.trigger(Always()), ["Always()", ".discarding()"]),
    ("no mode, lateness", PLAIN.allowed_lateness(5), ["5 seconds", ".accumulating()"]),
    ("loses rows: count", PLAIN.trigger(AfterCount(1)).discarding(), ["AfterCount(n=1)", "Repeatedly(...)"]),
    ("loses rows: value", PLAIN.trigger(AfterValue("plays", at_least=2)).discarding(), ["AfterValue(", "may finish"]),
    (
        "value of no accumulation",
        PLAIN.trigger(Repeatedly(AfterValue("n", at_least=2))).discarding(),
        ["looks at the value of 'n'", "there are ['plays']"],
    ),
    ("loses rows: any", PLAIN.trigger(AfterAny(Always())).discarding(), ["may finish", "allow_data_loss=True"]),
    ("loses rows: all", PLAIN.trigger(AfterAll(Always())).discarding(), ["may finish"]),
    ("loses rows: delay", PLAIN.trigger(AfterProcessingTime(1)).discarding(), ["may finish"]),
    ("loses rows: each", PLAIN.trigger(AfterEach(Always(), AfterCount(1))).discarding(), ["may finish"]),
    ("loses rows: finally", PLAIN.trigger(OrFinally(Always(), AfterCount(9))).discarding(), ["may finish"]),
    ("loses rows: own", PLAIN.trigger(OwnTrigger()).discarding(), ["may finish"]),
    (
        "loses late rows",
        PLAIN.trigger(AfterWatermark(early=Always())).discarding().allowed_lateness(5),
        ["a late trigger", "5 seconds"],
    ),
    ("only_updated, discarding", PLAIN.discarding().only_updated_panes(), ["only_updated_panes", "accumulating()"]),
    ("retract_merged, discarding", PLAIN.discarding().retract_merged(bm.AT_MERGE), ["accumulating_and_retracting()"]),
    (
        "retract_merged, fixed windows",
        PLAIN.accumulating_and_retracting().retract_merged(bm.WITH_NEXT_PANE),
        ["FixedWindows", "bm.Sessions"],
    ),
    (
        "a value called window",
        PLAIN.accumulate(window=Count()),
        ["'window'", "the output has a column of this name", "choose another"],
    ),
    (
        "a value called like the key",
        PLAIN.accumulate(team=Count()),
        ["accumulate(team=...)", "is a key column too", "choose another"],
    ),
    (
        "a computed column called like the key",
        PLAIN.with_columns(team=pc.field("plays")),
        ["with_columns(team=...)", "is a key column too", "choose another"],
    ),
    (
        "deduplicate and where without windows",
        START.deduplicate("id", within=1).where(pc.field("id") > 1),
        ["deduplicate('id', within='1 second') without windows", "filter the DataFrame", ".then(bm.Pipeline()...)"],
    ),
    ("deduplicate without windows", START.deduplicate("id"), ["deduplicate('id') without windows", "within='1 hour'"]),
    (
        "deduplicate of a changelog",
        bm.Pipeline().from_changelog().event_time("ts", bm.BoundedOutOfOrderness(0)).deduplicate("id", within=1),
        ["deduplicate('id', within='1 second')", "taken back", "a table holds each row once"],
    ),
    (
        "deduplicate of a merge",
        bm.merge(a=START.key_by("k"), b=START.key_by("k"))
        .window(bm.FixedWindows(9))
        .deduplicate("id")
        .accumulate(n=Count()),
        ["deduplicate('id') of a merge", "of an input", "bm.merge(orders="],
    ),
    (
        "within of one input",
        PLAIN.window(bm.Within(1, of="a")),
        ["there is no input 'a'", "one input", "bm.merge(...)"],
    ),
    ("within of no input", MEETING.window(bm.Within(1, of="c")), ["there is no input 'c'", "the merge has a, b"]),
    (
        "a count within",
        MEETING.window(bm.Within(1, of="a")).accumulate(n=Count()),
        ["accumulate(n=Count(column=None)) in Within(", "accumulate a join of a", "InnerJoin('a', 'b')"],
    ),
    (
        "within keeps both sides",
        MEETING.window(bm.Within(1, of="a")).accumulate(n=FullOuterJoin("a", "b")),
        ["a row of a is in two windows", "window(Within(before='0 seconds', of='b', after='1 second'))"],
    ),
    (
        "within among windowings",
        MEETING.window({"x": bm.Within(1, of="a"), "y": bm.FixedWindows(1)}).accumulate(n=InnerJoin("a", "b")),
        ["not one of several windowings", "merge of its own"],
    ),
    *[
        (
            f"once, {mode.value}",
            MEETING.window(bm.FixedWindows(1)).accumulation_mode(mode).accumulate(n=InnerJoin("a", "b", once=True)),
            ["InnerJoin(left='a', right='b', once=True)", repr(mode), "say .discarding()"],
        )
        for mode in (bm.AccumulationMode.ACCUMULATING, bm.AccumulationMode.ACCUMULATING_AND_RETRACTING)
    ],
    (
        "once, outer, sliding windows",
        MEETING.window(bm.SlidingWindows(2, 1)).discarding().accumulate(n=FullOuterJoin("a", "b", once=True)),
        ["FullOuterJoin(", "SlidingWindows(", "several windows", "use InnerJoin, or windows that do not overlap"],
    ),
    (
        "once, outer, within",
        MEETING.window(bm.Within(1, of="a")).discarding().accumulate(n=RightOuterJoin("a", "b", once=True)),
        ["RightOuterJoin(", "Within(", "several windows", "use InnerJoin"],
    ),
    (
        "once, outer, among windowings",
        MEETING.window({"x": bm.SlidingWindows(2, 1), "y": bm.FixedWindows(1)})
        .discarding()
        .accumulate(n=FullOuterJoin("a", "b", once=True)),
        ["windowing 'x'", "FullOuterJoin(", "several windows"],
    ),
    (
        "once, outer, own windows",
        MEETING.window(OwnWindows()).discarding().accumulate(n=FullOuterJoin("a", "b", once=True)),
        ["several windows", "say overlaps = False in OwnWindows"],
    ),
    (
        "once, outer, windows that are assigned otherwise",
        MEETING.window(Twice(9)).discarding().accumulate(n=FullOuterJoin("a", "b", once=True)),
        ["several windows", "say overlaps = False in Twice"],
    ),
    (
        "once, own windows that merge",
        MEETING.window(OwnMergingWindows()).discarding().accumulate(n=InnerJoin("a", "b", once=True)),
        ["several windows that become one", "say overlaps = False in OwnMergingWindows"],
    ),
    (
        "once of rows that are taken back",
        bm.merge(a=RETRACTING, b=RETRACTING).accumulate(n=InnerJoin("a", "b", once=True)),
        ["InnerJoin(", "over rows that are taken back", "leave once=True out"],
    ),
    ("no column", PLAIN.accumulate(n=Range(())), ["Range(column=())", "column is ()", "None for the whole row"]),
    ("columns 3", PLAIN.accumulate(n=Range(("a", 3))), ["column is ('a', 3)", "several names"]),
    ("column 3", PLAIN.accumulate(n=Range(3)), ["Range(column=3)", "column is 3", "name of a column"]),
    ("columns ''", PLAIN.accumulate(n=Range(("a", ""))), ["column is ('a', '')", "several names"]),
    ("no result type", PLAIN.accumulate(n=NoResultType()), ["NoResultType", "result_type"]),
    (
        "fold of sessions without merge",
        PLAIN.window(bm.Sessions(1)).accumulate(n=Fold(0, max, "score")),
        ["Fold", "merge="],
    ),
]

# What only the columns show.
COLUMNS = [
    ("key missing", PLAIN.key_by("player"), ["key_by('player')", "'team'"]),
    ("value missing", PLAIN.accumulate(s=Sum("points")), ["Sum", "'points'", "'score'"]),
    ("event time missing", PLAIN.event_time("when", bm.BoundedOutOfOrderness(0)), ["'when'", "'ts'"]),
    ("key is a list", PLAIN.key_by("tags"), ["key_by('tags')", "cast"]),
    ("id missing", PLAIN.deduplicate("id"), ["deduplicate('id')", "no column 'id'", "'score'"]),
    ("id of rows missing", START.deduplicate("id", within=1), ["deduplicate('id', within='1 second')", "'score'"]),
    ("id is a list", PLAIN.deduplicate("tags"), ["deduplicate('tags')", "'tags' is list", "cast it to a string"]),
    ("key of rows is a list", START.key_by("tags").deduplicate("score", within=1), ["key_by('tags')", "cast"]),
    ("where missing", PLAIN.where(pc.field("points") > 3), ["where((points > 3))", "No match", "score int64"]),
    ("where a number", PLAIN.where(pc.field("score") + 1), ["where(", "is int64", "must be a boolean"]),
    ("having missing", PLAIN.having(pc.field("score") > 3), ["having((score > 3))", "No match", "plays int64"]),
    (
        "with_columns of text",
        PLAIN.with_columns(x=pc.field("team") + 1),
        ["with_columns(x=", "no kernel", "team string"],
    ),
    (
        "value that is no number",
        PLAIN.accumulate(m=Max("name")).trigger(Repeatedly(AfterValue("m", at_least=2))).discarding(),
        ["m=Max(column='name')", "string", "must be a number"],
    ),
    ("sum of text", PLAIN.accumulate(s=Sum("name")), ["Sum", "name", "string"]),
    ("mean of text", PLAIN.accumulate(s=Mean("name")), ["Mean", "string"]),
    ("stddev of a list", PLAIN.accumulate(s=StdDev("tags")), ["StdDev", "list"]),
    ("quantiles of text", PLAIN.accumulate(s=Quantiles("name")), ["Quantiles", "string"]),
]

CHANGES = START.key_by("cur")
RATES = CHANGES.versions("1 day")
ORDERS = bm.Pipeline().event_time("at", bm.BoundedOutOfOrderness(0))
ONE_ORDER = TestStream().add([CHANGE], input="rates")
PLAIN_STAGE = bm.Pipeline().window(bm.GlobalWindow()).accumulate(n=Count())
RETRACTING = PLAIN.trigger(AfterWatermark(late=Always())).allowed_lateness(5).accumulating_and_retracting()
TIMELESS = PLAIN.window(bm.GlobalWindow()).trigger(Always()).accumulating()


def joined(orders=ORDERS, rates=RATES, **options):
    return bm.as_of_join(orders=orders, rates=rates, **options)


def join_of(**order):
    return joined().run(ONE_ORDER.add([{"at": 1, "cur": "EUR", **order}], input="orders"))


# Tables and joins with them: the error, what is written, and what the message must hold.
TABLES = [
    ("history negative", bm.OptionError, lambda: CHANGES.versions(-1), ["versions(history)=-1", "not be negative"]),
    ("history is text", bm.OptionError, lambda: CHANGES.versions("a while"), ["'a while'", "'10 minutes'"]),
    (
        "lateness negative",
        bm.OptionError,
        lambda: CHANGES.versions(5, allowed_lateness="-1 second"),
        ["versions(allowed_lateness)='-1 second'", "not be negative"],
    ),
    (
        "lateness above the history",
        bm.PipelineError,
        lambda: CHANGES.versions("1 hour", allowed_lateness="2 hours"),
        ["'2 hours'", "'1 hour'", "forgotten", "longer history"],
    ),
    ("values is text", bm.OptionError, lambda: CHANGES.versions(5, values="rate"), ["values='rate'", "['rate']"]),
    ("values is a number", bm.OptionError, lambda: CHANGES.versions(5, values=3), ["values=3", "['rate']"]),
    (
        "once, suppressed",
        bm.PipelineError,
        lambda: (
            MEETING.window(bm.FixedWindows(1))
            .accumulate(n=InnerJoin("a", "b", once=True))
            .suppress(bm.UntilWindowCloses())
        ),
        ["suppress(UntilWindowCloses(", "each pair comes once", "leave the suppress or once=True out"],
    ),
    ("value twice", bm.OptionError, lambda: CHANGES.versions(5, values=["a", "a"]), ["['a', 'a']", "twice", "once"]),
    ("deleted is a number", bm.OptionError, lambda: CHANGES.versions(5, deleted=3), ["deleted=3", "name of a column"]),
    (
        "sequence is empty",
        bm.OptionError,
        lambda: CHANGES.versions(5, sequence_by=""),
        ["sequence_by=''", "name of a column"],
    ),
    ("grace negative", bm.OptionError, lambda: joined(grace=-1), ["as_of_join(grace)=-1", "not be negative"]),
    (
        "tolerance negative",
        bm.OptionError,
        lambda: joined(tolerance="-1 hour"),
        ["as_of_join(tolerance)='-1 hour'", "not be negative"],
    ),
    ("unknown how", bm.OptionError, lambda: joined(how="outer"), ["how='outer'", "'inner'", "'left'"]),
    ("wait_for is text", bm.OptionError, lambda: joined(wait_for="left"), ["wait_for='left'", "bm.LEFT_INPUT"]),
    (
        "grace above the history",
        bm.PipelineError,
        lambda: joined(grace="2 days").explain(),
        ["grace='2 days'", "'1 day'", "longer history"],
    ),
    ("table without versions", bm.PipelineError, lambda: joined(rates=CHANGES), ["rates=", ".versions('1 day')"]),
    ("table is a number", bm.PipelineError, lambda: joined(rates=3), ["rates=3", ".versions('1 day')"]),
    ("left is a number", bm.PipelineError, lambda: joined(3), ["orders=3", "must be a pipeline"]),
    (
        "inputs without a name",
        bm.PipelineError,
        lambda: bm.as_of_join(ORDERS, RATES),
        ["2 inputs without a name", "as_of_join(orders="],
    ),
    ("merge without a name", bm.PipelineError, lambda: bm.merge(ORDERS, ORDERS), ["2 inputs", "merge(orders=..."]),
    (
        "where of a merge",
        bm.PipelineError,
        lambda: bm.merge(a=START, b=START).where(pc.field("score") > 3),
        ["where((score > 3)) of a merge", "bm.merge(orders="],
    ),
    (
        "where of an as-of join",
        bm.PipelineError,
        lambda: joined().where(pc.field("rate") > 3),
        ["where((rate > 3)) of an as-of join", "of an input", ".then(bm.Pipeline().where("],
    ),
    (
        "where of an input of a column that is not there",
        bm.ColumnError,
        lambda: joined(ORDERS.where(pc.field("no") > 3)).run(ONE_ORDER.add([{"at": 1, "cur": "a"}], input="orders")),
        ["orders: where((no > 3))", "No match", "the columns are at"],
    ),
    (
        "having of versions",
        bm.PipelineError,
        lambda: RATES.having(pc.field("rate") > 3),
        ["having(...) after versions(...)", ".then("],
    ),
    (
        "having after a suppress",
        bm.PipelineError,
        lambda: RETRACTING.suppress(bm.UntilWindowCloses()).having(pc.field("plays") > 3),
        ["having(...) after suppress(...)", "say it before"],
    ),
    (
        "deduplicate twice",
        bm.PipelineError,
        lambda: PLAIN.deduplicate("a").deduplicate("b"),
        ["deduplicate('b')", "already", "in one call"],
    ),
    (
        "deduplicate of panes without timestamp",
        bm.PipelineError,
        lambda: TIMELESS.then(bm.Pipeline().deduplicate("plays", within=9)),
        ["deduplicate('plays', within='9 seconds')", "without timestamp", "timestamp_combiner"],
    ),
    (
        "deduplicate of what comes too late to be known",
        bm.PipelineError,
        lambda: (
            RETRACTING.accumulating()
            .suppress(bm.UntilWindowCloses())
            .then(bm.Pipeline().deduplicate("plays", within=5))
        ),
        ["deduplicate('plays', within='5 seconds')", "5 seconds past its time", "longer within"],
    ),
    (
        "deduplicate over retractions",
        bm.PipelineError,
        lambda: RETRACTING.then(
            bm.Pipeline().window(bm.FixedWindows(9)).deduplicate("plays").accumulate(n=Count()).accumulating()
        ),
        ["deduplicate('plays')", "taken back", "stage before"],
    ),
    (
        "deduplicate of versions",
        bm.PipelineError,
        lambda: RATES.deduplicate("rate", within=1),
        ["deduplicate(...) after versions(...)", ".then("],
    ),
    ("panes of a list", bm.ColumnError, lambda: bm.panes([1]), ["panes([1])", "must be a DataFrame"]),
    ("a table of pandas", bm.PipelineError, lambda: PLAIN.apply(FRAME), ["pandas.DataFrame", "createDataFrame("]),
    ("rows of a list", bm.PipelineError, lambda: PLAIN.apply([ROW]), ["apply([{", "a DataFrame of Spark"]),
    ("merge of one frame", bm.PipelineError, lambda: bm.merge(a=START, b=START).apply(3), ["name its inputs", "a=..."]),
    ("one input", bm.PipelineError, lambda: bm.as_of_join(rates=RATES), ["(rates)", "two inputs", "orders=..."]),
    (
        "three inputs",
        bm.PipelineError,
        lambda: bm.as_of_join(a=ORDERS, b=RATES, c=RATES),
        ["(a, b, c)", "two inputs", "join a join"],
    ),
    (
        "latest versions only",
        bm.PipelineError,
        lambda: joined(rates=CHANGES.versions(5, latest_only=True)).explain(),
        ["rates=", "what was valid before", "leave latest_only out"],
    ),
    (
        "tolerance and only_updated",
        bm.PipelineError,
        lambda: joined(rates=CHANGES.versions(5, only_updated=True), tolerance=3).explain(),
        ["tolerance='3 seconds'", "only_updated", "leave one of them out"],
    ),
    (
        "accumulating",
        bm.PipelineError,
        lambda: joined().accumulating(),
        ["accumulating()", "beside the wrong one", "accumulating_and_retracting()"],
    ),
    ("windows before", bm.PipelineError, lambda: PLAIN.versions(5), ["versions('5 seconds')", "leave the rest out"]),
    (
        "a trigger before",
        bm.PipelineError,
        lambda: CHANGES.trigger(Always()).versions(5),
        ["versions('5 seconds')", "key_by and where only", "first.then("],
    ),
    (
        "a window after versions",
        bm.PipelineError,
        lambda: RATES.window(bm.FixedWindows(5)),
        ["window(...) after versions(...)", "in no window", ".then("],
    ),
    (
        "a trigger after a join",
        bm.PipelineError,
        lambda: joined().trigger(Always()),
        ["trigger(...) of an as-of join", "fires by itself", ".then("],
    ),
    (
        "having of an as-of join",
        bm.PipelineError,
        lambda: joined().having(pc.field("rate") > 3),
        ["having(...) of an as-of join", "df.filter(...)", ".then(bm.Pipeline().where(...)...)"],
    ),
    (
        "deduplicate of an as-of join",
        bm.PipelineError,
        lambda: joined().deduplicate("rate", within=1),
        ["deduplicate(...) of an as-of join", "deduplicate the rows before", ".then(...)"],
    ),
    (
        "keys after a join",
        bm.PipelineError,
        lambda: joined().key_by("cur"),
        ["key_by('cur',) of an as-of join", "on=...", ".then("],
    ),
    (
        "discarding over a left that retracts",
        bm.PipelineError,
        lambda: joined(RETRACTING, on={"team": "cur"}).explain(),
        ["discarding over orders", ".accumulating_and_retracting()"],
    ),
    (
        "a table of panes without timestamp",
        bm.PipelineError,
        lambda: TIMELESS.then(bm.Pipeline().key_by("team").versions(5)),
        ["versions('5 seconds')", "when would they be valid?", "TimestampCombiner.LATEST"],
    ),
    (
        "a left of panes without timestamp",
        bm.PipelineError,
        lambda: joined(TIMELESS, on={"team": "cur"}).explain(),
        ["orders=", "no time to be joined at", "timestamp_combiner"],
    ),
    (
        "a value called like a column that comes out",
        bm.PipelineError,
        lambda: CHANGES.versions(5, values=["Pane"]),
        ["'Pane'", "the output has a column of this name", "rename yours"],
    ),
    (
        "a key called like a column that comes out",
        bm.PipelineError,
        lambda: START.key_by("valid_to").versions(5),
        ["'valid_to'", "the output has a column of this name", "rename yours"],
    ),
    (
        "a key among the values",
        bm.PipelineError,
        lambda: CHANGES.versions(5, values=["cur"]),
        ["'cur' is a key column", "leave it out"],
    ),
    (
        "a column called like one that comes out",
        bm.ColumnError,
        lambda: RATES.run(TestStream().add([{**CHANGE, "window": 3}])),
        ["'window'", "rename yours"],
    ),
    (
        "a table called like a column that comes out",
        bm.PipelineError,
        lambda: bm.as_of_join(orders=ORDERS, window=RATES).explain(),
        ["window=", "the output has a column of this name", "otherwise"],
    ),
    (
        "an order's column called like the table",
        bm.ColumnError,
        lambda: join_of(Rates=3),
        ["orders=", "'Rates'", "rename yours"],
    ),
    (
        "an order's column called like one that comes out",
        bm.ColumnError,
        lambda: join_of(pane=3),
        ["orders=", "'pane'", "rename yours"],
    ),
    (
        "an input called initial",
        bm.PipelineError,
        lambda: bm.as_of_join(initial=ORDERS, b=RATES),
        ["initial", "choose"],
    ),
    (
        "versions held until windows close",
        bm.PipelineError,
        lambda: RATES.suppress(bm.UntilWindowCloses()),
        ["suppress(UntilWindowCloses(", "have no end", ".then("],
    ),
    (
        "joined rows held",
        bm.PipelineError,
        lambda: joined().suppress(bm.UntilTimeLimit(5, clock="event")),
        ["suppress(UntilTimeLimit(", "have no end", ".then("],
    ),
    (
        "versions of changes",
        bm.PipelineError,
        lambda: CHANGES.changes().versions(5),
        ["versions('5 seconds')", "leave the rest out"],
    ),
    ("a left with keys", bm.PipelineError, lambda: joined(CHANGES), ["orders=", "event_time only", "on=..."]),
    ("a left without a time", bm.PipelineError, lambda: joined(bm.Pipeline()), ["orders=", ".event_time("]),
    (
        "a left that is half a pipeline",
        bm.PipelineError,
        lambda: joined(CHANGES.window(bm.FixedWindows(5))),
        ["orders=", "accumulations", ".then("],
    ),
    (
        "a table without a time",
        bm.PipelineError,
        lambda: joined(rates=bm.Pipeline().key_by("cur").versions(5)),
        ["rates=", ".event_time("],
    ),
    (
        "a table that lists what it drops",
        bm.PipelineError,
        lambda: joined(rates=RATES.with_dropped()),
        ["rates=", "with_dropped()", "say it of the join"],
    ),
    (
        "on names another key",
        bm.ColumnError,
        lambda: joined(on={"paid": "currency"}),
        ["on={'paid': 'currency'}", "['cur']", "on={'my_cur': 'cur'}"],
    ),
    ("on names too many", bm.ColumnError, lambda: joined(on=["cur", "x"]), ["on=['cur', 'x']", "['cur']"]),
    ("on names nothing", bm.ColumnError, lambda: joined(on=[]), ["on=[]", "['cur']"]),
    ("on is a number", bm.ColumnError, lambda: joined(on=3), ["on=3", "{left column: key column}"]),
    (
        "on names a column that is not there",
        bm.ColumnError,
        lambda: joined(on={"paid": "cur"}).run(ONE_ORDER.add([{"at": 1}], input="orders")),
        ["on='paid'", "no column 'paid'", "['at']"],
    ),
    (
        "keys of two types",
        bm.ColumnError,
        lambda: join_of(cur=3),
        ["orders's 'cur' is int64", "rates's 'cur' is string", "cast one of them"],
    ),
    (
        "deleted is no boolean",
        bm.ColumnError,
        lambda: CHANGES.versions(5, deleted="rate").run(ONE_CHANGE),
        ["deleted='rate'", "int64", "must be a boolean"],
    ),
    (
        "a value that is not there",
        bm.ColumnError,
        lambda: CHANGES.versions(5, values=["price"]).run(ONE_CHANGE),
        ["values=['price']", "no column 'price'", "'rate'"],
    ),
    ("a key is a list", bm.ColumnError, lambda: START.key_by("tags").versions(5).run(ONE_CHANGE), ["'tags'", "cast"]),
    (
        "a join after a stage",
        bm.PipelineError,
        lambda: PLAIN.then(joined()),
        ["it takes several inputs", "bm.as_of_join(name=first"],
    ),
    (
        "discarding after versions",
        bm.PipelineError,
        lambda: RATES.then(PLAIN_STAGE.trigger(Always()).discarding()),
        ["discarding over a stage that retracts", "accumulating()"],
    ),
    ("initial is a number", bm.ScriptError, lambda: RATES.run(ONE_CHANGE, initial=3), ["initial=3", "list of rows"]),
    ("initial of no table", bm.PipelineError, lambda: PLAIN.run(ONE_ROW, initial=[ROW]), ["initial=", ".versions("]),
    (
        "initial of another table",
        bm.PipelineError,
        lambda: joined().run(ONE_ORDER, initial={"prices": [CHANGE]}),
        ["{'prices': ...}", "['rates']"],
    ),
    (
        "initial of one of two tables",
        bm.PipelineError,
        lambda: bm.as_of_join(priced=joined(), users=RATES).run(ONE_ORDER, initial=[CHANGE]),
        ["['rates', 'users']", "initial={'rates': ...}"],
    ),
    ("why of no windows", bm.PipelineError, lambda: RATES.why(ONE_CHANGE), ["why()", "no stage has windows"]),
    (
        "why of another stage",
        bm.PipelineError,
        lambda: PLAIN.why(ONE_ROW, stage=2),
        ["why(stage=2)", "stages with windows are 1"],
    ),
    (
        "why of no script",
        bm.ScriptError,
        lambda: PLAIN.why("/checkpoint"),
        ["why('/checkpoint')", "bm.inspect(spark, checkpoint)"],
    ),
    (
        "inspect with no pipeline",
        bm.PipelineError,
        lambda: bm.inspect(None, "/c", 3),
        ["inspect(spark, checkpoint, 3)", "left out"],
    ),
    ("versions of no table", bm.PipelineError, lambda: PLAIN.state(ONE_ROW).versions(), ["no versioned table", "say"]),
    ("versions of another", bm.PipelineError, lambda: RATES.state(ONE_CHANGE).versions("x"), ["'x'", "leave it out"]),
    (
        "versions as of too early a time",
        bm.OptionError,
        lambda: RATES.state(ONE_CHANGE.advance_watermark_to(10**6)).versions(as_of=5),
        ["as_of=5", "1970-01-11 13:46:40", "longer history"],
    ),
]


def refused(error, call, fragments):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    for fragment in fragments:
        assert fragment in message, f"{fragment!r} is not in: {message}"


@pytest.mark.parametrize(("call", "fragments"), [row[1:] for row in AT_ONCE], ids=[row[0] for row in AT_ONCE])
def test_a_wrong_option_is_refused_where_it_is_written(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


@pytest.mark.parametrize(("call", "fragments"), [row[1:] for row in OF_TABLES], ids=[row[0] for row in OF_TABLES])
def test_what_a_table_cannot_take_is_refused_and_changes_nothing(call, fragments):
    refused(bm.OptionError, call, fragments)
    assert (TABLE.stream_time, TABLE.dropped, TABLE.to_arrow().num_rows) == (None, 0, 0)


def test_a_whole_table_before_oldest_is_refused():
    with bm.VersionedTable("1 minute") as table:
        table.put("a", 1, 100)
        refused(
            bm.OptionError,
            lambda: table.to_arrow(39.5),
            ["to_arrow(as_of=39.5)", "before oldest, 1970-01-01T00:00:40+00:00", "ask for that time or a later one"],
        )


def test_a_table_that_takes_writes_later_than_it_remembers_is_refused():
    refused(
        bm.PipelineError,
        lambda: bm.VersionedTable("1 minute", allowed_lateness="2 minutes"),
        ["VersionedTable(allowed_lateness='2 minutes')", "above history '1 minute'", "give a longer history"],
    )


@pytest.mark.parametrize(("pipeline", "fragments"), [row[1:] for row in TOGETHER], ids=[row[0] for row in TOGETHER])
def test_options_that_do_not_go_together_are_refused_before_anything_runs(pipeline, fragments):
    refused(bm.PipelineError, pipeline.explain, fragments)
    refused(bm.PipelineError, lambda: pipeline.run(TestStream()), fragments)


@pytest.mark.parametrize(("pipeline", "fragments"), [row[1:] for row in COLUMNS], ids=[row[0] for row in COLUMNS])
def test_a_column_that_is_not_there_or_of_the_wrong_type_is_refused(pipeline, fragments):
    refused(bm.ColumnError, lambda: pipeline.run(ONE_ROW), fragments)


@pytest.mark.parametrize(("error", "call", "fragments"), [row[1:] for row in TABLES], ids=[row[0] for row in TABLES])
def test_a_table_or_a_join_that_cannot_be_is_refused(error, call, fragments):
    refused(error, call, fragments)


RUNS = [
    ("a longer history", joined(rates=CHANGES.versions("2 days")), ["history '1 day'", "'2 days'", "only shrink"]),
    (
        "a longer lateness",
        joined(rates=CHANGES.versions("1 day")),
        ["allowed_lateness '1 hour'", "'1 day'", "only shrink"],
    ),
    ("a tolerance", joined(tolerance=5), ["tolerance None", "tolerance '5 seconds'", "keep the old one"]),
    ("a left join", joined(how="left"), ["how inner", "how left", "keep the old one"]),
    ("another mode", joined().accumulating_and_retracting(), ["mode discarding", "keep the old one"]),
    ("other values", joined(rates=CHANGES.versions(5, values=[])), ["values ['rate: int64']", "values []"]),
]


def open_shard(pipeline, store):
    table = pa.schema([("ts", pa.timestamp("us")), ("cur", pa.string()), ("rate", pa.int64())])
    orders = pa.schema([("at", pa.timestamp("us")), ("cur", pa.string())])
    return pipeline.flow.bind({"rates": table, "orders": orders}, shards=1).operator.open(store)


COUNTED_AT_ONCE = [
    (lambda: bm.CountWindows(0), ["CountWindows(size=0)", "whole number of rows"]),
    (lambda: bm.CountWindows(2.5), ["CountWindows(size=2.5)"]),
    (lambda: bm.CountWindows(size=True), ["CountWindows(size=True)"]),
    (lambda: bm.CountWindows("10 minutes"), ["CountWindows(size='10 minutes')", "whole number of rows"]),
    (lambda: bm.CountWindows(3, 0), ["CountWindows(period=0)"]),
    (lambda: bm.CountWindows(3, offset=0.5), ["CountWindows(offset=0.5)"]),
    (lambda: bm.CountWindows(3, over="all"), ["CountWindows(over='all')", "'key' or 'stream'"]),
    (lambda: bm.CountWindows(3, order_by=3), ["CountWindows(order_by=", "name of a column"]),
    (lambda: bm.CountWindows(3, order_by=""), ["CountWindows(order_by="]),
    (lambda: bm.CountWindows(3, numbered_by=["a"]), ["CountWindows(numbered_by=['a'])"]),
    (
        lambda: bm.CountWindows(3, order_by="a", numbered_by="b"),
        ["order_by=('a',), numbered_by='b'", "say one of the two"],
    ),
    (lambda: bm.CountWindows(3, delay=1), ["delay=1", "say numbered_by too"]),
    (lambda: bm.CountWindows(3, numbered_by="a", delay=-1), ["CountWindows(delay=-1)"]),
    (lambda: bm.CountWindows(3, idle=0), ["CountWindows(idle)=0", "above 0"]),
    (lambda: bm.CountWindows(3, over="stream", idle=5), ["idle", "over='stream'"]),
    (lambda: bm.CountWindows(2**41), ["CountWindows(size=2199023255552)", "2^40"]),
    (lambda: bm.CountSessions(-1), ["CountSessions(others=-1)"]),
    (lambda: bm.CountSessions(2, delay=1), ["CountSessions(delay=1)", "numbered_by"]),
    (lambda: START.allowed_lateness(rows=-1), ["allowed_lateness(rows=-1)"]),
    (lambda: START.allowed_lateness(rows="5"), ["rows='5'"]),
    (lambda: START.allowed_lateness("1 hour", rows=5), ["'1 hour'", "rows=5"]),
    (START.retain, ["retain()", "retain(windows=100)"]),
    (lambda: START.retain(windows=0), ["retain(windows=0)", "at least 1"]),
    (lambda: START.retain(rows=2.5), ["retain(rows=2.5)"]),
    (lambda: START.retain(bytes=True), ["retain(bytes=True)"]),
    (lambda: START.forget_after(0), ["forget_after=0", "above 0"]),
    (lambda: START.forget_after("soon"), ["forget_after='soon'", "not a duration"]),
    (START.allowed_lateness, ["allowed_lateness(None, rows=None)", "a duration"]),
]

COUNTED = bm.Pipeline().key_by("team").window(bm.CountWindows(3)).accumulate(n=Count())
COUNTED_TOGETHER = [
    (lambda: COUNTED.allowed_lateness(5).explain(), ["of windows of rows", "allowed_lateness(rows=100)"]),
    (lambda: PLAIN.allowed_lateness(rows=5).explain(), ["its windows end at a time", "allowed_lateness('1 hour')"]),
    (lambda: COUNTED.window(bm.CountWindows(3, idle=5)).explain(), ["idle needs the rows' event time"]),
    (lambda: COUNTED.deduplicate("score", within=5).explain(), ["deduplicate(within=...) needs the rows' event time"]),
    (
        lambda: (
            bm.merge(a=bm.Pipeline().key_by("team"), b=bm.Pipeline().key_by("team"))
            .window(bm.CountWindows(3))
            .discarding()
            .accumulate(p=InnerJoin("a", "b", once=True, keep_for={"a": 3}))
            .explain()
        ),
        ["keep_for of a join needs the rows' event time", ".event_time(column, "],
    ),
    (
        lambda: COUNTED.timestamp_combiner(bm.TimestampCombiner.LATEST).explain(),
        ["timestamp_combiner", "needs the rows' event time"],
    ),
    (
        lambda: bm.Pipeline().window(bm.CountSessions(3)).accumulate(n=Count()).explain(),
        ["without keys", ".key_by(...)"],
    ),
    (
        lambda: (
            bm.merge(a=START.key_by("team"), b=START.key_by("team"))
            .window(bm.CountWindows(3, order_by="ts"))
            .accumulate(n=Count())
            .explain()
        ),
        ["of a merge", "whose column is 'ts'"],
    ),
    (
        lambda: PLAIN.window({"rows": bm.CountWindows(3), "time": bm.FixedWindows(5)}).explain(),
        ["'rows' is of rows, 'time' of time", "a pipeline of its own"],
    ),
    (lambda: COUNTED.trigger(AfterCount(2)).explain(), ["say .discarding()"]),
    (
        lambda: COUNTED.discarding().trigger(AfterWatermark()).allowed_lateness(rows=3).explain(),
        ["allowed lateness '3 rows'", "would be dropped"],
    ),
    (
        lambda: PLAIN.retain(windows=3).suppress(bm.UntilWindowCloses()),
        ["retain(windows=3)", "does not close at a time"],
    ),
    (
        lambda: PLAIN.retain(windows=3).window(bm.GlobalWindow()).explain(),
        ["retain(windows=3)", "all of time is one window"],
    ),
    (
        lambda: PLAIN.forget_after(5).explain(),
        ["forget_after('5 seconds')", "end by themselves"],
    ),
    (lambda: COUNTED.forget_after(5).explain(), ["forget_after('5 seconds')", "idle='1 day'"]),
    (
        lambda: PLAIN.window(bm.GlobalWindow()).forget_after(5).suppress(bm.UntilWindowCloses()),
        ["forget_after('5 seconds')", "comes again", "Never()"],
    ),
    (
        lambda: PLAIN.window(bm.GlobalWindow()).then(bm.Pipeline().accumulate(m=Max("n")).forget_after(5)).explain(),
        ["forget_after('5 seconds') of panes without timestamp", "timestamp_combiner"],
    ),
    (lambda: COUNTED.suppress(bm.UntilWindowCloses()).explain(), ["suppress(", "a window of rows closes with a row"]),
    (lambda: COUNTED.then(bm.Pipeline().accumulate(most=Max("n"))).explain(), ["the numbers of the rows before"]),
    (
        lambda: COUNTED.then(bm.Pipeline().window(bm.FixedWindows(5)).accumulate(most=Max("n"))).explain(),
        ["their panes have no timestamp", "timestamp_combiner"],
    ),
    (
        lambda: COUNTED.then(bm.Pipeline().window(bm.CountWindows(5, idle=3)).accumulate(most=Max("n"))).explain(),
        ["over panes without timestamp"],
    ),
    (
        lambda: RETRACTING.then(bm.Pipeline().window(bm.CountWindows(5)).accumulate(most=Max("plays"))).explain(),
        ["rows that are taken back", "other numbers"],
    ),
]
COUNTED_COLUMNS = [
    (
        COUNTED.window(bm.CountWindows(3, numbered_by="name")),
        ["column 'name' is string", "whole numbers", "cast it to bigint"],
    ),
    (COUNTED.window(bm.CountWindows(3, numbered_by="nope")), ["there is no column 'nope'"]),
    (COUNTED.window(bm.CountWindows(3, order_by=["score", "nope"])), ["there is no column 'nope'"]),
]


@pytest.mark.parametrize(("call", "fragments"), COUNTED_AT_ONCE)
def test_a_wrong_option_of_windows_of_rows_is_refused_where_it_is_written(call, fragments):
    refused(bm.OptionError, call, fragments)


@pytest.mark.parametrize(("call", "fragments"), COUNTED_TOGETHER)
def test_what_does_not_go_with_windows_of_rows_is_refused_before_anything_runs(call, fragments):
    refused(bm.PipelineError, call, fragments)


@pytest.mark.parametrize(("pipeline", "fragments"), COUNTED_COLUMNS)
def test_columns_by_which_rows_cannot_be_numbered_are_refused(pipeline, fragments):
    refused(bm.ColumnError, lambda: pipeline.run(ONE_ROW), fragments)


def test_a_column_without_order_orders_no_rows():
    rows = TestStream().add([{"team": "red", "of": {"a": 1}, "tags": None}])
    pipeline = COUNTED.window(bm.CountWindows(3, order_by="of"))
    schema = pa.schema([("team", pa.string()), ("of", pa.map_(pa.string(), pa.int64()))])
    refused(bm.ColumnError, lambda: pipeline.flow.completed.bind({None: schema}, shards=1), ["'of'", "has no order"])
    assert pipeline.run(rows) == []  # a struct has one


@pytest.mark.parametrize("number", [2**62 + 1, -(2**62) - 1, 2**63 - 1])
def test_a_number_too_far_from_0_stops_the_query(number):
    pipeline = COUNTED.window(bm.CountWindows(3, numbered_by="i"))
    rows = TestStream().add([{"team": "red", "i": number}])
    refused(bm.NumericOverflowError, lambda: pipeline.run(rows), [str(number), "within 2^62 of 0"])


@pytest.mark.parametrize("number", [2**62, -(2**62)])
def test_a_number_just_within_is_counted(number):
    pipeline = COUNTED.window(bm.CountWindows(3, numbered_by="i", offset=-7)).allowed_lateness(rows=2**40)
    (pane,) = pipeline.accumulating().trigger(Always()).run(TestStream().add([{"team": "red", "i": number}]))
    assert pane.window.start <= number < pane.window.end


@pytest.mark.parametrize(
    "second",
    [
        COUNTED.window(bm.CountWindows(4)),
        COUNTED.window(bm.CountWindows(3, over="stream")),
        COUNTED.window(bm.CountWindows(3, order_by="score")),
        COUNTED.window(bm.CountSessions(3)),
        PLAIN,
    ],
)
def test_a_checkpoint_of_other_windows_of_rows_is_refused(second):
    schema = {None: pa.schema([("ts", pa.timestamp("us")), ("team", pa.string()), ("score", pa.int64())])}
    store = DictStore()
    first, other = (one.flow.completed.bind(schema, shards=1).operator for one in (COUNTED, second))
    shard = first.open(store)
    rows = pa.table({"team": ["red"], "__beamish_event_time_us": pa.array([None], pa.int64())})
    shard.step([None], None, [payload for _, payload in first.pack(0, rows)])
    refused(bm.StateError, lambda: other.open(store), ["the checkpoint was written with"])


@pytest.mark.parametrize(("second", "fragments"), [row[1:] for row in RUNS], ids=[row[0] for row in RUNS])
def test_a_checkpoint_of_another_join_is_refused(second, fragments):
    store = DictStore()
    open_shard(joined(rates=CHANGES.versions("1 day", allowed_lateness="1 hour")), store).step([None, None], None, [])
    refused(bm.StateError, lambda: open_shard(second, store), fragments)


UPDATING = PLAIN.trigger(Always()).accumulating_and_retracting()


@pytest.mark.parametrize(
    "second", [UPDATING, UPDATING.having(pc.field("plays") > 2), UPDATING.where(pc.field("score") > 1)], ids=str
)
def test_a_checkpoint_of_other_conditions_is_refused(second):
    store = DictStore()
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("team", pa.string()), ("score", pa.int64())])}

    def opened(pipeline):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    first = UPDATING.having(pc.field("plays") > 1)
    opened(first).step([None], None, [])
    opened(first.trigger(Repeatedly(AfterCount(2)))).step([None], None, [])
    refused(
        bm.StateError, lambda: opened(second), ["conditions and computed columns", "(plays > 1)", "keep the old one"]
    )


def test_a_rows_column_that_the_output_has_of_its_own_is_refused():
    script = TestStream().add([{"ts": 1, "id": 1, "pane": 2}])
    words = ["deduplicate('id', within='1 second')", "'pane'", "rename yours"]
    refused(bm.ColumnError, lambda: START.deduplicate("id", within=1).run(script), words)
    script = TestStream().add([{"ts": 1, "id": 1, "Window": 2}])
    refused(bm.ColumnError, lambda: START.deduplicate("id", within=1).run(script), ["'Window'", "rename yours"])


def test_a_checkpoint_in_which_ids_lie_elsewhere_is_refused():
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("a", pa.int64()), ("b", pa.int64())])}

    def opened(pipeline, store):
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    rows, windows = START.deduplicate("a", within=9), START.window(bm.FixedWindows(9)).accumulate(n=Count())
    store = DictStore()
    opened(START.key_by("a").deduplicate("b", within=9), store).step([None], None, [])
    words = ["keys ['a']", "now has []", "keep the old one"]
    refused(bm.StateError, lambda: opened(START.deduplicate("a", "b", within=9), store), words)
    words = [
        "a stage without windows that gives rows, each once",
        "now has a stage with windows",
        "keep the stage as it was",
    ]
    refused(bm.StateError, lambda: opened(windows.deduplicate("b", within=9), store), words)
    store = DictStore()
    opened(windows, store).step([None], None, [])
    refused(
        bm.StateError,
        lambda: opened(rows, store),
        ["is of a stage with windows", "now has a stage without windows", "forgotten"],
    )
    store = DictStore()
    opened(windows.deduplicate("a", within=9), store).step([None], None, [])
    held = dict(store)
    refused(
        bm.StateError, lambda: opened(windows.deduplicate("b", within=9), store), ["deduplicate('b'", "keep the old"]
    )
    assert dict(store) == held


IDS = {None: pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("team", pa.string()), ("score", pa.int64())])}


@pytest.mark.parametrize("first", [PLAIN.deduplicate("id"), START.deduplicate("id", within="1 hour")], ids=str)
def test_a_checkpoint_of_rows_known_otherwise_is_refused(first):
    store = DictStore()

    def opened(pipeline, schemas=IDS):
        return pipeline.flow.bind(schemas, shards=1).operator.open(store)

    if first.flow.stage.options == PLAIN.deduplicate("id").flow.stage.options:
        opened(PLAIN).step([None], None, [])  # it may be added
    opened(first).step([None], None, [])
    opened(first.with_dropped()).step([None], None, [])
    again = PLAIN if hasattr(first.flow.stage.options, "deduplication") else START
    for second in (again.deduplicate("id", within=7), again.deduplicate("score", within="1 hour")):
        refused(
            bm.StateError, lambda second=second: opened(second), ["within" if second is first else "id", "keep the old"]
        )
    text = {None: pa.schema([("id", pa.string()) if field.name == "id" else field for field in IDS[None]])}
    refused(bm.StateError, lambda: opened(first, text), ["int64", "string", "keep the old"])
    if again is PLAIN:
        refused(
            bm.StateError, lambda: opened(PLAIN), ["deduplicate('id') of id int64", "now has none", "keep the old one"]
        )


class Times(Accumulation):
    column = "score"
    result_type = "bigint"

    def __init__(self, by):
        self.by = by

    def create(self):
        return 0

    def add(self, accumulator, value):
        return accumulator + value * self.by

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


@pytest.mark.parametrize("second", [{"by": 3, "seconds": 20}, {"by": 2, "seconds": 30}], ids=repr)
def test_options_of_plain_classes_go_on_from_a_checkpoint_unless_an_argument_changed(second):
    store = DictStore()
    columns = {None: pa.schema([("ts", pa.timestamp("us")), ("score", pa.int64())])}

    def opened(by, seconds):
        pipeline = START.window(PlainWindows(seconds)).accumulate(n=Times(by))
        return pipeline.flow.bind(columns, shards=1).operator.open(store)

    opened(2, 20).step([None], None, [])
    opened(2, 20).step([None], None, [])
    refused(bm.StateError, lambda: opened(**second), ["now has Times(by=3)" if second["by"] == 3 else "size=30000000"])


def test_a_sequence_without_order_is_refused():
    kinds = pa.schema([("ts", pa.timestamp("us")), ("cur", pa.string()), ("seq", pa.map_(pa.string(), pa.int64()))])
    flow = CHANGES.versions(5, sequence_by="seq").flow
    refused(bm.ColumnError, lambda: flow.bind({None: kinds}, shards=1), ["sequence_by='seq'", "no order", "cast"])


def test_a_column_of_two_types_is_refused():
    script = TestStream().add([{"ts": 1, "team": "a"}, {"ts": 1, "team": 3}])
    refused(bm.ScriptError, lambda: PLAIN.run(script), ["'team'", "int", "str"])


def test_an_event_time_that_is_no_time_is_refused():
    refused(bm.ScriptError, lambda: PLAIN.run(TestStream().add([{"ts": "noon", "team": "a"}])), ["row['ts']='noon'"])


def test_an_explicit_watermark_is_refused_where_the_clock_moves_it():
    pipeline = PLAIN.event_time("ts", bm.ProcessingTimeLag("1 minute"))
    refused(bm.ScriptError, lambda: pipeline.run(ONE_ROW.advance_watermark_to(5)), ["ProcessingTimeLag"])


def test_a_trigger_that_cannot_lose_rows_is_taken():
    harmless = [
        Default(),
        Never(),
        Always(),
        Repeatedly(AfterCount(2)),
        AfterWatermark(),
        AfterEach(AfterCount(2), Always()),
        OrFinally(Always(), AfterWatermark()),
        OrFinally(Always(), Never()),
    ]
    for trigger in harmless:
        assert PLAIN.trigger(trigger).discarding().run(ONE_ROW) is not None


def test_data_loss_is_taken_when_allowed():
    pipeline = PLAIN.trigger(AfterCount(1), allow_data_loss=True).discarding().with_dropped()
    panes = pipeline.run(ONE_ROW.add([ROW]))
    assert [pane.kind for pane in panes] == ["PANE", "DROPPED"]
    assert panes[1].reason == "window_finished"


def test_sum_overflow_is_raised_as_spark_raises_it():
    script = TestStream().add([{"ts": 1, "team": "a", "score": 2**63 - 1}, {"ts": 1, "team": "a", "score": 1}])
    with pytest.raises(bm.NumericOverflowError, match=re.escape("score")):
        PLAIN.accumulate(total=Sum("score")).run(script)


def divided_by_nothing(a, b):
    return a // (b - b)


def test_user_function_that_raises_is_named_with_its_key():
    pipeline = PLAIN.accumulate(worst=Reduce(divided_by_nothing, "score"))
    with pytest.raises(bm.UserFunctionError) as caught:
        pipeline.run(ONE_ROW.add([ROW]))
    for fragment in ("Reduce", "ZeroDivisionError", "{'team': 'red'}", "restart from the checkpoint"):
        assert fragment in str(caught.value)


@attrs.frozen
class FiresWrong(Trigger):
    gives: object = 0

    def should_fire(self, state, context):
        return True

    def on_fire(self, state, context):
        return self.gives


@pytest.mark.parametrize("gives", [0, (False,), (0, 1), {"a": 1, "b": 2}], ids=repr)
def test_a_trigger_whose_on_fire_gives_no_pair_is_named(gives):
    with pytest.raises(bm.UserFunctionError) as caught:
        PLAIN.trigger(FiresWrong(gives), allow_data_loss=True).discarding().run(ONE_ROW)
    for fragment in (f"on_fire gave {gives!r}", "must be a pair", "whether the trigger is finished", "{'team': 'red'}"):
        assert fragment in str(caught.value)


@attrs.frozen
class Wrong(Trigger):
    state: Any = 0
    fires: Any = False
    wakes: Any = None

    def create(self):
        return self.state

    def on_rows(self, state, count, context):
        return self.state

    def should_fire(self, state, context):
        return self.fires

    def wakes_at(self, state):
        return self.wakes


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (Wrong(fires=None), ["should_fire gave None", "True or False", "{'team': 'red'}"]),
        (Wrong(fires="yes"), ["should_fire gave 'yes'", "True or False"]),
        (Wrong(wakes=5.5), ["wakes_at gave 5.5", "None, or whole microseconds"]),
        (Wrong(wakes=EPOCH), ["wakes_at gave datetime", "whole microseconds since the epoch"]),
        (Wrong(state=ValueError), ["a trigger of your own", "a builtins.type", "checkpoint", "None, bool, int"]),
    ],
    ids=str,
)
def test_a_trigger_that_gives_what_it_must_not_is_named(trigger, words):
    refused(bm.UserFunctionError, lambda: PLAIN.trigger(trigger, allow_data_loss=True).discarding().run(ONE_ROW), words)


def test_aware_datetimes_and_seconds_are_the_same_times():
    at = datetime(2024, 1, 1, tzinfo=UTC)
    assert TestStream().advance_watermark_to(at) == TestStream().advance_watermark_to(at.timestamp())


def test_max_and_collect_take_any_orderable_type():
    assert PLAIN.accumulate(m=Max("name"), c=Collect("tags")).run(ONE_ROW.advance_watermark_to(100))
