"""Rows that are packed piece by piece: where slices travel, the pieces' are put together again."""

import numpy as np
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.kernels.column_names import EVENT_TIME
from beamish.kernels.column_names import ROWS as ROWS_OF
from beamish.kinds.window.step import packing
from beamish.kinds.window.step.packing import about, unpack

SECOND = 1_000_000
COLUMNS = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("x", pa.int64())])
ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
SUMS = ROWS.window(bm.FixedWindows(10)).accumulate(n=Count(), s=Sum("x"), top=Max("x"))
LATEST = SUMS.timestamp_combiner(bm.TimestampCombiner.LATEST)
PIECES = 4


def rows(keys=3, count=400):
    """Rows of a minute and two later ones, some without an event time and one of the year 148,000."""
    chance = np.random.default_rng(5)
    seconds = chance.integers(0, 60, count).tolist()
    times = [None if i % 50 == 7 else at * SECOND for i, at in enumerate(seconds)]
    times[3], times[10], times[12] = 2**62, 99 * SECOND, 98 * SECOND
    stamps = pa.array([None if at is None else at % 2**50 for at in times], pa.timestamp("us", tz="UTC"))
    of = {"k": pa.array([f"k{i % keys}" for i in range(count)]), "x": pa.array(chance.integers(0, 9, count))}
    return pa.table({"ts": stamps, **of, EVENT_TIME: pa.array(times, pa.int64())})


def pieces(table):
    return [table.take(pa.array(range(part, len(table), PIECES))) for part in range(PIECES)]


def payloads(pairs):
    found = {}
    for shard, payload in pairs:
        found.setdefault((shard, *about(payload).get("windowings", [])), []).append(payload)
    return found


def of(shard):
    """The contents of a shard's payloads, in any order."""
    table, *left_out = unpack(shard)
    said = [about(payload) for payload in shard]
    return (
        sorted(table.to_pylist(), key=repr),
        left_out,
        {each["input"] for each in said},
        max([each["latest_us"] for each in said if "latest_us" in each], default=None),
    )


def operator_of(pipeline, names=(None,), shards=2):
    return pipeline.flow.bind(dict.fromkeys(names, COLUMNS), shards=shards).operator


@pytest.mark.parametrize("pipeline", [SUMS, LATEST, SUMS.window({"a": bm.FixedWindows(10), "b": bm.FixedWindows(30)})])
def test_slices_of_pieces_are_those_of_all_rows_at_once(pipeline):
    operator = operator_of(pipeline)
    at_once, joined = (
        payloads(pairs) for pairs in (operator.pack(0, rows()), operator.pack_pieces(0, iter(pieces(rows()))))
    )
    assert {shard: len(each) for shard, each in joined.items()} == dict.fromkeys(at_once, 1)
    for shard in at_once:
        assert of(joined[shard]) == of(at_once[shard])


def test_the_latest_time_of_a_merge_input_is_stored():
    merged = bm.merge(left=ROWS, right=ROWS).window(bm.FixedWindows(10)).accumulate(n=Count())
    operator = operator_of(merged, ("left", "right"))
    at_once, joined = (
        payloads(pairs) for pairs in (operator.pack(1, rows()), operator.pack_pieces(1, iter(pieces(rows()))))
    )
    assert all(len(each) == 1 and "latest_us" in about(each[0]) for each in joined.values())
    for shard in at_once:
        assert of(joined[shard]) == of(at_once[shard])


def test_small_slices_stay_unmerged():
    operator = operator_of(SUMS)
    packed = payloads(operator.pack_pieces(0, pieces(rows(keys=400))))
    assert {len(each) for each in packed.values()} == {PIECES}


def test_equal_slices_of_pieces_are_merged():
    """Few rows per slice in a piece, but the same slices in all."""
    times = {EVENT_TIME: pa.array([0] * 400), "ts": pa.array([0] * 400, COLUMNS.field("ts").type)}
    of_pieces = [rows(keys=400).drop_columns(["ts", EVENT_TIME])] * PIECES
    same = [pa.table({**dict(zip(piece.column_names, piece.columns, strict=True)), **times}) for piece in of_pieces]
    packed = payloads(operator_of(SUMS).pack_pieces(0, same))
    assert [len(each) for each in packed.values()] == [1, 1]
    table = pa.concat_tables(unpack(each)[0] for each in packed.values())
    assert table[ROWS_OF].to_pylist() == [PIECES] * 400


def test_payloads_are_sent_when_many_wait(monkeypatch):
    monkeypatch.setattr(packing, "_MOST_BYTES", 1)
    assert still_to_come(SUMS) == PIECES - 1


def test_unaggregated_rows_are_sent_at_once():
    assert still_to_come(SUMS) == 0
    assert still_to_come(SUMS.window(bm.Sessions(10))) == PIECES - 1


def still_to_come(pipeline):
    """The number of pieces that are not read when the first payload is there."""
    came = iter(pieces(rows()))
    next(operator_of(pipeline, shards=1).pack_pieces(0, came))
    return len(list(came))
