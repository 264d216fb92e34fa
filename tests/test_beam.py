"""bm.beam: descriptions of Beam's WindowInto become pipelines. Those of the SDK itself are tested by make test-peers PEERS=beam_python."""

import sys

import pytest

import beamish as bm
from beamish import triggers as t
from beamish.beam import check_lateness, pipeline_of
from beamish.errors import OptionError

MINUTE = 60_000_000
PLAIN = {
    "window_fn": {"urn": "beam:window_fn:fixed_windows:v1", "size": MINUTE, "offset": 0},
    "trigger": {"default": {}},
    "accumulation_mode": "DISCARDING",
    "output_time": "END_OF_WINDOW",
    "closing_behavior": "EMIT_ALWAYS",
    "on_time_behavior": "FIRE_ALWAYS",
}


def count(n):
    return {"element_count": {"element_count": n}}


def delayed(seconds):
    delay = {"delay_millis": str(seconds * 1000)} if seconds else {}
    return {"after_processing_time": {"timestamp_transforms": [{"delay": delay}]}}


def declared(strategy, option):
    return pipeline_of({**PLAIN, **strategy}).flow.stage.declared(option)


def test_beams_defaults_are_set():
    stage = pipeline_of(PLAIN).flow.stage
    assert stage.declared("window") == bm.FixedWindows("1 minute")
    assert stage.declared("trigger") == t.Default()
    assert stage.declared("mode") is bm.AccumulationMode.DISCARDING
    assert stage.declared("combiner") is bm.TimestampCombiner.END_OF_WINDOW
    assert stage.declared("on_time") is bm.OnTimeBehavior.FIRE_ALWAYS
    assert stage.declared("closing") is bm.ClosingBehavior.FIRE_ALWAYS


@pytest.mark.parametrize(
    ("strategy", "option", "value"),
    [
        ({"accumulation_mode": "ACCUMULATING"}, "mode", bm.AccumulationMode.ACCUMULATING),
        ({"output_time": "EARLIEST_IN_PANE"}, "combiner", bm.TimestampCombiner.EARLIEST),
        ({"output_time": "LATEST_IN_PANE"}, "combiner", bm.TimestampCombiner.LATEST),
        ({"closing_behavior": "EMIT_IF_NONEMPTY"}, "closing", bm.ClosingBehavior.FIRE_IF_NON_EMPTY),
        ({"on_time_behavior": "FIRE_IF_NONEMPTY"}, "on_time", bm.OnTimeBehavior.FIRE_IF_NON_EMPTY),
    ],
)
def test_modes_and_behaviors_have_their_counterparts(strategy, option, value):
    assert declared(strategy, option) is value


def test_allowed_lateness_is_in_milliseconds():
    assert declared({"allowed_lateness": "600000"}, "allowed_lateness").us == 10 * MINUTE


def test_a_fraction_of_a_millisecond_of_lateness_is_refused():
    check_lateness(2000)
    with pytest.raises(
        OptionError, match=r"of 1500 microseconds.* whole milliseconds, 1; .*=0\.001 for that, or 0\.002"
    ):
        check_lateness(1500)


@pytest.mark.parametrize(
    ("name", "fields", "option"),
    [
        ("fixed_windows", {"size": MINUTE, "offset": 5_000_000}, bm.FixedWindows(60, offset=5)),
        (
            "sliding_windows",
            {"size": MINUTE, "period": 10_000_000, "offset": 3_000_000},
            bm.SlidingWindows(60, 10, offset=3),
        ),
        ("session_windows", {"gap_size": 500_000}, bm.Sessions(0.5)),
        ("global_windows", {}, bm.GlobalWindow()),
    ],
)
def test_window_functions_have_their_counterparts(name, fields, option):
    assert declared({"window_fn": {"urn": f"beam:window_fn:{name}:v1", **fields}}, "window") == option


@pytest.mark.parametrize(
    ("described", "trigger"),
    [
        ({"always": {}}, t.Always()),
        ({"never": {}}, t.Never()),
        (count(3), t.AfterCount(3)),
        (delayed(0), t.AfterProcessingTime(0)),
        ({"repeat": {"subtrigger": delayed(60)}}, t.Repeatedly(t.AfterProcessingTime(60))),
        ({"after_end_of_window": {}}, t.AfterWatermark()),
        (
            {"after_end_of_window": {"early_firings": count(1), "late_firings": delayed(5)}},
            t.AfterWatermark(early=t.AfterCount(1), late=t.AfterProcessingTime(5)),
        ),
        ({"after_any": {"subtriggers": [count(1), delayed(5)]}}, t.AfterAny(t.AfterCount(1), t.AfterProcessingTime(5))),
        ({"after_all": {"subtriggers": [count(1), delayed(5)]}}, t.AfterAll(t.AfterCount(1), t.AfterProcessingTime(5))),
        ({"after_each": {"subtriggers": [count(1), {"always": {}}]}}, t.AfterEach(t.AfterCount(1), t.Always())),
        (
            {"or_finally": {"main": {"repeat": {"subtrigger": count(2)}}, "finally": count(9)}},
            t.OrFinally(t.Repeatedly(t.AfterCount(2)), t.AfterCount(9)),
        ),
    ],
)
def test_triggers_have_their_counterparts(described, trigger):
    assert declared({"trigger": described}, "trigger") == trigger


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (
            {"trigger": {"after_any": {"subtriggers": [count(1), {"always": {}}]}}},
            r"Always\(\) in AfterAny.*Repeatedly",
        ),
        (
            {
                "trigger": {
                    "after_all": {"subtriggers": [{"after_end_of_window": {"early_firings": count(1)}}, count(2)]}
                }
            },
            r"AfterWatermark\(.*in AfterAll.*Repeatedly",
        ),
        (
            {"trigger": {"or_finally": {"main": count(1), "finally": {"repeat": {"subtrigger": count(9)}}}}},
            r"in OrFinally.*Repeatedly",
        ),
        ({"trigger": {"after_synchronized_processing_time": {}}}, r"after_synchronized.*use \.trigger"),
        ({"accumulation_mode": "RETRACTING"}, r"accumulation_mode RETRACTING has no counterpart"),
        ({"window_fn": {"urn": "beam:window_fn:calendar:v1"}}, r"calendar.*use \.window"),
    ],
)
def test_parts_without_counterpart_are_refused(strategy, words):
    with pytest.raises(OptionError, match=words):
        pipeline_of({**PLAIN, **strategy})


def test_a_trigger_that_may_lose_rows_is_refused_unless_allowed():
    strategy = {**PLAIN, "trigger": count(3)}
    script = bm.testing.TestStream().add([{"ts": 1}])

    def counted(pipeline):
        return pipeline.event_time("ts", bm.BoundedOutOfOrderness(0)).accumulate(n=bm.accumulations.Count())

    with pytest.raises(bm.PipelineError, match="allow_data_loss"):
        counted(pipeline_of(strategy)).run(script)
    assert counted(pipeline_of(strategy, allow_data_loss=True)).run(script) == []


def test_without_apache_beam_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "beamish\[beam\]"'):
        bm.beam.pipeline(None)
