"""Decisions are predictions: what a peer has not given is seen, wherever a recorded answer is spoiled (python -m peers.spoil)."""

import json

import pytest

from peers.compare import RECORDED, RUNS
from peers.spoil import LIMIT, counts, spoiled
from tests.cost import deep_after

PEERS = sorted(path.name.split(".")[0] for path in RECORDED.iterdir())


@pytest.mark.dear
@pytest.mark.parametrize("every", deep_after(1, [5, 1]))
@pytest.mark.parametrize("name", PEERS)
def test_decisions_excuse_few_spoiled_rows(name, every):
    some, excused = counts(name, every=every)
    assert some.total() > 1000 / every
    assert excused.total() <= LIMIT * some.total(), excused


def test_rows_are_spoiled_in_each_way_that_they_can_be():
    row = {"stream": ["red"], "place": [3, 10, 5], "rows": [1, 2], "timing": "LATE", "replaced": None}
    ways = [(way, there) for way, there in spoiled([row])]
    assert [way for way, _ in ways] == [
        "lost",
        "twice",
        "order",
        "rows",
        "rows",
        "retractions",
        "retractions",
        "timing",
    ]
    assert all(there != [row] for _, there in ways)


def test_seen_rows_are_noted_for_each_peer():
    for name, run in json.loads(RUNS.read_text("utf-8")).items():
        assert sum(some for some, _ in run["spoiled"].values()) > 1000, name
