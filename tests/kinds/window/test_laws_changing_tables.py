"""Joins of changing tables by columns that are keys of neither (rules/joins.md#changing-tables)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.cost import cost

NOW = bm.BoundedOutOfOrderness(0)
CITIES = st.sampled_from(["Rome", "Oslo", None, False])
JOINS = {a.InnerJoin: "", a.LeftOuterJoin: "l", a.RightOuterJoin: "r", a.FullOuterJoin: "lr"}


def table(key):
    return bm.Pipeline().event_time("ts", NOW).key_by(key).versions("1 hour", latest_only=True, deleted="gone")


def of_changing_tables(join):
    merged = bm.merge(
        orders=table("order").then(bm.Pipeline().key_by("city")),
        shops=table("shop").then(bm.Pipeline().key_by("place")),
    )
    merged = merged.window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting()
    return merged.accumulate(pair=join("orders", "shops"))


def by_two_loops(orders, shops, keeps):
    """The join of what both tables hold: order, shop, and the two cities."""
    orders, shops = ([one for one in of.items() if one[1] is not False] for of in (orders, shops))
    pairs = [(one, other) for one in orders for other in shops if one[1] is not None and one[1] == other[1]]
    met = {one[0] for one, _ in pairs}, {other[0] for _, other in pairs}
    found = Counter((one[0], other[0], one[1]) for one, other in pairs)
    found += Counter((order, None, city) for order, city in orders if "l" in keeps and order not in met[0])
    return found + Counter((None, shop, place) for shop, place in shops if "r" in keeps and shop not in met[1])


@pytest.mark.parametrize("join", JOINS, ids=lambda join: join.__name__)
@cost(2)
@given(data=st.data())
def test_after_each_step_the_live_rows_are_the_join_of_both_tables(join, data):
    pipeline, script, held, expected = of_changing_tables(join), TestStream(), ({}, {}), []
    steps = data.draw(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3), CITIES), max_size=9))
    for now, (of, number, city) in enumerate([(0, 1, "Rome"), (1, 1, "Oslo"), *steps]):
        held[of][number] = city  # False: it is deleted
        names = ("order", "city") if of == 0 else ("shop", "place")
        row = dict(zip(names, (number, city or None), strict=True))
        script = script.add([{**row, "ts": now, "gone": city is False}], input=("orders", "shops")[of])
        expected.append(by_two_loops(*held, JOINS[join]))
    panes = []
    for (_, more), now in zip(script.trace(pipeline), expected, strict=True):
        panes += more
        live = Counter(
            tuple(
                side and side[name] for name, side in zip(("order", "shop"), pane.values["pair"].values(), strict=True)
            )
            + tuple(pane.key.values())
            for pane in bm.live(panes)
        )
        assert live == now, script
