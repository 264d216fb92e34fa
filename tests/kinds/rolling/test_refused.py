"""Rolling spans: refusals, with the value, the rule and the fix."""

import pyarrow.compute as pc

import beamish as bm
from beamish.accumulations import Count, Fold, InnerJoin, Sum
from beamish.contract.stored import DictStore
from beamish.testing import TestStream
from beamish.triggers import AfterProcessingTime, AfterWatermark, Always
from tests.refused import MEETING, ONE_ROW, START, TIMELESS, cases, refused

MINUTE = bm.Rolling({"5m": "5 minutes"}, step="1 minute")
ROLLING = START.key_by("team").window(MINUTE).accumulate(plays=Count())
NEXT = bm.Pipeline().window(MINUTE).accumulate(n=Count())

AT_ONCE = {
    "no spans": lambda: bm.Rolling({}, step="1 minute"),
    "spans without names": lambda: bm.Rolling(["1 hour"], step="1 minute"),
    "a name that is a number": lambda: bm.Rolling({1: "1 hour"}, step="1 minute"),
    "a span of nothing": lambda: bm.Rolling({"1h": 0}, step="1 minute"),
    "a span in words": lambda: bm.Rolling({"1h": "an hour"}, step="1 minute"),
    "a step of nothing": lambda: bm.Rolling({"1h": "1 hour"}, step=0),
    "a span that is not a multiple": lambda: bm.Rolling({"90s": "90 seconds"}, step="1 minute"),
    "an offset that is not a multiple": lambda: bm.Rolling(
        {"w": bm.Span("1 hour", offset="90 seconds")}, step="1 minute"
    ),
    "an offset ahead": lambda: bm.Span("1 hour", offset="-1 hour"),
    "keep all": lambda: bm.Rolling({"1h": "1 hour"}, step="1 minute", keep="all"),
    "empty zero": lambda: bm.Rolling({"1h": "1 hour"}, step="1 minute", empty="zero"),
    "history removed": lambda: bm.Rolling({"1h": "1 hour"}, step="1 minute", keep="history", empty="remove"),
    "longer than time": lambda: bm.Rolling({"1h": "10000000 days"}, step="1 day"),
    "a lifetime that ends between boundaries": lambda: bm.Rolling(
        {"ever": bm.Lifetime(offset="90 seconds")}, step="1 minute"
    ),
    "a lifetime that ends ahead": lambda: bm.Lifetime(offset="-1 minute"),
    "a span forever": lambda: bm.Rolling({"all": "forever"}, step="1 minute"),
    "only of a text": lambda: bm.Span("1 hour", only="n"),
    "only of nothing": lambda: bm.Span("1 hour", only=[]),
    "among several windowings": lambda: START.window({"minute": bm.FixedWindows(60), "spans": MINUTE}),
}
LIFETIME = ROLLING.window(bm.Rolling({"1h": "1 hour", "ever": bm.Lifetime()}, step="1 minute"))
TOGETHER = {
    "discarding": ROLLING.discarding(),
    "removed without retractions": START.key_by("team")
    .window(bm.Rolling({"5m": "5 minutes"}, step="1 minute", empty="remove"))
    .accumulate(n=Count()),
    "Always": ROLLING.trigger(Always()).accumulating(),
    "early by the clock": ROLLING.trigger(AfterWatermark(early=AfterProcessingTime(5), late=Always())).accumulating(),
    "late rows without a late part": ROLLING.trigger(AfterWatermark()).allowed_lateness(5).accumulating(),
    "duplicates": ROLLING.deduplicate("id"),
    "retention": ROLLING.retain(windows=3),
    "idle keys": ROLLING.forget_after("1 day"),
    "idle keys of a lifetime, too soon": LIFETIME.forget_after("30 minutes"),
    "idle keys of a lifetime, between boundaries": LIFETIME.forget_after("90 minutes 1 second"),
    "on time": ROLLING.on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY),
    "closing": ROLLING.closing_behavior(bm.ClosingBehavior.FIRE_ALWAYS),
    "a combiner": ROLLING.timestamp_combiner(bm.TimestampCombiner.LATEST),
    "merged": ROLLING.accumulating_and_retracting().retract_merged(bm.AT_MERGE),
    "only updated": ROLLING.accumulating().only_updated_panes(),
    "errors": ROLLING.on_error("drop"),
    "late rows by number": ROLLING.allowed_lateness(rows=3),
    "a join": MEETING.window(MINUTE).accumulate(pair=InnerJoin("a", "b")),
    "a fold without merge": ROLLING.accumulate(all=Fold(0, max, column="score")),
    "nothing to accumulate": START.window(MINUTE),
    "only of no accumulation": START.window(bm.Rolling({"w": bm.Span(60, only=["m"])}, step=60)).accumulate(n=Count()),
    "an accumulation of no span": START.window(bm.Rolling({"w": bm.Span(60, only=["n"])}, step=60)).accumulate(
        n=Count(), s=Sum("score")
    ),
    "a key called time": START.key_by("time").window(MINUTE).accumulate(n=Count()),
    "two columns of a name": START.window(bm.Rolling({"b_c": 60, "c": 60}, step=60)).accumulate(a=Count(), a_b=Count()),
    "a computed column called time": ROLLING.with_columns(time=pc.field("plays_5m") + 1),
    "an accumulation called pane": ROLLING.accumulate(pane=Count()),
}
REFUSED = {
    "panes without timestamp": lambda: TIMELESS.then(NEXT),
    "a suppress": lambda: ROLLING.suppress(bm.UntilWindowCloses()),
    "a column that is missing": lambda: ROLLING.accumulate(s=Sum("points")).run(ONE_ROW),
}


@cases(AT_ONCE)
def test_wrong_options_are_refused_when_they_are_written(name):
    refused(__file__, name, AT_ONCE[name])


@cases(TOGETHER)
def test_options_that_do_not_work_together_are_refused(name):
    refused(__file__, name, lambda: TOGETHER[name].run(ONE_ROW))


@cases(REFUSED)
def test_more_is_refused(name):
    refused(__file__, name, REFUSED[name])


CHANGED = {
    "other spans": ROLLING.window(bm.Rolling({"10m": "10 minutes"}, step="1 minute")),
    "another lateness": ROLLING.allowed_lateness("1 hour"),
    "another mode": ROLLING.accumulating_and_retracting(),
    "another accumulation": ROLLING.accumulate(n=Count()),
    "windows instead": ROLLING.window(bm.FixedWindows(60)),
}


@cases(CHANGED)
def test_a_checkpoint_of_another_is_refused(name):
    from beamish.local import stages_after

    script = TestStream().add([{"ts": 1, "team": "red"}])
    ((_, (store,)),) = stages_after(ROLLING.flow, script.events)
    ((bound, _),) = stages_after(CHANGED[name].flow, script.events)
    refused(__file__, name, lambda: bound.operator.open(DictStore(store)))


def test_a_checkpoint_of_its_own_is_accepted():
    from beamish.local import stages_after

    ((bound, (store,)),) = stages_after(ROLLING.flow, TestStream().add([{"ts": 1, "team": "red"}]).events)
    assert bound.operator.open(store).next_due_us == 60_000_000
