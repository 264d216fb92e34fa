"""Panes as a changelog, each format read by something that speaks it; what is live (rules/changelogs.md#changelogs)."""

import json
from collections import Counter
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import beamish as bm
from beamish.accumulations import Count, InnerJoin, Sum
from beamish.local import Variation, _Node, _run
from beamish.script import panes_from_table, script_rows
from beamish.spark.rows.schemas import pane_schema
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always
from tests.lines import line
from tests.spark.conftest import Files


def fired(pipeline):
    return pipeline.trigger(AfterWatermark(early=Always(), late=Always())).allowed_lateness(100)


SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("team", "part")
VISITS = fired(SOURCE.window(bm.Sessions(5))).accumulating_and_retracting().with_dropped()
VISITS = VISITS.accumulate(n=Count(), score=Sum("score"))
BATCHES = (
    [(1, "red", 5), (2, "blue", 1), (9, "red", 2)],
    [(5, "red", 1)],  # two sessions become one
    [(20, "red", 3), (3, "blue", 7), (None, "red", 1)],
    [(9, "red", 4), (40, None, 1)],
)
FLAT = ("team", "part", "window.start", "window.end", "n", "score")


def at(seconds):
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def run(df, folder, *, keep=None):
    """Run a query over all there is; its rows go to files, or batch by batch to ``keep``."""
    writer = df.writeStream.foreachBatch(keep) if keep else df.writeStream.option("path", str(folder / "panes"))
    writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{bool(keep)}"))
    writer.trigger(availableNow=True).start().awaitTermination()


@pytest.fixture(scope="module")
def visits(spark, tmp_path_factory):
    """A stored table of panes; what a batch gives; and Debezium's rows of each batch, taken on the way."""
    folder = tmp_path_factory.mktemp("changelog")
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "team": pa.string(), "part": pa.string(), "score": pa.int64()})
    files = Files(spark, folder / "input", schema)
    for batch in BATCHES:
        files.add(*({"ts": at(ts), "team": team, "part": "a", "score": score} for ts, team, score in batch))
    panes, batches = files.stream().transform(VISITS), []
    run(panes, folder)
    run(bm.changelog(panes, "debezium"), folder, keep=lambda batch, _: batches.append(in_python(batch)))
    whole = spark.read.parquet(str(files.folder)).where("ts is not null").transform(VISITS)
    return spark.read.parquet(str(folder / "panes")), rows(whole.select(*FLAT)), batches


def in_python(df):
    return [row.asDict(recursive=True) for row in df.collect()]


def rows(df):
    found = [tuple(row) for row in df.collect()]
    assert len(set(found)) == len(found)
    return set(found)


def values(image):
    """A row of data, flat."""
    window = image["window"]
    return image["team"], image["part"], window["start"], window["end"], image["n"], image["score"]


@pytest.mark.parametrize("format_", ["spark", "delta-cdf"])
def test_a_change_feed_has_the_columns_of_deltas_and_each_image_takes_its_row_in_or_out(visits, format_):
    panes, expected, _ = visits
    feed = bm.changelog(panes, format_, fields=["sequence", "timing", "timestamp"])
    assert [(field.name, field.dataType.simpleString()) for field in feed.schema] == [
        ("_change_type", "string"),
        ("team", "string"),
        ("part", "string"),
        ("window", "struct<start:timestamp,end:timestamp>"),
        ("n", "bigint"),
        ("score", "bigint"),
        ("pane_sequence", "bigint"),
        ("pane_timing", "string"),
        ("timestamp", "timestamp"),
    ]
    table, kinds = set(), Counter()
    for row in sorted(in_python(feed), key=lambda row: row["pane_sequence"]):
        kinds[row["_change_type"]] += 1
        if row["_change_type"] in ("insert", "update_postimage"):
            assert values(row) not in table
            table.add(values(row))
        else:
            table.remove(values(row))
    assert table == expected
    assert kinds["update_preimage"] == kinds["update_postimage"] > 1
    assert kinds["delete"] == 3, "sessions of other bounds took the place of three"


