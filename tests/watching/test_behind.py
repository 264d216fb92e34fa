"""How far a query is behind Kafka, its record, its spans, and the board and alerts for its metrics (docs/sinks.md#metrics)."""

import re
from datetime import UTC, datetime

import pytest
import yaml  # type: ignore[import-untyped]
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import beamish as bm
from beamish.recording import read_record
from beamish.watching import BatchCounts, Behind
from tests.watching.board import CLICKS, IDLE, LAG, RULES, expressions, progress, seen, source


def test_kafka_lag_of_each_input():
    found = BatchCounts.read(
        progress(CLICKS, IDLE, source("FileSource[x]", 1, '{"logOffset":1}', "None", {})), "beamish"
    )
    assert found.behind == {"clicks": Behind(30, 20, 4.0), "a.*": Behind(30, 20, None)}
    caught_up = source("KafkaV2[Assign[t]]", 0, '{"t":{"0":5}}', '{"t":{"0":5}}', LAG)
    assert BatchCounts.read(progress(caught_up), "beamish").behind["t"].batches == 0


def text_of(tmp_path):
    listener = bm.Listener(path=tmp_path / "beamish.prom")
    seen(listener, progress(CLICKS, IDLE))
    return (tmp_path / "beamish.prom").read_text("utf-8")


def test_prometheus_has_lag_watermark_and_time(tmp_path):
    at = datetime(2024, 5, 1, 10, tzinfo=UTC).timestamp()
    assert {
        'beamish_kafka_max_offsets_behind{input="clicks",query="scores"} 30.0',
        'beamish_kafka_avg_offsets_behind{input="a.*",query="scores"} 20.0',
        'beamish_batches_behind{input="clicks",query="scores"} 4.0',
        'beamish_batches_total{query="scores"} 1.0',
        'beamish_batch_seconds_total{query="scores"} 0.5',
        f'beamish_watermark_timestamp_seconds{{query="scores"}} {at:.10g}'.replace("1714557600", "1.7145576e+09"),
    } <= set(text_of(tmp_path).splitlines())


def test_board_and_alerts_name_metrics_that_are_exported(tmp_path):
    exported = set(re.findall(r"^(beamish_\w+)", text_of(tmp_path), re.MULTILINE))
    named = {name for one in expressions() for name in re.findall(r"beamish_\w+", one)}
    assert named <= exported
    shown = {name for name in exported if not name.endswith("_created")}
    assert named == shown, f"no panel shows {sorted(shown - named)}"


def test_alerts_have_their_cases():
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    cases = yaml.safe_load(RULES.with_name("beamish.rules.test.yml").read_text("utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    tested = {one["alertname"] for test in cases["tests"] for one in test["alert_rule_test"] if "exp_alerts" in one}
    assert alerts == tested
    assert len(alerts) == 5


def test_the_labels_of_the_board_are_those_of_the_metrics(tmp_path):
    text = text_of(tmp_path)
    for one in expressions():
        for name, labels in re.findall(r"(beamish_\w+)\{([^}]*)\}", one):
            line = next(line for line in text.splitlines() if line.startswith(f"{name}{{"))
            assert set(re.findall(r"(\w+)=", labels)) <= set(re.findall(r"(\w+)=", line)), one


def test_a_listener_may_record_alone(tmp_path):
    listener = bm.Listener(record=tmp_path / "scores.jsonl")
    assert listener.port is None
    seen(listener, progress(CLICKS), progress(CLICKS, batch=5))
    listener.close()
    batches = read_record(tmp_path / "scores.jsonl")
    assert [one.batch for one in batches] == [4, 5]
    assert batches[0].ends == (CLICKS.endOffset,)


@pytest.fixture
def spans(monkeypatch):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def test_a_batch_is_a_span_with_its_phases_and_stages(spans):
    seen(bm.Listener(spans=True), progress(CLICKS))
    found = {span.name: span for span in spans.get_finished_spans()}
    assert set(found) == {
        "batch scores",
        "latestOffset",
        "walCommit",
        "addBatch",
        "commitOffsets",
        "operator 0 transformWithStateInPandasExec",
    }
    batch, stage = found["batch scores"], found["operator 0 transformWithStateInPandasExec"]
    assert batch.parent is None
    assert {found[name].parent.span_id for name in ("latestOffset", "walCommit", "addBatch", "commitOffsets")} == {
        batch.context.span_id
    }
    assert stage.parent.span_id == found["addBatch"].context.span_id
    assert (batch.end_time - batch.start_time) / 1e6 == 500
    assert (stage.end_time - stage.start_time) / 1e6 == 300
    assert found["walCommit"].start_time == found["latestOffset"].end_time
    assert batch.start_time == 1_714_557_900_250_000_000
    assert batch.attributes["beamish.batch"] == 4
    assert batch.attributes["beamish.panes_on_time"] == 2
    assert batch.attributes["beamish.watermark"] == "2024-05-01T10:00:00+00:00"


def test_spans_without_the_package_are_refused(monkeypatch):
    import builtins

    load = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return load(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(bm.OptionError, match="pip install opentelemetry-api"):
        bm.Listener(spans=True)
