"""on_error: what becomes of rows with which something raises (docs/rules/output.md#errors)."""

from __future__ import annotations

from decimal import Decimal

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import DropReason, PaneKind
from beamish.accumulations import Accumulation, Count, Fold, InnerJoin, LeftOuterJoin, Mean, Reduce, Sum
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.local import Variation
from beamish.local import run as run_varied
from beamish.testing import TestStream
from beamish.triggers import Always

MOST = 2**63 - 1
TYPES = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("x", pa.int64())])
PLAIN = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10)).trigger(Always())
DROPS = PLAIN.accumulating().on_error("drop")


def errors(panes):
    return [pane for pane in panes if pane.reason is DropReason.ERROR]


def rows(*values):
    return [{"ts": at, "x": value} for at, value in enumerate(values)]


def test_the_default_stops_the_query():
    pipeline = PLAIN.accumulating().accumulate(total=Sum("x"))
    for strict in (pipeline, pipeline.on_error("fail"), pipeline.on_error("drop").on_error("fail")):
        with pytest.raises(bm.NumericOverflowError):
            strict.run(TestStream().add(rows(MOST, 1)))


def test_the_message_has_key_window_and_error_without_the_fix():
    pipeline = DROPS.key_by("k").accumulate(total=Sum("x"))
    (row,) = errors(pipeline.run(TestStream().add([{"ts": at, "k": "a", "x": MOST} for at in (1, 2)])))
    assert row.values == {"ts": 2, "k": "a", "x": MOST}
    assert row.message == (
        "key {'k': 'a'}, window [1970-01-01T00:00:00+00:00, 1970-01-01T00:00:10+00:00): the sum of column 'x' does not fit bigint "
        "(Spark: ARITHMETIC_OVERFLOW)"
    )


def test_the_message_of_an_overflow_advises_a_type_that_the_checkpoint_accepts():
    with pytest.raises(bm.NumericOverflowError, match=r"add \.on_error\('drop'\) and restart from the checkpoint"):
        PLAIN.accumulating().accumulate(total=Sum("x")).run(TestStream().add(rows(MOST, 1)))


def thirteen(accumulator, value):
    if value == 13:
        raise ValueError("13!")
    return accumulator + value


def as_text(accumulator, value):
    return "text" if value == 13 else accumulator + value


@attrs.frozen
class Own(Accumulation):
    column: str = "x"
    result_type = "bigint"

    def create(self):
        return 0

    def add(self, accumulator, value):
        return object() if value == 14 else thirteen(accumulator, value)

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


@pytest.mark.parametrize(
    ("accumulation", "poison", "said"),
    [
        (Fold(0, thirteen, "x"), 13, "raised ValueError: 13!"),
        (Own(), 13, "Own(column='x').add("),
        (Own(), 14, "cannot be stored in the checkpoint"),
        (Reduce(thirteen, "x"), 13, "raised ValueError: 13!"),
        (Reduce(as_text, "x"), 13, "returned 'text', which is not of its result type, int64"),
    ],
)
@pytest.mark.parametrize("window", [bm.FixedWindows(10), bm.Sessions(5)], ids=repr)
def test_a_function_that_raises_for_a_row_drops_it(accumulation, poison, said, window):
    if isinstance(accumulation, Fold):
        accumulation = attrs.evolve(accumulation, merge=Own().merge)
    pipeline = DROPS.window(window).accumulate(total=accumulation, n=Count())
    panes = pipeline.run(TestStream().add(rows(1, 2, poison, 3)).add(rows(4)))
    (row,) = errors(panes)
    assert row.values["x"] == poison
    assert said in row.message
    assert panes[-1].values == {"total": 10, "n": 4}


def test_a_mean_of_decimals_that_does_not_fit_drops_the_row_that_takes_it_there():
    pipeline = DROPS.accumulate(mean=Mean("x"))
    great = Decimal("9" * 37 + ".1")
    panes = pipeline.run(TestStream().add(rows(Decimal("1.0"), great)))
    assert [pane.values["x"] for pane in errors(panes)] == [great]
    assert panes[-1].values == {"mean": Decimal("1.00000")}


