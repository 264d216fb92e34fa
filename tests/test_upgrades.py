"""Every change between two runs either goes on right or is refused, with both values and what to do (docs/upgrading.md)."""

from __future__ import annotations

import pytest

import beamish as bm
from tests.upgrades.carried import differences_after, in_two_runs, line
from tests.upgrades.rows import ROWS

GOES_ON = [row for row in ROWS if row.after is not None]
REFUSED = [row for row in ROWS if row.after is None]


@pytest.mark.parametrize("row", GOES_ON, ids=lambda row: row.change)
def test_what_may_change_goes_on(row):
    _, second = in_two_runs(row.then, row.now, row.script, row.first)
    assert tuple(sorted(map(line, second))) == row.after
    found = differences_after(row.then, row.now, row.script, row.first)
    assert not [one for one in found if one.refused]
    assert bool(found) is (row.then.flow != row.now.flow)
    assert all(one.means and one.then != one.now for one in found)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.change)
def test_what_may_not_change_is_refused_with_both_values_and_what_to_do(row):
    found = [one for one in differences_after(row.then, row.now, row.script, row.first) if one.refused]
    assert row.refused in {one.what for one in found}
    said = next(one for one in found if one.what == row.refused)
    assert row.says in f"{said.now} {said.means}"
    assert "keep" in said.means
    assert said.then != said.now or said.what == "state"
    if row.refused not in ("stages", "inputs", "clock", "shards"):  # those are Spark's to refuse, or the runner's
        with pytest.raises(bm.StateError):
            in_two_runs(row.then, row.now, row.script, row.first)
