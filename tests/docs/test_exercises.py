"""Solutions of docs/exercises.md. What the page says must be printed is what they print; a common mistake prints something else."""

import re
from collections import Counter

import attrs
import pytest

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.testing import TestStream
from beamish.triggers import AfterEach, AfterValue, AfterWatermark, Always, Never


@attrs.frozen
class Exercise:
    """The definitions of the page, by name, and its expected output."""

    given: dict
    must_print: str


@pytest.fixture
def exercise(root):
    """An exercise of the page by its number: its Python is run, after that which all begin with."""

    def read(number):
        begin, *sections = (root / "docs" / "exercises.md").read_text().split("\n## ")
        assert [section[:2] for section in sections] == ["1.", "2.", "3.", "4.", "5.", "6.", "Fo"]
        given: dict = {}
        for text in (begin, sections[number - 1]):
            (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
            exec(code, given)
        (must_print,) = re.findall(r"```text\n(.*?)```", sections[number - 1], re.DOTALL)
        return Exercise(given, must_print)

    return read


@pytest.fixture
def printed(capsys):
    """The output of ``show`` for a solution."""

    def show(exercise, solution):
        exercise.given["show"](solution)
        return capsys.readouterr().out

    return show


def test_1_the_last_ten_minutes(exercise, printed):
    one = exercise(1)

    def board(windows):
        return one.given["stream"]("left").window(windows).accumulate(trams=Count())

    assert printed(one, board(bm.SlidingWindows("10 minutes", period="5 minutes"))) == one.must_print
    assert printed(one, board(bm.FixedWindows("10 minutes"))) != one.must_print


def test_2_the_door_of_the_cold_store(exercise, printed):
    def book(early):
        return (
            bm.Pipeline()
            .event_time("read", bm.BoundedOutOfOrderness("1 minute"))
            .window(bm.FixedWindows("10 minutes"))
            .trigger(AfterWatermark(early=early))
            .accumulating()
            .accumulate(greatest=Max("degrees"))
        )

    two, hot = exercise(2), AfterValue("greatest", at_least=8)
    assert printed(two, book(AfterEach(hot, Never()))) == two.must_print
    assert printed(two, book(hot)) == two.must_print.replace("9 degrees\n", "9 degrees\n12:00 EARLY 10 degrees\n")


def test_3_a_bill_that_can_only_grow(exercise, printed):
    amounts = (
        bm.Pipeline()
        .event_time("used", bm.BoundedOutOfOrderness("1 hour"))
        .window(bm.FixedWindows("1 hour"))
        .allowed_lateness("2 hours")
        .with_dropped()
        .accumulate(amount=Sum("amount"))
    )
    three = exercise(3)
    assert printed(three, amounts.discarding()) == three.must_print
    assert printed(three, amounts.accumulating()) != three.must_print
    assert printed(three, amounts.discarding().allowed_lateness("1 hour")) != three.must_print


def test_4_how_many_pages_do_visitors_look_at(exercise, printed):
    visits = (
        bm.Pipeline()
        .event_time("clicked", bm.BoundedOutOfOrderness("1 hour"))
        .key_by("visitor")
        .window(bm.Sessions("30 minutes"))
        .trigger(Always())
        .accumulate(pages=Count())
    )
    table = (
        bm.Pipeline()
        .key_by("pages")
        .window(bm.FixedWindows("1 day"))
        .trigger(Always())
        .accumulating_and_retracting()
        .accumulate(visits=Count())
    )
    four = exercise(4)
    assert printed(four, visits.accumulating_and_retracting().then(table)) == four.must_print
    assert printed(four, visits.accumulating().then(table)) != four.must_print


@pytest.mark.dear
def test_5_a_test_that_looks_for_its_own_examples(exercise, printed):
    five = exercise(5)

    def wrong(plays, lateness):
        script, latest, by_hand = TestStream(), 0, {}
        for minute, points in plays:
            latest = max(latest, minute)
            script = script.add([{"minute": minute, "points": points}]).advance_watermark_to(latest)
            start = minute // 2 * 2
            by_hand[start] = by_hand.get(start, 0) + points
        panes = five.given["points"](lateness).run(script.advance_watermark_to_infinity())
        return {pane.start.timestamp(): pane.values["points"] for pane in bm.live(panes)} != by_hand

    assert printed(five, wrong) == five.must_print
    assert wrong([(9, 1), (0, 1)], 7)  # at 9 the window from 0 to 2 has expired
    assert not wrong([(9, 1), (0, 1)], 8)


@pytest.mark.dear
def test_6_a_wrong_option(exercise, printed):
    six = exercise(6)

    def expected(rows):
        by_hand = Counter()
        for row in rows:
            by_hand[row["minute"] // 60 * 60] += row["points"]
        return [{"start": start, "points": points} for start, points in by_hand.items()]

    assert printed(six, expected) == six.must_print
    assert printed(six, lambda rows: expected(rows)[:1]) != six.must_print


def test_the_block_for_teachers_grades(exercise, capsys):
    given = exercise(7)
    assert capsys.readouterr().out == given.must_print
