"""Suppress: options that are wrong and stages that cannot be suppressed, with the value, the rule and the fix."""

import pytest

import beamish as bm
from beamish.accumulations import Count, Fold, InnerJoin
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.kinds.suppress.test_suppress import CLOSES, EVENT, NEXT, SOURCE, TOTALS
from tests.refused import MEETING, RATES, cases, joined, refused

# The error, what is written, and what the message must hold.
REFUSED = [
    (
        "once, suppressed",
        bm.PipelineError,
        lambda: (
            MEETING.window(bm.FixedWindows(1))
            .accumulate(n=InnerJoin("a", "b", once=True))
            .suppress(bm.UntilWindowCloses())
        ),
        ["suppress(UntilWindowCloses(", "each pair is emitted once", "remove the suppress or once=True"],
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
]


@cases(REFUSED, "error", "call", "fragments")
def test_invalid_pipelines_are_refused(error, call, fragments):
    refused(error, call, fragments)


OPTIONS = {
    "no clock": (lambda: bm.UntilTimeLimit(5), ["clock=None", "'event'", "'processing'"]),
    "another clock": (lambda: bm.UntilTimeLimit(5, clock="wall"), ["clock='wall'"]),
    "a negative wait": (lambda: bm.UntilTimeLimit(-1, clock="event"), ["UntilTimeLimit(wait)=-1", "negative"]),
    "a negative grace": (lambda: bm.UntilWindowCloses(-1), ["UntilWindowCloses(grace)=-1"]),
    "a negative limit": (lambda: bm.Buffer(max_records=-1), ["max_records=-1", "at least 0"]),
    "a limit that is no number": (lambda: bm.Buffer(max_bytes=True), ["max_bytes=True"]),
    "when_full without a limit": (lambda: bm.Buffer(when_full=bm.SPILL), ["WhenFull.SPILL", "max_records="]),
    "when_full of another kind": (lambda: bm.Buffer(max_records=1, when_full="spill"), ["'spill'", "bm.SPILL"]),
    "early until windows close": (
        lambda: TOTALS.suppress(CLOSES, buffer=bm.Buffer(max_records=5)),
        ["not final", "bm.SPILL"],
    ),
    "early, said": (
        lambda: bm.Suppress(CLOSES, buffer=bm.Buffer(max_bytes=5, when_full=bm.EMIT_EARLY)),
        ["not final", "SHUT_DOWN"],
    ),
    "no until": (lambda: TOTALS.suppress("1 minute"), ["until='1 minute'", "bm.UntilTimeLimit"]),
    "no buffer": (lambda: TOTALS.suppress(CLOSES, buffer=5), ["buffer=5", "bm.Buffer"]),
    "no name": (lambda: TOTALS.suppress(CLOSES, name=""), ["name=''"]),
}


@pytest.mark.parametrize(("make", "words"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_that_breaks_its_rule_is_refused_when_it_is_made(make, words):
    refused(bm.OptionError, make, words)


def add(first, second):
    return first + second


GLOBAL = SOURCE.window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(n=Count())
PIPELINES = {
    "grace over a pipeline": (
        lambda: TOTALS.suppress(bm.UntilWindowCloses("1 minute")),
        ["allowed_lateness('1 minute')"],
    ),
    "event wait over panes without timestamps": (
        lambda: GLOBAL.suppress(EVENT),
        ["timestamp_combiner", "clock='processing'"],
    ),
    "a second suppress": (lambda: TOTALS.suppress(CLOSES).suppress(EVENT), ["suppressed already"]),
    "a call after it": (
        lambda: TOTALS.suppress(CLOSES).accumulate(n=Count()),
        ["accumulate", "call it before suppress"],
    ),
    "fold that cannot add up": (
        lambda: TOTALS.discarding().accumulate(folded=Fold(0, add, "v")).suppress(CLOSES),
        ["merge="],
    ),
    "a next stage that comes too late": (
        lambda: TOTALS.suppress(CLOSES).then(NEXT.allowed_lateness(29)),
        ["too late", ".allowed_lateness('30 seconds')"],
    ),
    "a next stage after an event wait": (
        lambda: TOTALS.suppress(EVENT).then(NEXT.allowed_lateness(9)),
        [".allowed_lateness('10 seconds')"],
    ),
    "held without suppress": (lambda: TOTALS.state(TestStream()).held(), ["no suppress"]),
    "a script with a checkpoint": (lambda: TOTALS.state(TestStream(), "folder"), ["no checkpoint"]),
    "a session with what a table began with": (
        lambda: TOTALS.state(object(), "folder", initial=[]),
        ["in the checkpoint"],
    ),
    "a session without one": (lambda: TOTALS.state(object()), ["state(spark, folder)"]),
}


@pytest.mark.parametrize(("make", "words"), PIPELINES.values(), ids=PIPELINES)
def test_incompatible_suppress_options_are_rejected_when_composed(make, words):
    refused(bm.PipelineError, make, words)
