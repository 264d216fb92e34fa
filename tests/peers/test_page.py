"""docs/peers.md has the counts of peers/runs.json and the decisions of peers/decided.json."""

import json

from peers import page
from peers.compare import DECIDED, RECORDED, RUNS, peer_of


def test_the_page_has_the_counts_and_decisions():
    assert page.PART.search(page.PAGE.read_text("utf-8"))[0] == page.part(), "python -m peers.page"


def test_counts_are_of_the_version_compared_now_and_of_each_peer():
    runs = json.loads(RUNS.read_text("utf-8"))
    assert {name: run["version"] for name, run in runs.items()} == {name: peer_of(name).version for name in runs}
    assert set(runs) == {path.name.split(".")[0] for path in RECORDED.iterdir()}
    assert set(runs) >= {one["peer"] for one in json.loads(DECIDED.read_text("utf-8"))}


def test_cases_that_differ_are_decided():
    for run in json.loads(RUNS.read_text("utf-8")).values():
        differ = run["cases"] - run["agreed"]
        assert max(run["decided"].values(), default=0) <= differ <= sum(run["decided"].values())
