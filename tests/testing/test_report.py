"""Reports of broken laws: values side by side, examples as Python, counts of what was drawn."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.script import as_step
from beamish.testing import TestStream
from beamish.testing.laws.report import (
    LawError,
    as_test,
    beside,
    require,
    same,
    search,
)
from beamish.testing.laws.seen import Seen, VacuousError, facts
from beamish.testing.written import Named, as_python
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, -2.5, True, "it's", b"x"],
        (math.inf, -math.inf),
        (1,),
        {"cost": Decimal("1.20"), "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)},
        dt.datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Zurich")),
        {"day": dt.date(2026, 1, 1), "long": dt.timedelta(days=1)},
    ],
    ids=repr,
)
def test_values_are_python(value):
    assert eval(as_python(value), {"datetime": dt, "Decimal": Decimal}) == value


def test_nan_is_python():
    assert math.isnan(eval(as_python(math.nan)))


@given(st.data())
def test_scripts_are_python(data):
    script = data.draw(scripts(data.draw(pipelines())))
    again = eval(as_python(script), {"TestStream": TestStream, "datetime": dt, "Decimal": Decimal})
    assert list(map(repr, map(as_step, again.events))) == list(map(repr, map(as_step, script.events)))


def law(pipeline, script):
    """Panes are right."""


def test_example_is_a_test():
    script = TestStream().add([{"ts": 1}]).advance_watermark_to(10.5).advance_watermark_to_infinity()
    assert as_test(law, [Named(None, "scores"), script]).splitlines() == [
        "from beamish.testing import TestStream, laws",
        "",
        "",
        "def test_law():",
        "    laws.law(",
        "        scores,",
        "        (",
        "            TestStream()",
        "            .add([{'ts': 1}])",
        "            .advance_watermark_to(10.5)",
        "            .advance_watermark_to_infinity()",
        "        ),",
        "    )",
    ]


def test_short_example_is_one_line():
    script = TestStream().step([{"ts": 1}], watermark=2, clock=3)
    assert as_python(script) == "TestStream().step([{'ts': 1}], watermark=2, clock=3)"
    assert as_test(law, [Named(None, "scores"), TestStream().add([], input="plays")]).splitlines()[-1] == (
        "    laws.law(scores, TestStream().add([], input='plays'))"
    )


def test_example_imports_the_names_of_beamish():
    assert as_test(law, [Sum("datetime.x"), bm.FixedWindows(10), Decimal(1)]).splitlines()[:4] == [
        "from decimal import Decimal",
        "from beamish import FixedWindows",
        "from beamish.accumulations import Sum",
        "from beamish.testing import laws",
    ]


def test_equal_lines_are_beside_each_other():
    assert beside(["a", "b", "c"], ["a", "c", "d"]).splitlines() == [
        "expected   given",
        "a          a",
        "b        |",
        "c          c",
        "         | d",
    ]


def test_wide_lines_are_below_each_other():
    assert beside(["a" * 100], ["b" * 100]).splitlines() == ["expected", f"  {'a' * 100}", "given", f"  {'b' * 100}"]


def test_same_values():
    assert same([math.nan, {"x": (1, 0.1 + 0.2)}], [math.nan, {"x": (1, 0.3)}])
    assert not same(0.1 + 0.2, 0.3, tolerance=0)
    assert not same([True], [1])
    assert not same({"x": 1}, {"y": 1})
    assert not same([1], [1, 2])


def test_counts_are_of_rows_and_of_examples():
    seen = Seen()
    for number in range(100):
        seen.add({"rows": 3, "late": int(number == 0)})
    assert str(seen) == "100 examples: 300 rows, 1 late"
    assert seen.check("rows") is seen
    assert seen.check("late", floor=0.01) is seen
    with pytest.raises(VacuousError, match=r"fewer than 2% of its examples had late, dropped \(100 examples: 300 rows"):
        seen.check("rows", "late", "dropped")
    assert seen.check("dropped", floor=0) is seen


def test_functions_that_depend_on_more_than_their_arguments_are_reported():
    calls = []

    def holds_later(value):
        """A value is the same."""
        calls.append(value)
        require(holds_later, expected=1, given=min(len(calls), 1) if len(calls) != 3 else 0)

    with pytest.raises(LawError, match="depends on more than its arguments"):
        search(st.integers(), lambda value: {holds_later: (value,)}, examples=10, seed=0)


def test_errors_of_functions_break_a_law():
    def fails(value):
        """It accepts every value."""
        return 1 / value

    with pytest.raises(LawError, match=r"ZeroDivisionError: division by zero(.|\n)*laws.fails\(0\)") as raised:
        search(st.integers(), lambda value: {fails: (value,)}, examples=10, seed=0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_picture_is_named():
    def is_small(value):
        """A value is small."""
        require(is_small, expected=True, given=value < 10)

    with pytest.raises(LawError, match="Picture: drawn of 10"):
        search(
            st.integers(),
            lambda value: {is_small: (value,)},
            examples=100,
            seed=0,
            picture=lambda one: f"drawn of {one[0]}",
        )


def test_facts_of_a_run():
    visits = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("user")
        .window(bm.Sessions(10))
        .allowed_lateness(20)
        .accumulating_and_retracting()
        .accumulate(n=Count())
        .with_dropped()
    )
    rows = [{"ts": 0, "user": "a"}, {"ts": 15, "user": "a"}, {"ts": 15, "user": "a"}]
    script = TestStream().add(rows).advance_watermark_to(5).add([{"ts": 8, "user": "a"}]).advance_watermark_to(30)
    script = script.add([{"ts": 12, "user": "a"}, {"ts": -30, "user": "a"}, {"ts": 30, "user": None}])
    assert facts(visits, script, visits.run(script)) == {
        "rows": 7,
        "late rows": 2,
        "rows out of order": 3,
        "rows behind the watermark": 2,
        "removals": 0,
        "duplicates": 1,
        "dropped rows": 1,
        "merged windows": 1,
        "early panes": 0,
        "on-time panes": 1,
        "late panes": 1,
        "retractions": 1,
    }


@given(st.data())
def test_facts_of_any_pipeline_count_its_output(data):
    pipeline = data.draw(pipelines())
    script = data.draw(scripts(pipeline))
    panes = pipeline.run(script)
    counts = facts(pipeline, script, panes)
    assert sum(
        counts[name] for name in ("early panes", "on-time panes", "late panes", "retractions", "dropped rows")
    ) == len(panes)
    assert counts["rows"] == sum(len(as_step(event).rows) for event in script.events)
