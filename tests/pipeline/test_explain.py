"""explain() on dropped rows, on changes, and on the state of as-of joins."""

import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import Never

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
UPSERTS = SOURCE.key_by("k").changes().suppress(bm.UntilTimeLimit(5, clock="event"))
ONCE = SOURCE.deduplicate("id", within="1 hour")


def joined(**options):
    return bm.as_of_join(orders=SOURCE, rates=SOURCE.key_by("k").versions("1 day"), **options)


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        (ONCE, "outside the years 1 to 9999; with_dropped() lists them"),
        (ONCE.with_dropped(), "outside the years 1 to 9999; each is emitted with its reason"),
        (
            SOURCE.window(bm.GlobalWindow()).accumulate(n=Count()),
            "reaches its end; the global window ends with the input, as in a batch: a streaming DataFrame is refused",
        ),
        (
            SOURCE.window(bm.GlobalWindow()).trigger(Never()).accumulating().accumulate(n=Count()),
            "panes a window fires only when it expires; the global window ends with the input",
        ),
        (UPSERTS, "of several the one with the greatest event time counts"),
        (joined(), "the latest version of each key of rates for ever, unless a change deletes it"),
        (
            joined(tolerance="1 hour"),
            "of rates until the watermark is 1 day plus 1 hour past its start, or a change deletes it",
        ),
        (
            joined(direction="nearest", tolerance="1 hour", grace="1 minute"),
            "and was still valid, or that begins first at or after ts, whichever began nearer, at most 1 hour away; without one: no",
        ),
        (
            joined(direction="forward", tolerance="1 hour", grace="1 minute"),
            "that begins first at or after ts, at most 1 hour later; without one: no",
        ),
        (joined(as_of="arrival"), "that is its key's latest when the row arrives; without one: no row"),
        (joined(direction="forward", tolerance="1 hour", grace="1 minute"), "watermark is past its time by 61 minutes"),
    ],
)
def test_explain_names_what_is_dropped_and_kept(pipeline, words):
    assert words in " ".join(pipeline.explain().split())
