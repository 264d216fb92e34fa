"""A string literal has in a script the value that it has in Spark (tests/statement/literals.py)."""

from hypothesis import given

import beamish as bm
from beamish.testing import TestStream
from tests.statement.literals import literals

COUNTED = """
    SELECT name, CONCAT(name, {0}) AS twice, COUNT(*) AS n FROM t WINDOW TUMBLING (SIZE 10 SECONDS)
    WHERE name = {0} AND name IN ('x', {0}) AND CONCAT({0}, '') = name AND STARTSWITH(name, {0})
    GROUP BY name, CONCAT(name, {0}) HAVING name = {0} AND MAX(name) = {0} EMIT FINAL
"""


@given(literals())
def test_a_literal_equals_its_value_wherever_it_stands(drawn):
    literal, value = drawn
    query = bm.sql(COUNTED.format(literal), event_time="ts", watermark=bm.BoundedOutOfOrderness(0))
    rows = [{"ts": 1, "name": name} for name in (value, f"{value}x", None)]
    (pane,) = query.run(TestStream().add(rows).advance_watermark_to_infinity())
    assert (pane.key, pane.values) == ({"name": value, "twice": 2 * value}, {"n": 1})
