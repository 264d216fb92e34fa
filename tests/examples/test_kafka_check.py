"""The check of `make kafka-demo` can fail: it sees each difference between the batch computation and the query's output."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from kafka_to_postgres import check
from kafka_to_postgres.check import Click, Visit

START = datetime(2024, 5, 1, tzinfo=UTC)


def at(minutes):
    return START + timedelta(minutes=minutes)


CLICKS = [
    Click(0, 0, "ann", at(0), 1),
    Click(0, 1, "ann", at(29), 2),
    Click(0, 2, "ann", at(59), 4),
    Click(1, 0, None, at(30), 8),
    Click(1, 1, None, None, 0),
    Click(1, 2, None, at(500), 16),
    Click(0, 3, "ann", at(1), 32),
]
DROPPED = [(1, 1, "null_event_time"), (0, 3, "expired")]
VISITS = Counter(
    [
        Visit("ann", at(0), at(59), 2, 3),
        Visit("ann", at(59), at(89), 1, 4),
        Visit(None, at(30), at(60), 1, 8),
        Visit(None, at(500), at(530), 1, 16),
    ]
)


def test_equal_output_has_no_problems():
    assert check.problems(CLICKS, DROPPED, VISITS, VISITS) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"dropped": [*DROPPED, DROPPED[0]]}, "1 clicks dropped twice"),
        ({"dropped": [*DROPPED, (7, 7, "expired")]}, "1 dropped clicks that are not in the topic"),
        ({"dropped": [*DROPPED, (1, 2, "expired")]}, "1 clicks wrongly dropped or kept"),
        ({"dropped": DROPPED[1:]}, "1 clicks wrongly dropped or kept"),
        ({"in_table": VISITS - Counter([Visit(None, at(30), at(60), 1, 8)])}, "1 visits missing in the table"),
        ({"in_table": VISITS + Counter([Visit("ann", at(0), at(59), 2, 3)])}, "1 wrong visits in the table"),
        ({"in_topic": Counter()}, "4 visits missing in the topic"),
        ({"in_topic": VISITS + Counter([Visit("bob", at(0), at(59), 2, 3)])}, "1 wrong visits in the topic"),
    ],
)
def test_a_difference_is_a_problem(changed, problem):
    given = {"dropped": DROPPED, "in_table": VISITS, "in_topic": VISITS} | changed
    found = check.problems(CLICKS, **given)
    assert any(problem in one for one in found), found


def test_records_fold_to_the_greatest_sequence_of_each_key():
    value = {"user": "ann", "window_start": str(at(0)), "window_end": str(at(30)), "clicks": 1, "spent": 1}
    texts = [json.dumps(value | {"spent": spent, "_sequence": spent}) for spent in (1, 3, 2)]
    records = [("a", texts[0]), ("a", texts[1]), ("a", texts[2]), ("b", texts[0]), ("b", None)]
    assert check.folded(records) == Counter([Visit("ann", at(0), at(30), 1, 3)])


def test_a_malformed_record_is_a_click_without_a_time():
    assert check.read_click(1, 2, '{"user": ') == Click(1, 2, None, None, 0)
