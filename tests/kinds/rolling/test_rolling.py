"""Rolling spans: the rules that a transcript shows less well, its state, and what its columns are called (rules/rolling.md)."""

from __future__ import annotations

from collections import Counter

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Max, Median, Sum
from beamish.checkpoint.words import stage_lines
from beamish.flow import descriptions
from beamish.local import stages_after
from beamish.stage_facts import stage_facts
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always
from tests.public_names import public_names

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
SPANS = {"2m": "2 minutes", "5m": "5 minutes"}
FEATURES = SOURCE.window(bm.Rolling(SPANS, step="1 minute")).accumulate(n=Count(), total=Sum("v"))
HISTORY = FEATURES.window(bm.Rolling(SPANS, step="1 minute", keep="history")).allowed_lateness("1 hour")
SCRIPT = TestStream().add([{"ts": 30, "user": "ann", "v": 2}, {"ts": 70, "user": "ann", "v": 3}])


def minutes(panes):
    return [(pane.timestamp.minute, pane.values["n_2m"], pane.values["n_5m"]) for pane in panes]


def test_the_worked_example():
    assert minutes(FEATURES.run(SCRIPT.advance_watermark_to(420))) == [
        (1, 1, 1),
        (2, 2, 2),
        (3, 1, 2),
        (4, 0, 2),
        (6, 0, 1),
        (7, 0, 0),
    ]


def test_each_accumulation_has_a_column_per_span_and_time_is_the_boundary():
    first, *_, last = FEATURES.run(SCRIPT.advance_watermark_to(420))
    assert list(first.values) == ["time", "n_2m", "n_5m", "total_2m", "total_5m"]
    assert first.values["time"] == first.timestamp
    assert first.window is None
    assert (last.is_last, last.values["total_5m"]) == (True, None)


def test_time_is_a_key_of_the_history():
    (pane,) = HISTORY.run(SCRIPT.advance_watermark_to(60))
    assert pane.key == {"user": "ann", "time": pane.timestamp}


def test_steps_at_which_nothing_changes_emit_nothing():
    days = SOURCE.window(bm.Rolling({"d": "1 day"}, step="1 second")).accumulate(n=Count())
    script = TestStream().add([{"ts": 0.5, "user": "ann"}]).advance_watermark_to(86_400).advance_watermark_to(10**6)
    assert [(pane.timestamp.timestamp(), pane.values["n_d"]) for pane in days.run(script)] == [(1, 1), (86_401, 0)]


def test_a_jump_of_the_watermark_gives_what_its_steps_give():
    script = SCRIPT
    for second in range(0, 430, 7):
        script = script.advance_watermark_to(second)
    assert FEATURES.run(script.advance_watermark_to(430)) == FEATURES.run(SCRIPT.advance_watermark_to(430))


def test_any_accumulation_that_merges_is_recombined():
    every = SOURCE.window(bm.Rolling({"2m": "2 minutes"}, step="1 minute"))
    every = every.accumulate(most=Max("v"), all=Collect("v"), middle=Median("v"))
    panes = every.run(SCRIPT.advance_watermark_to(240))
    assert [tuple(pane.values.values())[1:] for pane in panes] == [
        (2, [2], 2.0),
        (3, [2, 3], 2.5),
        (3, [3], 3.0),
        (None, [], None),
    ]


def test_a_sum_that_overflows_names_its_key_and_boundary():
    script = TestStream().add([{"ts": 1, "user": "ann", "v": 2**62}, {"ts": 61, "user": "ann", "v": 2**62}])
    with pytest.raises(
        bm.NumericOverflowError, match=r"key {'user': 'ann'}, at 1970-01-01 00:02:00: the sum of column 'v'"
    ):
        FEATURES.run(script.advance_watermark_to(120))


def test_sums_of_floats_leave_nothing_behind():
    """A value that has left a span leaves no rounding: 1e16 swallows what is added beside it."""
    floats = SOURCE.window(bm.Rolling({"1m": "1 minute", "3m": "3 minutes"}, step="1 minute")).accumulate(s=Sum("v"))
    script = TestStream().add([{"ts": 60 * i, "user": "ann", "v": v} for i, v in enumerate([1e16, 0.5, 0.25])])
    panes = floats.run(script.advance_watermark_to(300))
    found = [(pane.values["s_1m"], pane.values["s_3m"]) for pane in panes]
    assert found == [(1e16, 1e16), (0.5, 1e16), (0.25, 1e16), (None, 0.75), (None, 0.25)]


