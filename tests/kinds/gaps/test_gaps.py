"""Gaps: columns of all types, state that goes, and the work of a step (rules/gaps.md)."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import beamish as bm
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME
from beamish.kinds.gaps.cells import cells_table
from beamish.kinds.gaps.operator import times_as
from beamish.testing import TestStream

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
ROW = {
    "n": 3,
    "price": Decimal("1.50"),
    "name": "é",
    "day": date(2024, 5, 1),
    "flag": True,
    "tags": ["a", None],
    "place": {"x": 1.5},
    "none": None,
}


def filled(pipeline, script):
    return [pane for pane in pipeline.run(script) if pane.values["filled"]]


def test_values_of_all_types_are_carried_on():
    script = TestStream().add([{"ts": 0, **ROW}]).advance_watermark_to(20)
    (pane,) = filled(START.fill_gaps(10, by="last", within=10), script)
    assert {name: pane.values[name] for name in ROW} == ROW
    (pane,) = filled(START.fill_gaps(10, by="null", within=10), script)
    assert {pane.values[name] for name in ROW} == {None}


def test_only_numbers_lie_on_a_line():
    script = TestStream().add([{"ts": 0, **ROW}, {"ts": 20, **ROW, "n": 5, "price": None}]).advance_watermark_to(30)
    (pane,) = filled(START.fill_gaps(10, by="linear", within=30), script)
    assert {name: pane.values[name] for name in ROW} == {name: 4.0 if name == "n" else None for name in ROW}


@pytest.mark.parametrize(
    ("type_", "shown"),
    [
        (pa.timestamp("us", tz="UTC"), datetime(1970, 1, 1, 0, 0, 10, 500_000, UTC)),
        (pa.timestamp("s"), datetime(1970, 1, 1, 0, 0, 10)),  # noqa: DTZ001 - a column without zone
        (pa.float64(), 10.5),
        (pa.int64(), None),
        (pa.date32(), date(1970, 1, 1)),
    ],
)
def test_the_event_time_of_a_filled_row_is_in_its_column(type_, shown):
    assert times_as(pa.array([10_500_000]).to_numpy(), type_).to_pylist() == [shown]


def test_rows_far_apart_fill_no_more_than_within():
    script = TestStream().add([{"ts": 0, "v": 1}, {"ts": 10**9, "v": 2}]).advance_watermark_to_infinity()
    assert len(filled(START.fill_gaps(1, by="last", within=100), script)) == 200
    assert filled(START.fill_gaps(1, by="linear", within=100), script) == []


@pytest.mark.parametrize("by", ["last", "linear", "null"])
def test_a_key_stores_the_cells_that_may_still_change_and_in_the_end_none(by):
    columns = {None: pa.schema([("ts", pa.float64()), ("v", pa.int64())])}
    pipeline = START.fill_gaps(10, by=by, within=30).allowed_lateness(20)
    operator, store = pipeline.flow.bind(columns, shards=1).operator, DictStore()
    counts = []
    for watermark, times in ((0, [1, 11, 21]), (31, [32]), (60, [61]), (119, []), (120, [])):
        rows = pa.table({"ts": [float(time) for time in times], "v": [1] * len(times)})
        rows = rows.append_column(EVENT_TIME, pa.array([time * 1_000_000 for time in times], pa.int64()))
        payloads = [payload for _, payload in operator.pack(0, rows)] if times else []
        operator.open(store).step([watermark * 1_000_000], None, payloads)
        counts.append(cells_table(operator.plan).open(store).segments.rows)
    assert counts == [3, 4, 2, 1, 0]
