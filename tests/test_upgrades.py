"""Every change between two runs either goes on right or is refused, with both values and what to do (docs/upgrading.md)."""

from __future__ import annotations

import pytest

import beamish as bm
from tests.laws.test_carried_over import carried
from tests.upgrades.carried import differences_after, in_two_runs, line
from tests.upgrades.rows import ROWS
from tests.upgrades.table import table

GOES_ON = [row for row in ROWS if row.goes_on]
REFUSED = [row for row in ROWS if not row.goes_on]
OF_RUNNER = ("stages", "inputs", "clock", "shards")
"""Refused by the runner or by Spark, not by the engine."""


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
    found = [
        one for one in differences_after(row.then, row.now, row.script, row.first, shards=row.shards) if one.refused
    ]
    assert row.refused in {one.what for one in found}
    said = next(one for one in found if one.what == row.refused)
    assert row.says in f"{said.now} {said.means}"
    assert "keep" in said.means
    assert said.then != said.now or said.what == "state"
    if row.refused not in OF_RUNNER:
        with pytest.raises(bm.StateError):
            in_two_runs(row.then, row.now, row.script, row.first)


@pytest.mark.parametrize(
    "row", [row for row in REFUSED if row.refused not in ("stages", "inputs")], ids=lambda row: row.change
)
def test_what_is_carried_over_is_what_the_table_says(row):
    if row.migrates:
        _, second = carried(row.then, row.now, row.script, row.first, (2, 3))
        assert second
    else:
        with pytest.raises(bm.StateError):
            carried(row.then, row.now, row.script, row.first, (2, 3))


def test_the_page_has_the_table(root):
    assert table() in (root / "docs" / "upgrading.md").read_text("utf-8"), "python -m tests.upgrades.table"