@attrs.frozen
class Windows(bm.WindowOption):
    columns = ("x",)

    def assign(self, timestamp_us, x):
        if x == 13:
            raise ValueError("13!")
        yield 0, 20_000_000


def test_a_row_whose_assignment_fails_is_dropped():
    panes = DROPS.window(Windows()).accumulate(n=Count()).run(TestStream().add(rows(1, 13, 2, 13)))
    assert [(pane.window, pane.values["x"]) for pane in errors(panes)] == [(None, 13), (None, 13)]
    assert panes[-1].values == {"n": 2}


def test_a_row_whose_condition_fails_is_dropped():
    pipeline = DROPS.where(pc.divide(pc.field("ts"), pc.field("x")) >= 0).accumulate(n=Count())
    panes = pipeline.run(TestStream().add([{"ts": 1, "x": 0}, {"ts": 2, "x": 1}, {"ts": None, "x": 0}]))
    assert [(pane.values["ts"], pane.message) for pane in errors(panes)] == [
        (1, "where((divide(ts, x) >= 0)): divide by zero")
    ]
    assert panes[-1].values == {"n": 1}


def test_a_number_that_cannot_be_counted_with_drops_its_row():
    pipeline = bm.Pipeline().window(bm.CountWindows(2, numbered_by="no")).accumulate(n=Count()).on_error("drop")
    panes = pipeline.run(TestStream().add([{"no": 0}, {"no": 2**62 + 1}, {"no": 1}]))
    assert [pane.values for pane in panes] == [{"no": 2**62 + 1}, {"n": 2}]


def test_a_row_of_windows_of_rows_that_is_dropped_has_had_its_number():
    pipeline = bm.Pipeline().window(bm.CountWindows(3)).accumulate(total=Sum("x"), n=Count()).on_error("drop")
    panes = pipeline.run(TestStream().add([{"x": MOST}, {"x": 1}, {"x": 0}]))
    assert [pane.window for pane in panes] == [bm.RowWindow(0, 3)] * 2
    assert panes[-1].values["n"] == 2


@attrs.frozen
class NoValue(Own):
    def extract(self, accumulator):
        raise ValueError("no value")


def test_an_error_of_a_pane_stops_the_query():
    with pytest.raises(bm.UserFunctionError, match="no value"):
        DROPS.accumulate(total=NoValue()).run(TestStream().add(rows(1)))


def test_a_failing_expression_names_the_fix():
    ratio = pc.divide(pc.field("n"), pc.field("x"))
    panes = DROPS.accumulate(n=Count(), x=Sum("x"))
    for pipeline in (panes.with_columns(ratio=ratio), panes.having(ratio >= 0)):
        with pytest.raises(bm.UserFunctionError, match=r"divide by zero; .* from the same checkpoint"):
            pipeline.run(TestStream().add(rows(0)))
        with pytest.raises(bm.UserFunctionError, match=r"divide by zero; .* begin a new one"):
            pipeline.accumulating_and_retracting().run(TestStream().add(rows(0)))
    fails = DROPS.where(pc.divide(pc.field("ts"), pc.field("x")) >= 0).on_error("fail").accumulate(n=Count())
    with pytest.raises(bm.UserFunctionError, match=r"divide by zero; add \.on_error\('drop'\) and restart"):
        fails.run(TestStream().add(rows(0)))


def test_windowings_and_a_suppress_drop_too():
    pipeline = DROPS.window({"a": bm.FixedWindows(10), "b": bm.Sessions(2)}).accumulate(total=Sum("x"))
    panes = pipeline.run(TestStream().add(rows(MOST, 1)))
    assert sorted(pane.key["windowing"] for pane in errors(panes)) == ["a", "b"]
    held = DROPS.accumulate(total=Sum("x")).suppress(bm.UntilWindowCloses())
    panes = held.run(TestStream().add(rows(MOST, 1)).advance_watermark_to(10))
    assert [pane.kind for pane in panes] == [PaneKind.DROPPED, PaneKind.PANE]


