"""Answers of Beam Python, recorded by make test-peers: pipelines that bm.beam makes from the same WindowInto give the same."""

from pathlib import Path

import pytest

from peers.beam_python.peer import PEER
from peers.cases import read_lines
from peers.compare import differences

RECORDED = read_lines(Path(__file__).parent / "beam_python.jsonl.gz")


@pytest.mark.parametrize("part", range(5))
def test_pipelines_of_bm_beam_give_what_beam_python_gave(part):
    for one in RECORDED[part::5]:
        assert differences(PEER, one["case"], PEER.here(one["case"]), one["there"]) == []


def test_the_record_has_windows_and_triggers_of_several_kinds():
    assert len(RECORDED) >= 30
    assert len({kind for one in RECORDED for kind in PEER.kinds(one["case"])}) >= 10
