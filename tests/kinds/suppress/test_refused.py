"""Suppress: options that are wrong and stages that cannot be suppressed, with the value, the rule and the fix."""

import beamish as bm
from beamish.accumulations import Count, Fold, InnerJoin
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.kinds.suppress.totals import CLOSES, EVENT, NEXT, SOURCE, TOTALS
from tests.refused import MEETING, RATES, cases, joined, refused

REFUSED = {
    "once, suppressed": lambda: (
        MEETING.window(bm.FixedWindows(1)).accumulate(n=InnerJoin("a", "b", once=True)).suppress(bm.UntilWindowCloses())
    ),
    "versions held until windows close": lambda: RATES.suppress(bm.UntilWindowCloses()),
    "joined rows held": lambda: joined().suppress(bm.UntilTimeLimit(5, clock="event")),
}


@cases(REFUSED)
def test_invalid_pipelines_are_refused(name):
    refused(__file__, name, REFUSED[name])


OPTIONS = {
    "no clock": lambda: bm.UntilTimeLimit(5),
    "another clock": lambda: bm.UntilTimeLimit(5, clock="wall"),
    "a negative wait": lambda: bm.UntilTimeLimit(-1, clock="event"),
    "a negative grace": lambda: bm.UntilWindowCloses(-1),
    "a negative limit": lambda: bm.Buffer(max_records=-1),
    "a limit that is no number": lambda: bm.Buffer(max_bytes=True),
    "when_full without a limit": lambda: bm.Buffer(when_full=bm.SPILL),
    "when_full of another kind": lambda: bm.Buffer(max_records=1, when_full="spill"),
    "early until windows close": lambda: TOTALS.suppress(CLOSES, buffer=bm.Buffer(max_records=5)),
    "early, said": lambda: bm.Suppress(CLOSES, buffer=bm.Buffer(max_bytes=5, when_full=bm.EMIT_EARLY)),
    "no until": lambda: TOTALS.suppress("1 minute"),
    "no buffer": lambda: TOTALS.suppress(CLOSES, buffer=5),
    "no name": lambda: TOTALS.suppress(CLOSES, name=""),
}


@cases(OPTIONS)
def test_an_option_that_breaks_its_rule_is_refused_when_it_is_made(name):
    refused(__file__, name, OPTIONS[name])


def add(first, second):
    return first + second


GLOBAL = SOURCE.window(bm.GlobalWindow()).trigger(Always()).accumulating().accumulate(n=Count())
PIPELINES = {
    "grace over a pipeline": lambda: TOTALS.suppress(bm.UntilWindowCloses("1 minute")),
    "event wait over panes without timestamps": lambda: GLOBAL.suppress(EVENT),
    "a second suppress": lambda: TOTALS.suppress(CLOSES).suppress(EVENT),
    "a call after it": lambda: TOTALS.suppress(CLOSES).accumulate(n=Count()),
    "fold that cannot add up": lambda: TOTALS.discarding().accumulate(folded=Fold(0, add, "v")).suppress(CLOSES),
    "a next stage that comes too late": lambda: TOTALS.suppress(CLOSES).then(NEXT.allowed_lateness(29)),
    "a next stage after an event wait": lambda: TOTALS.suppress(EVENT).then(NEXT.allowed_lateness(9)),
    "held without suppress": lambda: TOTALS.state(TestStream()).held(),
    "a script with a checkpoint": lambda: TOTALS.state(TestStream(), "folder"),
    "a session with what a table began with": lambda: TOTALS.state(object(), "folder", initial=[]),
    "a session without one": lambda: TOTALS.state(object()),
}


@cases(PIPELINES)
def test_incompatible_suppress_options_are_rejected_when_composed(name):
    refused(__file__, name, PIPELINES[name])
