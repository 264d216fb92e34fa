"""Faults put into the engine: recorded cases find each of them."""

import json

import attrs
import numpy as np
import pytest

from beamish.contract.updates import RETRACTION_KIND
from beamish.kinds.window.step import firing
from beamish.triggers import AfterProcessingTime, AfterWatermark, Repeatedly
from beamish.triggers.trigger import NEVER_US
from beamish.windows import counting, time_windows
from peers import compare
from peers.cases import read_lines
from peers.compare import RECORDED, decisions, differences, explained, peer_of, streams
from peers.twin import by_twin


def wrong_retractions(patch):
    last_panes = firing.last_panes

    def wrong(step, at):
        panes = last_panes(step, at)
        return panes | {"values_at": np.maximum(panes["values_at"] - 1, 0)}

    patch.setattr(firing, "last_panes", wrong)


def lost_retractions(patch):
    add = firing.Firing.add

    def add_panes(self, owners, **columns):
        if columns.get("kind") is not RETRACTION_KIND:
            add(self, owners, **columns)

    patch.setattr(firing.Firing, "add", add_panes)


def rows_between_windows(patch):
    slide = time_windows.slide
    patch.setattr(
        time_windows, "slide", lambda places, size, period, offset: slide(places, max(size, period), period, offset)
    )


def no_rows_before_1970(patch):
    assign = time_windows.FixedWindows.assign_columns

    def from_1970(self, timestamps_us, *columns):
        row, start, end = assign(self, timestamps_us, *columns)
        kept = start >= 0
        return row[kept], start[kept], end[kept]

    patch.setattr(time_windows.FixedWindows, "assign_columns", from_1970)


@attrs.frozen
class Stuck(Repeatedly):
    """Repeats a trigger whose parts stay finished."""

    def on_fire_columns(self, s, at, now):
        (part,), (state,) = self.parts, s.parts
        part.on_fire_columns(state, at, now)
        part.clear(state, at)
        state.finished[at] = False


def late_composites_that_stay_finished(patch):
    def parts(self):
        early = () if self.early is None else (Repeatedly(self.early),)
        return early + (() if self.late is None else (Stuck(self.late),))

    patch.setattr(AfterWatermark, "parts", property(parts))


def delays_that_merge_to_the_latest(patch):
    def latest(self, s, m, now):
        target_us = s["target_us"]
        found = m.least(np.where(target_us == NEVER_US, NEVER_US, -target_us))
        target_us[m.into] = np.where(found == NEVER_US, NEVER_US, -found)

    patch.setattr(AfterProcessingTime, "on_merge_columns", latest)


def two_rows_in_windows_of_one(patch):
    slide = counting.slide
    patch.setattr(
        counting,
        "slide",
        lambda places, size, period, offset: slide(places, max(size, 2 * (size == period == 1)), period, offset),
    )


MUTANTS = {
    wrong_retractions: "flink",
    lost_retractions: "flink",
    rows_between_windows: "beam",
    no_rows_before_1970: "beam",
    late_composites_that_stay_finished: "beam",
    delays_that_merge_to_the_latest: "beam",
    two_rows_in_windows_of_one: "flink",
}
"""A fault, and a peer whose recorded cases find it."""


@pytest.mark.dear
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_recorded_cases_find_it(mutant, monkeypatch):
    name = MUTANTS[mutant]
    peer, decided = peer_of(name), decisions(name)
    mutant(monkeypatch)
    assert any(differs(peer, decided, line) for line in read_lines(RECORDED / f"{name}.jsonl.gz"))


def test_a_fault_changes_no_prediction(monkeypatch):
    case = next(json.dumps(one.case) for one in decisions("flink") if one.name == "over-no-preceding-row")
    predicted = compare._predicted.__wrapped__
    right = predicted("flink", case)
    two_rows_in_windows_of_one(monkeypatch)
    assert predicted("flink", case) == right


def differs(peer, decided, line):
    here = peer.here(line["case"])
    found = differences(peer, line["case"], here, line["there"])
    names = {getattr(explained(one, decided), "name", "undecided") for one in found}
    return sorted(names) != line["decided"] or (found and streams(here) != streams(by_twin(peer, line["case"])))