def test_a_merge_names_the_input_of_the_row():
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    merged = (
        bm.merge(left=source, right=source)
        .window(bm.FixedWindows(10))
        .trigger(Always())
        .accumulating()
        .accumulate(total=Sum("x").of("right"), n=Count())
        .on_error("drop")
    )
    script = TestStream().add([{"ts": 1, "k": 1, "x": 1}], input="left")
    script = script.add([{"ts": at, "k": 1, "x": MOST} for at in (2, 3)], input="right")
    (row,) = errors(merged.run(script))
    assert row.values == {"left": None, "right": {"ts": 3, "k": 1, "x": MOST}}


def test_an_inner_stage_drops_and_only_counts():
    first = DROPS.key_by("k").accumulate(total=Sum("x"))
    chain = first.then(bm.Pipeline().key_by().accumulate(n=Count()))
    panes = chain.run(TestStream().add([{"ts": at, "k": 1, "x": MOST} for at in (1, 2)]).advance_watermark_to(10))
    assert [pane.values for pane in panes] == [{"n": 2}]
    assert "only counted, since only panes are forwarded" in " ".join(chain.explain().split())


def packed(operator, times_and_values):
    """The payloads of rows."""
    us = [time * 1_000_000 for time, _ in times_and_values]
    columns = {"ts": pa.array(us, TYPES.field("ts").type), "x": [x for _, x in times_and_values], EVENT_TIME: us}
    return [payload for _, payload in operator.pack(0, pa.table(columns))]


def test_on_error_can_be_enabled_on_an_existing_query():
    """The shard that raised stored nothing of its step, so its store continues."""
    strict, patient = (
        pipeline.flow.bind({None: TYPES}, shards=1).operator
        for pipeline in (PLAIN.accumulating().accumulate(total=Sum("x")), DROPS.accumulate(total=Sum("x")))
    )
    store = DictStore()
    strict.open(store).step([None], None, packed(strict, [(1, MOST)]))
    with pytest.raises(bm.NumericOverflowError):
        strict.open(store).step([None], None, packed(strict, [(2, 1)]))
    out = patient.open(store).step([None], None, packed(patient, [(2, 1), (3, 0)]))
    assert out["pane"].combine_chunks().field("kind").to_pylist() == ["DROPPED", "PANE"]
    assert patient.open(store).dropped == {"error": 1}


def test_on_error_cannot_change_over_retracting_input():
    signed = bm.Pipeline().from_panes().event_time("ts", bm.BoundedOutOfOrderness(0))
    declared = signed.window(bm.FixedWindows(10)).trigger(Always()).accumulating().accumulate(total=Sum("x"))
    strict, patient = (
        pipeline.flow.bind({None: TYPES}, shards=1).operator for pipeline in (declared, declared.on_error("drop"))
    )
    for one, other in ((strict, patient), (patient, strict)):
        store = DictStore()
        one.open(store).step([None], None, [])
        with pytest.raises(bm.StateError, match="on_error"):
            other.open(store).step([None], None, [])


def test_many_poison_rows_are_found_by_bisection():
    calls = 0

    def counted(accumulator, value):
        nonlocal calls
        calls += 1
        return thirteen(accumulator, value)

    pipeline = DROPS.accumulate(total=Fold(0, counted, "x"))
    bundle = [{"ts": at % 10, "x": 13 if at == 700 else 1} for at in range(1000)]
    assert len(errors(run_varied(pipeline.flow, TestStream().add(bundle).events, Variation()))) == 1
    assert calls < 1000 * 12


@attrs.frozen
class NotAtTwo(bm.WindowOption):
    """Windows of a user's, which cannot be had of a row."""

    def assign(self, timestamp_us):
        if timestamp_us == 2_000_000:
            raise ValueError("2 s!")
        yield 0, 10_000_000


