"""Rolling spans: the rules that a transcript shows less well, its state, and what its columns are called (rules/rolling.md)."""

from __future__ import annotations

from collections import Counter

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Max, Median, Sum
from beamish.checkpoint.words import stage_lines
from beamish.contract.stored import DictStore
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


# Spans without a beginning (rules/rolling.md#rolling-lifetime)

LIFETIME = SOURCE.window(bm.Rolling({"1m": "1 minute", "ever": bm.Lifetime()}, step="1 minute"))
VISITS = LIFETIME.accumulate(n=Count(), most=Max("v"))


def ever(panes):
    return [(pane.timestamp.minute, pane.values["n_1m"], pane.values["n_ever"]) for pane in panes]


def test_a_lifetime_holds_all_rows_of_a_key():
    late = SCRIPT.advance_watermark_to(240).add([{"ts": 1, "user": "ann", "v": 9}]).advance_watermark_to(3600)
    assert ever(VISITS.run(late)) == [(1, 1, 1), (2, 1, 2), (3, 0, 2), (5, 0, 3)]
    assert VISITS.run(late)[-1].values["most_ever"] == 9
    assert "all rows" in VISITS.explain()
    assert ".forget_after('30 days') drops idle keys" in " ".join(VISITS.explain().split())


def test_a_lifetime_may_end_before_the_boundary_and_have_some_accumulations_only():
    spans = {"1m": "1 minute", "before": bm.Lifetime(offset="2 minutes", only=["n"])}
    older = SOURCE.window(bm.Rolling(spans, step="1 minute")).accumulate(n=Count(), most=Max("v"))
    panes = older.run(SCRIPT.advance_watermark_to(600))
    assert [name for name in panes[0].values if name != "time"] == ["n_1m", "n_before", "most_1m"]
    assert [(pane.timestamp.minute, pane.values["n_1m"], pane.values["n_before"]) for pane in panes] == [
        (1, 1, 0),
        (2, 1, 0),
        (3, 0, 1),
        (4, 0, 2),
    ]
    names = {**public_names(bm, bm.accumulations, bm.triggers), "Pipeline": bm.Pipeline}
    assert eval(repr(older), names) == older


def test_the_state_of_a_lifetime_is_one_accumulator_per_key():
    script = TestStream()
    for minute in range(20):
        script = script.add([{"ts": 60 * minute, "user": "ann", "v": minute}]).advance_watermark_to(60 * minute)
    ((bound, (store,)),) = stages_after(VISITS.flow, script.advance_watermark_to(7200).events)
    assert bound.operator.open(store).next_due_us is None
    tables = [name for name in store if "/s" in name]
    assert [name for name in tables if name.startswith("slices")] == []
    past, _ = VISITS.state(script.advance_watermark_to(7200)).keys()
    assert past.stored == "rows before these, of which only accumulators are stored"
    assert (past.entries, past.last.minute, past.ends) == (20, 19, None)
    (held,) = VISITS.state(script.advance_watermark_to(7200)).held()
    assert (held.values["n_ever"], held.due) == (20, None)


def test_an_idle_key_has_its_last_row_and_starts_anew():
    forgets = VISITS.forget_after("5 minutes")
    script = SCRIPT.advance_watermark_to(480)
    panes = forgets.run(script)
    assert ever(panes)[-1] == (7, 0, 0)
    assert (panes[-1].is_last, panes[-1].values["most_ever"]) == (True, None)
    (held,) = forgets.state(SCRIPT.advance_watermark_to(240)).held()
    assert held.due.minute == 7
    ((bound, (store,)),) = stages_after(forgets.flow, script.events)
    assert bound.operator.open(store).next_due_us is None
    assert not [name for name in store if "/s" in name]
    back = forgets.run(script.add([{"ts": 490, "user": "ann", "v": 1}]).advance_watermark_to(540))
    assert ever(back)[-1] == (9, 1, 1)
    assert back[-1].index == 0


@pytest.mark.parametrize("keep", ["current", "history"])
def test_a_row_within_the_lateness_of_the_last_one_brings_its_key_back(keep):
    forgets = VISITS.window(bm.Rolling({"1m": "1 minute", "ever": bm.Lifetime()}, step="1 minute", keep=keep))
    forgets = forgets.forget_after("5 minutes").allowed_lateness("10 minutes").accumulating_and_retracting()
    script = SCRIPT.advance_watermark_to(480).add([{"ts": 700, "user": "ann", "v": 1}])
    last = forgets.run(SCRIPT.advance_watermark_to(480))[-1]
    assert (last.is_last, last.timestamp.minute) == (True, 7)
    rows = [pane for pane in bm.live(forgets.run(script.advance_watermark_to(720))) if pane.values["n_ever"] != 2]
    assert [pane.is_last for pane in bm.live(forgets.run(script))] == [False] * (1 if keep == "current" else 3)
    assert ever(rows)[-1] == (12, 1, 3)


