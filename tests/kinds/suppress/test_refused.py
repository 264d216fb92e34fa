"""Suppress: stages that cannot be suppressed, refused with the rule and the fix."""

import beamish as bm
from beamish.accumulations import InnerJoin
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
        ["suppress(UntilWindowCloses(", "each pair comes once", "leave the suppress or once=True out"],
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
def test_what_cannot_be_is_refused(error, call, fragments):
    refused(error, call, fragments)
