"""Accumulations: wrong values are refused where they are written; what a function raises is named."""

import re

import pytest

import beamish as bm
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
)
from beamish.testing import TestStream
from tests.refused import ONE_ROW, PLAIN, ROW, START, cases, refused


class Held(Accumulation):
    def __init__(self):
        self.held = object()


# The call, and fragments of the message: value, rule, fix.
AT_ONCE = [
    ("sum of an object", lambda: START.accumulate(n=Count().of("a"), m=Held()), ["accumulate(m)=Held(", "attrs"]),
    ("accumulate text", lambda: START.accumulate(n="count"), ["accumulate(n)='count'", "Count()"]),
    (
        "accumulate without a name",
        lambda: START.accumulate(Count()),
        ["accumulate(Count(column=None))", "accumulate(n="],
    ),
    ("accumulate a class without a name", lambda: START.accumulate(Count), ["accumulate(Count())", "(n=Count())"]),
    ("once a number", lambda: InnerJoin("a", "b", once=1), ["InnerJoin(once=1)", "True or False"]),
    (
        "keep rows of every pair",
        lambda: InnerJoin("a", "b", keep_rows={"a": 3}),
        ["InnerJoin(keep_rows={'a': 3})", "emits each pair once", "add once=True"],
    ),
    (
        "keep every pair for a time",
        lambda: FullOuterJoin("a", "b", keep_for={"a": 3}),
        ["FullOuterJoin(keep_for={'a': '3 seconds'})", "add once=True"],
    ),
    *[
        (
            f"keep {rows!r} rows",
            lambda rows=rows: InnerJoin("a", "b", once=True, keep_rows={"b": rows}),
            [f"InnerJoin(keep_rows={{'b': {rows!r}}}): {rows!r} rows of b", "at least 1", "leave it out"],
        )
        for rows in (0, -1, 2.0, True, "3", None)
    ],
    (
        "keep rows of no input",
        lambda: InnerJoin("a", "b", once=True, keep_rows={"c": 3}),
        ["InnerJoin(keep_rows={'c': 3}): 'c' is not an input", "its inputs are a, b"],
    ),
    (
        "keep for of no input",
        lambda: InnerJoin("a", "b", once=True, keep_for={"c": 3}),
        ["InnerJoin(keep_for={'c': '3 seconds'}): 'c' is not an input", "its inputs are a, b"],
    ),
    *[
        (
            f"keep for {kept!r}",
            lambda kept=kept: InnerJoin("a", "b", once=True, keep_for={"a": kept}),
            [f"InnerJoin(keep_for): a={kept!r}", "above 0"],
        )
        for kept in (0, -1, "0 seconds")
    ],
    (
        "keep for a while",
        lambda: InnerJoin("a", "b", once=True, keep_for={"a": "a while"}),
        ["InnerJoin(keep_for): a='a while'", "'10 minutes'"],
    ),
    ("keep 3 rows", lambda: InnerJoin("a", "b", once=True, keep_rows=3), ["keep_rows=3", "by input", "{'a': ...}"]),
    ("accumulate a class", lambda: START.accumulate(n=Count), ["accumulate(n)=Count:", "a class", "Count(...)"]),
    ("column 3", lambda: Sum(3), ["3", "column"]),
    ("top 0", lambda: TopN(0, "x"), ["0", "at least 1"]),
    ("no probability", lambda: Quantiles("x", (1.5,)), ["1.5"]),
    ("rsd 0", lambda: ApproxCountDistinct("x", rsd=0), ["rsd"]),
    ("no distinct columns", CountDistinct, ["CountDistinct"]),
    ("reduce by text", lambda: Reduce("max", "x"), ["'max'"]),
]


@cases(AT_ONCE, "call", "fragments")
def test_an_invalid_option_is_rejected_at_its_call(call, fragments):
    refused((bm.OptionError, bm.ScriptError), call, fragments)


def test_sum_overflow_is_raised_as_spark_raises_it():
    script = TestStream().add([{"ts": 1, "team": "a", "score": 2**63 - 1}, {"ts": 1, "team": "a", "score": 1}])
    with pytest.raises(bm.NumericOverflowError, match=re.escape("score")):
        PLAIN.accumulate(total=Sum("score")).run(script)


def divided_by_nothing(a, b):
    return a // (b - b)


def test_user_function_that_raises_is_named_with_its_key():
    pipeline = PLAIN.accumulate(worst=Reduce(divided_by_nothing, "score"))
    with pytest.raises(bm.UserFunctionError) as caught:
        pipeline.run(ONE_ROW.add([ROW]))
    for fragment in ("Reduce", "ZeroDivisionError", "{'team': 'red'}", "restart from the checkpoint"):
        assert fragment in str(caught.value)


def test_max_and_collect_take_any_orderable_type():
    assert PLAIN.accumulate(m=Max("name"), c=Collect("tags")).run(ONE_ROW.advance_watermark_to(100))