def test_flinks_row_kinds_fold_in_duckdb(visits):
    panes, expected, _ = visits
    log = bm.changelog(panes, "flink", codes="short").toArrow()
    assert log.schema.names[0] == "op"
    found = duckdb.sql("""
        SELECT team, part, "window".start, "window"."end", n, score FROM log GROUP BY ALL
        HAVING sum(CASE op WHEN '+I' THEN 1 WHEN '+U' THEN 1 WHEN '-U' THEN -1 WHEN '-D' THEN -1 END) = 1
    """)
    naive = {tuple(x.replace(tzinfo=None) if isinstance(x, datetime) else x for x in row) for row in found.fetchall()}
    assert naive == expected
    long = bm.changelog(panes, "flink").select("op").distinct()
    assert {op for (op,) in long.collect()} == {"INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"}


def fold(envelopes):
    """Debezium's rows as a consumer applies them: ``before`` goes, ``after`` comes."""
    table = set()
    for row in envelopes:
        assert (row["before"] is None, row["after"] is None) == {
            "c": (True, False),
            "u": (False, False),
            "d": (False, True),
        }[row["op"]]
        if row["before"]:
            table.remove(values(row["before"]))
        if row["after"]:
            assert values(row["after"]) not in table
            table.add(values(row["after"]))
    return table


def test_debeziums_rows_have_both_images_on_a_stream_and_at_rest(visits):
    panes, expected, batches = visits
    on_the_way = [row for batch in batches for row in batch]
    assert fold(on_the_way) == expected
    assert {row["op"] for row in on_the_way} == {"c", "u", "d"}
    at_rest = in_python(bm.changelog(panes, "debezium", fields=["sequence"]))
    assert min(row["ts_ms"] for row in at_rest) > 1_700_000_000_000
    in_order = sorted(at_rest, key=lambda row: (row["after"] or row["before"])["pane_sequence"])
    # a deletion's number is that of the row that deletes
    assert fold(in_order) == expected
    assert len(at_rest) == len(on_the_way)


def test_the_last_upsert_of_a_slot_is_live(visits):
    panes, expected, _ = visits
    upserts = bm.changelog(panes, "upsert", fields=["timing"])
    data = ["team", "part", "window_start", "window_end", "n", "score"]
    assert upserts.columns == [*data, "pane_timing", "_sequence", "_deleted"]
    last = {tuple(row[:4]): row for row in sorted(upserts.collect(), key=lambda row: row["_sequence"])}
    assert {tuple(row[:6]) for row in last.values() if not row["_deleted"]} == expected


def test_a_compacted_topic_holds_the_live_rows(visits):
    panes, expected, _ = visits
    records = bm.changelog(panes.orderBy("pane.sequence"), "kafka")
    assert records.columns == ["key", "value"]
    topic = dict(records.collect())
    first = json.loads(next(key for key in topic if '"red"' in key))
    assert list(first) == ["team", "part", "window_start", "window_end"]
    assert first["window_start"].endswith(".000000Z")
    live = [json.loads(value) for value in topic.values() if value]
    assert {(row["team"], row["n"], row["score"]) for row in live} == {(row[0], row[4], row[5]) for row in expected}
    assert {None} == {json.loads(key)["team"] for key in topic} - {"red", "blue"}
    own = bm.changelog(panes, "kafka", key_format=lambda row: F.concat_ws("/", row["team"], row["part"]))
    assert {key for key, _ in own.collect()} == {"red/a", "blue/a", "a"}


def test_differences_of_deleted_rows_add_up_to_zero(visits):
    panes, expected, _ = visits
    sums = bm.changelog(panes, "diff").groupBy(*FLAT).agg(F.sum("_diff").alias("times")).collect()
    assert {tuple(row[:6]) for row in sums if row["times"]} == expected
    assert {row["times"] for row in sums} == {0, 1}


def test_live_panes_of_a_stored_table_equal_a_batch(visits):
    panes, expected, _ = visits
    live = bm.live(panes)
    assert panes.schema["pane"].metadata["beamish"]["follows"] == "retracting"
    assert rows(live.select(*FLAT)) == expected
    assert live.columns == [name for name in panes.columns if name != "dropped"]


