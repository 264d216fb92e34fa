"""The cost of a step follows its rows: entries of the store and calls, counted, for every kind of stage.

Stored rows do not count: four times as many keys and windows cost the same. Rows count at most proportionally, and so do columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Max, Sum
from beamish.contract.stage import Stage
from beamish.kinds.suppress.stage import Suppressed
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.kinds.hold_back.stage import held_back
from tests.laws.counting import Counting, work_of_last_step

pytestmark = pytest.mark.dear

PATIENT = bm.BoundedOutOfOrderness("30 days")
"""No window ends in a script."""
SOURCE = bm.Pipeline().event_time("ts", PATIENT).key_by("k")
COUNTED = SOURCE.window(bm.FixedWindows("1 minute")).trigger(Always()).accumulating_and_retracting()
SUMS = COUNTED.accumulate(n=Count(), total=Sum("v"))
TABLE = SOURCE.versions("30 days", values=["v"])
PAIRS = bm.merge(left=SOURCE, right=SOURCE).trigger(Always()).discarding()
PIPELINES = {
    "windows": SUMS,
    "on-time panes": COUNTED.trigger(AfterWatermark(late=Always())).allowed_lateness("1 hour").accumulate(n=Count()),
    "sliding windows": COUNTED.window(bm.SlidingWindows("2 minutes", "1 minute")).accumulate(n=Count()),
    "anchored windows": COUNTED.window(bm.AnchoredWindows("5 seconds")).accumulate(n=Count()),
    "sessions": COUNTED.window(bm.Sessions("5 seconds")).accumulate(n=Count(), most=Max("v")),
    "global window": COUNTED.window(bm.GlobalWindow()).accumulate(n=Count()),
    "several windowings": COUNTED.window(
        {"minutes": bm.FixedWindows("1 minute"), "hours": bm.FixedWindows("1 hour")}
    ).accumulate(n=Count()),
    "windows of rows": COUNTED.window(bm.CountWindows(3)).accumulate(n=Count()),
    "duplicates in windows": SUMS.deduplicate("v"),
    "duplicates": SOURCE.deduplicate("v", within="30 days"),
    "retention": COUNTED.retain(rows=2).accumulate(n=Count()),
    "conditions": SUMS.where(pc.field("v") >= 0).having(pc.field("n") > 0),
    "suppress": SUMS.suppress(bm.UntilTimeLimit("1 hour", clock="event")),
    "final results": SUMS.suppress(bm.UntilWindowCloses()),
    "stage over panes": SUMS.then(
        bm.Pipeline().window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting().accumulate(all=Sum("n"))
    ),
    "join": PAIRS.window(bm.FixedWindows("1 minute")).accumulate(pair=InnerJoin("left", "right")),
    "pairs once": PAIRS.window(bm.Within("1 minute", of="left")).accumulate(pair=InnerJoin("left", "right", once=True)),
    "versions": TABLE,
    "as-of join": bm.as_of_join(left=bm.Pipeline().event_time("ts", PATIENT), right=TABLE, on="k"),
    "changes": SOURCE.changes().suppress(bm.UntilTimeLimit("1 hour", clock="event")),
    "gaps": SOURCE.fill_gaps("1 minute", by="last", within="1 hour"),
    "upserts": SOURCE.upserts(),
    "join of tables": bm.table_join(
        left=SOURCE.upserts(), right=bm.Pipeline().event_time("ts", PATIENT), on="v", how="outer"
    ),
    "times of a column": COUNTED.accumulate(at=Max("ts")).then(
        bm.Pipeline()
        .event_time("at", bm.BoundedOutOfOrderness(0))
        .key_by("k")
        .window(bm.FixedWindows("1 minute"))
        .trigger(Always())
        .accumulating_and_retracting()
        .accumulate(n=Count())
    ),
    "over": SOURCE.over(bm.Preceding("1 minute"))
    .trigger(AfterWatermark(early=Always()))
    .accumulating_and_retracting()
    .accumulate(n=Count(), total=Sum("v")),
    "over, waiting": SOURCE.over(bm.PrecedingRows(3)).accumulate(n=Count(), before=bm.Lag("v")),
    "rolling spans": SOURCE.window(bm.Rolling({"1h": "1 hour", "24h": "24 hours"}, step="1 minute")).accumulate(
        n=Count()
    ),
    "rolling spans, lifetimes": SOURCE.window(bm.Rolling({"1h": "1 hour", "ever": bm.Lifetime()}, step="1 minute"))
    .forget_after("30 days")
    .accumulate(n=Count(), most=Max("v")),
    "rows held back": held_back(10, SUMS.accumulating()),
}


def rows(keys: Sequence[int], later: int, width: int) -> list[dict[str, Any]]:
    """A row per key, each key in a minute of its own."""
    more = {f"c{number}": 0 for number in range(width)}
    return [{"ts": 60 * key + later, "k": key, "v": key + later, **more} for key in keys]


def cost(pipeline: bm.Pipeline, stored: int, touched: int, width: int = 0) -> tuple[int, int]:
    """Entries and calls of the last step of a script, opened from its stored bytes.

    Args:
        pipeline: one of PIPELINES.
        stored: how many keys have rows before it.
        touched: how many of them have a row in it.
        width: how many further columns rows have.
    """
    script = TestStream()
    inputs: list[str | None] = [name for name in ("left", "right") if f"{name}=" in repr(pipeline)] or [None]
    for name in reversed(inputs):
        script = script.add(rows(range(stored), 0, width), input=name)
    for later in (1, 2, 3):  # the first ones lay out again what the many rows stored
        script = script.add(rows(range(0, 4 * touched, 4), later, width), input=inputs[0])
    return work_of_last_step(pipeline, script.events[: len(inputs) + 3])


@pytest.mark.parametrize("name", PIPELINES)
def test_cost_is_independent_of_stored_keys_and_windows(name):
    few, many = (cost(PIPELINES[name], stored, touched=10) for stored in (100, 400))
    assert many[0] <= few[0] + 3
    assert many[1] <= 1.1 * few[1]


@pytest.mark.parametrize("name", PIPELINES)
def test_cost_is_bounded_by_the_rows_of_the_step(name):
    few, many = (cost(PIPELINES[name], stored=160, touched=touched) for touched in (10, 40))
    assert many[0] <= 4 * few[0]
    assert many[1] <= 4 * few[1]


@pytest.mark.parametrize("name", PIPELINES)
def test_cost_is_bounded_by_the_width_of_rows(name):
    narrow, wide = (cost(PIPELINES[name], stored=20, touched=5, width=width) for width in (50, 200))
    assert wide[0] == narrow[0]
    assert wide[1] <= 4 * narrow[1]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_step_reads_an_entry_once(name):
    cost(PIPELINES[name], stored=20, touched=5)
    assert [entry for (_, entry), times in Counting.reads.items() if times > 1] == []


def test_a_step_without_change_costs_no_segment():
    assert cost(PIPELINES["windows"], stored=100, touched=0)[0] <= 1


def test_every_kind_of_stage_is_counted():
    stages = [flow.stage for pipeline in PIPELINES.values() for flow in pipeline.flow.flows]
    counted: set[type] = {
        type(stage) for stage in (*stages, *(stage.of for stage in stages if isinstance(stage, Suppressed)))
    }
    kinds: set[type] = {kind for kind in classes_below(Stage) if kind.__module__.startswith("beamish.kinds")}
    assert kinds <= counted


def classes_below(of: type[Any]) -> Iterator[type[Any]]:
    below: list[type[Any]] = of.__subclasses__()
    for kind in below:
        yield kind
        yield from classes_below(kind)


def test_many_columns_cost_proportionally_where_each_is_accumulated():
    def calls(columns: int) -> int:
        sums = COUNTED.accumulate(**{f"c{number}": Max(f"c{number}") for number in range(columns)})
        return cost(sums, stored=20, touched=5, width=columns)[1]

    assert calls(200) <= 4 * calls(50)
