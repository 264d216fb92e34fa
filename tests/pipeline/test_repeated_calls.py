"""A repeated call on a pipeline replaces the earlier one; a few calls add to it, or are refused."""

import re

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, Always, Repeatedly

PLAIN = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(60))
    .trigger(Always())
    .accumulating()
    .accumulate(n=Count())
)
ROWS = [{"ts": 1, "team": team, "x": 1} for team in "rssbbbgggggg"]
REPLACED = {
    "event_time": lambda of, first: of.event_time("ts" if first else "at", bm.BoundedOutOfOrderness(first)),
    "key_by": lambda of, first: of.key_by("a", "b") if first else of.key_by("c"),
    "key_by, none": lambda of, first: of.key_by(*["a"] * first),
    "window": lambda of, first: of.window(bm.Sessions(5) if first else bm.FixedWindows(5)),
    "trigger": lambda of, first: of.trigger(Always() if first else Repeatedly(AfterCount(5))),
    "allowed_lateness": lambda of, first: of.allowed_lateness(first),
    "allowed_lateness, rows or a duration": lambda of, first: (
        of.allowed_lateness(rows=5) if first else of.allowed_lateness(7)
    ),
    "retain": lambda of, first: of.retain(windows=3) if first else of.retain(rows=5),
    "forget_after": lambda of, first: of.forget_after("1 day" if first else "2 days"),
    "watermark_per_key": lambda of, first: of.watermark_per_key(first, at_most=60),
    "mode": lambda of, first: of.discarding() if first else of.accumulating_and_retracting(),
    "on_time_behavior": lambda of, first: of.on_time_behavior(list(bm.OnTimeBehavior)[first]),
    "closing_behavior": lambda of, first: of.closing_behavior(list(bm.ClosingBehavior)[first]),
    "timestamp_combiner": lambda of, first: of.timestamp_combiner(list(bm.TimestampCombiner)[first]),
}
ADDED = {
    "accumulate": (lambda of: of.accumulate(a=Count()), lambda of: of.accumulate(b=Sum("x"))),
    "where": (lambda of: of.where(pc.field("team") > "b"), lambda of: of.where(pc.field("team") < "s")),
    "having": (lambda of: of.having(pc.field("n") > 1), lambda of: of.having(pc.field("n") < 5)),
    "with_columns": (lambda of: of.with_columns(x=pc.field("n")), lambda of: of.with_columns(y=pc.field("n"))),
}


@pytest.mark.parametrize("call", REPLACED.values(), ids=REPLACED)
def test_a_repeated_call_replaces_the_earlier_setting(call):
    once, otherwise = call(PLAIN, 0), call(PLAIN, 1)
    assert call(otherwise, 0) == once != otherwise


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda of: of.accumulate(n=Sum("x")),
            "accumulate(n=Sum(column='x')): the pipeline has n=Count(column=None) already",
        ),
        (
            lambda of: of.with_columns(y=pc.field("n")),
            "with_columns(y=n): the pipeline has y=add_checked(n, 1) already",
        ),
    ],
    ids=["accumulate", "with_columns"],
)
def test_a_call_that_adds_never_replaces(call, words):
    pipeline = PLAIN.with_columns(y=pc.field("n") + 1)
    with pytest.raises(bm.OptionError, match=f"^{re.escape(words)}, which it would replace; choose another name$"):
        call(pipeline)
    assert pipeline.accumulate(n=Count()).with_columns(y=pc.field("n") + 1) == pipeline


@pytest.mark.parametrize(("one", "other"), ADDED.values(), ids=ADDED)
def test_adding_calls_keep_earlier_settings(one, other):
    assert other(one(PLAIN)) not in (one(PLAIN), other(PLAIN))
    script = TestStream().add(ROWS).advance_watermark_to_infinity()

    def names(pipeline):
        return {name for pane in pipeline.run(script) for name in pane.values}

    def rows(pipeline):
        return {pane.values["n"] for pane in pipeline.run(script)}

    assert names(other(one(PLAIN))) == names(one(PLAIN)) | names(other(PLAIN))
    assert rows(other(one(PLAIN))) == rows(one(PLAIN)) & rows(other(PLAIN))