# Whatever the panes are of

AT = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
RATES = AT.key_by("team").versions("1 day")
FIXED = fired(SOURCE.window(bm.FixedWindows(5)))
PAIRS = fired(bm.merge(orders=AT.key_by("team"), clicks=AT.key_by("team")).window(bm.FixedWindows(5)))
KINDS = {
    "retracting": VISITS,
    "accumulating": FIXED.accumulating().accumulate(n=Count()),
    "discarding": FIXED.discarding().accumulate(n=Count()),
    "once": SOURCE.window(bm.Sessions(5)).accumulate(n=Count()),
    "two windowings": FIXED.window({"a": bm.FixedWindows(5), "b": bm.FixedWindows(10)})
    .accumulating_and_retracting()
    .accumulate(n=Count()),
    "all of time": FIXED.window(bm.GlobalWindow()).accumulating_and_retracting().accumulate(n=Count()),
    "join": PAIRS.accumulating_and_retracting().accumulate(pair=InnerJoin("orders", "clicks")),
    "accumulating join": PAIRS.accumulating().accumulate(pair=InnerJoin("orders", "clicks")),
    "versions": RATES,
    "as-of join": bm.as_of_join(orders=AT, rates=RATES, on="team", early=True).accumulating_and_retracting(),
}


def script_of(pipeline):
    script, names = TestStream(), [source.name for source in pipeline.flow.sources]
    for number, batch in enumerate(BATCHES[:3]):
        for name in names:
            own = [{"ts": ts, "team": team, "part": "a", "score": score} for ts, team, score in batch]
            script = script.add(own, input=name) if name else script.add(own)
        script = script.advance_watermark_to(4 + 6 * number)
    return script


def stored(spark, pipeline, script, *, known=True):
    """The rows of a script as a DataFrame, as a query would have stored them; ``known``: with what is known of them."""
    data = script_rows(pipeline.flow, script.events)
    bound = pipeline.flow.bind(data.schemas, shards=2)
    tables = pa.concat_tables(_run(_Node(bound, Variation()), script.events, data))
    schema = pane_schema(bound.operator.gives)
    if not known:
        schema["pane"].metadata = {}
    return spark.createDataFrame(tables.to_pylist(), schema).repartition(3)


def words(pipeline, df):
    data = script_rows(pipeline.flow, script_of(pipeline).events)
    gives = pipeline.flow.bind(data.schemas, shards=2).operator.gives
    return Counter(line(pane) for pane in panes_from_table(df.toArrow(), gives))


@pytest.mark.parametrize("kind", KINDS)
def test_live_panes_of_a_table_equal_those_of_a_list(spark, kind):
    pipeline = KINDS[kind]
    script = script_of(pipeline)
    rows, table = pipeline.run(script), stored(spark, pipeline, script)
    live = Counter(map(line, bm.live(rows)))
    assert live
    assert words(pipeline, bm.live(table)) == live
    earlier = Counter(map(line, bm.live(rows, as_of=9)))
    assert words(pipeline, bm.live(table, as_of=9)) == earlier
    assert earlier != live


def of(spark, pipeline, *, without=""):
    """An empty table of panes."""
    strings = {name: pa.string() for name in ("team", "part", "op")}
    columns = pa.schema({"ts": pa.timestamp("us", "UTC"), "score": pa.int64(), **strings})
    rows = {source.name: columns for source in pipeline.flow.sources}
    schema = pane_schema(pipeline.flow.bind(rows, shards=2).operator.gives)
    if without:
        fields = [field for field in schema["pane"].dataType if field.name != without]
        schema["pane"].dataType = StructType(fields)
    return spark.createDataFrame([], schema)


