"""Laws of upserts: the live rows are the last row of each key, whatever their order of arrival."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneChange
from beamish.accumulations import Collect, Count
from beamish.script import as_step
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.kinds.changes.strategy import scripts
from tests.twin.moments import moment_us
from tests.twin.order import spark_order
from tests.twin.run import out_of_range

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team")
BY_SCORE = (
    bm.Pipeline()
    .key_by("score")
    .window(bm.GlobalWindow())
    .trigger(Always())
    .accumulating_and_retracting()
    .accumulate(n=Count(), names=Collect("name"))
)
tables = st.builds(
    SOURCE.upserts, deleted=st.sampled_from([None, "gone"]), sequence_by=st.sampled_from([None, "seq", "id"])
)


class Live:
    """Live rows, by what identifies them."""

    def __init__(self, *by: str) -> None:
        self.by, self.rows = by, dict[Any, dict[str, Any]]()

    def take(self, panes: list[bm.Pane]) -> None:
        for pane in panes:
            row = {**pane.key, **pane.values}
            slot = repr([row[name] for name in self.by])
            if pane.change in (PaneChange.INSERT, PaneChange.UPDATE_AFTER):
                assert (slot in self.rows) == (pane.change is PaneChange.UPDATE_AFTER)
                self.rows[slot] = row
            elif pane.change is PaneChange.DELETE:
                assert in_order(self.rows.pop(slot)) == in_order(row)
            else:
                assert in_order(self.rows[slot]) == in_order(row)


def numbered(script: TestStream) -> list[tuple[int, dict[str, Any]]]:
    """The rows of a script with the number of their step, each with an ``id``."""
    return [
        (step, {**row, "id": 100 * step + place})
        for step, event in enumerate(script.events)
        for place, row in enumerate(as_step(event).rows)
    ]


def last_rows(rows: list[tuple[int, dict[str, Any]]], options: Any) -> list[dict[str, Any]]:
    """The last of all rows of each key, if it does not delete: straight from rules/upserts.md#upserts-order."""
    of_key = defaultdict(list)
    for step, row in rows:
        deletes = options.deleted is not None and row[options.deleted] is True
        timed = row["ts"] is not None and not out_of_range(moment_us(row["ts"]))
        if row["team"] is not None and (timed or (deletes and options.sequence_by)):
            by = row[options.sequence_by or "ts"]
            values = [] if deletes else [v for name, v in row.items() if name not in (*options.columns, "team")]
            place = (spark_order(by), step, not deletes, [spark_order(value) for value in values])
            of_key[row["team"]].append((place, deletes, row))
    last = (max(own, key=lambda one: one[0]) for own in of_key.values())
    return [row for _, deletes, row in last if not deletes]


def with_ids(script: TestStream) -> TestStream:
    """The rows of a script, a step each, by their numbers."""
    out, rows = TestStream(), numbered(script)
    for step, _ in enumerate(script.events):
        out = out.add([row for at, row in rows if at == step])
    return out


@pytest.mark.of_law("law-upserts")
@given(st.data())
def test_after_every_bundle_the_live_rows_are_the_last_ones_and_a_stage_after_them_is_a_batch(data):
    table = data.draw(tables)
    drawn = data.draw(scripts(table))
    script, rows, options = with_ids(drawn), numbered(drawn), table.flow.stage.options
    live, groups = Live("team"), Live("score")
    both = zip(script.trace(table), script.trace(table.then(BY_SCORE)), strict=True)
    for step, ((_, changed), (_, panes)) in enumerate(both):
        live.take(changed)
        groups.take(panes)
        expected = last_rows([one for one in rows if one[0] <= step], options)
        hidden = options.columns
        shown = [{name: value for name, value in row.items() if name not in hidden} for row in expected]
        assert sorted(map(in_order, live.rows.values())) == sorted(map(in_order, shown)), f"{table!r}\n{script!r}"
        batch = defaultdict(list)
        for row in expected:
            batch[row["score"]].append(row["name"])
        found = {row["score"]: (row["n"], sorted(row["names"], key=spark_order)) for row in groups.rows.values()}
        named = {
            score: sorted((name for name in names if name is not None), key=spark_order)
            for score, names in batch.items()
        }
        assert found == {score: (len(names), named[score]) for score, names in batch.items()}


def in_order(row: dict[str, Any]) -> Any:
    """A row, to sort and compare."""
    return [(name, spark_order(row[name])) for name in sorted(row)]


@pytest.mark.of_law("law-upserts")
@given(st.data())
def test_order_of_arrival_and_bundles_do_not_change_the_live_rows_at_the_end(data):
    table = SOURCE.upserts(deleted="gone", sequence_by="id")
    rows = [row for _, row in numbered(data.draw(scripts(table)))]
    shuffled = TestStream()
    for row in data.draw(st.permutations(rows)):
        shuffled = shuffled.add([row])
    ends = []
    for script in (TestStream().add(rows), shuffled):
        live = Live("team")
        live.take(table.run(script))
        ends.append(sorted(map(in_order, live.rows.values())))
    assert ends[0] == ends[1], f"{shuffled!r}"
