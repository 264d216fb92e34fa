"""Packing without Spark: however large the pieces are that are packed and sent at once, each row goes once."""

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.contract.stored import DictStore
from beamish.kernels.column_names import EVENT_TIME, IS_ROW, REPORT, UPSTREAM_WATERMARK
from beamish.kinds.window.step import packing
from beamish.kinds.window.step.packing import unpack
from beamish.spark.rows import pack
from beamish.spark.rows.pack import NO_INPUT, pane_packer, source_packer

COLUMNS = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("x", pa.int64())])
ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
AS_ROWS = ROWS.window(bm.Sessions(10)).accumulate(n=Count())
AS_SLICES = ROWS.window(bm.FixedWindows(10)).accumulate(n=Count(), s=Sum("x"))
CHAIN = AS_SLICES.then(bm.Pipeline().key_by("n").window(bm.FixedWindows(60)).accumulate(keys=Count()))
SHARDS = 3
LIMITS = [("_PIECE_ROWS", 3), ("_PIECE_BYTES", 60), ("_SENT_BYTES", 1500)]


def operator_of(pipeline):
    return pipeline.flow.bind({None: COLUMNS}, shards=SHARDS).operator


def batches(operator, rows=3):
    """Batches as Spark brings them: empty ones, one that only reports, rows that are none."""
    names = operator.reads(0)
    for at in range(12):
        columns = {"k": [f"k{at * i % 5}" for i in range(rows)], "x": list(range(rows)), "ts": [at] * rows}
        read = {f"c{i}": pa.array(columns[name], COLUMNS.field(name).type) for i, name in enumerate(names)}
        times = pa.array([at * 5_000_000] * rows, pa.int64())
        is_row = pa.array([at != 4 and (at + i) % 4 > 0 for i in range(rows)])
        batch = pa.record_batch({**read, EVENT_TIME: times, IS_ROW: is_row, REPORT: pa.array([at] * rows, pa.int64())})
        yield batch.slice(0, 0) if at == 7 else batch


def panes():
    """Panes as they come from the stage below, with how far it has come behind each few."""
    first, _ = CHAIN.flow.bind({None: COLUMNS}, shards=1).flows
    shard = first.operator.open(DictStore())
    times = [at * 5_000_000 for at in range(12)]
    rows = pa.table({"k": [f"k{at % 5}" for at in range(12)], "x": range(12), "ts": pa.array(times, COLUMNS.types[0])})
    came = first.operator.pack(0, rows.append_column(EVENT_TIME, pa.array(times, pa.int64())))
    shard.step([0], None, [payload for _, payload in came])
    of_shard = shard.step([600_000_000], None, [])
    assert of_shard.num_rows > 10
    for at, batch in enumerate(of_shard.to_batches(max_chunksize=3)):
        told = pa.table({UPSTREAM_WATERMARK: pa.array([at * 1000], pa.int64())})
        both = pa.concat_tables([pa.Table.from_batches([batch]), told], promote_options="default")
        yield from both.combine_chunks().to_batches()


def packed(packer, came):
    """Per shard the rows or slices, in no order, and what was left out; the reports; the calls; how many batches were sent."""
    sent = list(packer(came))
    rows = pa.Table.from_batches(sent).to_pylist()
    payloads, reports, calls = {}, [], []
    for row in rows:
        if row["payload"] is not None:
            payloads.setdefault(row["shard"], []).append(row["payload"])
        elif row["input"] != NO_INPUT:
            reports.append((row["shard"], row["input"], row["report_us"]))
        else:
            calls.append(row["shard"])
    held = {}
    for shard, own in payloads.items():
        table, *left_out = unpack(own)
        held[shard] = sorted(table.to_pylist(), key=repr), left_out
    return held, sorted(reports), sorted(calls), len(sent)


def limited(monkeypatch):
    for name, value in LIMITS:
        monkeypatch.setattr(pack, name, value)
    monkeypatch.setattr(packing, "_WORTH", 0)


@pytest.mark.parametrize("pipeline", [AS_ROWS, AS_SLICES])
def test_rows_are_sent_once_in_any_chunk_size(pipeline, monkeypatch):
    operator = operator_of(pipeline)
    packer = source_packer(operator, 0, calls=[0, 2])
    *of_all, sent = packed(packer, batches(operator))
    assert sent == 3  # payloads, reports, calls
    assert of_all[1] == [(shard, 0, 11) for shard in sorted({row[0] for row in of_all[1]})]
    assert (len(of_all[1]), of_all[2]) == (SHARDS, [0, 2])
    limited(monkeypatch)
    *of_few, sent = packed(packer, batches(operator))
    assert of_few == of_all
    assert sent > 3 or pipeline is AS_SLICES  # slices wait for one another


def test_the_first_batch_of_a_run_calls_more_shards(monkeypatch):
    operator = operator_of(AS_SLICES)
    packer = source_packer(operator, 0, calls=[0], first_calls=[0, 1, 2])
    properties = {}

    class Task:
        def getLocalProperty(self, name):  # noqa: N802 - Spark's name
            return properties.get(name)

    monkeypatch.setattr(pack.TaskContext, "get", Task)
    monkeypatch.setattr(pack, "_first_batches", {})

    def calls(run, batch):
        properties.update({"spark.jobGroup.id": run, "streaming.sql.batchId": batch})
        return packed(packer, batches(operator))[2]

    assert calls(None, None) == [0]
    assert calls("a", "4") == [0, 1, 2]
    assert calls("a", "4") == [0, 1, 2]  # a task that is tried again
    assert calls("a", "5") == [0]
    assert calls("b", "5") == [0, 1, 2]
    assert calls("a", "6") == [0]


def test_panes_are_sent_once_in_any_chunk_size(monkeypatch):
    operator = operator_of(CHAIN)
    packer = pane_packer(operator, 0, streaming=True, read=iter)
    *of_all, sent = packed(packer, panes())
    assert (sent, len(of_all[1]), of_all[2]) == (2, SHARDS, [])  # outside of a task none are called
    limited(monkeypatch)
    *of_few, sent = packed(packer, panes())
    assert of_few == of_all
    assert sent > 2
