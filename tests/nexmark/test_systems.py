"""Nexmark on other systems: which answers are accepted, and the tables of the results."""

from contextlib import nullcontext
from datetime import timedelta

import pytest

import beamish as bm
from benchmarks.nexmark import on_sql
from benchmarks.nexmark.answers import _sorted, expected, judge, of_changes
from benchmarks.nexmark.events import READS, Settings, tables
from benchmarks.nexmark.on_beamish import queries
from benchmarks.nexmark.on_flink import QUERIES, REFUSED, TABLES, known_refusal
from benchmarks.nexmark.table import beside
from benchmarks.nexmark.table import tables as of_results

SETTINGS = Settings(5_000, rate=100, group=100)
EVENTS = {name: table.to_pylist() for name, table in tables(SETTINGS, 0, SETTINGS.events).items()}


@pytest.mark.parametrize("query", QUERIES)
def test_flinks_queries_read_columns_of_the_events_and_the_inputs_of_ours(query):
    of = QUERIES[query].columns
    assert {TABLES[table] for table in of} == set(READS.get(query, ("bids",)))
    for table, columns in of.items():
        assert set(columns) <= EVENTS[TABLES[table]][0].keys()
        assert "dateTime" in columns


def test_every_query_of_ours_is_said_in_flinks_sql():
    assert QUERIES.keys() == queries(SETTINGS.longest_auction_ms).keys()


def test_changes_make_the_rows_that_are_left():
    changes = [
        ["+I", 7, 1.5],
        ["+I", 8, 2.0],
        ["-U", 7, 1.5],
        ["+U", 7, 2.5],
        ["+I", 9, 3.0],
        ["-D", 9, 3.0],
        ["+I", -3, 1.0],
    ]
    assert of_changes("q4", changes) == [(7, 2.5), (8, 2.0)]
    assert of_changes("q12", [["+I", 0, 10, 7, 2], ["+I", 10, 20, 7, 3]]) == [(7, 5)]
    with pytest.raises(ValueError, match="a row is deleted that was not inserted"):
        of_changes("q4", [["-D", 7, 1.5]])


@pytest.mark.parametrize("query", ["q4", "q5", "q7", "q8", "q9", "q18", "q19"])
@pytest.mark.parametrize("system", ["beamish", "spark", "flink"])
def test_an_answer_is_equal_or_not(system, query):
    right = expected(query, EVENTS)
    assert judge(system, query, right, EVENTS)[0] == "equal"
    assert judge(system, query, right[1:], EVENTS)[0] == ""
    other = _sorted([*right[1:], (*right[0][:-1], right[0][-1] + right[0][-1])])
    assert judge(system, query, other, EVENTS)[0] == ""


def test_in_sql_any_of_the_bids_that_tie_may_be_the_last():
    first, *bids = ({**bid, "auction": 1_000, "bidder": 1_000} for bid in EVENTS["bids"][:3])
    tied = {
        "bids": [{**first, "dateTime": bids[-1]["dateTime"] + timedelta(seconds=9), "price": price} for price in (1, 2)]
    }
    high, low = ([tuple(row) for row in expected("q18", {"bids": [bid]})] for bid in reversed(tied["bids"]))
    assert expected("q18", tied) == high
    assert judge("flink", "q18", low, tied)[0] == "equal, but for bids that tie"
    assert judge("spark", "q18", low, tied)[0] == ""
    invented = [(*low[0][:2], 3, *low[0][3:])]
    assert judge("flink", "q18", invented, tied)[0] == ""


def test_in_sql_here_one_of_the_highest_is_enough():
    first = EVENTS["bids"][0]
    events = {"bids": [{**first, "auction": auction} for auction in (1_000, 1_001)]}
    right = expected("q7", events)
    assert len(right) == 2
    assert judge("sql", "q7", right[1:], events)[0] == "one of those that tie in each window"
    assert [judge("sql", "q7", answer, events)[0] for answer in ([], [(*right[0][:2], 5, *right[0][3:])])] == ["", ""]
    assert judge("flink", "q7", right[1:], events)[0] == ""


