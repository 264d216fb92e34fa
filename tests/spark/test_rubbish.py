"""Rubbish in: keys and values of every type at their edges give what Spark's own aggregates give, or are refused at once.

A sample in every run; the whole matrix in ``make test-deep``, which prints how many cells it had (docs/reliability.md).
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, First, Last, Max, Sum
from beamish.triggers import Always
from tests.rubbish.matrix import WINDOWS, by_sql, cells, differences, pipeline_of, refused, spark_cannot
from tests.rubbish.values import KEYS, table


def streamed(spark, folder, pipeline, *batches, first=0):
    """The output of a query with these micro-batches; ``first``: the number of the first file."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(batches, first):
        path = folder / "in" / f"{number}.parquet"
        pq.write_table(rows, path)
        os.utime(path, (1_700_000_000 + number,) * 2)  # Spark reads them in the order of their times
    schema = spark.read.parquet(str(folder / "in" / f"{first}.parquet")).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    out = []
    writer = rows.transform(pipeline).writeStream.foreachBatch(lambda panes, _: out.append(panes.toArrow()))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return pa.concat_tables(out)


TAKEN = [cell for cell in cells() if cell.is_taken]


@pytest.mark.deep
def test_an_aggregate_of_a_type_is_refused_at_once_where_spark_refuses_it(spark):
    rows = spark.createDataFrame(table("string"))
    for cell in cells():
        assert (refused(rows, cell) is None) == cell.is_taken, cell.name
        assert not (cell.is_taken and spark_cannot(rows, cell)), cell.name


def compared(spark, key, window, taken=TAKEN):
    """The differences in a batch that the engine runs."""
    rows = spark.createDataFrame(table(key))
    pipeline = pipeline_of(WINDOWS[window][0], {cell.name: cell.accumulation for cell in taken})
    return differences(rows.transform(pipeline.with_dropped()).toArrow(), by_sql(rows, window, taken), taken)


def in_a_stream(spark, folder, key, window, taken=TAKEN):
    """The differences in a stream of micro-batches; one has no rows, and the last one closes all windows."""
    rows = table(key)
    last = pa.table({**{name: pa.nulls(1, rows.schema.field(name).type) for name in rows.schema.names}, "ts": END})
    pipeline = pipeline_of(WINDOWS[window][0], {cell.name: cell.accumulation for cell in taken})
    half = rows.num_rows // 2
    parts = [rows.slice(0, half), rows.slice(0, 0), rows.slice(half)]
    if window == "global":
        out = streamed(spark, folder, pipeline.trigger(Always()).accumulating(), *parts)
        panes = out.to_pylist()
        numbered = {(repr(row["k"]), row["pane"]["index"]) for row in panes}
        assert len(numbered) == len(panes), "a group comes twice"
        last_panes = {repr(row["k"]): place for place, row in enumerate(panes)}
        out = out.take(pa.array(last_panes.values()))
    else:
        out = streamed(spark, folder, pipeline, *parts, last)
    read = spark.read.parquet(*(str(folder / "in" / f"{number}.parquet") for number in range(3)))
    return differences(out, by_sql(read, window, taken), taken)


