"""Progress of a query over Kafka, and the expressions of the board and alerts for its metrics."""

import json
from pathlib import Path
from types import SimpleNamespace

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
BOARD = ROOT / "deploy" / "grafana" / "beamish.json"
RULES = ROOT / "deploy" / "prometheus" / "beamish.rules.yml"
LAG = {"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": "30", "avgOffsetsBehindLatest": "20.0"}


def source(description, rows, end, latest, metrics):
    return SimpleNamespace(
        description=description,
        numInputRows=rows,
        startOffset="None",
        endOffset=end,
        latestOffset=latest,
        metrics=metrics,
    )


CLICKS = source("KafkaV2[Subscribe[clicks]]", 10, '{"clicks":{"0":5,"1":5}}', '{"clicks":{"0":35,"1":15}}', LAG)
IDLE = source("KafkaV2[SubscribePattern[a.*]]", 0, '{"ab":{"0":5}}', '{"ab":{"0":9}}', LAG)
OPERATOR = SimpleNamespace(
    operatorName="transformWithStateInPandasExec",
    memoryUsedBytes=2**20,
    numRowsTotal=5,
    numRowsUpdated=2,
    allUpdatesTimeMs=250,
    allRemovalsTimeMs=0,
    commitTimeMs=50,
)


def progress(*sources, batch=4):
    counts = {"rows": 4, "panes_on_time": 2, "dropped_due_to_lateness": 1, "retractions": 1}
    counts["by_shard"] = json.dumps([{"shard": 0, "live_windows": 3, "next_due_ms": 5_000}])
    return SimpleNamespace(
        id="1234",
        name="scores",
        batchId=batch,
        numInputRows=10,
        timestamp="2024-05-01T10:05:00.250Z",
        durationMs={"triggerExecution": 500, "addBatch": 400, "latestOffset": 20, "walCommit": 30, "commitOffsets": 40},
        eventTime={"watermark": "2024-05-01T10:00:00.000Z"},
        stateOperators=[OPERATOR],
        observedMetrics={"beamish": SimpleNamespace(asDict=lambda: counts)},
        sources=list(sources),
    )


def seen(listener, *batches):
    for one in batches:
        listener.onQueryProgress(SimpleNamespace(progress=one))


def expressions():
    board = json.loads(BOARD.read_text("utf-8"))
    yield from (target["expr"] for panel in board["panels"] for target in panel.get("targets", ()))
    yield from (one["definition"] for one in board["templating"]["list"] if "definition" in one)
    yield from (rule["expr"] for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"])
