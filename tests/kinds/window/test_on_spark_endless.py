import pytest

import beamish as bm
from beamish.accumulations import Count
from beamish.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    Always,
    Default,
    Never,
    OrFinally,
    Repeatedly,
    Trigger,
)


def check_stream(pipeline):
    """As when it meets a stream."""
    pipeline.flow.stage.check_stream(pipeline.flow.takes)


class OfAUsersOwn(Trigger):
    def __repr__(self):
        return "OfAUsersOwn()"

    def should_fire(self, state, context):
        return True


@pytest.mark.parametrize(
    "trigger",
    [
        Default(),
        Never(),
        AfterWatermark(),
        AfterWatermark(early=Never(), late=AfterCount(1)),
        Repeatedly(AfterWatermark()),
        AfterAll(AfterCount(1), AfterWatermark()),
        AfterAny(Never(), Default()),
        AfterEach(AfterWatermark(), AfterCount(1)),
        OrFinally(Never(), AfterWatermark()),
    ],
    ids=repr,
)
def test_a_trigger_that_waits_only_for_the_end_is_refused_in_the_global_window(trigger):
    pipeline = bm.Pipeline().window(bm.GlobalWindow()).trigger(trigger).accumulate(count=Count())
    with pytest.raises(bm.PipelineError, match="it waits for the end of time"):
        check_stream(pipeline)
    with pytest.raises(bm.PipelineError, match="it waits for the end of time"):
        check_stream(pipeline.window({"minute": bm.FixedWindows(60), "all": bm.GlobalWindow()}))
    check_stream(pipeline.window(bm.FixedWindows(1)))


@pytest.mark.parametrize(
    "trigger",
    [
        Always(),
        AfterCount(1),
        AfterProcessingTime(1),
        AfterWatermark(early=AfterCount(1)),
        AfterAny(Never(), AfterCount(1)),
        AfterEach(AfterCount(1), AfterWatermark()),
        OrFinally(Never(), AfterCount(1)),
        OfAUsersOwn(),
    ],
    ids=repr,
)
def test_a_trigger_that_may_fire_before_the_end_is_taken(trigger):
    check_stream(bm.Pipeline().window(bm.GlobalWindow()).trigger(trigger).accumulate(count=Count()))
