"""Law: a trigger that declares to lose no rows finishes in no window that may take another (rules/triggers.md#triggers-that-can-lose-rows)."""

from hypothesis import assume, event, example, given
from hypothesis import strategies as st

import beamish as bm
from beamish import DropReason
from beamish.accumulations import Count
from beamish.testing import TestStream
from beamish.triggers import AfterAll, AfterAny, AfterCount, AfterEach, AfterWatermark, Never, OrFinally, Repeatedly
from tests.cost import cost
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.strategies.triggers import triggers
from tests.strategies.watermarks import bounded_out_of_orderness

counts = st.just(Count())
always_listed = st.just(True)  # noqa: FBT003 - Hypothesis'


@cost(2)
@given(st.data(), triggers)
def test_a_trigger_that_loses_no_rows_drops_none_of_a_finished_window(data, trigger):
    drawn = pipelines(
        trigger=st.just(trigger), accumulation=counts, watermark=bounded_out_of_orderness, with_dropped=always_listed
    )
    pipeline = data.draw(drawn)
    options = pipeline.flow.stage.options
    assume(not options.trigger.may_lose_rows(options.lateness))
    event(type(trigger).__name__)
    panes = pipeline.run(data.draw(scripts(pipeline)))
    assert [pane for pane in panes if pane.reason is DropReason.WINDOW_FINISHED] == []


COMPOSITES = [
    AfterEach(Repeatedly(AfterCount(3)), AfterCount(2)),
    AfterEach(AfterWatermark(), AfterCount(1)),
    AfterEach(AfterCount(1), Never(), AfterCount(1)),
    AfterAny(AfterWatermark(), Never()),
    AfterAll(AfterWatermark(), AfterCount(1)),
    OrFinally(Repeatedly(AfterCount(1)), AfterAll(AfterWatermark(), AfterCount(1))),
    OrFinally(
        Repeatedly(AfterCount(1)), AfterWatermark(early=AfterAll(AfterWatermark(), AfterCount(1)), late=AfterCount(1))
    ),
]
"""They finish at the end of their window at the earliest, or never."""
windows = st.sampled_from([bm.FixedWindows(10), bm.Sessions(5), bm.SlidingWindows(10, 5)])
moves = st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=3), st.integers(0, 6)), min_size=1, max_size=8)


@given(st.sampled_from(COMPOSITES), windows, moves)
@example(COMPOSITES[0], bm.FixedWindows(10), [([1, 2, 3], 0), ([4, 5], 0), ([6], 0)])
def test_composites_that_finish_at_the_end_lose_no_rows(trigger, window, moves):
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(100)).window(window).trigger(trigger)
    pipeline, script, now = pipeline.discarding().with_dropped().accumulate(n=Count()), TestStream(), 0
    for times, by in moves:
        now += by
        script = script.add([{"ts": ts} for ts in times]).advance_watermark_to(now)
    reasons = {pane.reason for pane in pipeline.run(script.advance_watermark_to_infinity())}
    assert reasons <= {None, DropReason.EXPIRED}
