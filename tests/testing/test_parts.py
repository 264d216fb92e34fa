"""Checks of accumulations, triggers, windows and watermarks: ours pass, each wrong one breaks the law that it is made for."""

from __future__ import annotations

from itertools import pairwise
from textwrap import dedent
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Accumulation, Count, Sum
from beamish.errors import OptionError, UserFunctionError
from beamish.testing import laws
from beamish.triggers import AfterCount, Trigger
from beamish.watermarks import Progress
from tests.own import accumulations as own
from tests.own import triggers as own_triggers
from tests.own import windows as own_windows

pytestmark = pytest.mark.dear

INTS = st.integers(-9, 9)
EXAMPLES = settings().max_examples * 4


@pytest.mark.parametrize(
    ("accumulation", "values"),
    [
        (own.Range("score"), INTS),
        (own.Distinct("score"), INTS),
        (own.PairsSeen(), st.tuples(INTS, st.text(max_size=2))),
        (own.Balance("score"), INTS.map(np.int64)),
    ],
    ids=repr,
)
def test_own_accumulations_keep_the_laws(accumulation, values):
    seen = laws.check_accumulation(accumulation, values=values, examples=EXAMPLES)
    assert seen.examples == EXAMPLES
    assert seen.counts["nulls"] > 0


@pytest.mark.parametrize(
    "trigger", [own_triggers.EveryOtherBundle(), own_triggers.QuietFor(), own_triggers.AtEndOnce()]
)
def test_own_triggers_keep_the_laws(trigger):
    assert laws.check_trigger(trigger, examples=EXAMPLES).counts["firings"] > 0


GAPS = st.tuples(st.none() | st.integers(-3, 5))
WINDOWS = [
    (bm.FixedWindows(10, 3), None),
    (bm.SlidingWindows(10, 4, 1), None),
    (bm.SlidingWindows(5, 40), None),
    (bm.Sessions(10), None),
    (bm.CalendarWindows(months=1, timezone="Europe/Zurich"), None),
    (bm.GlobalWindow(), None),
    (bm.CountWindows(3), None),
    (own_windows.PlainWindows(5), None),
    (own_windows.UntilMinute(), None),
    (own_windows.OwnGap(), GAPS),
    (own_windows.OfABlock(), None),
]


@pytest.mark.parametrize(("option", "columns"), WINDOWS, ids=lambda part: repr(part)[:30])
def test_windows_keep_the_laws(option, columns):
    seen = laws.check_windows(option, columns=columns, examples=EXAMPLES)
    assert (seen.counts["merged windows"] > 0) == option.merging


