"""Hypothesis strategies: pipelines and scripts, one strategy for each public class.

Windows, gaps and lateness are of a few seconds and rows are of the same minute, so that they meet. Whatever is drawn
is valid: ``Options.check`` passes.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish import triggers as t
from beamish.options import Options
from beamish.testing import TestStream
from beamish.triggers import Trigger, TriggerContext
from beamish.windows.option import Bounds

S = 1_000_000
"""A second in microseconds."""

# Windows


@attrs.frozen
class UntilMinute(bm.WindowOption):
    """A user's windows: from the row to the end of its 10 seconds; every other row is in none."""

    def assign(self, timestamp_us, *values):
        end = (timestamp_us // (10 * S) + 1) * 10 * S
        if timestamp_us // S % 4:
            yield timestamp_us, end


@attrs.frozen
class OwnGap(bm.WindowOption):
    """A user's sessions whose gap comes with the row."""

    merging = True
    columns = ("score",)

    def assign(self, timestamp_us, *values):
        (score,) = values
        yield timestamp_us, timestamp_us + (1 + abs(score or 0)) * S


@attrs.frozen
class OfABlock(bm.WindowOption):
    """A user's merging windows: all that start in the same 20 seconds become their span, overlapping or not."""

    merging = True

    def assign(self, timestamp_us, *values):
        yield timestamp_us, timestamp_us + 5 * S

    def merge(self, windows: Sequence[Bounds]):
        blocks: dict[int, list[Bounds]] = {}
        for window in windows:
            blocks.setdefault(window[0] // (20 * S), []).append(window)
        for members in blocks.values():
            yield members, (members[0][0], max(end for _, end in members))


few_seconds = st.one_of(st.integers(1, 12), st.sampled_from([0.5, 2.5, 7.5]))
offsets = st.sampled_from([0, 0, 0, 1, -3, 0.5, 25])
fixed_windows = st.builds(bm.FixedWindows, few_seconds, offsets)
sliding_windows = st.builds(bm.SlidingWindows, few_seconds, st.integers(1, 8), offsets)
sessions = st.builds(bm.Sessions, few_seconds)
global_windows = st.builds(bm.GlobalWindow)
calendar_windows = st.builds(
    lambda unit, timezone, starting: bm.CalendarWindows(**unit, timezone=timezone, starting=starting),
    st.sampled_from([{"days": 1}, {"days": 3}, {"weeks": 1}, {"months": 1}, {"months": 5}, {"years": 1}]),
    st.sampled_from(["UTC", "Europe/Paris", "America/Sao_Paulo", "Asia/Kathmandu"]),
    st.sampled_from([None, None, "1970-01-31", "1971-03-02"]),
)
own_windows = st.sampled_from([UntilMinute(), OwnGap(), OfABlock()])
windows = st.one_of(fixed_windows, sliding_windows, sessions, sessions, global_windows, calendar_windows, own_windows)


def unit(option: bm.WindowOption | None) -> int:
    """What a second of the script stands for: calendar windows are longer than seconds."""
    return 40_000 if isinstance(option, bm.CalendarWindows) else 1


# Triggers


@attrs.frozen
class EveryOtherBundle(Trigger):
    """A user's trigger that counts bundles."""

    def create(self):
        return 0

    def on_rows(self, state: int, count: int, context: TriggerContext):
        return state + 1

    def should_fire(self, state: int, context: TriggerContext):
        return state >= 2

    def on_fire(self, state: int, context: TriggerContext):
        return 0, False

    def on_merge(self, states: Sequence[int], context: TriggerContext):
        return sum(states)

    def may_lose_rows(self, allowed_lateness_us: int):
        return False


@attrs.frozen
class QuietFor(Trigger):
    """A user's trigger: when no row has come for ``us`` on the clock; finished after ``times`` firings."""

    us: int = 2 * S
    times: int = 2

    @property
    def needs_clock(self):
        return True

    def create(self):
        return {"wake": None, "fired": 0}

    def on_rows(self, state: dict[str, Any], count: int, context: TriggerContext):
        return {**state, "wake": context.clock_us + self.us}

    def should_fire(self, state: dict[str, Any], context: TriggerContext):
        return state["wake"] is not None and context.clock_us >= state["wake"]

    def on_fire(self, state: dict[str, Any], context: TriggerContext):
        return {"wake": None, "fired": state["fired"] + 1}, state["fired"] + 1 >= self.times

    def on_merge(self, states: Sequence[dict[str, Any]], context: TriggerContext):
        wakes = [state["wake"] for state in states if state["wake"] is not None]
        return {"wake": max(wakes, default=None), "fired": max(state["fired"] for state in states)}

    def wakes_at(self, state: dict[str, Any]):
        return state["wake"]


@attrs.frozen
class AtEndOnce(Trigger):
    """A user's trigger that waits for the end of the window."""

    waits_for_end = True

    def create(self):
        return False

    def on_rows(self, state: bool, count: int, context: TriggerContext):
        return state

    def should_fire(self, state: bool, context: TriggerContext):
        return not state and context.at_end

    def on_fire(self, state: bool, context: TriggerContext):
        return True, False

    def on_merge(self, states: Sequence[bool], context: TriggerContext):
        return all(states)

    def may_lose_rows(self, allowed_lateness_us: int):
        return False


after_count = st.builds(t.AfterCount, st.integers(1, 4))
after_processing_time = st.builds(t.AfterProcessingTime, st.sampled_from([0, 1, 2, 3, 5, 2.5]))
plain_after_watermark = st.builds(t.AfterWatermark)
always = st.builds(t.Always)
never = st.builds(t.Never)
default = st.builds(t.Default)
own_triggers = st.sampled_from([EveryOtherBundle(), QuietFor(), AtEndOnce()])
leaves = st.one_of(
    after_count, after_count, after_processing_time, plain_after_watermark, always, never, default, own_triggers
)


def after_watermark(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    return st.builds(t.AfterWatermark, st.none() | inner, st.none() | inner)


@st.composite
def nested_triggers(draw: st.DrawFn, depth: int = 3) -> Trigger:
    """Any trigger, of triggers of triggers."""
    inner = nested_triggers(depth - 1) if depth > 1 else leaves
    several = st.lists(inner, min_size=1, max_size=3)
    match draw(st.integers(0, 6)):
        case 0:
            return draw(leaves)
        case 1:
            return draw(after_watermark(inner))
        case 2:
            return t.AfterAny(*draw(several))
        case 3:
            return t.AfterAll(*draw(several))
        case 4:
            return t.AfterEach(*draw(several))
        case 5:
            return t.Repeatedly(draw(inner))
        case _:
            return t.OrFinally(draw(inner), draw(inner))


usual_triggers = st.one_of(
    after_watermark(leaves),
    after_watermark(after_count),
    st.builds(t.Repeatedly, leaves),
    st.builds(t.Repeatedly, after_count),
    st.just(t.Default()),
    st.just(t.Always()),
    own_triggers,
)
triggers = st.one_of(usual_triggers, nested_triggers())
waiting_triggers = st.one_of(
    st.builds(t.Repeatedly, st.builds(t.AfterCount, st.integers(2, 5))),
    st.builds(t.Repeatedly, st.builds(t.AfterProcessingTime, st.integers(2, 6))),
    st.builds(t.AfterWatermark, st.builds(t.AfterCount, st.integers(2, 4)), st.builds(t.AfterCount, st.integers(1, 3))),
    st.builds(t.AfterWatermark, after_processing_time, after_processing_time),
    st.builds(t.Repeatedly, st.builds(t.AfterEach, plain_after_watermark, after_count, after_processing_time)),
    st.builds(t.Repeatedly, st.builds(t.AfterAll, after_count, after_processing_time)),
    st.builds(t.OrFinally, st.builds(t.Repeatedly, after_count), st.builds(t.AfterCount, st.integers(5, 9))),
    own_triggers,
    nested_triggers(),
)
"""Such as still wait for something when windows merge."""

# Accumulations


def add_scores(total, score):
    return total + (score or 0)


def names_seen(seen, row):
    return [*seen, row["name"]]


def join(a_, b):
    return sorted([*a_, *b], key=lambda name: (name is not None, name))


def sorted_names(seen, row):
    return join(seen, [row["name"]])


@attrs.frozen
class Range(a.Accumulation):
    """A user's accumulation: the distance between the least and the greatest value."""

    column: str
    result_type = "bigint"

    def create(self):
        return None

    def add(self, accumulator, value):
        return accumulator if value is None else self.merge(accumulator, (value, value))

    def merge(self, a, b):
        if a is None or b is None:
            return b if a is None else a
        return min(a[0], b[0]), max(a[1], b[1])

    def extract(self, accumulator):
        return None if accumulator is None else accumulator[1] - accumulator[0]


@attrs.frozen
class PairsSeen(a.Accumulation):
    """A user's accumulation of two columns: how many rows have both, how many one, how many none."""

    column = ("score", "name")
    result_type = "array<bigint>"

    def create(self):
        return [0, 0, 0]

    def add(self, accumulator, value):
        accumulator[sum(part is None for part in value)] += 1
        return accumulator

    def merge(self, a, b):
        return [x + y for x, y in zip(a, b, strict=True)]

    def extract(self, accumulator):
        return accumulator


any_column = st.sampled_from(["score", "ratio", "name", "cost", "flag"])
numbers = st.sampled_from(["score", "ratio"])
amounts = st.sampled_from(["score", "ratio", "cost"])
count = st.builds(a.Count, st.none() | any_column)
sum_ = st.builds(a.Sum, amounts)
min_ = st.builds(a.Min, any_column)
max_ = st.builds(a.Max, any_column)
mean = st.builds(a.Mean, numbers)
variance = st.builds(a.Variance, numbers, population=st.booleans())
std_dev = st.builds(a.StdDev, numbers, population=st.booleans())
first = st.builds(a.First, any_column, ignore_nulls=st.booleans())
last = st.builds(a.Last, any_column, ignore_nulls=st.booleans())
collect = st.builds(a.Collect, any_column, sorted_by=st.none() | any_column)
collect_set = st.builds(a.CollectSet, any_column)
count_distinct = st.lists(any_column, min_size=1, max_size=2, unique=True).map(lambda c: a.CountDistinct(*c))
approx_count_distinct = st.builds(a.ApproxCountDistinct, any_column, rsd=st.sampled_from([0.05, 0.2]))
top_n = st.builds(a.TopN, st.integers(1, 3), any_column)
top_n_by_key = st.builds(a.TopNByKey, st.integers(1, 3), key=any_column, value=any_column)
quantiles = st.builds(a.Quantiles, numbers, st.sampled_from([(0.25, 0.5, 0.75), (0.0, 1.0), (0.9,)]))
median = st.builds(a.Median, numbers)
reduce_ = st.builds(a.Reduce, st.sampled_from([operator.add, operator.xor]), st.just("score"))
fold = st.sampled_from(
    [
        a.Fold(0, add_scores, column="score", merge=operator.add),
        a.Fold([], sorted_names, merge=join, result_type="array<string>"),
    ]
)
fold_in_order = st.just(a.Fold([], names_seen, result_type="array<string>"))
"""For windows that do not merge."""
own_accumulations = st.sampled_from([Range("score"), PairsSeen()])

exact = st.one_of(
    st.just(a.Count()),
    st.just(a.Sum("score")),
    count,
    st.builds(a.Sum, st.sampled_from(["score", "cost"])),
    min_,
    max_,
    first,
    last,
    collect,
    collect_set,
    count_distinct,
    top_n,
    top_n_by_key,
    reduce_,
    fold,
    own_accumulations,
)
accumulations = st.one_of(exact, exact, sum_, mean, variance, std_dev, approx_count_distinct, quantiles, median)

# Pipelines

retracting = bm.AccumulationMode.ACCUMULATING_AND_RETRACTING
modes = st.sampled_from([*bm.AccumulationMode, retracting])
on_time_behaviors = st.sampled_from(list(bm.OnTimeBehavior))
closing_behaviors = st.sampled_from(list(bm.ClosingBehavior))
combiners = st.sampled_from(list(bm.TimestampCombiner))
latenesses = st.one_of(st.just(0), st.integers(0, 12), st.just(1000))
key_columns = st.sampled_from([(), (), ("team",), ("team",), ("team", "part"), ("part",)])
bounded_out_of_orderness = st.builds(
    bm.BoundedOutOfOrderness,
    st.integers(0, 5),
    max_future=st.sampled_from([None, None, 3]),
    idle_timeout=st.sampled_from([None, None, None, 1, 4]),
)
processing_time_lag = st.builds(bm.ProcessingTimeLag, st.integers(0, 5))
punctuated = st.just(bm.Punctuated("mark"))
watermarks = st.one_of(bounded_out_of_orderness, bounded_out_of_orderness, processing_time_lag, punctuated)


@st.composite
def pipelines(
    draw: st.DrawFn,
    *,
    window: st.SearchStrategy[bm.WindowOption] = windows,
    mode: st.SearchStrategy[bm.AccumulationMode | None] = modes,
    trigger: st.SearchStrategy[Trigger] = triggers,
    lateness: st.SearchStrategy[float] = latenesses,
    accumulation: st.SearchStrategy[a.Accumulation] = accumulations,
    watermark: st.SearchStrategy[bm.Watermark] = watermarks,
    keys: st.SearchStrategy[tuple[str, ...]] = key_columns,
    with_dropped: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
) -> bm.Pipeline:
    """Any pipeline that ``Options.check`` accepts."""
    option = draw(window)
    said = draw(mode)
    if accumulation is accumulations and not option.merging:
        accumulation = st.one_of(accumulation, accumulation, fold_in_order)
    named = draw(st.lists(accumulation, min_size=1, max_size=3))
    approximate = any(isinstance(one, a.ApproxCountDistinct) for one in named)  # it may say "unchanged" of a change
    retracts = said is bm.AccumulationMode.ACCUMULATING_AND_RETRACTING
    options = Options(
        event_time="ts",
        watermark=draw(watermark),
        keys=draw(keys),
        window=option,
        trigger=draw(trigger),
        allow_data_loss=True,
        allowed_lateness=bm.Pipeline().allowed_lateness(draw(lateness) * unit(option)).options.allowed_lateness,
        mode=said,
        on_time=draw(on_time_behaviors),
        closing=draw(closing_behaviors),
        combiner=draw(combiners),
        retract_merged=draw(st.sampled_from([None, *bm.RetractMerged])) if retracts and option.merging else None,
        only_updated=said not in (None, bm.AccumulationMode.DISCARDING) and not approximate and draw(st.booleans()),
        with_dropped=draw(with_dropped),
        accumulations={f"v{i}": accumulation for i, accumulation in enumerate(named)},
    )
    options.check()
    return bm.Pipeline(options)


# Scripts

scores = st.none() | st.integers(-3, 5)
ratios = st.none() | st.sampled_from([0.0, -0.0, 0.25, -1.5, 3.0, float("nan"), float("inf"), 0.25])
plain_ratios = st.none() | st.sampled_from([0.0, -0.0, 0.25, -1.5, 3.0])
names = st.none() | st.sampled_from(["", "a", "b", "ab", "é", "𝄞", "\uffee"])
costs = st.none() | st.sampled_from([Decimal("0.00"), Decimal("1.25"), Decimal("-3.10"), Decimal("99.99")])
flags = st.none() | st.booleans()
teams = st.sampled_from(["red", "red", "red", "blue", None])
parts = st.sampled_from([0.0, -0.0, float("nan"), None, 1.0])


@st.composite
def rows(draw: st.DrawFn, about: int, scale: int, nulls: bool, least: int | None = None) -> dict[str, Any]:
    """A row whose event time is near ``about`` (in seconds, times ``scale``)."""
    time = about + draw(st.one_of(st.integers(-8, 8), st.integers(0, 4), st.sampled_from([0.5, 2.5, 4.999999, 25])))
    if nulls and draw(st.integers(0, 19)) == 19:
        time = None
    elif least is not None:
        time = max(time, least)
    return {
        "ts": None if time is None else float(time * scale),
        "team": draw(teams),
        "part": draw(parts),
        "score": draw(scores),
        "ratio": draw(ratios if nulls else plain_ratios),
        "name": draw(names),
        "cost": draw(costs),
        "flag": draw(flags),
        "mark": None,
    }


@st.composite
def scripts(
    draw: st.DrawFn,
    options: Options,
    *,
    ends: bool | None = None,
    nulls: bool = True,
    least: int | None = None,
) -> TestStream:
    """A script for a pipeline: late rows, rows before the epoch, ties, empty bundles, leaps of either clock."""
    scale = unit(options.window)
    lags = isinstance(options.watermark, bm.ProcessingTimeLag)
    script = TestStream()
    now = draw(st.sampled_from([0, 0, 5, -10])) if least is None else 1
    kinds = st.sampled_from(["rows", "rows", "rows", "watermark", "clock"])
    for kind in draw(st.lists(kinds, min_size=draw(st.sampled_from([1, 4, 8])), max_size=14)):
        if kind == "rows":
            size = draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3, 5]))
            bundle = st.lists(rows(now, scale, nulls, least), min_size=size, max_size=size)
            script = script.add(draw(bundle))
            continue
        by = draw(st.sampled_from([0, 1, 1, 2, 3, 5, 10, 40]))
        if kind == "clock" or lags:
            script = script.advance_processing_time_by(by * scale)
        else:
            script = script.advance_watermark_to((now + by) * scale)
        if kind == "watermark" or lags:
            now += by
    if (draw(st.booleans()) if ends is None else ends) and not lags:
        script = script.advance_watermark_to_infinity()
        if draw(st.integers(0, 3)) == 3:
            script = script.add([draw(rows(now, scale, nulls, least))])
    return script


def dense_script(number: int) -> TestStream:
    """A long script of one key in which windows meet all the time: not to be shrunk, but dense. Scores of integers."""
    chance = random.Random(number)
    script, now = TestStream(), 0
    spread = chance.choice([4, 8, 15])
    for _ in range(30):
        match chance.choice("rrrrrwwc"):
            case "r":
                times = [float(now + chance.randint(-spread, spread)) for _ in range(chance.choice([1, 1, 2, 3]))]
                script = script.add([{"ts": ts, "score": chance.choice([None, 0, 1, 2, 3, 5])} for ts in times])
            case "w":
                now += chance.choice([1, 1, 2, 3, 5, 9])
                script = script.advance_watermark_to(now)
            case _:
                script = script.advance_processing_time_by(chance.choice([1, 1, 2, 3]))
    return script if chance.random() < 0.5 else script.advance_watermark_to_infinity()


dense_scripts = st.integers(0, 2**40).map(dense_script)
