"""Unit tests of a pipeline: a script of rows and clocks, and its panes, in milliseconds and without Spark.

The script sets both clocks, so nothing sleeps or depends on the machine. The same script runs on
Spark as real micro-batches with ``script.on_spark(spark, scores)``, and gives the same panes.

    pytest examples/test_scores.py
"""

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark

scores = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness("30 seconds"))
    .key_by("team")
    .window(bm.FixedWindows("2 minutes"))
    .trigger(AfterWatermark(early=AfterProcessingTime("1 minute"), late=AfterCount(1)))
    .allowed_lateness("10 minutes")
    .accumulating()
    .with_dropped()
    .accumulate(total=Sum("score"), plays=Count())
)


def play(ts: int, score: int) -> dict[str, object]:
    """A row of the red team."""
    return {"ts": ts, "team": "red", "score": score}


def totals(script: TestStream) -> list[tuple[str, int]]:
    """The panes as values, in order."""
    return [(pane.timing.value, pane.values["total"]) for pane in scores.run(script)]


def test_early_pane_comes_a_minute_after_the_first_play() -> None:
    script = TestStream().add([play(10, 5)]).advance_processing_time_by("59 seconds").add([play(20, 3)])
    assert totals(script) == []
    assert totals(script.advance_processing_time_by("1 second")) == [("EARLY", 8)]


def test_on_time_pane_holds_all_plays_before_the_end() -> None:
    script = TestStream().add([play(10, 5)]).add([play(20, 3)]).advance_watermark_to(120)
    assert totals(script) == [("ON_TIME", 8)]


def test_late_play_gives_a_late_pane_with_all_so_far() -> None:
    script = TestStream().add([play(10, 5)]).advance_watermark_to(120).add([play(30, 1)])
    assert totals(script) == [("ON_TIME", 5), ("LATE", 6)]


def test_play_after_the_allowed_lateness_is_dropped_and_listed() -> None:
    script = TestStream().add([play(10, 5)]).advance_watermark_to(120 + 600).add([play(30, 1)])
    _, dropped = scores.run(script)
    assert dropped.kind == bm.PaneKind.DROPPED
    assert dropped.reason == bm.DropReason.EXPIRED
    assert dropped.values == play(30, 1)
    assert dropped.late_by_us == (720 - 30) * 1_000_000
