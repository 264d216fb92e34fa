"""Accumulations: wrong values are refused where they are written; what a function raises is named."""

from functools import partial

import pyarrow.compute as pc

from beamish.accumulations import (
    Accumulation,
    ApproxCountDistinct,
    Collect,
    Count,
    CountDistinct,
    FullOuterJoin,
    InnerJoin,
    Max,
    Quantiles,
    Reduce,
    Sum,
    TopN,
    TopRows,
)
from beamish.testing import TestStream
from tests.refused import MEETING, ONE_ROW, PLAIN, ROW, START, cases, refused


class Held(Accumulation):
    def __init__(self):
        self.held = object()


AT_ONCE = {
    "first rows by nothing": lambda: TopRows(3, by=[]),
    "first rows in one direction of two": lambda: TopRows(1, by=["score", "name"], least=[True]),
    "first rows in directions that are words": lambda: TopRows(1, by=["score", "name"], least=["asc", "desc"]),
    "first rows in a direction that is a word": lambda: TopRows(1, by="score", least="asc"),
    "first rows, none": lambda: TopRows(0, by="score"),
    "first rows of a merge": lambda: MEETING.accumulate(top=TopRows(1, by="score")),
    "first rows beside another": lambda: START.accumulate(n=Count(), top=TopRows(1, by="score")),
    "sum of an object": lambda: START.accumulate(n=Count().of("a"), m=Held()),
    "accumulate text": lambda: START.accumulate(n="count"),
    "accumulate without a name": lambda: START.accumulate(Count()),
    "accumulate a class without a name": lambda: START.accumulate(Count),
    "once a number": lambda: InnerJoin("a", "b", once=1),
    "null keys dropped": lambda: InnerJoin("a", "b", null_keys="drop"),
    "match if a condition": lambda: InnerJoin("a", "b", match_if=pc.field("x") > 3),
    "match if of another input": lambda: InnerJoin("a", "b", match_if={"c": pc.field("x") > 3}),
    "match if in words": lambda: InnerJoin("a", "b", match_if={"a": "x > 3"}),
    "match if null": lambda: InnerJoin("a", "b", match_if={"a": pc.field("x") == None}),  # noqa: E711
    "keep rows of every pair": lambda: InnerJoin("a", "b", keep_rows={"a": 3}),
    "keep every pair for a time": lambda: FullOuterJoin("a", "b", keep_for={"a": 3}),
    **{
        f"keep {rows!r} rows": partial(InnerJoin, "a", "b", once=True, keep_rows={"b": rows})
        for rows in (0, -1, 2.0, True, "3", None)
    },
    "keep rows of no input": lambda: InnerJoin("a", "b", once=True, keep_rows={"c": 3}),
    "keep for of no input": lambda: InnerJoin("a", "b", once=True, keep_for={"c": 3}),
    **{
        f"keep for {kept!r}": partial(InnerJoin, "a", "b", once=True, keep_for={"a": kept})
        for kept in (0, -1, "0 seconds")
    },
    "keep for a while": lambda: InnerJoin("a", "b", once=True, keep_for={"a": "a while"}),
    "keep 3 rows": lambda: InnerJoin("a", "b", once=True, keep_rows=3),
    "accumulate a class": lambda: START.accumulate(n=Count),
    "column 3": lambda: Sum(3),
    "top 0": lambda: TopN(0, "x"),
    "no probability": lambda: Quantiles("x", (1.5,)),
    "rsd 0": lambda: ApproxCountDistinct("x", rsd=0),
    "no distinct columns": CountDistinct,
    "reduce by text": lambda: Reduce("max", "x"),
}


@cases(AT_ONCE)
def test_an_invalid_option_is_rejected_at_its_call(name):
    refused(__file__, name, AT_ONCE[name])


def test_sum_overflow_is_raised_as_spark_raises_it():
    script = TestStream().add([{"ts": 1, "team": "a", "score": 2**63 - 1}, {"ts": 1, "team": "a", "score": 1}])
    refused(__file__, "a sum that overflows", lambda: PLAIN.accumulate(total=Sum("score")).run(script))


def divided_by_nothing(a, b):
    return a // (b - b)


def test_user_function_that_raises_is_named_with_its_key():
    pipeline = PLAIN.accumulate(worst=Reduce(divided_by_nothing, "score"))
    refused(__file__, "a function that raises", lambda: pipeline.run(ONE_ROW.add([ROW])))


def test_max_and_collect_take_any_orderable_type():
    assert PLAIN.accumulate(m=Max("name"), c=Collect("tags")).run(ONE_ROW.advance_watermark_to(100))
