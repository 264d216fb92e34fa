"""The page beside a query on Spark: facts are those of ``bm.inspect`` while it runs, stops, is upgraded and is deleted."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import beamish as bm
from beamish.accumulations import Count, Max, Sum
from beamish.checkpoint.overview import Listing, overview
from beamish.contract.at_rest import First
from beamish.dashboard.server import application
from beamish.dashboard.source import SparkSource
from beamish.dashboard.watched import Watched
from beamish.spark.checkpoint import inspected
from tests.dashboard.scenes import PART

KEYED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(10)).key_by("team")
SCORES = KEYED.window(bm.FixedWindows(60)).allowed_lateness(100).accumulating().accumulate(n=Count()).with_dropped()
UPGRADED = KEYED.window(bm.FixedWindows(60)).allowed_lateness(100).accumulating()
UPGRADED = UPGRADED.accumulate(n=Count(), total=Sum("score"), best=Max("score")).with_dropped()
COLUMNS = {"team": pa.string(), "ts": pa.timestamp("us", "UTC"), "score": pa.int64()}


def row(team, second, score=1):
    return {"team": team, "ts": datetime.fromtimestamp(1_700_000_000 + second, UTC), "score": score}


@pytest.fixture
def query(spark, tmp_path, files):
    """Run a pipeline over the files so far, from the same checkpoint."""
    source = files(**COLUMNS)

    def run(pipeline, *batches):
        for rows in batches:
            source.add(*rows)
        writer = pipeline.apply(source.stream(), shards=3).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).option(
            "path", str(tmp_path / "panes")
        )
        writer.trigger(availableNow=True).start().awaitTermination()

    return run


def stored_files(folder):
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file())


def check_equals_inspect(spark, checkpoint, facts):
    """The numbers are those of ``bm.inspect``."""
    found = bm.inspect(spark, checkpoint)
    stages = found.stages().collect()
    windows = found.windows().selectExpr("unix_micros(window.end) AS end", "key.team AS team", "new_rows").collect()
    shards = {(one.stage, one.shard): one for one in found.shards().collect()}
    assert facts["batch"] == found.batch
    assert len(facts["stages"]) == len(stages)
    for stage, one in zip(facts["stages"], stages, strict=True):
        assert stage["windows"] == one.kept_windows == len(windows)
        assert (stage["size"], stage["shard_count"], stage["dropped"]) == (one.bytes, one.shards, one.dropped)
        assert (stage["rows_out"], stage["held_back"], stage["keys"]) == (one.rows_out, one.held_back, one["keys"])
        assert stage["watermark_us"] == round(one.watermark.replace(tzinfo=UTC).timestamp() * 1e6)
        ends = Counter(window.end for window in windows)
        for place in stage["bins"]:
            inside = sum(count for end, count in ends.items() if place["start_us"] <= end < place["end_us"])
            assert sum(place["windows"].values()) == inside
        assert sum(place["new_rows"] for place in stage["bins"]) == sum(window.new_rows for window in windows)
        for shard in stage["shards"]:
            stored = shards[stage["number"], shard["shard"]]
            assert (shard["windows"], shard["size"]) == (stored.windows, stored.bytes)
        assert sum(shard["keys"] for shard in stage["shards"]) == len({window.team for window in windows})


def test_the_page_beside_a_query_that_stops_is_upgraded_and_deleted(spark, tmp_path, query, monkeypatch):
    checkpoint, panes = tmp_path / "checkpoint", str(tmp_path / "panes")
    source = SparkSource(spark, str(checkpoint), None, panes, panes)
    now = [0.0]
    client = TestClient(application([Watched(source, 1.0, lambda: now[0])]), base_url="http://localhost:8450")

    def facts():
        now[0] += 10
        answer = client.get("/q/0/facts.json").json()
        assert answer["problem"] == ""
        return answer["facts"]

    assert "Traceback" not in client.get("/q/0/").text
    assert "give the folder of the query" in client.get("/q/0/").text
    first = [row("red", 5), row("red", 65), row("blue", 70), row("green", 200)], [row("red", 290), row("red", 6)]
    query(SCORES, *first)
    before = stored_files(checkpoint)
    seen = facts()
    check_equals_inspect(spark, str(checkpoint), seen)
    assert all(one["seconds"] >= 0 for one in seen["batches"])
    listed = client.get("/q/0/rows", params={"stage": 1, "key0": "green"}, headers=PART).text
    (link,) = re.findall(r'href="(/q/0/why[^"]*)"', listed)
    why = client.get(link, headers=PART).text
    assert "team=&#x27;green&#x27; is open" in why
    picture = re.findall(r'src="(/q/0/panes[^"]*)"', why)
    assert client.get(picture[0]).headers["content-type"] == "image/svg+xml"
    assert "expired" in client.get("/q/0/dropped", headers=PART).text
    assert stored_files(checkpoint) == before
    monkeypatch.setattr(inspected, "_MOST_BYTES", 0)  # executors read what this process has read
    by_executors = overview(bm.inspect(spark, checkpoint))
    assert json.loads(json.dumps(by_executors.as_json()))["stages"] == seen["stages"]
    (only,) = Listing(bm.inspect(spark, checkpoint)).rows(1, ["team=green"], First(10))
    assert only.window in listed
    monkeypatch.undo()

    query(SCORES, [row("blue", 400)])
    restarted = facts()
    assert restarted["batch"] > seen["batch"]
    check_equals_inspect(spark, str(checkpoint), restarted)
    query(UPGRADED, [row("red", 410, 7)])
    upgraded = facts()
    check_equals_inspect(spark, str(checkpoint), upgraded)
    assert "best" in str(upgraded["stages"][0]["lines"])
    assert "While this page was open" in client.get("/q/0/").text

    shutil.rmtree(checkpoint)
    now[0] += 10
    gone = client.get("/q/0/").text
    assert "give the folder of the query" in gone
    assert f"The facts below are those of batch {upgraded['batch']}." in gone
    assert "org.apache.spark" not in gone


def test_the_checkpoint_of_another_query_is_a_sentence(spark, tmp_path, files):
    stream = files(**COLUMNS).add(row("red", 5)).stream()
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "foreign"))
    writer.trigger(availableNow=True).start().awaitTermination()
    client = TestClient(
        application([Watched(SparkSource(spark, str(tmp_path / "foreign")), 1.0)]), base_url="http://localhost"
    )
    shown = client.get("/q/0/").text
    assert "it was not written by a beamish pipeline" in shown
    assert "Traceback" not in shown
    assert client.get("/q/0/rows?stage=1", headers=PART).status_code == 400
