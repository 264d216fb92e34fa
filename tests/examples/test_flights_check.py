"""The main job's check sees what it is there to see: it must be able to fail."""

import importlib

import pandas as pd
import pytest

HOUR = pd.Timedelta("1h")
START = pd.Timestamp("2013-01-01 10:00", tz="UTC")


@pytest.fixture
def check(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "examples"))
    return importlib.import_module("flights_check")


def row(kind, index, departures, mean_delay, start=START):
    timing = "EARLY" if index == 0 else "ON_TIME"
    return {
        "kind": kind,
        "timing": timing,
        "index": index,
        "origin": "JFK",
        "start": start,
        "end": start + HOUR,
        "departures": departures,
        "mean_delay": mean_delay,
    }


def ledger(*rows):
    return pd.DataFrame([row(*entry) for entry in rows])


def test_live_panes_are_those_not_retracted(check):
    live, problems = check.live_panes(
        ledger(("PANE", 0, 2, None), ("RETRACTION", 0, 2, None), ("PANE", 1, 3, 1.5)), ["origin"]
    )
    assert problems == []
    assert live["departures"].tolist() == [3]


def test_retraction_of_a_missing_pane_is_a_problem(check):
    _, problems = check.live_panes(ledger(("PANE", 0, 2, None), ("RETRACTION", 0, 5, None)), ["origin"])
    assert problems == ["1 retractions take back a pane that is not there"]


def test_two_live_panes_of_a_window_are_a_problem(check):
    _, problems = check.live_panes(ledger(("PANE", 0, 2, None), ("PANE", 1, 3, 1.5)), ["origin"])
    assert problems == ["1 windows have more than one live pane"]


def flights(*delays):
    return pd.DataFrame(
        {
            "flight_id": range(len(delays)),
            "origin": "JFK",
            "tailnum": "N1",
            "distance": 100,
            "scheduled": [START + pd.Timedelta(minutes=20 * number) for number in range(len(delays))],
            "delay": pd.array(delays, dtype="Int32"),
            "cancelled": [int(delay is None) for delay in delays],
        }
    )


def test_batch_computation_counts_departures_and_cancelled_flights_apart(check):
    (hour,) = check.hourly(flights(10, None, 20)).to_dict("records")
    assert (hour["departures"], hour["cancelled"], hour["mean_delay"]) == (2, 1, 15.0)


def test_equal_panes_have_no_differences_and_a_changed_value_has_one(check):
    expected = check.hourly(flights(10, None, 20)).drop(columns="cancelled")
    values = ["departures", "mean_delay"]
    assert check.differences(expected.copy(), expected, ["origin"], values) == []
    assert check.differences(expected.assign(departures=7), expected, ["origin"], values) == [
        "departures differs in 1 windows"
    ]
    assert check.differences(expected.assign(mean_delay=None), expected, ["origin"], values) == [
        "mean_delay differs in 1 windows"
    ]
    later = expected.assign(start=START + HOUR, end=START + 2 * HOUR)
    assert check.differences(later, expected, ["origin"], values) == [
        "1 windows are only in the batch computation",
        "1 windows are only in the stream",
    ]


def test_sessions_part_where_the_gap_is_reached_and_not_before(check):
    twenty = pd.Timedelta("20min")
    assert len(check.sessions(flights(0, 0, 0), twenty)) == 3
    (session,) = check.sessions(flights(0, 0, 0), twenty + pd.Timedelta("1us")).to_dict("records")
    assert (session["start"], session["departures"], session["miles"]) == (START, 3, 300)
    assert session["end"] == START + 3 * twenty + pd.Timedelta("1us")


def test_flight_is_too_late_when_its_hour_has_expired_by_the_batches_before(check):
    first, second = flights(0), flights(0)
    watermark = START + HOUR + HOUR
    first["scheduled"] = watermark + pd.Timedelta("30min")
    assert check.too_late([first, second], pd.Timedelta("30min"), HOUR) == {0}
    assert check.too_late([first, second], pd.Timedelta("31min"), HOUR) == set()
    assert check.too_late([second, first], pd.Timedelta("30min"), HOUR) == set()