CHANGES = AT.key_by("team").changes().suppress(bm.UntilTimeLimit(5, clock="event"))
GROWING = fired(SOURCE.window(bm.Sessions(5))).accumulating().accumulate(n=Count())
NAMED = SOURCE.key_by("op").window(bm.FixedWindows(5)).accumulate(_sequence=Count())
REFUSED = {
    "another format": (bm.OptionError, FIXED.accumulate(n=Count()), {"format": "avro"}, "'debezium'"),
    "codes elsewhere": (bm.OptionError, VISITS, {"format": "spark", "codes": "short"}, "format='flink'"),
    "other codes": (bm.OptionError, VISITS, {"format": "flink", "codes": "tiny"}, "'short'"),
    "a key format elsewhere": (bm.OptionError, VISITS, {"key_format": str}, "format='kafka'"),
    "another key format": (bm.OptionError, VISITS, {"format": "kafka", "key_format": "avro"}, "to_avro"),
    "another field": (bm.OptionError, VISITS, {"fields": ["kind"]}, "'timing'"),
    "keys that are no list": (bm.OptionError, VISITS, {"keys": "team"}, "keys=['order_id']"),
    "a key that is not there": (bm.ColumnError, VISITS, {"keys": ["user"]}, "no column 'user'"),
    "parts as upserts": (bm.PipelineError, KINDS["discarding"], {"format": "upsert"}, "is discarding"),
    "parts in a topic": (bm.PipelineError, KINDS["discarding"], {"format": "kafka"}, "format='diff'"),
    "differences of totals": (
        bm.PipelineError,
        KINDS["accumulating"],
        {"format": "diff"},
        "accumulating_and_retracting",
    ),
    "sessions that vanish": (bm.PipelineError, GROWING, {}, "windows that merge"),
    "differences of changes": (bm.PipelineError, CHANGES, {"format": "diff"}, "format='upsert'"),
    "which pair": (bm.ColumnError, KINDS["join"], {"format": "upsert"}, "keys=['order_id']"),
    "which joined row": (bm.ColumnError, KINDS["as-of join"], {"format": "kafka"}, "keys=['order_id']"),
    "op of one's own": (bm.ColumnError, NAMED, {"format": "flink"}, "a column 'op' of its own"),
    "a number of one's own": (bm.ColumnError, NAMED, {"format": "kafka"}, "a column '_sequence' of its own"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_changelogs_that_panes_cannot_represent_are_rejected(spark, what):
    error, pipeline, arguments, words = REFUSED[what]
    with pytest.raises(error) as caught:
        bm.changelog(of(spark, pipeline), **arguments)
    assert words in str(caught.value)


def test_tables_without_panes_are_rejected(spark):
    with pytest.raises(bm.ColumnError, match="no column 'window'"):
        bm.changelog(spark.range(3))
    for field in ("change", "sequence"):
        with pytest.raises(bm.ColumnError, match=f"no field '{field}'.*write them again"):
            bm.live(of(spark, VISITS, without=field))
    with pytest.raises(bm.ColumnError, match=r"no field 'watermark'.*write them again"):
        bm.live(of(spark, VISITS, without="watermark"), as_of=9)
    assert bm.live(of(spark, VISITS, without="watermark")).count() == 0
    with pytest.raises(bm.PipelineError, match="windows that merge"):
        bm.live(of(spark, GROWING))
    span, says = "'start', timestamp, 'end', timestamp", "'kind', 'PANE', 'change', 'INSERT', 'sequence', value"
    names = ["value", f"named_struct({span}) window", f"named_struct({says}) pane", "timestamp"]
    with pytest.raises(bm.PipelineError, match="of a stream"):
        bm.live(spark.readStream.format("rate").load().selectExpr(*names))


def test_panes_without_metadata(spark):
    def unknown(kind):
        return stored(spark, KINDS[kind], script_of(KINDS[kind]), known=False)

    live = Counter(map(line, bm.live(KINDS["retracting"].run(script_of(VISITS)))))
    assert words(VISITS, bm.live(unknown("retracting"))) == live
    assert "window_start" in bm.changelog(unknown("all of time"), "upsert").columns
    with pytest.raises(Exception, match="several live panes"):
        bm.live(unknown("discarding")).collect()
    with pytest.raises(bm.ColumnError, match=r"keys=\['order_id'\]"):
        bm.changelog(unknown("versions"), "upsert")
    known = Counter(map(line, bm.live(RATES.run(script_of(RATES)))))
    for keys in (None, ["team", "valid_from"]):
        assert words(RATES, bm.live(unknown("versions"), keys=keys)) == known
