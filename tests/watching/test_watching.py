"""Metrics of a query, from its progress: totals, lines, a live view, Prometheus text (docs/sinks.md#metrics)."""

import builtins
import io
import json
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

import beamish as bm
from beamish import watching as module
from beamish.contract.drops import SKIPPED
from beamish.errors import OptionError
from beamish.watching import BatchCounts, PrometheusMetrics, Totals


def batch(number, rows, counts, *shards, watermark="2024-05-01T10:00:00.000Z"):
    """A progress of Spark's; ``counts`` None: nothing was observed. Of each shard its number, windows and due, in seconds."""
    told = [{"shard": shard, "live_windows": kept, "next_due_ms": due * 1000} for shard, kept, due in shards]
    counts = counts and {**counts, "by_shard": json.dumps(told)}
    observed = {} if counts is None else {"beamish": SimpleNamespace(asDict=lambda: counts)}
    return SimpleNamespace(
        batchId=number,
        numInputRows=rows,
        timestamp="2024-05-01T10:05:00.000Z",
        durationMs={"triggerExecution": 500},
        eventTime={"watermark": watermark} if watermark else {},
        stateOperators=[SimpleNamespace(memoryUsedBytes=2**20)],
        observedMetrics=observed,
        sources=[],
    )


BATCHES = [
    batch(0, 5, {"rows": 4, "panes_early": 2, "dropped_no_event_time": 1}, (0, 3, 60), (1, 2, 50), watermark=None),
    batch(1, 3, {"rows": 2, "panes_late": 1, "retractions": 2, "dropped_due_to_lateness": 1}, (0, 4, 60), (1, 3, 50)),
    batch(2, 0, {"panes_on_time": 1}, (1, 1, 70)),  # only one shard was called
    batch(3, 0, None),
]
LINE = (
    "batch 3: rows 8 (4 per second); watermark 2024-05-01 10:00:00, 5 minutes behind the clock; panes 2 early, 1 on time, 1 late; "
    "retractions 2; dropped 1 expired, 1 null_event_time; live windows 5; state 1.0 MiB\n"
)


class Query:
    """A query that gives a batch more each time it is asked, and then ends."""

    name = "scores"

    def __init__(self):
        self._asked = -1

    @property
    def isActive(self):  # noqa: N802 - as Spark calls it
        self._asked += 1
        return self._asked < len(BATCHES)

    @property
    def recentProgress(self):  # noqa: N802
        return BATCHES[: self._asked + 1]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(module, "_POLL_SECONDS", 0)


def test_counts_add_up_and_gauges_use_each_shards_last_value():
    totals = Totals()
    for one in BATCHES:
        totals.add(BatchCounts.read(one, "beamish"))
    assert (totals.batches, totals.rows, totals.taken, totals.retractions, totals.all_dropped) == (4, 8, 6, 2, 2)
    assert (totals.live_windows, totals.lag_seconds) == (4 + 1, 300)
    assert totals.next_due == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    totals.add(BatchCounts.read(batch(0, 1, {"rows": 1}, (2, 1, 20)), "beamish"))  # from another checkpoint
    assert totals.live_windows == 1


def test_records_that_sources_skip_add_up_without_an_observation():
    totals = Totals()
    for _ in range(2):
        one = batch(0, 5, None)
        for source in "ab":
            one.observedMetrics[f"{SKIPPED}_{source}"] = SimpleNamespace(asDict=lambda: {SKIPPED: 2})
        totals.add(BatchCounts.read(one, "beamish"))
    assert totals.skipped == 8
    assert ("skipped", "8 without a change") in totals.words()


def test_a_watermark_that_is_ahead_of_the_clock_says_how_far():
    totals = Totals()
    totals.add(BatchCounts.read(BATCHES[-1], "beamish"))
    totals.watermark = totals.began + timedelta(days=364)
    assert dict(totals.words())["watermark"].endswith(", 364 days ahead of the clock")


def test_where_there_is_no_terminal_progress_is_lines(capsys, monkeypatch):
    monkeypatch.setattr(module, "_console", lambda: None)
    bm.progress(Query(), every=3)
    first, last = capsys.readouterr().out.splitlines(keepends=True)
    assert first.startswith("batch 0: rows 5 (10 per second); watermark none yet; panes 2 early, ")
    assert last == LINE


def test_progress_of_an_unobserved_query_counts_nothing(capsys, monkeypatch):
    monkeypatch.setattr(module, "_console", lambda: None)
    bm.progress(Query(), name="another", every=9)
    last = capsys.readouterr().out.splitlines()[-1]
    assert "panes not observed: bm.observe(panes) counts them; state 1.0 MiB" in last
    assert "dropped" not in last


def test_in_a_terminal_progress_is_one_view_that_ends_with_the_query(monkeypatch):
    from rich.console import Console

    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(module, "_console", lambda: console)
    assert bm.progress(Query()).rows == 8
    last = shown.getvalue().rpartition("scores: batch 3")[2]
    assert "2 early, 1 on time, 1 late" in last
    assert "1 expired, 1 null_event_time" in last


def test_in_a_notebook_progress_is_one_output_that_changes(monkeypatch):
    from rich.console import Console

    outputs = []

    def display(first, *, display_id):
        assert display_id
        outputs.append([first])
        return SimpleNamespace(update=outputs[-1].append)

    monkeypatch.setitem(sys.modules, "IPython.display", cast("Any", SimpleNamespace(display=display)))
    monkeypatch.setattr(module, "_console", lambda: Console(force_jupyter=True))
    assert bm.progress(Query()).rows == 8
    ((first, *tables),) = outputs
    assert (first, len(tables)) == ("no batch yet", len(BATCHES))
    console = Console(file=io.StringIO(), width=100)
    console.print(tables[-1])
    assert "1 expired, 1 null_event_time" in cast("io.StringIO", console.file).getvalue()
    assert set(tables[-1]._repr_mimebundle_((), ())) == {"text/plain", "text/html"}


def test_prometheus_text_has_the_fields_names(tmp_path):
    metrics = PrometheusMetrics(None, tmp_path / "beamish.prom")
    for one in BATCHES:
        metrics.add("scores", BatchCounts.read(one, "beamish"))
    text = (tmp_path / "beamish.prom").read_text().splitlines()
    assert {
        'beamish_panes_total{kind="PANE",query="scores",timing="ON_TIME"} 1.0',
        'beamish_panes_total{kind="RETRACTION",query="scores",timing=""} 2.0',
        'beamish_dropped_total{query="scores",reason="expired"} 1.0',
        'beamish_input_rows_total{query="scores"} 8.0',
        'beamish_watermark_lag_seconds{query="scores"} 300.0',
        'beamish_live_windows{query="scores"} 5.0',
        'beamish_state_bytes{query="scores"} 1.048576e+06',
    } <= set(text)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bm.progress(Query(), every=0), "every=0"),
        (bm.Listener, r"Listener\(port=None, path=None\): give a port"),
        (lambda: bm.Listener(port=cast("Any", "9095")), "port='9095'"),
        (lambda: bm.observe(cast("Any", None), ""), "name=''"),
    ],
)
def test_options_that_break_a_rule_are_refused(call, message):
    with pytest.raises(OptionError, match=message):
        call()


def test_a_missing_package_is_named_with_the_line_that_installs_it(monkeypatch):
    load = builtins.__import__

    def without(name, *arguments, **options):
        if name == "prometheus_client":
            raise ImportError(name)
        return load(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(OptionError, match="pip install prometheus-client"):
        bm.Listener(port=0)
