"""A checkpoint says why a window did not fire, without its pipeline (rules/running.md#inspect). docs/notebooks.md asks a running query."""

from __future__ import annotations

import re
import zipfile
from operator import or_
from pathlib import Path

import pytest

import beamish as bm
from beamish import __main__ as program
from beamish.accumulations import Count, Reduce, Sum
from beamish.spark.runtime import session
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark
from tests.checkpoints.cases import CASES
from tests.checkpoints.write import ROOT, move
from tests.conftest import CHANGELOGS, INTERPRETED

KEPT = Path(__file__).parents[1] / "checkpoints" / "format3" / "spark-fixed.zip"
ORDERS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k")
PAYMENTS = ORDERS.event_time("ts", bm.BoundedOutOfOrderness(10))
PIPELINE = (
    bm.merge(orders=ORDERS, payments=PAYMENTS)
    .window(bm.FixedWindows(60))
    .trigger(AfterWatermark(early=AfterCount(3)), allow_data_loss=True)
    .accumulating_and_retracting()
    .accumulate(n=Count(), paid=Sum("v").of("payments"), bits=Reduce(or_, "v").of("payments"))
)


def row(k, v, ts):
    return {"k": k, "v": v, "ts": ts}


SCRIPT = (
    TestStream()
    .add([row("a", 1, 5), row("z<i>", 1, 6), row("a", 1, 7), row("a", 2, 8), row(None, 1, 70)], input="orders")
    .add([row("a", 5, 40), row("z<i>", 7, 30)], input="payments")
    .advance_watermark_to(30)
)


def facts(said):
    """The facts that a script and a checkpoint share: all except the source of the watermark, and the batch."""
    return said.partition("Its trigger")[0]


def test_the_checkpoint_of_a_stopped_merge_explains_why(spark, tmp_path):
    SCRIPT.trace_on_spark(spark, PIPELINE, shards=3, checkpoint=tmp_path)
    with_pipeline, found = (bm.inspect(spark, tmp_path / "checkpoint", of) for of in (PIPELINE, None))
    for key in ("a", "z<i>", None):
        asked = {"key": {"k": key}}
        assert facts(with_pipeline.why(**asked)) == facts(PIPELINE.why(SCRIPT, **asked)), key
    without = found.why(key="a")
    assert facts(without) == re.sub(r", bits=(5|None)", "", facts(PIPELINE.why(SCRIPT, key="a")))
    assert without.partition("Unknown: ")[2].startswith("the values of bits=OfInput(")
    held = (
        "Input `payments` holds it back: its latest row is at 1970-01-01 00:00:40, 30 seconds behind that of `orders`, and its "
        "watermark is 10 seconds behind its rows."
    )
    assert held in without
    (first,) = found.stages().collect()
    assert (first.stage, first.held_back, first.kept_windows, first.shards) == (1, held, 3, 3)
    assert [one.input for one in found.inputs().collect()] == ["orders", "payments"]
    assert "stage 1 of 1" in str(found)
    assert "The window [1970-01-01 00:00:00, 00:01:00) of k='z<i>' waits for the watermark" in str(found)
    markup = found._repr_html_()
    assert "payments" in markup
    assert "z&lt;i&gt;" in markup
    assert "<i>" not in markup
    windows = found.windows(window=0).orderBy("key.k").collect()
    assert [(one.key.k, one["values"].n, one["values"].paid, one.new_rows, one.panes) for one in windows] == [
        ("a", 4, 5, 1, 1),
        ("z<i>", 2, 7, 2, 0),
    ]
    assert (windows[0].last_timing, windows[0].last_values.n) == ("EARLY", 3)
    assert sum(one.bytes for one in found.shards().collect()) == first.bytes
    segments = found.segments().collect()
    assert sum(one.windows for one in segments) == 3
    watermarks = found.watermarks().collect()
    assert [one.committed for one in watermarks] == [True] * len(watermarks)
    before = bm.inspect(spark, tmp_path / "checkpoint", batch=watermarks[-3].batch)
    assert "No window of key k='z<i>'" not in before.why(key="z<i>")
    assert "A pane would hold n=1, paid=None now." in before.why(key="z<i>")
    with pytest.raises(bm.OptionError, match="the checkpoint has batches 0 to"):
        bm.inspect(spark, tmp_path / "checkpoint", batch=99)


def test_a_checkpoint_of_an_older_version_lists_unknown_facts(spark, tmp_path, monkeypatch, capsys):
    with zipfile.ZipFile(KEPT) as kept:
        kept.extractall(tmp_path)
    move(tmp_path, ROOT, str(tmp_path))
    folder = str(tmp_path / "checkpoint")
    found = bm.inspect(spark, folder)
    unknown = found.stages().first().unknown
    assert [sentence.partition(" ")[0] for sentence in unknown] == ["the", "the"]
    assert "the values of bits=Reduce(" in unknown[0]
    assert "did not store descriptions" in unknown[1]
    case = CASES["fixed"]
    said, known = found.why(key="red", window=10), case.pipeline.why(case.before, key="red", window=10)
    assert "bits=" in known
    assert facts(said) == re.sub(r", bits=\d+", "", facts(known))
    monkeypatch.setattr(session, "reading_session", lambda _: spark)
    assert program.main(["inspect", folder, "--key", "team=red", "--window", "1970-01-01T00:00:10"]) == 0
    assert "of team='red'" in capsys.readouterr().out
    assert program.main(["inspect", folder + "/nowhere"]) == 1
    assert "give the folder of the query's option checkpointLocation" in capsys.readouterr().err


def test_a_damaged_checkpoint_has_a_short_error(spark, tmp_path):
    with zipfile.ZipFile(KEPT) as kept:
        kept.extractall(tmp_path)
    move(tmp_path, ROOT, str(tmp_path))
    for path in tmp_path.glob("checkpoint/state/0/[01]/*.zip"):
        path.write_bytes(path.read_bytes()[:100])
    spark.conf.set(CHANGELOGS, "false")  # with changelogs Spark looks for one in place of the damaged file
    try:
        with pytest.raises(bm.StateError, match=r"a file is missing or damaged \(java.io.EOFException"):
            bm.inspect(spark, tmp_path / "checkpoint")
    finally:
        spark.conf.set(CHANGELOGS, INTERPRETED[CHANGELOGS])
