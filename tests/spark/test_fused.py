"""Fused stages on Spark: stages apart are carried over to one operator and back; refusals; metrics and answers per stage."""

from __future__ import annotations

import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.fusion.groups import FUSE
from beamish.spark.checkpoint.stored_query import read_query
from tests.agreement import differences
from tests.fusion import late
from tests.spark.conftest import Files

pytestmark = pytest.mark.usefixtures("several_partitions")

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("team", pa.string()), ("score", pa.int64())])
TOGETHER, APART = (frozenset({1, 2, 3}),), (frozenset({1}), frozenset({2}), frozenset({3}))


def stage(delay):
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(delay)).key_by("team")
    return source.window(bm.FixedWindows(10)).accumulate(n=Count(), total=Sum("score"))


# Two sources with watermarks of their own, so that watermarks are reported and the query has heartbeats.
PIPELINE = (
    bm.merge(plays=stage(0), bets=stage(5))
    .window(bm.FixedWindows(30))
    .allowed_lateness(60)
    .accumulating()
    .accumulate(plays=Sum("n").of("plays"), bets=Sum("total").of("bets"))
)


class Query:
    """A query whose parts run one after the other, from one checkpoint to the next."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.rows = spark, folder, []
        (folder / "inputs").mkdir()
        self.inputs = {name: Files(spark, folder / "inputs" / name, SCHEMA) for name in ("plays", "bets")}
        self.at = 0

    def add(self):
        """The rows of 40 seconds."""
        for name, files in self.inputs.items():
            times = range(self.at, self.at + 40)
            files.add(*({"ts": at * 1_000_000, "team": "ab"[at % 2], "score": len(name) + at} for at in times))
        self.at += 40
        return self

    def run(self, folder, **how):
        frames = {name: files.stream() for name, files in self.inputs.items()}
        out = PIPELINE.apply(**frames, shards=how.pop("shards", 2), **how)
        query = out.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self.folder / folder))
        query.trigger(availableNow=True).start().awaitTermination()
        return out

    def _take(self, batch, number):
        self.rows += [(row.team, row.window.start, row.plays, row.bets, row.pane.sequence) for row in batch.collect()]

    @property
    def expected(self):
        frames = {name: self.spark.read.parquet(str(files.folder)) for name, files in self.inputs.items()}
        return {(row.team, row.window.start): (row.plays, row.bets) for row in PIPELINE.apply(**frames).collect()}


def test_stages_of_a_checkpoint_are_carried_over_to_one_operator_and_back(spark, tmp_path):
    query = Query(spark, tmp_path).add().add()
    checkpoint = str(tmp_path / "apart")
    query.run("apart", fuse=False)
    assert set(read_query(spark, checkpoint, PIPELINE.flow).fuse.groups) == set(APART)

    query.add()
    with pytest.raises(Exception, match=r"in the checkpoint offsets|NOT_MATCH_IN_STATE_METADATA") as raised:
        query.run("apart")
    error = bm.errors.of(raised.value)
    assert isinstance(error, bm.StateError)
    assert "apply(df, fuse=False)" in str(error)
    (change,) = bm.check_upgrade(spark, checkpoint, PIPELINE).changes
    assert (change.refused, change.what, change.then, change.now) == (False, "fused stages", "none", "1 with 2 with 3")
    query.run("apart", checkpoint=checkpoint)

    bm.migrate(spark, checkpoint, tmp_path / "fused", PIPELINE, shards=3)
    assert read_query(spark, str(tmp_path / "fused"), PIPELINE.flow).fuse.groups == TOGETHER
    query.add().run("fused", shards=3)
    inspected = bm.inspect(spark, tmp_path / "fused")
    assert "stage 3 of 3" in str(inspected)
    (window,) = PIPELINE.state(spark, tmp_path / "fused").windows(stage=3, key={"team": "a"}).limit(1).collect()
    assert window.team == "a"

    bm.migrate(spark, tmp_path / "fused", tmp_path / "again", PIPELINE, shards=2, fuse=False)
    query.add().run("again", fuse=False)
    query.add().run("again", fuse=False)
    given = {row[:2]: row[2:4] for row in query.rows}  # the last of a window
    expected = query.expected
    assert given == {window: expected[window] for window in given}
    assert len(given) >= 6


def test_each_fused_stage_is_counted(spark, tmp_path):
    input_ = Files(spark, tmp_path / "input", SCHEMA)
    for at in (0, 20, 40):
        input_.add(*({"ts": (at + i) * 1_000_000, "team": "ab"[i % 2], "score": i} for i in range(20)))
    later = bm.Pipeline().key_by("team").window(bm.FixedWindows(20)).accumulate(total=Sum("total"))
    chain = stage(0).then(later)
    observed = bm.observe(chain.apply(input_.stream(), shards=2), "counts")
    query = observed.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    assert FUSE.grouped(chain.flow.completed.bind({None: SCHEMA}, shards=2)).groups == {frozenset({1, 2})}
    counted = {"counts": [0, 0], "counts.0": [0, 0]}
    for progress in started.recentProgress:
        for name, rows in counted.items():
            metrics = progress["observedMetrics"].get(name)
            if metrics is not None:
                rows[0] += metrics["rows"] or 0
                rows[1] += metrics["panes_on_time"] or 0
    assert counted["counts.0"] == [60, 10]
    assert counted["counts"] == [10, 4]


def test_stages_by_fewer_keys_are_fused_where_all_are_sharded_by_these(spark, tmp_path):
    input_ = Files(spark, tmp_path / "input", SCHEMA)
    for at in (0, 20, 40, 60):
        input_.add(*({"ts": (at + i) * 1_000_000, "team": "abcd"[i % 4], "score": i % 3} for i in range(20)))
    source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team", "score")
    later = bm.Pipeline().key_by("team").window(bm.FixedWindows(20)).accumulate(n=Sum("n"))
    chain = source.window(bm.FixedWindows(10)).accumulate(n=Count()).then(later)
    rows = []
    out = chain.apply(input_.stream(), shards=3, shard_by=["team"])
    query = out.writeStream.foreachBatch(
        lambda batch, _: rows.extend((row.team, row.window.start, row.n) for row in batch.collect())
    )
    query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert read_query(spark, str(tmp_path / "checkpoint"), chain.flow).fuse.groups == (frozenset({1, 2}),)
    batch = [
        (row.team, row.window.start, row.n) for row in chain.apply(spark.read.parquet(str(input_.folder))).collect()
    ]
    last = max(start for _, start, _ in rows)
    assert len(rows) == 12
    assert sorted(rows) == sorted(one for one in batch if one[1] <= last)


def test_a_late_pane_of_a_shard_that_had_no_rows_is_late_for_the_next_stage(spark):
    assert FUSE.grouped(late.CHAIN.flow.completed.bind({None: SCHEMA}, shards=13)).groups == {frozenset({1, 2})}
    assert (
        differences(late.SCRIPT.on_spark(spark, late.CHAIN, shards=13), late.CHAIN.run(late.SCRIPT), late.CHAIN) == []
    )
