"""Descriptions of watermark policies, and how they advance.

See rules/time.md#steps-and-clocks, #idle-timeout, #processing-time-lag.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.durations import Duration
from beamish.instants import END_OF_TIME_US
from beamish.watermarks import NO_WATERMARK_US, Progress, Watermark

SECOND = 1_000_000
SECONDS = Duration(SECOND)

few = st.integers(0, 6)
policies = st.one_of(
    st.builds(bm.BoundedOutOfOrderness, few, idle_timeout=st.one_of(st.none(), st.integers(1, 4))),
    st.builds(bm.ProcessingTimeLag, few),
    st.just(bm.Punctuated("w")),
    st.just(Watermark()),
)
times_us = st.one_of(st.none(), st.integers(-3, 12).map(lambda n: n * SECOND), st.just(END_OF_TIME_US))
clocks_us = st.one_of(st.none(), st.integers(-3, 12).map(lambda n: n * SECOND))
steps = st.lists(st.tuples(times_us, clocks_us), max_size=12)


class Reference:
    """The rules of all policies in one place, as the engine had them before the policies said them."""

    def __init__(self):
        self.watermark_us, self.source_us, self.risen_at_us, self.clock_us = NO_WATERMARK_US, NO_WATERMARK_US, 0, 0

    def step(self, policy, source_us, clock_us):
        clock_before_us = self.clock_us
        if clock_us is not None:
            self.clock_us = max(self.clock_us, clock_us)
        if source_us is not None and source_us > self.source_us:
            self.source_us, self.risen_at_us = source_us, self.clock_us
            self.watermark_us = max(self.watermark_us, source_us)
        elif isinstance(policy, bm.BoundedOutOfOrderness) and policy.idle_timeout is not None:
            quiet = clock_before_us - self.risen_at_us
            if self.source_us != NO_WATERMARK_US and quiet >= policy.idle_timeout.us:
                self.watermark_us = max(self.watermark_us, min(self.source_us + quiet, END_OF_TIME_US))
        if isinstance(policy, bm.ProcessingTimeLag) and clock_us is not None:
            self.watermark_us = max(self.watermark_us, self.clock_us - policy.lag.us)


@given(policies, steps)
def test_each_policy_advances_by_its_rule(policy, steps):
    reference, progress, clock_us = Reference(), Progress(), 0
    for source, clock in steps:
        reference.step(policy, source, clock)
        policy.advance(progress, source, clock, clock_us)
        clock_us = reference.clock_us
        assert progress == Progress(reference.watermark_us, reference.source_us, reference.risen_at_us)


@given(policies, steps)
def test_a_watermark_never_goes_back(policy, steps):
    progress, clock_us, before = Progress(), 0, NO_WATERMARK_US
    for source, clock in steps:
        policy.advance(progress, source, clock, clock_us)
        clock_us = max(clock_us, clock or 0)
        assert progress.watermark_us >= before
        before = progress.watermark_us


def test_policies_declare_their_properties():
    def said(policy):
        durations = (policy.delay, policy.max_future, policy.idle_timeout, policy.lag)
        in_seconds = [None if duration is None else duration // SECONDS for duration in durations]
        return policy.followed_column("ts"), *in_seconds, policy.needs_clock, policy.moved_by_rows

    assert said(bm.BoundedOutOfOrderness(5)) == ("ts", 5, None, None, None, False, True)
    assert said(bm.BoundedOutOfOrderness(5, max_future=7, idle_timeout=9)) == ("ts", 5, 7, 9, None, True, True)
    assert said(bm.Punctuated("w")) == ("w", 0, None, None, None, False, True)
    assert said(bm.ProcessingTimeLag(3)) == (None, 0, None, None, 3, True, False)
    assert said(Watermark()) == (None, 0, None, None, None, False, True)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            bm.BoundedOutOfOrderness("30 seconds"),
            (
                "the maximum event time so far minus 30 seconds; it moves between batches; when rows stop, it stops, and "
                "open windows stay open (an idle_timeout closes them)"
            ),
        ),
        (
            bm.BoundedOutOfOrderness(0, max_future="1 hour", idle_timeout="1 minute"),
            (
                "the maximum event time so far minus 0 seconds; it moves between batches; rows later than the clock by more than 1 "
                "hour do not move it; when it has not moved for 1 minute on the clock, it advances with the clock"
            ),
        ),
        (bm.ProcessingTimeLag("1 minute"), "the batch's clock minus 1 minute"),
        (bm.Punctuated("w"), "the maximum value of w so far; it moves between batches"),
        (Watermark(), "that of the stage before"),
    ],
    ids=lambda part: repr(part)[:40],
)
def test_policies_describe_themselves(policy, words):
    assert policy.describe() == words