POLICIES = [
    bm.BoundedOutOfOrderness(5),
    bm.BoundedOutOfOrderness(5, max_future=20, idle_timeout=30),
    bm.ProcessingTimeLag(5),
    bm.Punctuated("mark"),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_watermarks_keep_the_laws(policy):
    laws.check_watermark(policy, examples=EXAMPLES)


@attrs.frozen
class Total(Accumulation):
    """Right, and the base of wrong ones."""

    column: str = "amount"
    result_type = "bigint"

    def create(self):
        return [0]

    def add(self, accumulator, value):
        return [accumulator[0] + (value or 0)]

    def merge(self, a, b):
        return [a[0] + b[0]]

    def extract(self, accumulator):
        return accumulator[0]


class First(Total):
    def create(self):
        return None

    def add(self, accumulator, value):
        return value if accumulator is None else accumulator

    def merge(self, a, b):
        return b if a is None else a

    def extract(self, accumulator):
        return accumulator


class Ordered(First):
    """The merge hides it: it takes the least, so only the order of adding shows."""

    def merge(self, a, b):
        return min((one for one in (a, b) if one is not None), default=None)


class OneSide(Total):
    def merge(self, a, b):
        return a


class FromHalf(Total):
    """Its result is a float that differs by more than rounding."""

    result_type = "double"

    def merge(self, a, b):
        return [(a[0] + b[0]) * (1 + 1e-8)]


class StartsAtOne(Total):
    def create(self):
        return [1]


class Difference(Total):
    def merge(self, a, b):
        return [abs(a[0] - b[0])]


class NumpyTotal(Total):
    def add(self, accumulator, value):
        return [np.add(accumulator[0], value or 0)]


class NullFails(Total):
    def add(self, accumulator, value):
        return [accumulator[0] + value]


class Ratio(Total):
    result_type = "double"

    def extract(self, accumulator):
        return 1 / accumulator[0]


class ModifiesOther(Total):
    def merge(self, a, b):
        b[0] += a[0]
        return b


class ModifiesRow(Total):
    column: Any = None

    def add(self, accumulator, value):
        return [accumulator[0] + (value.pop("amount", 0) or 0)]


class Forgets(Total):
    def dump(self, accumulator):
        return accumulator[0] % 8

    def load(self, dumped):
        return [dumped]


class RetractsTwice(Total):
    def retract(self, accumulator, value):
        return [accumulator[0] - 2 * (value or 0)]


SEEN: list[int] = []


class Remembers(Total):
    def add(self, accumulator, value):
        SEEN.append(value)
        return [accumulator[0] + (value or 0) + len(SEEN) % 2]


WRONG = [
    (First(), "merge_is_commutative", "order_of_rows_is_irrelevant"),
    (Ordered(), "merge_agrees_with_add", "order_of_rows_is_irrelevant"),
    (OneSide(), "new_accumulator_is_identity"),
    (FromHalf(), "merge_agrees_with_add", "new_accumulator_is_identity"),
    (StartsAtOne(), "new_accumulator_is_identity"),
    (Difference(), "merge_agrees_with_add", "new_accumulator_is_identity"),
    (NumpyTotal(), "same_rows_have_same_value"),
    (NullFails(), "same_rows_have_same_value"),
    (Ratio(), "same_rows_have_same_value"),
    (ModifiesOther(), "arguments_are_unchanged"),
    (Forgets(), "state_restores_accumulator"),
    (RetractsTwice(), "retract_undoes_add"),
    (Remembers(), "same_rows_have_same_value", "state_restores_accumulator"),
]


def broken(check: Any, part: Any, **arguments: Any) -> laws.LawError:
    """The error of a check, whose test fails when it is pasted here."""
    with pytest.raises(laws.LawError) as raised:
        check(part, **arguments, examples=200)
    names = {**globals(), type(part).__name__: type(part)}
    exec(dedent(str(raised.value).partition("As a test:")[2]), names)
    if "depends on more than its arguments" not in str(raised.value):
        with pytest.raises((laws.LawError, UserFunctionError, TypeError)):
            names[f"test_{raised.value.law.__name__}"]()
    return raised.value


@pytest.mark.parametrize(("accumulation", "law", "or_law"), [(*case, "")[:3] for case in WRONG], ids=repr)
def test_wrong_accumulations_break_a_law(accumulation, law, or_law):
    assert broken(laws.check_accumulation, accumulation, values=INTS).law.__name__ in (law, or_law)


def test_modified_row_breaks_a_law():
    rows = st.fixed_dictionaries({"amount": INTS})
    assert broken(laws.check_accumulation, ModifiesRow(), values=rows).law is laws.arguments_are_unchanged


def test_right_accumulation_breaks_none():
    laws.check_accumulation(Total(), values=INTS)


def test_float_sums_are_not_exact():
    class FloatTotal(Total):
        result_type = "double"

        def extract(self, accumulator):
            return float(accumulator[0])

    amounts = st.sampled_from([0.1, 0.2, 0.3, 1e6])
    broken(laws.check_accumulation, FloatTotal(), values=amounts, tolerance=0)
    laws.check_accumulation(FloatTotal(), values=amounts, examples=60)


def test_built_in_accumulations_are_checked_on_columns():
    laws.check_accumulation(Sum("x"), values=INTS, types=[pa.int64()], examples=EXAMPLES)
    laws.check_accumulation(Count(), values=st.just(()), types=[], examples=EXAMPLES)
    with pytest.raises(OptionError, match="give the types of its columns"):
        laws.check_accumulation(Sum("x"), values=INTS)


class Every2(own_triggers.EveryOtherBundle):
    """Right, and the base of wrong ones."""


class CountsInShouldFire(Every2):
    def create(self):
        return []

    def on_rows(self, state, count, context):
        return [*state, count]

    def should_fire(self, state, context):
        state.append(0)
        return len(state) > 2

    def on_fire(self, state, context):
        return [], False

    def on_merge(self, states, context):
        return [one for state in states for one in state]


class CountsOnItself(Trigger):
    def __init__(self):
        self.count = 0

    def on_rows(self, state, count, context):
        self.count += count

    def should_fire(self, state, context):
        return self.count >= 2

    def on_merge(self, states, context):
        return None


class WithoutTimer(own_triggers.QuietFor):
    def wakes_at(self, state):
        return None


class LateTimer(own_triggers.QuietFor):
    def wakes_at(self, state):
        return state["wake"] and state["wake"] + 20_000_000


class NeverEnds(own_triggers.QuietFor):
    def on_fire(self, state, context):
        return {**state, "wake": context.clock_us + self.us}, False


class Stuck(own_triggers.QuietFor):
    def on_fire(self, state, context):
        return state, False


class EndUnasked(own_triggers.AtEndOnce):
    waits_for_end = False


class FinishesEarly(Every2):
    def on_fire(self, state, context):
        return 0, True


class DeniesEarly(Every2):
    def can_fire_before_end(self):
        return False


class MergeForgets(Every2):
    def on_merge(self, states, context):
        return 0


class MergeOfFirst(Every2):
    def on_merge(self, states, context):
        return states[0]


class MergeOfThree(Every2):
    def on_merge(self, states, context):
        return sum(states) + (len(states) == 3)


class NumpyState(Every2):
    def create(self):
        return np.int64(0)


class Ones(Every2):
    def should_fire(self, state, context):
        return state // 2


@pytest.mark.parametrize(
    ("trigger", "law"),
    [
        (CountsInShouldFire(), "should_fire_changes_nothing"),
        (Ones(), "windows_do_not_share_state"),
        (CountsOnItself(), "windows_do_not_share_state"),
        (NumpyState(), "state_restores_window"),
        (WithoutTimer(), "firings_are_announced"),
        (LateTimer(), "firings_are_announced"),
        (EndUnasked(), "firings_are_announced"),
        (NeverEnds(), "timers_run_out"),
        (Stuck(), "timers_run_out"),
        (FinishesEarly(), "finishes_as_declared"),
        (DeniesEarly(), "fires_early_as_declared"),
        (MergeForgets(), "state_merged_alone_is_unchanged"),
        (MergeOfFirst(), "states_merge_in_any_order"),
        (MergeOfThree(), "states_merge_in_steps_as_at_once"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_wrong_triggers_break_a_law(trigger, law):
    assert broken(laws.check_trigger, trigger).law.__name__ == law


def test_built_in_triggers_have_no_single_window():
    with pytest.raises(OptionError, match="a built-in trigger"):
        laws.check_trigger(AfterCount(2))


class Ten(own_windows.PlainWindows):
    def __init__(self):
        super().__init__(10)


class Hours(Ten):
    def assign(self, timestamp_us):
        start = timestamp_us // 3_600_000_000 * 3_600_000_000
        yield start, start + 60_000_000


class Numbered(Ten):
    def assign(self, timestamp_us):
        self.size += 1
        yield timestamp_us, timestamp_us + self.size


class Disjoint(Ten):
    overlaps = False

    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + 1
        yield timestamp_us, timestamp_us + 2


class SlicedByMinute(Ten):
    def slices(self, timestamps_us):
        return timestamps_us // 60_000_000 * 60_000_000

    def assign(self, timestamp_us):
        return super().assign(timestamp_us)


class Pairs(bm.Sessions):
    def merge(self, windows):
        for one, other in pairwise(windows):
            yield [one, other], (one[0], max(one[1], other[1]))


class Together(bm.Sessions):
    """The columns differ from the single row."""

    def assign_columns(self, timestamps_us, *columns):
        row, start, end = super().assign_columns(timestamps_us, *columns)
        return row, start, end + len(row)


@pytest.mark.parametrize(
    ("option", "law"),
    [
        (Numbered(), "assignment_depends_on_the_row"),
        (Together(10), "rows_are_assigned_alone_as_together"),
        (Hours(), "windows_end_after_their_rows"),
        (Disjoint(), "overlaps_as_declared"),
        (SlicedByMinute(), "slices_share_windows"),
        (Pairs(10), "merge_covers_windows_once"),
        (own_windows.Absorbed(), "windows_merge_in_steps_as_at_once"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_wrong_windows_break_a_law(option, law):
    assert broken(laws.check_windows, option).law.__name__ == law


def test_windows_of_columns_need_their_values():
    with pytest.raises(OptionError, match=r"give a strategy of its columns \('score',\)"):
        laws.check_windows(own_windows.OwnGap())
    with pytest.raises(OptionError, match="check them one by one"):
        laws.check_windows(bm.Windowings({"ten": bm.FixedWindows(10)}))


def delayed(seconds):
    row = st.tuples(st.integers(0, 60), st.integers(0, seconds))
    return st.lists(row).map(lambda rows: [(clock, clock - delay) for clock, delay in sorted(rows)])


def test_delay_shorter_than_the_disorder_of_the_source_breaks_a_law():
    error = broken(laws.check_watermark, bm.BoundedOutOfOrderness(4), arrivals=delayed(5))
    assert error.law is laws.rows_are_in_time
    assert "[(0, 0), (0, -5)]" in str(error)
    laws.check_watermark(bm.BoundedOutOfOrderness(5), arrivals=delayed(5))
    laws.check_watermark(bm.BoundedOutOfOrderness(4), arrivals=delayed(5), allowed_lateness=1)


@attrs.frozen
class Back(bm.Watermark):
    def advance(self, progress: Progress, source_us, clock_us, clock_before_us):
        progress.watermark_us = source_us or 0


@attrs.frozen
class Stays(bm.ProcessingTimeLag):
    def advance(self, progress: Progress, source_us, clock_us, clock_before_us):
        progress.rise(0)


def test_wrong_watermarks_break_a_law():
    falls = st.just([(1, -2), (2, 1), (3, 1)])
    assert broken(laws.check_watermark, Back(), arrivals=falls).law is laws.watermark_never_goes_back
    assert broken(laws.check_watermark, Stays(5)).law is laws.clock_moves_idle_source


def test_checks_that_draw_nothing_of_interest_are_vacuous():
    for check, part, arguments in (
        (laws.check_accumulation, Total(), {"values": st.just(1), "nulls": False}),
        (laws.check_trigger, NeverFires(), {}),
        (laws.check_windows, NoWindows(), {}),
        (laws.check_watermark, bm.BoundedOutOfOrderness(5), {"arrivals": st.just([(0, 0), (1, 1)])}),
    ):
        with pytest.raises(laws.VacuousError, match="shows nothing: fewer than 2% of its examples had"):
            check(part, examples=20, **arguments)
        check(part, examples=20, floor=0, **arguments)


class NeverFires(Every2):
    def should_fire(self, state, context):
        return False


class NoWindows(Ten):
    def assign(self, timestamp_us):
        return ()


class FiresOn(Every2):
    """Once it has fired, it does so with each bundle."""

    def on_fire(self, state, context):
        return state, False


def test_firing_that_does_not_rearm_is_declared():
    assert broken(laws.check_trigger, FiresOn()).law is laws.firing_rearms
    laws.check_trigger(FiresOn(), rearms=False)
