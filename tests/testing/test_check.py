"""The check of a pipeline: laws hold for right pipelines, and find wrong ones (beamish.testing.laws.check)."""

from __future__ import annotations

import warnings

import attrs
import pyarrow.compute as pc
import pytest
from hypothesis import settings

import beamish as bm
from beamish.accumulations import Accumulation, Count, Sum
from beamish.errors import OptionError
from beamish.testing import TestStream, laws
from beamish.testing import strategies as st
from beamish.testing.laws.expected import Query
from beamish.triggers import AfterCount, AfterWatermark, Always
from tests.testing.visits import PIPELINES, VISITS, delayed, rows_for, source, trigger

EXAMPLES = max(settings().max_examples // 2, 5)
late = source.window(bm.Sessions("10 minutes")).trigger(trigger).allowed_lateness("30 minutes")
hours = source.window(bm.FixedWindows("1 hour")).trigger(trigger).allowed_lateness("1 hour")
MORE = {
    "discarding sessions": late.discarding().accumulate(n=Count(), total=Sum("amount")),
    "accumulating sessions": late.accumulating()._with(accumulations={"n": Count()}),
    "unchanged panes": late.accumulating_and_retracting().only_updated_panes().accumulate(total=Sum("amount")),
    "several windowings": source.window({"h": bm.FixedWindows("1 hour"), "s": bm.Sessions("10 minutes")})
    .allowed_lateness("1 hour")
    .accumulating_and_retracting()
    .accumulate(n=Count()),
    "duplicates in windows": hours.accumulating().deduplicate("amount").accumulate(n=Count()),
    "budget": hours.retain(windows=2).accumulating_and_retracting().accumulate(n=Count()),
    "clock": bm.Pipeline()
    .event_time("ts", bm.ProcessingTimeLag("5 minutes"))
    .key_by("user")
    .window(bm.Sessions("10 minutes"))
    .accumulating_and_retracting()
    .accumulate(n=Count()),
    "forgotten keys": source.window(bm.GlobalWindow())
    .trigger(Always())
    .accumulating_and_retracting()
    .forget_after("1 hour")
    .accumulate(n=Count()),
}


@pytest.mark.dear
@pytest.mark.parametrize("name", [*PIPELINES, *MORE])
def test_laws_hold_for_any_pipeline(name):
    pipeline = (PIPELINES | MORE)[name]
    report = laws.check(pipeline, rows=rows_for(pipeline), examples=EXAMPLES, floor=0)
    assert report.examples == EXAMPLES
    assert report.held["every_script_runs"] == report.in_examples["rows"] > 0


def hourly(rows):
    found = {}
    for row in rows:
        start = row["ts"] // 3600 * 3600
        at = found.setdefault((row["user"], start), {"user": row["user"], "start": start, "n": 0, "total": 0})
        at["n"] += 1
        at["total"] += row["amount"]
    return found.values()


QUERY = "SELECT user, ts // 3600 * 3600 AS start, count(*) AS n, sum(amount)::BIGINT AS total FROM rows GROUP BY ALL"
summed = hours.accumulating().accumulate(n=Count(), total=Sum("amount"))


play = {"user": "a", "ts": 10, "amount": 2}
late_play = TestStream().add([play]).advance_watermark_to(3600).add([play]).advance_watermark_to(9000).add([play])


@pytest.mark.parametrize("expected", [hourly, Query(QUERY)], ids=["function", "query"])
def test_expected_rows_are_compared(expected):
    laws.live_panes_equal_expected(summed, late_play, expected)
    with pytest.raises(laws.LawError, match=r"n=1, start=0\.0, total=2"):
        laws.live_panes_equal_expected(summed.discarding(), late_play, expected)


@pytest.mark.dear
@pytest.mark.parametrize("expected", [hourly, QUERY], ids=["function", "query"])
def test_expected_rows_are_checked(expected):
    report = laws.check(summed, rows=VISITS, expected=expected, examples=5)
    assert report.held["live_panes_equal_expected"] == report.in_examples["rows"] == 4


@attrs.frozen
class FirstSeen(Accumulation):
    column: str
    result_type = "int"

    def create(self):
        return None

    def add(self, accumulator, value):
        return value if accumulator is None else accumulator

    def merge(self, a, b):
        return b if a is None else a

    def extract(self, accumulator):
        return accumulator


class Remembers(Accumulation):
    """Counts in the process, not in its state."""

    result_type = "int"

    def __init__(self):
        self.seen = 0

    def create(self):
        return 0

    def add(self, accumulator, value):
        self.seen += 1
        return self.seen

    def merge(self, a, b):
        return max(a, b)

    def extract(self, accumulator):
        return accumulator


def unhandled(rows):
    raise KeyError("user")


WRONG = {
    "order": (late.accumulating_and_retracting().accumulate(first=FirstSeen("amount")), {}, "merge_is_commutative|order_of"),
    "state in the process": (summed._with(accumulations={"n": Remembers()}), {}, "same_rows_have_same_value"),
    "stale sessions": (late.accumulating()._with(accumulations={"n": Count()}), {"expected": lambda rows: [{"n": len(rows)}]}, "live_panes"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (unhandled, r"expected: unhandled\(\[.*\]\) raised KeyError: 'user'; correct what is expected"),
        ("SELECT nobody FROM rows", r"expected: Query.* raised BinderException.*nobody"),
        (len, r"expected\(rows\) returned \d+: must be rows"),
        (lambda rows: [{"visits": 1} for _ in rows], r"has the column 'visits': a pane has .*; leave it out"),
        (
            lambda rows: [{"n": "1"} for _ in rows],
            r"expected\(rows\) has a text in the column 'n', where panes have a number",
        ),
    ],
    ids=["error", "SQL error", "no rows", "column", "type"],
)
def test_a_wrong_expectation_is_an_error_of_the_test(expected, words):
    with pytest.raises(OptionError, match=f"(?s){words}"):
        laws.check(summed, rows=VISITS, expected=expected, examples=10)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_pipelines_are_found(name):
    pipeline, options, law = WRONG[name]
    with pytest.raises(laws.LawError, match=law):
        laws.check(pipeline, rows=VISITS, **options)


@pytest.mark.deep  # docs/testing.md has another such pipeline
def test_a_lateness_below_the_disorder_is_found():
    with pytest.raises(laws.LawError, match="1 rows expired") as raised:
        laws.check(summed.allowed_lateness(0), rows=VISITS, disorder="1 hour")
    assert str(raised.value).count("'user'") <= 3


@pytest.mark.dear
def test_failure_is_a_test_and_a_picture(tmp_path):
    wrong = summed.discarding()
    with pytest.raises(laws.LawError) as raised:
        laws.check(wrong, rows=VISITS, expected=hourly, batches=3, picture=tmp_path / "wrong.html")
    text = str(raised.value)
    assert f"Picture: {tmp_path / 'wrong.html'}" in text
    assert (tmp_path / "wrong.html").read_text().startswith("<!DOCTYPE html>")
    code = "\n".join(line[4:] for line in text.partition("As a test:\n\n")[2].partition("\n\nPicture")[0].splitlines())
    names = {"pipeline": wrong, "hourly": hourly}
    exec(code, names)
    with pytest.raises(laws.LawError, match="live_panes_equal_expected"):
        names["test_live_panes_equal_expected"]()


@pytest.mark.dear
def test_report_says_what_was_drawn_and_applied():
    report = laws.check(summed, rows=VISITS, examples=5)
    lines = str(report).splitlines()
    assert lines[0].startswith("5 examples: ")
    assert "held: every_script_runs (4 examples)" in lines  # one has no rows
    assert "not applied: live_panes_equal_expected: nothing is expected" in lines


def test_a_stage_that_counts_firings_warns_and_fails_the_check():
    users = hours.accumulating().accumulate(n=Count())
    everyone = bm.Pipeline().window(bm.FixedWindows("1 day"))
    with pytest.warns(UserWarning, match=r"then\(...\): accumulate\(n=Sum.* counts firings: .*results so far"):
        counting = users.then(everyone.accumulate(n=Sum("n")))
    with pytest.warns(
        UserWarning, match=r"accumulate\(...\): accumulate\(n=Count.* counts firings: .*parts of a result"
    ):
        hours.discarding().accumulate(n=Count()).then(everyone).accumulate(n=Count())
    with pytest.raises(laws.VacuousError, match=r"nothing of the number of firings: .* or pass counts_firings=True"):
        laws.check(counting, rows=VISITS, examples=2, floor=0)
    laws.check(counting, rows=VISITS, examples=2, floor=0, counts_firings=True)


def test_a_stage_that_counts_no_firings_does_not_warn():
    last = bm.Pipeline().window(bm.FixedWindows("1 day")).accumulate(n=Sum("n"))
    once = source.window(bm.FixedWindows("1 hour")).accumulating().accumulate(n=Count())
    parts = hours.discarding().accumulate(n=Count())
    final = hours.accumulating().accumulate(n=Count()).suppress(bm.UntilWindowCloses())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for first in (once, parts, hours.accumulating_and_retracting().accumulate(n=Count())):
            first.then(last)
        final.then(last.allowed_lateness("1 hour").accumulating())
        hours.accumulating().accumulate(n=Count()).then(last.where(pc.field("timing") == "ON_TIME"))


def test_early_panes_that_never_come_are_a_finding():
    thousand = source.window(bm.FixedWindows("1 hour")).trigger(AfterWatermark(early=AfterCount(1_000)))
    with pytest.raises(laws.VacuousError, match=r"had .*early panes .*, 0 early panes, .*did not: is it ever ready\?"):
        laws.check(thousand.accumulating().accumulate(n=Count()), rows=VISITS, examples=15)


def test_check_without_rows_shows_nothing():
    with pytest.raises(laws.VacuousError, match=r"fewer than 2% of its examples had .*merged windows"):
        laws.check(PIPELINES["sessions"], rows=st.rows(VISITS, ts=st.rows(VISITS).map(lambda _: None)), examples=10)


def test_laws_that_do_not_apply_have_reasons():
    report = laws.check(PIPELINES["windows of rows"], rows=VISITS, examples=3, floor=0)
    assert report.skipped["live_panes_equal_batch"] == "rows are numbered as they arrive"


def test_bad_arguments_are_refused():
    for arguments, words in [
        ({"expected": 3}, "must be a function of the rows"),
        ({"batches": 0}, "batches"),
    ]:
        with pytest.raises(OptionError, match=words):
            laws.check(summed, rows=VISITS, **arguments)
    with pytest.raises(OptionError, match="must be a pipeline"):
        laws.check(3, rows=VISITS)


@pytest.mark.dear
@pytest.mark.spark
def test_spark_gives_the_same(spark):
    report = laws.check(summed, rows="user string, ts timestamp, amount int", examples=3, on_spark=1, floor=0)
    assert report.held["spark_gives_the_same"] == 1


def test_early_panes_are_numbered():
    early = source.window(bm.FixedWindows("1 hour")).trigger(AfterWatermark(early=AfterCount(1))).accumulating()
    script = TestStream().add([{"ts": 1, "user": "a"}]).advance_watermark_to(3600)
    laws.panes_are_numbered(early.accumulate(n=Count()), script)
    assert delayed.delay.us == 60_000_000
