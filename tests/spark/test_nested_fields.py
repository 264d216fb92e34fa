"""Nested fields on Spark: a batch by Spark's operators and by the engine, a stream that restarts, declared schemas, case."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish.accumulations import Collect, Count, Last, Min, Sum
from beamish.testing import TestStream
from tests.pipeline.nested import DEEP, FLAT, nested
from tests.spark.test_rubbish import streamed

ROWS = (
    "t struct<ts: timestamp>, r struct<s: struct<k: string, v: bigint>, id: bigint, gone: boolean>, "
    "`d.t` struct<`w.x`: double>"
)


def counted(c, **more):
    pipeline = bm.Pipeline().event_time(c("ts"), bm.BoundedOutOfOrderness(0)).key_by(c("k")).window(bm.FixedWindows(10))
    return pipeline.accumulate(n=Count(c("v")), s=Sum(c("v")), w=Sum(c("w")), **more)


def shown(rows):
    return sorted(tuple(row[name] for name in ("n", "s", "w")) for row in rows)


def in_process(pipeline, rows):
    panes = pipeline.run(TestStream().add(rows).advance_watermark_to_infinity())
    return sorted((*pane.key.values(), *pane.values.values()) for pane in panes if None not in pane.key.values())


def arrow(rows):
    """Nested rows as Spark's Parquet files have them."""
    seconds = pa.timestamp("us", "UTC")
    s = pa.struct([("k", pa.string()), ("v", pa.int64())])
    types = {
        "t": pa.struct([("ts", seconds)]),
        "r": pa.struct([("s", s), ("id", pa.int64()), ("gone", pa.bool_())]),
        "d.t": pa.struct([("w.x", pa.float64())]),
    }
    given = [{**row, "t": {"ts": row["t"]["ts"] * 1_000_000}} for row in rows]
    return pa.table({name: pa.array([row[name] for row in given], type_) for name, type_ in types.items()})


def test_nested_fields_of_a_batch_and_a_stream(spark, tmp_path):
    deep, rows = DEEP.__getitem__, [nested(row) for row in FLAT]
    df = spark.createDataFrame(arrow(rows))
    plain = counted(deep)
    assert "Spark's own aggregation" in plain.explain(df)
    want = in_process(plain, rows)
    got = plain.apply(df).toArrow().to_pylist()
    assert sorted((row["r.s.k"], row["n"], row["s"], row["w"]) for row in got if row["r.s.k"]) == want
    by_engine = counted(deep, all=Collect(deep("v"), sorted_by=deep("w"))).with_dropped().apply(df)
    assert by_engine.columns[0] == "r.s.k"
    rows_of_engine = by_engine.toArrow().to_pylist()
    assert sorted((row["r.s.k"], row["n"], row["s"], row["w"]) for row in rows_of_engine if row["r.s.k"]) == want
    assert [field.name for field in by_engine.schema["dropped"].dataType["row"].dataType] == ["t", "r", "d.t", "r.s.k"]
    chosen = plain.where(pc.field(deep("v")) > 1)
    of_chosen = chosen.apply(df).toArrow().to_pylist()
    assert sorted((row["r.s.k"], row["n"], row["s"], row["w"]) for row in of_chosen) == in_process(chosen, rows)
    told = plain.apply(df, schema=ROWS, shards=2, streaming=False)
    assert shown(told.toArrow().to_pylist()) == shown(got)
    for policy in (bm.BoundedOutOfOrderness(0), bm.Punctuated("t.ts")):
        pipeline = plain.event_time("t.ts", policy)
        later = [{**row, "t": {"ts": row["t"]["ts"] + 1000}} for row in rows[:1]]
        out = streamed(spark, tmp_path / type(policy).__name__, pipeline, arrow(rows), arrow(later))
        times = [row for row in out.to_pylist() if row["window"]["start"].timestamp() < 1000]
        assert shown(times) == shown(got)


def test_fields_of_a_match_on_spark(spark, tmp_path):
    times = bm.BoundedOutOfOrderness(0)
    rates = bm.Pipeline().event_time("ts", times).key_by("of.cur").versions("1 day", values=["rate"])
    orders = bm.Pipeline().event_time("at", times)
    joined = bm.as_of_join(orders=orders, rates=rates, on={"paid.cur": "of.cur"})
    last = (
        bm.Pipeline()
        .key_by("rates.rate.src")
        .window(bm.FixedWindows(10))
        .accumulate(s=Sum("rates.rate.v"), n=Sum("paid.n"), since=Last("rates.valid_from"))
    )
    chain = joined.then(last)
    script = (
        TestStream()
        .add([{"ts": 1, "of": {"cur": "EUR"}, "rate": {"v": 2, "src": "x"}}], input="rates")
        .add([{"at": 3, "paid": {"cur": "EUR", "n": 5}}, {"at": 4, "paid": None}], input="orders")
        .advance_watermark_to(5)
        .add([{"at": 6, "paid": {"cur": "EUR", "n": 7}}], input="orders")
        .advance_watermark_to(20)
    )
    want = [(pane.key, pane.values) for pane in chain.run(script)]
    assert [(key, values["s"], values["n"]) for key, values in want] == [({"rates.rate.src": "x"}, 4, 12)]
    ran = script.on_spark(spark, chain, restart_after=[2], checkpoint=tmp_path, shards=2, partitions=1)
    assert [(pane.key, pane.values) for pane in ran] == want
    checkpoint = str(tmp_path / "checkpoint")
    assert not bm.check_upgrade(spark, checkpoint, chain).changes
    more = joined.then(last.accumulate(**{**last.flow.stage.declared("accumulations"), "lo": Min("rates.rate.v")}))
    upgrade = bm.check_upgrade(spark, checkpoint, more)
    assert upgrade.ok
    assert "lo" in str(upgrade)
    changes = spark.sql("select timestamp_seconds(1) ts, struct('EUR' cur) of, struct(2L v, 'x' src) rate")
    bought = spark.sql(
        "select timestamp_seconds(a) at, struct('EUR' cur, n n) paid from values (3, 5L), (6, 7L) as t(a, n)"
    )
    assert "Spark's own window function" in joined.explain(orders=bought, rates=changes)
    (pane,) = chain.apply(orders=bought, rates=changes).toArrow().to_pylist()
    assert (pane["rates.rate.src"], pane["s"], pane["n"]) == ("x", 4, 12)


@pytest.mark.parametrize("matters", ["true", "false"])
def test_fields_in_another_case_are_found_unless_spark_is_case_sensitive(spark, matters):
    rows = spark.sql("select struct(timestamp_seconds(1) ts) T, struct(3L v) r")
    sums = bm.Pipeline().event_time("t.TS", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))
    exact = bm.Pipeline().event_time("T.ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))
    spark.conf.set("spark.sql.caseSensitive", matters)
    try:
        assert exact.accumulate(s=Sum("r.v")).apply(rows).collect()[0]["s"] == 3
        for pipeline in (sums.accumulate(s=Sum("r.v")), exact.accumulate(s=Sum("R.V"))):
            if matters == "true":
                with pytest.raises(bm.ColumnError, match=r"no column 't\.TS'|'R\.V' names fields in another case"):
                    pipeline.apply(rows)
            else:
                assert pipeline.apply(rows).collect()[0]["s"] == 3
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