@pytest.mark.parametrize("join", [InnerJoin, LeftOuterJoin])
def test_a_join_continues_without_a_row_whose_assignment_fails(join):
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
    merged = bm.merge(left=source, right=source).window(NotAtTwo()).trigger(Always()).accumulating().on_error("drop")
    merged = merged.accumulate(pair=join("left", "right"))
    script = TestStream().add([{"ts": 1, "k": 1, "x": 1}], input="left")
    panes = merged.run(script.add([{"ts": at, "k": 1, "x": x} for at, x in ((2, 13), (3, 5))], input="right"))
    (row,) = errors(panes)
    assert row.values["right"]["x"] == 13
    pairs = [pane.values["pair"] for pane in panes if pane.kind is PaneKind.PANE]
    assert [pair["right"] for pair in pairs if pair["right"]] == [{"ts": 3, "x": 5}]


@pytest.mark.parametrize("within", [None, 100])
def test_duplicates_are_dropped_beside_failing_rows(within):
    """A row that was dropped for an error is remembered by ``within``, and not by a window (rules/output.md#errors)."""
    once = DROPS.deduplicate("id", within=within).accumulate(total=Fold(0, thirteen, "x"), n=Count())
    bundles = [[(1, 13), (2, 5)], [(1, 6), (2, 5)]]
    script = TestStream()
    for bundle in bundles:
        script = script.add([{"ts": id_, "id": id_, "x": x} for id_, x in bundle])
    panes = once.run(script)
    reasons = [str(pane.reason) for pane in panes if pane.reason]
    assert reasons == (["error", "duplicate"] if within is None else ["error", "duplicate", "duplicate"])
    assert [pane.values for pane in panes if pane.kind is PaneKind.PANE][-1]["n"] == (2 if within is None else 1)


def test_a_second_stage_drops_rows_that_raise_and_keeps_the_panes_of_the_first():
    first = DROPS.accumulating_and_retracting().key_by("k").accumulate(total=Sum("x"))
    chain = first.then(
        bm.Pipeline().key_by().trigger(Always()).accumulating().accumulate(all=Sum("total")).on_error("drop")
    )
    panes = chain.run(TestStream().add([{"ts": 1, "k": 1, "x": MOST}]).add([{"ts": 1, "k": 2, "x": 1}]))
    (row,) = errors(panes)
    assert row.values == {"k": 2, "total": 1}
    assert panes[0].values == {"all": MOST}


ROWS_AS_THEY_ARE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")


@pytest.mark.parametrize(
    "stage",
    [
        lambda: ROWS_AS_THEY_ARE.versions(10).on_error("drop"),
        lambda: bm.as_of_join(a=ROWS_AS_THEY_ARE.key_by(), b=ROWS_AS_THEY_ARE.versions(10)).on_error("drop"),
        lambda: ROWS_AS_THEY_ARE.deduplicate("id", within=10).on_error("drop"),
        lambda: ROWS_AS_THEY_ARE.changes().on_error("drop"),
        lambda: (
            ROWS_AS_THEY_ARE.window(bm.FixedWindows(5))
            .accumulate(n=Count())
            .suppress(bm.UntilWindowCloses())
            .on_error("drop")
        ),
    ],
    ids=["versions", "as-of join", "rows once", "changes", "a suppress"],
)
def test_on_error_is_rejected_where_rows_cannot_fail(stage):
    with pytest.raises(bm.PipelineError, match=r"on_error|where\(\), trigger or lateness"):
        stage().flow.check()


def test_as_of_joins_count_the_rows_dropped_by_their_stages():
    totals = DROPS.accumulating_and_retracting().key_by("k").accumulate(total=Sum("x"))
    rates = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").versions(100)
    joined = bm.as_of_join(totals=totals, rates=rates, on="k").accumulating_and_retracting()
    script = TestStream().add([{"ts": 1, "k": 1, "rate": 2}], input="rates")
    script = script.add([{"ts": at, "k": 1, "x": MOST} for at in (1, 2)], input="totals")
    panes = joined.run(script.advance_watermark_to_infinity())
    assert {pane.values["total"] for pane in panes if pane.kind is PaneKind.PANE} == {MOST}
