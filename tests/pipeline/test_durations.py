"""A duration is a value: what it is equal to, what can be done with it, and how options read it."""

import pickle
from datetime import timedelta

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.durations import LONGEST_US, Duration, duration, read_duration, read_positive
from beamish.errors import OptionError
from beamish.triggers import AfterProcessingTime

durations = st.builds(Duration, st.integers(-LONGEST_US, LONGEST_US))


def test_twice_the_size_of_a_window_is_twice_the_window():
    window = bm.FixedWindows("2 minutes")
    assert bm.FixedWindows(window.size * 2) == bm.FixedWindows("4 minutes")
    assert bm.SlidingWindows(window.size, window.size // 4, -window.size) == bm.SlidingWindows(120, 30, -120)


@given(durations)
def test_a_duration_is_read_back_from_its_text_its_repr_and_its_pickle(value):
    assert duration("x", str(value)) == duration("x", eval(repr(value))) == duration("x", value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    assert hash(pickle.loads(pickle.dumps(value))) == hash(value)


@given(durations, durations, st.integers(-1000, 1000))
def test_durations_reckon_as_their_microseconds_do(a, b, n):
    assert (a + b).us == a.us + b.us
    assert (a - b).us == a.us - b.us
    assert (a * n).us == (n * a).us == a.us * n
    assert (-a).us == -a.us
    assert (a < b, a <= b, a == b) == (a.us < b.us, a.us <= b.us, a.us == b.us)
    assert bool(a) == (a.us != 0)
    if b:
        assert a // b == a.us // b.us
    if n:
        assert (a // n).us == a.us // n


def test_a_duration_is_not_a_number():
    minute = Duration(60_000_000)
    assert minute != 60_000_000
    assert minute != timedelta(minutes=1)
    for wrong in (
        lambda: minute + 1,
        lambda: 1 - minute,
        lambda: minute * 1.5,
        lambda: minute * minute,
        lambda: minute < 1,
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        int(minute)


@pytest.mark.parametrize("us", [1.5, True, "1 minute", None])
def test_microseconds_are_a_whole_number(us):
    with pytest.raises(OptionError, match="whole number of microseconds"):
        Duration(us)


@pytest.mark.parametrize(
    "value",
    [timedelta.max, timedelta.min, 2**43, "9999999999999 days", "-9999999999999 days", Duration(LONGEST_US + 1)],
)
@pytest.mark.parametrize(
    "option", [bm.FixedWindows, lambda value: bm.FixedWindows(1, value), bm.Sessions, bm.ProcessingTimeLag]
)
def test_durations_beyond_64_bits_are_rejected(option, value):
    with pytest.raises(OptionError, match=r"longer than 146,000 years|must not be negative|must be above 0"):
        option(value)


def test_the_message_names_the_class_and_the_attribute():
    @attrs.frozen
    class Mine(bm.FixedWindows):
        late: Duration = attrs.field(converter=read_positive, default=1)
        shift: Duration | None = attrs.field(converter=attrs.converters.optional(read_duration), default=None)

    for make, where in [
        (lambda: Mine(0), r"^Mine\(size\)=0: must be above 0$"),
        (lambda: Mine(1, late=0), r"^Mine\(late\)=0: must be above 0$"),
        (lambda: Mine(1, shift="x"), r"^Mine\(shift\)='x': not a duration"),
        (lambda: bm.Sessions(timedelta.max), r"^Sessions\(gap\)=datetime.timedelta.*longer than 146,000 years$"),
        (lambda: AfterProcessingTime(-1), r"^AfterProcessingTime\(delay\)=-1: must not be negative$"),
    ]:
        with pytest.raises(OptionError, match=where):
            make()
    assert Mine(1).late == Duration(1_000_000)
    assert Mine(1).shift is None


@pytest.mark.parametrize(
    ("us", "text"),
    [(0, "0 seconds"), (1, "1 microsecond"), (60_000_000, "1 minute"), (90_000_000, "90 seconds"), (-2_000, "-2 milliseconds"), (14 * 86_400_000_000, "14 days")],
)  # fmt: skip
def test_a_duration_prints_as_text(us, text):
    assert str(Duration(us)) == text
    assert repr(Duration(us)) == repr(text)


@pytest.mark.parametrize(
    ("text", "days", "calendar"),
    [("1 month", 30, "months=..."), ("1 quarter", 91, "months=3"), ("100 years", 365, "years=...")],
)
def test_units_without_a_fixed_length_are_refused_with_days_that_are_taken(text, days, calendar):
    with pytest.raises(bm.OptionError, match=f"'{days} days', or for calendar periods use CalendarWindows.{calendar}"):
        duration("x", text)
    assert duration("x", f"{days} days") == Duration(days * 86_400_000_000)