@pytest.mark.parametrize("keep", ["current", "history"])
def test_doubles_that_do_not_fit_totals_are_recombined_and_leave_nothing_behind(keep):
    spans = bm.Rolling({"1m": "1 minute", "3m": "3 minutes"}, step="1 minute", keep=keep)
    floats = SOURCE.window(spans).allowed_lateness("1 hour").accumulate(s=Sum("v"))
    values = [1e300, 0.1, float("inf"), 0.2]
    script = TestStream().add(
        [{"ts": 60 * i, "user": user, "v": v} for i, v in enumerate(values) for user in ("ann", "bob")]
    )
    panes = [pane for pane in floats.run(script.advance_watermark_to(360)) if pane.key["user"] == "bob"]
    found = [(pane.values["s_1m"], pane.values["s_3m"]) for pane in panes]
    inf = float("inf")
    assert found == [(1e300, 1e300), (0.1, 1e300), (inf, inf), (0.2, inf), (None, inf), (None, 0.2)]
    late = floats.run(script.advance_watermark_to(360).add([{"ts": 210, "user": "bob", "v": 1e300}]))
    assert late[-1].values["s_3m"] == 1e300


def test_conditions_and_computed_columns_apply_to_rows():
    rates = FEATURES.where(pc.field("v") > 2).with_columns(mean=pc.field("total_5m") / pc.field("n_5m"))
    (pane,) = rates.having(pc.field("n_2m") > 0).run(SCRIPT.advance_watermark_to(150))
    assert (pane.values["n_2m"], pane.values["mean"]) == (1, 3)


def test_several_inputs_count_together():
    both = bm.merge(left=SOURCE, right=SOURCE).window(bm.Rolling({"1m": "1 minute"}, step="1 minute"))
    both = both.accumulate(n=Count(), lefts=Count().of("left"))
    script = TestStream().add([{"ts": 1, "user": "ann"}], input="left").add([{"ts": 2, "user": "ann"}], input="right")
    (pane,) = both.run(script.advance_watermark_to(60))
    assert (pane.values["n_1m"], pane.values["lefts_1m"]) == (2, 1)


def test_an_early_row_is_emitted_when_its_boundary_becomes_the_next_one():
    early = FEATURES.trigger(AfterWatermark(early=AfterCount(1), late=AfterCount(1)))
    script = TestStream().advance_watermark_to(10).add([{"ts": 70, "user": "ann", "v": 1}]).advance_watermark_to(60)
    assert [str(pane.timing) for pane in early.run(script)] == ["EARLY"]


def test_a_pipeline_with_it_has_a_repr_that_evaluates_to_it():
    names = {**public_names(bm, bm.accumulations, bm.triggers), "Pipeline": bm.Pipeline}
    for pipeline in (
        FEATURES,
        HISTORY,
        FEATURES.window(bm.Rolling({"w": bm.Span("1 hour", offset="7 days")}, step="1 hour")),
    ):
        assert eval(repr(pipeline), names) == pipeline


def test_another_window_makes_it_a_window_stage_and_back():
    fixed = FEATURES.window(bm.FixedWindows("1 minute"))
    assert type(fixed.flow.stage).__name__ == "WindowStage"
    assert fixed.window(bm.Rolling(SPANS, step="1 minute")) == FEATURES


def test_its_order_of_calls_does_not_matter():
    rolling = bm.Rolling(SPANS, step="1 minute")
    assert SOURCE.accumulate(n=Count()).window(rolling) == SOURCE.window(rolling).accumulate(n=Count())


def test_explain_has_its_words():
    words = HISTORY.explain()
    assert "one row per key and boundary where values change" in words
    assert "they correct every emitted boundary that they count at" in " ".join(words.split())


def test_state_shows_the_row_of_each_key_and_when_its_values_may_change_next():
    for pipeline in (FEATURES, HISTORY):
        (row,) = pipeline.state(SCRIPT.advance_watermark_to(200)).held()
        assert (row.name, row.key["user"], row.values["n_2m"]) == ("rolling spans", "ann", 1)
        assert (row.since.minute, row.due.minute) == (3, 4)
    assert FEATURES.state(SCRIPT).held() == []
    with pytest.raises(bm.PipelineError, match=r"windows\(\): no stage has windows"):
        FEATURES.state(SCRIPT).windows()


def test_inspect_knows_its_clocks():
    ((bound, stores),) = stages_after(FEATURES.flow, SCRIPT.advance_watermark_to(200).events)
    facts = stage_facts(dict(enumerate(stores)), descriptions(bound)[0])
    assert dict(stage_lines(facts, 0, 0, ()))["watermark"] == "at 1970-01-01 00:03:20"


def test_a_late_row_of_a_key_that_expires_in_its_step_starts_over():
    """Its last row is at 2:00; the watermark passes 2:00 and the lateness, though not the next boundary, as a late row arrives."""
    late = SOURCE.window(bm.Rolling({"1m": "1 minute"}, step="1 minute")).allowed_lateness("90 seconds")
    script = TestStream().add([{"ts": 30, "user": "ann"}]).advance_watermark_to(200)
    panes = late.accumulate(n=Count()).run(script.step([{"ts": 150, "user": "ann"}], watermark=212))
    assert [(pane.timestamp.minute, pane.index) for pane in panes] == [(1, 0), (2, 1), (3, 0)]


