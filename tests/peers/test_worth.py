"""Drawn cases test something: both sides emit, and most are hard."""

import json

import pytest

from peers import cases, worth
from peers.cases import drawn
from peers.compare import RUNS, peer_of
from peers.worth import EASY, SILENT, Quota
from tests.cost import deep_after

PEERS = sorted(json.loads(RUNS.read_text("utf-8")))
ROW = {"stream": ["red", 0, 5], "place": [1], "rows": [1]}


def case(*events):
    return {"script": list(events)}


def test_a_late_row_is_behind_the_watermark_or_an_earlier_row():
    row, later = {"ts": 1, "key": "red", "n": 0}, {"ts": 5, "key": "red", "n": 1}
    assert worth.tested(case({"watermark": 3}, {"rows": [row]}), [ROW], [ROW]) == {"emits", "hard", "late"}
    assert worth.tested(case({"rows": [later]}, {"rows": [row]}), [ROW], [ROW]) == {"emits", "hard", "late"}
    assert worth.tested(case({"rows": [later]}, {"rows": [row]}, {"watermark": 9}), [ROW], [ROW]) == {"emits"}


def test_both_sides_must_emit():
    refused = {"stream": ["refused"], "place": [], "refused": True}
    assert worth.tested(case(), [ROW], [refused]) == {"refused"}


def test_a_window_again_a_retraction_and_a_tie_are_hard():
    again = {**ROW, "place": [2], "replaced": [1]}
    assert worth.tested(case(), [ROW, again], [ROW]) == {"emits", "hard", "again", "retracted"}
    tied = {"rows": [{"ts": 1, "key": "red", "n": n} for n in (0, 1)]}
    assert "tied" in worth.tested(case(tied), [ROW], [ROW])


@pytest.mark.dear
@pytest.mark.parametrize("name", deep_after(1, PEERS))
def test_few_drawn_cases_are_silent_or_easy(name, monkeypatch):
    monkeypatch.setattr(cases, "PER_SEED", 50)
    peer = peer_of(name)
    quota = Quota(peer)
    assert len(list(drawn(peer.cases, 15, 7, quota))) == quota.kept == 15
    assert quota.silent <= SILENT * 15 + 1
    assert quota.easy <= EASY * 15 + 1