def test_a_row_of_an_idle_key_is_expired():
    forgets = VISITS.forget_after("5 minutes").with_dropped()
    script = SCRIPT.advance_watermark_to(240).add([{"ts": -120, "user": "ann", "v": 1}])
    assert [str(pane.reason) for pane in forgets.run(script) if pane.reason] == ["expired"]
    assert not [pane for pane in VISITS.with_dropped().run(script) if pane.reason]


@pytest.mark.parametrize("keep", ["current", "history"])
def test_folded_doubles_that_do_not_fit_totals(keep):
    spans = bm.Rolling({"1m": "1 minute", "ever": bm.Lifetime()}, step="1 minute", keep=keep)
    floats = SOURCE.window(spans).accumulate(s=Sum("v"))
    values = [0.5, 1e300, 0.1, -1e300, 0.25]
    script = TestStream()
    for i, v in enumerate(values):
        script = script.add([{"ts": 60 * i, "user": "ann", "v": v}]).advance_watermark_to(60 * i + 60)
    panes = floats.run(script.advance_watermark_to(900))
    assert [pane.values["s_ever"] for pane in panes] == [0.5, 1e300, 1e300, 0.0, 0.25, 0.25]


def test_removals_of_folded_rows_are_found_among_them():
    payments = bm.Pipeline().from_changelog("spark").event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
    spans = bm.Rolling({"1m": "1 minute", "ever": bm.Lifetime()}, step="1 minute")
    totals = payments.window(spans).accumulate(n=Count(), total=Sum("v"), most=Max("v")).with_dropped()
    old = {"ts": 30, "user": "ann", "v": 5, "_change_type": "insert"}
    other = {"ts": 90, "user": "ann", "v": 3, "_change_type": "insert"}
    gone = {"_change_type": "delete"}
    script = TestStream().add([old, other]).advance_watermark_to(3000)
    script = script.add([old | gone, old | gone | {"v": 4}]).advance_watermark_to(3060)
    panes = totals.run(script)
    assert [str(pane.reason) for pane in panes if pane.reason] == ["unmatched_removal"]
    assert [panes[-1].values[name] for name in ("n_ever", "total_ever", "most_ever")] == [1, 3, 3]
    (last,) = totals.run(script.add([other | gone]).advance_watermark_to(3120))[-1:]
    assert (last.is_last, last.values["n_ever"], last.values["total_ever"]) == (True, 0, None)


@pytest.mark.parametrize("keep", ["current", "history"])
@pytest.mark.parametrize("span", [None, "5 minutes"])
def test_a_row_after_the_end_of_time_counts_nowhere(keep, span):
    pipeline = VISITS.window(bm.Rolling({"ever": bm.Lifetime()}, step="1 minute", keep=keep)).with_dropped()
    pipeline = pipeline.allowed_lateness("1 hour") if span is None else pipeline.forget_after(span)
    script = SCRIPT.advance_watermark_to_infinity().add([{"ts": 253_402_300_700, "user": "ann", "v": 1}])
    assert [str(pane.reason) for pane in pipeline.run(script) if pane.reason] == ["expired"]


@pytest.mark.parametrize("change", ["having", "derived", "where"])
def test_conditions_may_not_go_under_a_checkpoint(change):
    plain = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .window(bm.Rolling({"a": 5}, step=1))
        .accumulating_and_retracting()
        .accumulate(n=Count())
    )
    refined = {
        "having": lambda: plain.having(pc.field("n_a") > 1),
        "derived": lambda: plain.with_columns(m=pc.field("n_a") + 1),
        "where": lambda: plain.where(pc.field("x") > 1),
    }[change]()
    events = TestStream().add([{"ts": 1, "x": 2}]).events
    for then, now in ((plain, refined), (refined, plain)):
        ((_, (store,)),), ((bound, _),) = stages_after(then.flow, events), stages_after(now.flow, events)
        with pytest.raises(bm.StateError, match=f"with {change} "):
            bound.operator.open(DictStore(store))
