"""Rows and scripts that are drawn for any pipeline (beamish.testing.strategies)."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as hst

import beamish as bm
from beamish.errors import OptionError
from beamish.script import Step, as_step
from beamish.testing import TestStream
from beamish.testing import strategies as st
from tests.cost import cost
from tests.testing.visits import (
    PIPELINES,
    VISITS,
    hourly,
    rows_for,
    sessions,
)

QUICK = settings(deadline=None, database=None)


@pytest.mark.parametrize("name", PIPELINES)
@cost(3)  # test_check.py runs more
@given(hst.data())
def test_scripts_run_in_any_pipeline(name, data):
    pipeline = PIPELINES[name]
    script = data.draw(st.scripts(pipeline, rows_for(pipeline)))
    pipeline.run(script)


def found(
    wanted: Callable[[TestStream], bool],
    pipeline: bm.Pipeline = sessions,
    phases: Sequence[Phase] = (Phase.generate,),
    **options,
) -> TestStream:
    return find(
        st.scripts(pipeline, rows_for(pipeline), **options),
        wanted,
        settings=settings(QUICK, max_examples=2_000, phases=phases),
    )


def rows_in(script: TestStream) -> list[dict]:
    return [dict(row) for event in script.events for row in as_step(event).rows]


@pytest.mark.dear
def test_scripts_shrink_to_few_rows():
    script = found(
        lambda script: len(rows_in(script)) >= 2,
        phases=(Phase.generate, Phase.shrink),
        batches=2,
        duplicates=0,
        clock=False,
    )
    assert rows_in(script) == [{"user": "a", "ts": 0, "amount": 0}] * 2


@pytest.mark.dear
def test_sessions_touch_and_merge():
    def gaps(script: TestStream) -> set[float]:
        times = sorted(row["ts"] for row in rows_in(script))
        return {later - time for time, later in itertools.pairwise(times)}

    for gap in (599, 600, 601):
        found(lambda script, gap=gap: gap in gaps(script), keys=1)


@pytest.mark.dear
def test_the_watermark_stops_at_and_before_deadlines():
    def moves(script: TestStream) -> set[float]:
        first = next(iter(rows_in(script)), {"ts": 0})["ts"]
        steps = map(as_step, script.events)
        return {step.watermark_us / 1e6 - first for step in steps if step.watermark_us is not None}

    for deadline in (599, 600, 600 + 1799, 600 + 1800):
        found(lambda script, deadline=deadline: deadline in moves(script))


@given(st.scripts(hourly, VISITS, disorder="2 minutes"))
def test_no_row_is_further_behind_than_the_disorder(script):
    newest = 0
    for row in rows_in(script):
        assert row["ts"] >= newest - 120
        newest = max(newest, row["ts"])


@given(st.scripts(hourly.with_dropped(), VISITS, disorder="1 minute"))
def test_rows_within_the_delay_are_never_dropped(script):
    assert [one for one in hourly.with_dropped().run(script) if one.kind == "DROPPED"] == []


@given(st.scripts(PIPELINES["duplicates"], VISITS, unique=["user", "amount"]))
def test_rows_of_one_id_are_equal(script):
    by_id: dict = {}
    for row in rows_in(script):
        assert by_id.setdefault((row["user"], row["amount"]), row) == row


@pytest.mark.dear
def test_an_input_may_stay_silent_and_a_null_time_stays_null():
    merged = PIPELINES["a merge"]
    silent = found(
        lambda script: {as_step(one).input for one in script.events if as_step(one).rows} == {"visits"}, merged
    )
    assert silent.events
    timeless = st.rows("user string, ts timestamp, amount int", nulls=True)

    first = settings(QUICK, phases=(Phase.generate,))
    assert find(
        st.scripts(sessions, timeless), lambda script: None in [row["ts"] for row in rows_in(script)], settings=first
    )


def test_shares_of_zero_leave_kinds_out():
    @given(
        st.scripts(
            sessions, VISITS, keys=1, late=0, too_late=0, duplicates=0, clock=False, batches=3, start=50, ends=False
        )
    )
    def check(script):
        assert len(script.events) <= 3
        assert {row["user"] for row in rows_in(script)} <= {"a"} or len({row["user"] for row in rows_in(script)}) == 1
        assert all(
            as_step(event).clock_us is None and as_step(event).watermark_us != 2**63 - 1 for event in script.events
        )
        assert all(row["ts"] >= 50 for row in rows_in(script))
        assert not [one for one in sessions.run(script) if one.kind == "DROPPED"]

    check()


@dataclasses.dataclass
class Visit:
    user: str
    amount: Decimal
    day: date
    at: datetime | None
    tags: list[str]


@given(st.rows(Visit), st.rows(pa.schema([("x", pa.float32()), ("s", pa.struct([("b", pa.bool_())]))])))
def test_rows_have_the_types_of_a_dataclass_and_of_an_arrow_schema(visit, row):
    assert list(visit) == ["user", "amount", "day", "at", "tags"]
    kinds = {name: type(value) for name, value in visit.items()}
    assert kinds == {"user": str, "amount": Decimal, "day": date, "at": datetime, "tags": list}
    assert (type(row["x"]), type(row["s"]["b"])) == (float, bool)


def test_rows_of_a_pyspark_schema_and_of_ddl_are_the_same():
    from pyspark.sql import types as t

    schema = t.StructType().add("user", t.StringType(), nullable=False).add("n", t.ArrayType(t.LongType()))
    ddl = "user string NOT NULL, `n`: array<bigint> COMMENT 'a, b'"
    for one in (schema, ddl):
        nulls = find(st.rows(one, nulls=True), lambda row: row["n"] is None)
        assert nulls == {"user": "a", "n": None}
        assert find(st.rows(one, n=hst.just([7])), bool) == {"user": "a", "n": [7]}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: st.rows(7), "must be Spark DDL"),
        (lambda: st.rows("user"), "a column is a name and a Spark type"),
        (lambda: st.rows("user text"), "'text' is not a Spark type"),
        (lambda: st.rows("user string", age=hst.none()), "no such column"),
        (lambda: st.rows("m map<string,int>"), "give them: rows"),
        (lambda: st.scripts(7, VISITS), "must be a pipeline"),  # type: ignore[arg-type]
        (lambda: st.scripts(sessions, VISITS, keys=0), "keys=0"),
        (lambda: st.scripts(sessions, VISITS, late=2), "late=2.*share"),
        (lambda: st.scripts(sessions, VISITS, disorder=-1), "disorder"),
        (lambda: st.scripts(PIPELINES["a merge"], {"visits": st.rows(VISITS)}), "the rows of 'clicks' are missing"),
    ],
)
def test_wrong_arguments_are_refused(call, words):
    with pytest.raises(OptionError, match=f"(?s){words}"):
        call()


def test_without_hypothesis_the_script_works_and_the_rest_says_what_to_install():
    program = """
import sys
sys.modules["hypothesis"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "hypothesis" else found(name)
from beamish.testing import TestStream
TestStream().add([{"ts": 1}])
for part in ("strategies", "laws"):
    try:
        __import__(f"beamish.testing.{part}")
    except ModuleNotFoundError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.count('pip install "beamish[hypothesis]"') == 2


def test_importing_testing_loads_no_hypothesis():
    program = "import sys, beamish.testing; print('hypothesis' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )


def test_empty_steps_are_left_out():
    assert all(as_step(event) != Step() for event in found(lambda script: len(script.events) > 3).events)
