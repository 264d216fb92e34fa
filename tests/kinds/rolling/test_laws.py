"""Laws of rolling spans: a sum of sliding windows at the same ends, a batch, online as offline, and work that spans do not grow."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish import accumulations as a
from beamish.instants import instant_us
from beamish.script import as_step
from beamish.testing import TestStream
from tests.agreement import close
from tests.cost import cost
from tests.declared_options import said
from tests.kinds.rolling.strategy import latenesses, rolling, script_of, usual
from tests.kinds.versions.batch import in_a_batch
from tests.kinds.versions.twin import name_of
from tests.laws.counting import work_of_last_step
from tests.laws.ledger import check_rows

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
some = st.sampled_from([a.Count(), a.Sum("score"), a.Max("score"), a.Collect("name")])
long_scripts = st.integers(0, 2**40).map(lambda number: script_of(number, (None,)))


def latest(panes, slot):
    """The last row of each slot; a retracted one is gone."""
    rows = {}
    for pane in panes:
        if pane.kind is PaneKind.PANE:
            rows[slot(pane)] = pane
        elif pane.kind is PaneKind.RETRACTION:
            rows.pop(slot(pane), None)
    return rows


def history_of(panes):
    """By key the values in the order of their boundaries."""
    found = {}
    for (team, at), pane in latest(panes, lambda pane: (repr(pane.key.get("team")), pane.timestamp)).items():
        found.setdefault(team, {})[instant_us("at", at)] = pane.values
    return found


def at_boundary(rows, boundary):
    """The values that hold at a boundary; None before the first."""
    before = [at for at in rows if at <= boundary]
    return rows[max(before)] if before else None


@pytest.mark.of_law("law-rolling")
@cost(2)
@given(st.data())
def test_values_at_every_boundary_equal_those_of_sliding_windows_that_end_there(data):
    """Over the same rows, dropped ones included: whatever the lateness is, and however late rows are."""
    step, accumulation, lateness = data.draw(st.sampled_from([1, 2])), data.draw(some), data.draw(latenesses)
    spans = {name: data.draw(st.integers(1, 6)) * step for name in "abc"}
    mode = data.draw(
        st.sampled_from([bm.AccumulationMode.ACCUMULATING, bm.AccumulationMode.ACCUMULATING_AND_RETRACTING])
    )
    script = data.draw(long_scripts)
    declared = SOURCE.allowed_lateness(lateness).accumulation_mode(mode).accumulate(v=accumulation)
    rows = history_of(declared.window(bm.Rolling(spans, step=step, keep="history")).run(script))
    reached = max((event.watermark_us or 0 for event in map(as_step, script.events)), default=0)
    for name, span in spans.items():
        panes = declared.window(bm.SlidingWindows(span, step)).run(script)
        ends = latest(panes, lambda pane: (repr(pane.key["team"]), instant_us("end", pane.window.end)))
        (none,) = a_value_of_no_rows(accumulation)
        for team in rows.keys() | {team for team, _ in ends}:
            own = rows.get(team, {})
            for end in {end for of, end in ends if of == team} | own.keys():
                window = ends.get((team, end))
                expected = none if window is None else window.values["v"]
                found = at_boundary(own, end)
                assert close(none if found is None else found[f"v_{name}"], expected), (name, team, end, reached)


def a_value_of_no_rows(accumulation):
    """The value of a span without rows."""
    empty = SOURCE.window(bm.Rolling({"a": 1}, step=1)).accumulate(v=accumulation)
    script = TestStream().add([{"ts": 0.5, "team": "red", "score": 1, "name": "a"}]).advance_watermark_to(9)
    return [pane.values["v_a"] for pane in empty.run(script) if pane.is_last]


@pytest.mark.of_law("law-rolling")
@cost(2)
@given(st.data())
def test_a_lifetime_at_every_boundary_is_the_accumulation_of_all_rows_before_it(data):
    """Brute force, of those that arrived while the boundary was open: over rows that are folded, late, and beyond all other spans."""
    step, lateness = data.draw(st.sampled_from([1, 2])), data.draw(latenesses)
    offset, span = data.draw(st.integers(0, 3)) * step, data.draw(st.integers(1, 3)) * step
    script = data.draw(long_scripts)
    spans = {"ever": bm.Lifetime(offset=offset), "a": span}
    values = {"n": a.Count(), "total": a.Sum("score"), "most": a.Max("score"), "names": a.Collect("name")}
    pipeline = SOURCE.allowed_lateness(lateness).accumulate(**values)
    found = history_of(pipeline.window(bm.Rolling(spans, step=step, keep="history")).run(script))
    rows, watermark_us = {}, None
    for event in map(as_step, script.events):
        watermark_us = event.watermark_us if event.watermark_us is not None else watermark_us
        for row in event.rows:
            if row["ts"] is not None:
                rows.setdefault(repr(row["team"]), []).append((row, watermark_us))
    last_us = min(watermark_us or 0, 100_000_000)
    for team, own in rows.items():
        for boundary in range(-60, last_us // 1_000_000 + 1, step):
            opens = [row for row, at_us in own if at_us is None or (boundary + lateness) * 1_000_000 > at_us]
            held = sorted((row for row in opens if row["ts"] < boundary - offset), key=lambda row: row["ts"])
            scores = [row["score"] for row in held if row["score"] is not None]
            shown = at_boundary(found.get(team, {}), boundary * 1_000_000)
            shown = shown or {"n_ever": 0, "total_ever": None, "most_ever": None, "names_ever": []}
            assert shown["n_ever"] == len(held), (team, boundary)
            assert shown["total_ever"] == (sum(scores) if scores else None), (team, boundary)
            assert shown["most_ever"] == max(scores, default=None), (team, boundary)
            assert sorted(shown["names_ever"]) == sorted(row["name"] for row in held if row["name"] is not None)


@pytest.mark.of_law("law-rolling")
@cost(2)
@given(st.data())
def test_a_batch_gives_the_rows_that_are_live_at_the_end_of_time(data):
    """With a lateness that takes all rows; a batch drops only rows without event time."""
    pipeline = data.draw(rolling(usual))
    script = data.draw(long_scripts)
    pipeline = bm.Pipeline(
        attrs.evolve(
            pipeline.flow,
            stage=pipeline.flow.stage.declaring(
                "lateness", allowed_lateness=bm.durations.Duration(10**12), with_dropped=False, forget_after=None
            ),
        )
    )
    keys = said(pipeline).keys

    def slot(pane):
        key = [pane.key[name] for name in keys]
        return name_of(key), pane.timestamp if "time" in pane.key else None

    streamed = latest(pipeline.run(script.advance_watermark_to_infinity()), slot)
    batch = in_a_batch(pipeline, script, data.draw(st.integers(1, 3)))
    assert len(batch) == len({slot(pane) for pane in batch})
    assert {str(pane.timing) for pane in batch} <= {"ON_TIME"}
    found = {slot(pane): pane for pane in batch}
    if said(pipeline).window.keep == "current":
        # At the end of time every key is over: late rows may bring one that is, or end it later.
        assert streamed.keys() <= found.keys()
        stays = said(pipeline).window.has_lifetime
        assert all(pane.is_last is not stays for pane in [*batch, *streamed.values()])
        for at, pane in streamed.items() if stays else ():
            own, other = dict(pane.values), dict(found[at].values)
            del own["time"], other["time"]  # a late row may end what it was in later
            assert close(own, other), at
        return
    # In an accumulating stream a row that became equal to the one before stays.
    assert found.keys() <= streamed.keys()
    assert found.keys() == streamed.keys() or not said(pipeline).retracts
    for at, pane in found.items():
        assert close(dict(pane.values), dict(streamed[at].values)), at


@pytest.mark.of_law("law-rolling")
@given(st.data())
def test_the_current_row_is_the_last_row_of_the_history(data):
    step = data.draw(st.sampled_from([1, 2]))
    accumulation = data.draw(some)
    declared = SOURCE.allowed_lateness(data.draw(latenesses)).accumulate(v=accumulation)
    options = {name: data.draw(st.integers(1, 5)) * step for name in "ab"}
    script = data.draw(long_scripts)
    history = history_of(declared.window(bm.Rolling(options, step=step, keep="history")).run(script))
    panes = declared.window(bm.Rolling(options, step=step)).run(script)
    current = latest(panes, lambda pane: repr(pane.key["team"]))
    (none,) = a_value_of_no_rows(accumulation)
    assert current.keys() <= history.keys()
    for team, rows in history.items():  # late rows may bring a key that is over already
        values = dict(current[team].values) if team in current else {"v_a": none, "v_b": none}
        values.pop("time", None)
        assert close(values, dict(rows[max(rows)]))


@pytest.mark.of_law("law-rolling")
@cost(2)
@given(st.data())
def test_features_joined_with_labels_in_a_stream_equal_those_of_a_batch(data):
    """Online is offline: late rows correct the history, its versions, and the joined rows."""
    step, span = data.draw(st.sampled_from([1, 2])), data.draw(st.integers(1, 5))
    mode = data.draw(
        st.sampled_from([bm.AccumulationMode.ACCUMULATING, bm.AccumulationMode.ACCUMULATING_AND_RETRACTING])
    )
    features = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.Rolling({"a": span * step}, step=step, keep="history"))
        .allowed_lateness(10**6)
        .accumulation_mode(mode)
        .accumulate(n=a.Count(), most=a.Max("score"))
        .then(bm.Pipeline().key_by("team").versions(10**7, values=["n_a", "most_a"]))
    )
    labels = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
    joined = bm.as_of_join(labels=labels, features=features, on="team", how="left").accumulating_and_retracting()
    script = script_of(data.draw(st.integers(0, 2**40)), ("labels", "features"), ends=True)
    streamed = joined_rows(joined.run(script))
    at_once = TestStream()
    for name in ("labels", "features"):
        rows = [row for event in map(as_step, script.events) if event.input == name for row in event.rows]
        at_once = at_once.add(rows, input=name)
    assert streamed == joined_rows(joined.run(at_once.advance_watermark_to_infinity()))


@pytest.mark.of_law("law-rolling")
@cost(2)
@given(st.data())
def test_a_rate_limit_holds_updates_back_and_loses_none(data):
    pipeline = data.draw(rolling(usual))
    wait, clock = data.draw(st.sampled_from([0, 1, 3, 20])), data.draw(st.sampled_from(["event", "processing"]))
    script = script_of(data.draw(st.integers(0, 2**40)), (None,), ends=True).advance_processing_time_to(10**6)
    keys = said(pipeline).keys

    def slot(pane):
        return name_of([pane.key[name] for name in keys]), pane.timestamp if "time" in pane.key else None

    limited = pipeline.suppress(bm.UntilTimeLimit(wait, clock=clock)).run(script)
    check_rows(pipeline, limited)
    rows, expected = latest(limited, slot), latest(pipeline.run(script), slot)
    assert rows.keys() == expected.keys()
    assert all(close(dict(pane.values), dict(rows[at].values)) for at, pane in expected.items())


def joined_rows(panes):
    """The live rows of a join, as text."""
    live = []
    for pane in panes:
        match = pane.values["features"]
        words = repr(
            (
                pane.timestamp,
                pane.key,
                pane.values["part"],
                pane.values["score"],
                pane.values["name"],
                pane.values["ratio"],
                pane.values["flag"],
                match and (match["n_a"], match["most_a"]),
            )
        )
        if pane.kind is PaneKind.PANE:
            live.append(words)
        else:
            live.remove(words)
    return sorted(live)


def test_work_is_independent_of_the_number_of_steps_in_a_span():
    """Entries of the store and calls of a step, over rows that are as many."""
    few, many = (work(steps) for steps in (10, 10_000))
    assert many[0] <= few[0]
    assert many[1] <= 1.1 * few[1]


def test_rows_are_at_most_two_per_row_and_span_and_one_more():
    for steps in (2, 50, 1000):
        panes = spans_of(steps).run(script_of(7, (None,), ends=True))
        rows = sum(len(as_step(event).rows) for event in script_of(7, (None,)).events)
        assert len(panes) <= 2 * 2 * rows


def spans_of(steps):
    return SOURCE.window(bm.Rolling({"a": steps, "b": 2 * steps}, step=1)).accumulate(n=a.Count(), most=a.Max("score"))


def work(steps):
    """Entries and calls of the step in which the watermark passes the boundaries where ten rows enter and leave spans."""
    pipeline, script = spans_of(steps), TestStream()
    script = script.add([{"ts": i + 0.5, "team": str(i), "score": 1} for i in range(10)]).advance_watermark_to(5)
    script = script.advance_watermark_to(3 * steps + 20)
    return work_of_last_step(pipeline, script.events)


@pytest.mark.of_law("law-suppress-identity", "law-suppress-nothing-is-lost")
@cost(2)
@given(st.data())
def test_a_suppress_of_spans_gives_the_same_rows_later(data):
    """Without a wait the same rows in order; with one the same live rows in the end."""
    pipeline = data.draw(rolling(usual).filter(lambda one: not said(one.flow).with_dropped))
    script = script_of(data.draw(st.integers(0, 2**40)), (None,), ends=True).advance_processing_time_to(10_000)
    plain = pipeline.run(script)
    assert pipeline.suppress(bm.UntilTimeLimit(0, clock="event")).run(script) == plain
    clock, wait = data.draw(st.sampled_from(["event", "processing"])), data.draw(st.sampled_from([1, 3, 100]))
    held = pipeline.suppress(bm.UntilTimeLimit(wait, clock=clock))
    waited = held.run(script)
    check_rows(held, waited)

    def table(panes):
        rows = latest(panes, lambda pane: repr(pane.key))
        return {name: repr((dict(pane.values), pane.timestamp)) for name, pane in rows.items()}

    assert table(waited) == table(plain)
