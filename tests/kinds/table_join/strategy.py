"""Joins of changing tables: upserts, versions, aggregates, rows of sources and other joins; alone and under stages."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect, Count, Max
from beamish.script import Step, as_step
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.strategies import merges

HOW = st.sampled_from(["inner", "left", "right", "outer"])
TABLES = ("upserts", "upserts", "versions", "totals", "rows")
OVER = bm.Pipeline().trigger(Always()).accumulating_and_retracting()


def source(draw: st.DrawFn, name: str) -> bm.Pipeline:
    return bm.Pipeline().event_time(f"{name}_at", draw(merges.policies))


@st.composite
def tables(draw: st.DrawFn, name: str) -> bm.Pipeline:
    """A table whose rows have ``{name}_team``."""
    kind, rows = draw(st.sampled_from(TABLES)), source(draw, name)
    if kind == "rows":
        return rows
    if kind == "upserts":
        by = draw(st.sampled_from([("part",), ("part",), ("part", "team")]))
        table = rows.key_by(*(f"{name}_{one}" for one in by)).upserts(deleted=draw(st.sampled_from(["gone", None])))
        return table.forget_after(20) if draw(st.integers(0, 4)) == 0 else table
    if kind == "versions":
        return rows.key_by(f"{name}_part").versions(100, deleted="gone", latest_only=True)
    window = draw(st.sampled_from([bm.FixedWindows(5), bm.GlobalWindow()]))
    totals = rows.key_by(f"{name}_team", f"{name}_part").window(window).allowed_lateness(20).trigger(Always())
    return totals.accumulating_and_retracting().accumulate(n=Count(), most=Max("value"))


@st.composite
def table_joins(draw: st.DrawFn, *, with_dropped: bool = True) -> bm.Pipeline:
    """A join of two tables; or of three, by the same column or another."""
    left, right = draw(tables("orders")), draw(tables("clicks"))
    joined = bm.table_join(orders=left, clicks=right, on={"orders_team": "clicks_team"}, how=draw(HOW))
    if draw(st.integers(0, 3)) == 0:
        on = draw(st.sampled_from(["orders_team", "orders.orders_part"]))
        of = {"orders_team": "visits_team", "orders.orders_part": "visits_part"}[on]
        visits = draw(tables("visits"))
        joined = bm.table_join(pairs=joined, visits=visits, on={on: of}, how=draw(HOW))
    if draw(st.integers(0, 2)) == 0 and all(one.has_timestamps for one in joined.flow.takes):
        joined = joined.forget_after(draw(st.sampled_from([2, 6, 30])))
    return joined.with_dropped() if with_dropped and draw(st.booleans()) else joined


@st.composite
def pipelines(draw: st.DrawFn) -> bm.Pipeline:
    """Such a join, or a stage over one."""
    if draw(st.booleans()):
        return draw(table_joins())
    joined = draw(table_joins(with_dropped=False))
    value = joined.flow.takes[1].name
    over = OVER.key_by(*draw(st.sampled_from([(), ("orders_team",)]))).window(bm.GlobalWindow())
    if joined.flow.gives.has_timestamps and draw(st.booleans()):
        over = over.window(bm.FixedWindows(4)).allowed_lateness(10)
    if "orders_team" not in joined.flow.gives.keys:
        over = over.key_by()
    return joined.then(over.accumulate(n=Count(), all=Collect(str(value))))


def scripts(pipeline: bm.Pipeline) -> st.SearchStrategy[TestStream]:
    """Scripts of merges, whose rows delete where they have a ``b``; first a row of each input, since tables know their columns from rows."""
    names = [str(one.name) for one in pipeline.flow.sources]
    return st.tuples(*(merges.rows(name, 0) for name in names)).flatmap(
        lambda rows: merges.scripts(pipeline).map(lambda script: deleting(dict(zip(names, rows, strict=True)), script))
    )


def deleting(first: dict[str, Any], script: TestStream) -> TestStream:
    steps = [*(Step(rows=(row,), input=name) for name, row in first.items()), *map(as_step, script.events)]
    return TestStream(tuple(attrs.evolve(step, rows=tuple(map(with_gone, step.rows))) for step in steps))


def with_gone(row: Any) -> dict[str, Any]:
    return {**row, "gone": row["mark"] == "b"}


CASES = {"joined tables": (pipelines(), scripts)}
SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
BY_NAME = SOURCE.key_by("name").upserts(deleted="flag")
FLOWS = [
    st.builds(
        lambda left, how: bm.table_join(one=left, other=BY_NAME, on={"team": "team"}, how=how),
        st.sampled_from([SOURCE, SOURCE.key_by("score").upserts()]),
        HOW,
    ),
    HOW.map(lambda how: bm.table_join(one=SOURCE, other=SOURCE, on="score", how=how).forget_after(5)),
]
