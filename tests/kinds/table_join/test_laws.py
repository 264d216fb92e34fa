"""Laws of joins of changing tables: the live rows are the join of both tables, by two loops; and only what changes is emitted."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.testing import TestStream
from tests.cost import cost

NOW = bm.BoundedOutOfOrderness(0)
CITIES = st.sampled_from(["Rome", "Oslo", None, False])
KEEPS = {"inner": "", "left": "l", "right": "r", "outer": "lr"}


def upserts(key):
    return bm.Pipeline().event_time("ts", NOW).key_by(key).upserts(deleted="gone")


def joined(how):
    return bm.table_join(orders=upserts("order"), shops=upserts("shop"), on={"city": "place"}, how=how)


def by_two_loops(orders, shops, keeps):
    """The join of what both tables hold: order, shop, and the city."""
    orders, shops = ([one for one in of.items() if one[1] is not False] for of in (orders, shops))
    pairs = [(one, other) for one in orders for other in shops if one[1] is not None and one[1] == other[1]]
    met = {one[0] for one, _ in pairs}, {other[0] for _, other in pairs}
    found = Counter((one[0], other[0], one[1]) for one, other in pairs)
    found += Counter((order, None, city) for order, city in orders if "l" in keeps and order not in met[0])
    return found + Counter((None, shop, place) for shop, place in shops if "r" in keeps and shop not in met[1])


def shown(pane):
    order, shop = pane.values["orders"], pane.values["shops"]
    return order and order["order"], shop and shop["shop"], pane.key["city"]


@pytest.mark.of_law("law-changing-tables")
@pytest.mark.parametrize("how", KEEPS)
@cost(2)
@given(data=st.data())
def test_after_each_step_the_live_rows_are_the_join_of_both_tables_and_only_changes_are_emitted(how, data):
    pipeline, script, held, expected = joined(how), TestStream(), ({}, {}), [Counter()]
    first = [[(0, 1, "Rome")], [(1, 1, "Oslo")]]
    steps = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 4), CITIES), min_size=1, max_size=3)
    for bundle in [*first, *data.draw(st.lists(steps, max_size=7))]:
        of = bundle[0][0]
        changed = {number: city for _, number, city in bundle}
        held[of].update(changed)
        names = ("order", "city") if of == 0 else ("shop", "place")
        rows = [dict(zip(names, (number, city or None), strict=True)) for number, city in changed.items()]
        rows = [{**row, "ts": 1, "gone": city is False} for row, city in zip(rows, changed.values(), strict=True)]
        script = script.add(rows, input=("orders", "shops")[of])
        expected.append(by_two_loops(*held, KEEPS[how]))
    live = Counter()
    for number, (_, panes) in enumerate(script.trace(pipeline), 1):
        gone = Counter(shown(pane) for pane in panes if pane.kind is PaneKind.RETRACTION)
        new = Counter(shown(pane) for pane in panes if pane.kind is PaneKind.PANE)
        assert gone == expected[number - 1] - expected[number], script
        assert new == expected[number] - expected[number - 1], script
        live = live - gone + new
        assert live == expected[number], script
