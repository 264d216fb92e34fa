"""Cases recorded from the peers (peers/README.md) give here what they gave then: the peer's answer, or the same decided difference."""

import json
from functools import cache

import pytest

from peers.cases import read_lines
from peers.compare import RECORDED, decisions, differences, explained, peer_of, streams
from peers.twin import by_twin
from tests.cost import deep_after

PEERS = sorted(path.name.split(".")[0] for path in RECORDED.iterdir())
PARTS = 30
TWIN = cache(lambda name, case: by_twin(peer_of(name), json.loads(case)))
"""The twin's answer, evaluated once."""


@cache
def recorded(name):
    return read_lines(RECORDED / f"{name}.jsonl.gz")


@pytest.mark.dear
@pytest.mark.parametrize("part", deep_after(PARTS // 3, range(PARTS)))
@pytest.mark.parametrize("name", PEERS)
def test_recorded_cases_differ_as_decided(name, part):
    assert_decided(name, recorded(name)[part::PARTS])


@pytest.mark.dear
@pytest.mark.parametrize("name", PEERS)
def test_recorded_cases_differ_as_decided_by_the_twin_too(name):
    peer, decided = peer_of(name), decisions(name)
    for line in recorded(name):
        found = differences(peer, line["case"], TWIN(name, json.dumps(line["case"])), line["there"])
        names = {getattr(explained(one, decided), "name", "undecided") for one in found}
        assert sorted(names) == line["decided"], (line["case"], found)


def assert_decided(name, lines):
    peer, decided = peer_of(name), decisions(name)
    for line in lines:
        here = peer.here(line["case"])
        found = differences(peer, line["case"], here, line["there"])
        names = {getattr(explained(one, decided), "name", "undecided") for one in found}
        assert sorted(names) == line["decided"], (line["case"], found)
        if found:  # where the peer goes by its own rules, ours is as the twin has it
            assert streams(here) == streams(TWIN(name, json.dumps(line["case"]))), line["case"]


@pytest.mark.parametrize("name", PEERS)
def test_the_case_of_each_decision_is_recorded_and_shows_it(name):
    for decision in decisions(name):
        lines = [line for line in recorded(name) if line["case"] == decision.case]
        assert any(decision.name in line["decided"] for line in lines), decision.name


@pytest.mark.parametrize("name", PEERS)
def test_many_recorded_cases_agree(name):
    agree = [line for line in recorded(name) if not line["decided"]]
    assert len(agree) > len(recorded(name)) / 3 > 40