def test_a_key_that_is_over_leaves_no_state():
    ((bound, (store,)),) = stages_after(FEATURES.flow, SCRIPT.advance_watermark_to(430).events)
    assert bound.operator.open(store).next_due_us is None
    assert not [name for name in store if "/s" in name]


def test_retractions_of_a_stage_leave_spans_and_a_key_without_rows_ends():
    """A payment that moves to another user: the first one's row is retracted, and has its last row."""
    payments = bm.Pipeline().from_changelog("spark").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
    spans = bm.Rolling({"2m": "2 minutes"}, step="1 minute")
    totals = payments.window(spans).allowed_lateness("5 minutes").accumulate(n=Count(), total=Sum("v"))
    script = (
        TestStream()
        .add([{"ts": 30, "user": "ann", "v": 5, "_change_type": "insert"}])
        .advance_watermark_to(60)
        .add(
            [
                {"ts": 30, "user": "ann", "v": 5, "_change_type": "update_preimage"},
                {"ts": 30, "user": "bob", "v": 7, "_change_type": "update_postimage"},
            ]
        )
    )
    panes = totals.run(script)
    assert [(pane.key["user"], pane.values["n_2m"], pane.values["total_2m"], pane.is_last) for pane in panes] == [
        ("ann", 1, 5, False),
        ("ann", 0, None, True),
        ("bob", 1, 7, False),
    ]
    counts = SOURCE.window(bm.FixedWindows("1 minute")).trigger(AfterWatermark(early=Always(), late=Always()))
    counts = counts.accumulating_and_retracting().accumulate(n=Count())
    # The pane of two rows replaces that of one, so that their sum is 2 and not 3.
    rolled = counts.then(bm.Pipeline().key_by("user").window(spans).accumulate(rows=Sum("n"), most=Max("n")))
    script = TestStream().add([{"ts": 1, "user": "ann"}]).add([{"ts": 2, "user": "ann"}]).advance_watermark_to(60)
    (pane,) = rolled.run(script.advance_watermark_to(61))
    assert dict(pane.values) | {"time": None} == {"time": None, "rows_2m": 2, "most_2m": 2}


def test_a_slice_that_lost_all_its_rows_leaves_no_state():
    payments = bm.Pipeline().from_changelog("spark").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
    totals = payments.window(bm.Rolling({"2m": "2 minutes"}, step="1 minute")).accumulate(n=Count(), most=Max("v"))
    row = {"ts": 30, "user": "ann", "v": 5}
    script = TestStream().add([row | {"_change_type": "insert"}]).add([row | {"_change_type": "delete"}])
    ((bound, (store,)),) = stages_after(totals.flow, script.advance_watermark_to(61).events)
    assert totals.run(script) == []
    assert bound.operator.open(store).next_due_us is None
    assert not [name for name in store if "/s" in name]


@pytest.mark.parametrize(("keys", "step"), [(300, 1), (3000, 20)])
def test_a_slice_of_a_count_and_a_sum_takes_less_than_40_bytes(keys, step):
    """Rows of ``1 / step`` of the keys in each minute of half an hour; a key has totals and its last row besides."""
    spans = {"1h": "1 hour", "12h": "12 hours", "24h": "24 hours"}
    features = SOURCE.window(bm.Rolling(spans, step="1 minute")).accumulate(n=Count(), total=Sum("v"))
    script, slices = TestStream(), 0
    for minute in range(30):
        users = range(minute % step, keys, step)
        slices += len(users)
        rows = [
            {"ts": 60 * minute + user / 100, "user": f"user-{user:05}", "v": user * 7919 % 1000 / 8} for user in users
        ]
        script = script.add(rows).advance_watermark_to(60 * minute)
    ((_, (store,)),) = stages_after(features.flow, script.events)
    size = Counter()
    for name, value in store.items():
        size[name.partition("/")[0]] += len(value)
    assert size["slices"] < 40 * slices
    assert size["totals"] + size["rows"] < 200 * keys


def test_a_span_may_have_some_accumulations_only():
    spans = {"2m": "2 minutes", "5m": bm.Span("5 minutes", only=["n"])}
    features = SOURCE.window(bm.Rolling(spans, step="1 minute")).accumulate(n=Count(), most=Max("v"))
    panes = features.run(SCRIPT.advance_watermark_to(420))
    assert [name for name in panes[0].values if name != "time"] == ["n_2m", "n_5m", "most_2m"]
    assert [(pane.timestamp.minute, pane.values["most_2m"]) for pane in panes] == [
        (1, 2),
        (2, 3),
        (3, 3),
        (4, None),
        (6, None),
        (7, None),
    ]
    assert "5m: the last 5 minutes (n only)" in " ".join(features.explain().split())
    assert repr(features.flow.stage.rolling).startswith(
        "Rolling({'2m': '2 minutes', '5m': Span('5 minutes', only=['n'])}"
    )