@pytest.mark.parametrize("query", QUERIES)
def test_sql_takes_the_queries_without_joins_of_groups(query):
    reasons = {
        **dict.fromkeys(("q4", "q6", "q9"), "a second SELECT: a statement has no subqueries"),
        "q8": "GROUP BY without an aggregate",
        "q12": "the event time of bid is dateTime",
    }
    with pytest.raises(bm.SqlError, match=reasons[query]) if query in reasons else nullcontext():
        assert on_sql.query(query).pipeline.flow.sources


def test_an_unknown_refusal_of_flink_is_an_error():
    assert {query: known_refusal(query, message) for query, message in REFUSED.items()} == REFUSED
    for query in ("q5", "q6"):
        with pytest.raises(SystemExit, match=f"{query} on Flink: SqlValidatorException: Column 'extra' not found"):
            known_refusal(query, "SqlValidatorException: Column 'extra' not found in table 'B'")


def test_in_flink_bids_a_gap_apart_are_in_one_session():
    first = {**EVENTS["bids"][0], "bidder": 1_000}
    events = {"bids": [first, {**first, "dateTime": first["dateTime"] + timedelta(seconds=10)}]}
    ours = expected("q11", events)
    assert [row[3] for row in ours] == [1, 1]
    merged = [(ours[0][0], ours[1][1], 1_000, 2)]
    assert judge("flink", "q11", merged, events)[0].startswith("equal")
    assert judge("flink", "q11", ours, events)[0] == ""
    assert judge("beamish", "q11", ours, events)[0] == "equal"


def test_in_flink_windows_of_the_clock_may_be_open_at_the_end_but_count_no_bid_twice():
    right = expected("q12", EVENTS)
    less = [(bidder, bids - 1) for bidder, bids in right]
    more = [(bidder, bids + 1) for bidder, bids in right]
    assert [judge("flink", "q12", answer, EVENTS)[0] != "" for answer in (right, less, more, [])] == [
        True,
        True,
        False,
        True,
    ]
    assert [judge("spark", "q12", answer, EVENTS)[0] != "" for answer in (right, less, more, [])] == [
        True,
        False,
        False,
        False,
    ]


def run(query, system, number, rate):
    measured = {
        "events": 2_000_000,
        "cpu_seconds": 30.0,
        "peak_mb": 900.0,
        "state_bytes": 2**20,
        "session_seconds": 3.5,
    }
    return {"query": query, "system": system, "round": number, "events_per_second": rate, **measured}


RESULTS = {
    "date": "2026-11-28",
    "command": "make nexmark",
    "versions": {"beamish": "0.2", "PySpark": "4.3", "Flink": "2.3.0"},
    "machine": {"cores": 2, "processor": "a processor"},
    "events": {"events": 2_000_000, "seed": 1, "sha256": {"bids": "0123456789abcdef01"}},
    "runs": [
        *(run("q5", "beamish", number, rate) for number, rate in enumerate((300_000, 330_000, 310_000))),
        *(run("q5", "spark", number, 300_000) for number in range(3)),
        run("q6", "beamish", 0, 50_000),
        {"query": "q6", "system": "spark", "round": 0, "refused": "NO_TIME_WINDOW"},
    ],
}


def test_tables_have_medians_and_the_range_of_ratios():
    lines = list(of_results(RESULTS))
    assert "2,000,000 events, seed 1, 3 rounds" in lines[0]
    assert "bids 0123456789abcdef" in lines[0]
    assert "Flink" not in lines[0]
    assert lines[2:6] == [
        "| events per second | beamish | spark | beamish / spark |",
        "|---|---|---|---|",
        "| q5 | 310,000 | 300,000 | 1.03 (1.00 to 1.10) |",
        "| q6 | 50,000 | refused |  |",
    ]
    assert "| q5 | 15.0 | 15.0 |" in lines
    assert "| q6 | 15.0 | refused |" in lines


def test_a_line_tells_how_a_query_runs_so_far():
    assert beside(RESULTS["runs"], "q5", ["beamish", "spark"]) == "beamish 310,000/s  spark 300,000/s (beamish 1.03)"
    assert beside(RESULTS["runs"], "q6", ["beamish", "spark", "flink"]) == "beamish 50,000/s  spark refused"