END = pa.array([1_900_000_000_000_000], pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("key", ["struct"])
def test_a_stream_of_rubbish_agrees_with_sparks_own_aggregates(spark, tmp_path, key):
    assert in_a_stream(spark, tmp_path, key, "fixed", TAKEN[::9]) == []


def test_the_comparison_detects_duplicate_groups_and_signed_zeros():
    cell = next(cell for cell in TAKEN if cell.name == "first_double")

    def found(ours, theirs):
        tables = (pa.table({"k": [k for k, _ in rows], cell.name: [x for _, x in rows]}) for rows in (ours, theirs))
        return differences(*tables, [cell])

    assert found([("a", -0.0), ("b", 1.0)], [("b", 1.0), ("a", -0.0)]) == []
    assert found([("a", 1.0), ("a", 1.0)], [("a", 1.0)]) == ["group ('a', None) comes twice, ours"]
    assert found([("a", -0.0)], [("a", 0.0)]) == ["first_double in ('a', None): '-0.0', Spark: 0.0"]
    assert len(found([(-0.0, 1.0)], [(0.0, 1.0)])) == 2


@pytest.mark.deep
@pytest.mark.parametrize("key", KEYS)
def test_the_whole_matrix_agrees_with_sparks_own_aggregates(spark, key, capsys):
    found = [f"{window}: {one}" for window in WINDOWS for one in compared(spark, key, window)]
    with capsys.disabled():
        print(f"\nrubbish, {key}: {len(TAKEN) * len(WINDOWS)} cells, {len(found)} differ")
    assert found == []


@pytest.mark.deep
@pytest.mark.parametrize(("key", "window"), [(key, [*WINDOWS][place % 4]) for place, key in enumerate(KEYS)])
def test_the_whole_matrix_in_streams(spark, tmp_path, key, window, capsys):
    found = in_a_stream(spark, tmp_path, key, window)
    with capsys.disabled():
        print(f"\nrubbish, {key} in a stream of {window} windows: {len(TAKEN)} cells, {len(found)} differ")
    assert found == []


NAMES = [
    "window",
    "pane",
    "timestamp",
    "dropped",
    "key",
    "rows",
    "start",
    "values",
    "__op",
    "a b",
    "a.b",
    "`",
    "é",
    "'",
]


def test_columns_named_like_ours(spark):
    """Values of any name are taken under another; a name that the output has is refused as a key, and as an output column."""
    named = [f"v_bigint AS `{name.replace('`', '``')}`" for name in NAMES]
    rows = spark.createDataFrame(table("int")).selectExpr("ts", "k", *named)
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.GlobalWindow())
    most = {f"most_{place}": Max(name) for place, name in enumerate(NAMES)}
    out = rows.transform(pipeline.accumulate(**most).with_dropped()).toArrow()
    assert [out[name].to_pylist() for name in most] == [[2**63 - 1]] * len(NAMES)
    for name in ("window", "pane", "timestamp", "dropped"):
        for declared in (pipeline.key_by(name).accumulate(n=Count()), pipeline.accumulate(**{name: Count()})):
            with pytest.raises(bm.PipelineError, match=name):
                rows.transform(declared)


@pytest.mark.deep
def test_ten_megabytes_in_one_value(spark, tmp_path):
    great = "\U0001f600" * (10 * 2**18)
    rows = pa.table(
        {
            "ts": pa.array(
                [1_700_000_000_000_000, 1_700_000_001_000_000, 1_900_000_000_000_000], pa.timestamp("us", "UTC")
            ),
            "k": [great, great, "end"],
            "x": [great, "", "end"],
            "b": pa.array([b"\x00" * 10 * 2**20, b"", b""]),
        }
    )
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").window(bm.FixedWindows(60))
    pipeline = pipeline.accumulate(first=First("x"), last=Last("x"), most=Max("b"), n=Count(), xs=Collect("x"))
    out = streamed(spark, tmp_path, pipeline, rows.slice(0, 1), rows.slice(1, 1), rows.slice(2))
    (row,) = out.to_pylist()
    assert (row["k"] == great, row["first"] == great, row["last"], row["n"]) == (True, True, "", 2)
    assert (len(row["most"]), row["xs"] == [great, ""]) == (10 * 2**20, True)


def test_a_schema_that_changes_between_runs_is_refused(spark, tmp_path):
    """A value that the checkpoint holds in another type; one that cannot be summed up, or is gone, before the query begins."""
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").window(bm.FixedWindows(60))
    pipeline = pipeline.trigger(Always()).accumulating().accumulate(total=Sum("x"))
    times = pa.array([1_700_000_000_000_000], pa.timestamp("us", "UTC"))

    def rows(**x):
        return pa.table({"ts": times, "k": ["a"], **x})

    streamed(spark, tmp_path, pipeline, rows(x=pa.array([1], pa.int64())))
    (tmp_path / "in" / "0.parquet").unlink()
    with pytest.raises(Exception, match="STREAM_FAILED") as stopped:
        streamed(spark, tmp_path, pipeline, rows(x=pa.array([1.0])), first=1)
    assert isinstance(bm.errors.of(stopped.value), bm.StateError), stopped.value
    for changed in (rows(x=["1"]), rows(y=[1])):
        with pytest.raises(bm.ColumnError, match="'x'"):
            spark.createDataFrame(changed).transform(pipeline)
