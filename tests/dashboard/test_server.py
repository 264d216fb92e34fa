"""The page and its paths, without Spark: facts in markup, refreshes, sentences for errors, hostile text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import attrs
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.dashboard import page
from beamish.dashboard.html import Markup, tag, text
from beamish.dashboard.metrics import Metrics, parsed, read_metrics
from beamish.dashboard.server import application
from beamish.dashboard.watched import Watched
from beamish.errors import HIDE_VALUES, StateError
from beamish.testing import TestStream
from beamish.watching import BatchCounts, PrometheusMetrics
from tests.checkpoints.cases import CASES
from tests.dashboard.scenes import PART, SCORES, SCRIPT, row
from tests.dashboard.scripted import ScriptSource, batch, sharded, stages_of

HOSTILE = "<script>alert(1)</script>\u202e\"'&"


class Clock:
    def __init__(self):
        self.seconds = 1_700_000_000.0

    def __call__(self):
        return self.seconds


def client_of(*sources, clock=None, **more):
    watched = [Watched(source, 10.0, **({"now": clock} if clock else {})) for source in sources]
    return TestClient(application(watched, **more), base_url="http://127.0.0.1:8450", follow_redirects=False)


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, markup):
        super().__init__()
        self.found = []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def check_is_plain(markup):
    """No script or style but its own, no handler, and no other host."""
    for name, given in Tags(markup).found:
        assert name not in {"style", "iframe", "object", "embed", "base", "foreignobject"}
        assert not [one for one in given if one.startswith("on") or one == "style"]
        for attribute in ("href", "src", "srcset", "action", "formaction"):
            assert (given.get(attribute) or "/").startswith(("/", "#")), (name, given)
            assert not (given.get(attribute) or "").startswith("//")
        assert name != "script" or given == {"src": "/page.js", "defer": None}


def test_the_page_has_the_facts_of_the_checkpoint():
    client = client_of(ScriptSource.after(SCORES, SCRIPT))
    assert client.get("/").headers["location"] == "/q/0/"
    shown = client.get("/q/0/").text
    check_is_plain(shown)
    for words in (
        "Batch 2 is the last committed one",
        "Stage 1 of 1",
        "fixed, 1 minute long",
        "at 1970-01-01 00:01:05",
        "3 stored, which wait: 2 for the watermark; 1 for late rows, until they expire",
        "when the watermark reaches its end",
        "3 batches are in the log",
    ):
        assert words in shown, words
    facts = client.get("/q/0/facts.json").json()["facts"]
    assert facts["batch"] == 2
    assert facts["stages"][0]["windows"] == 3


@pytest.mark.dear
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_stage_has_a_page(name):
    case = CASES[name]
    client = client_of(ScriptSource.after(case.pipeline, case.before))
    shown = client.get("/q/0/")
    assert shown.status_code == 200
    check_is_plain(shown.text)
    for stage in client.get("/q/0/facts.json").json()["facts"]["stages"]:
        if stage["has_windows"] or stage["has_keys"]:
            listed = client.get("/q/0/rows", params={"stage": stage["number"]}, headers=PART)
            assert listed.status_code == 200, listed.text
            links = re.findall(r'href="(/q/0/why[^"]*)"', listed.text)
            if links:
                why = client.get(links[0].replace("&amp;", "&"), headers=PART)
                assert why.status_code == 200
                assert len(why.text) > 100


def test_a_click_explains_a_window():
    client = client_of(ScriptSource.after(SCORES, SCRIPT))
    listed = client.get("/q/0/rows", params={"stage": 1, "key0": "blue"}, headers=PART).text
    (link,) = re.findall(r'href="(/q/0/why[^"]*)"', listed)
    assert "blue" not in link
    answer = client.get(link, headers=PART).text
    assert "It waits for the watermark to reach its end, 1970-01-01 00:02:00: 55 seconds to go" in answer
    alone = client.get(link).text
    assert "<title>why - beamish watch</title>" in alone
    check_is_plain(alone)
    form = client.get("/q/0/why", params={"stage": 1, "key0": "blue", "window": "1970-01-01T00:01:10"}, headers=PART)
    assert "total=41" in form.text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("rows?stage=9", "stage 9: it has no windows or keys to list"),
        ("rows?stage=1&amp;order=fast", ""),
        ("rows?stage=1&order=fast", "must be one of next, last, rows, panes"),
        ("rows?stage=1&waits=fast", "must be one of watermark, trigger, expiry"),
        ("why?id=abc", "this link is of an earlier run of the page"),
        ("why?stage=1&window=noon", "must be a time such as"),
        ("panes.svg?id=abc", "this link is of an earlier run of the page"),
        ("dropped", "no table of dropped rows is named"),
    ],
)
def test_a_wrong_request_is_answered_by_a_sentence(path, words):
    source = ScriptSource.after(SCORES, SCRIPT)
    answer = client_of(source).get(f"/q/0/{path}", headers=PART)
    assert answer.status_code == (400 if words else 200)
    assert words in answer.text
    assert "Traceback" not in answer.text


def test_facts_are_read_again_after_a_batch_and_only_then():
    clock, source = Clock(), ScriptSource.after(SCORES, SCRIPT)
    client = client_of(source, clock=clock)
    version = client.get("/q/0/facts").headers["x-beamish-version"]
    clock.seconds += 100
    assert client.get("/q/0/facts", params={"version": version}).status_code == 204
    assert source.opened_times == 1
    source.log = [*source.log, batch(3, committed=False)]
    clock.seconds += 1
    assert client.get("/q/0/facts", params={"version": version}).status_code == 204  # it is not yet time to look
    clock.seconds += 10
    began = client.get("/q/0/facts", params={"version": version})
    assert "Batch 3 began" in began.text
    assert source.opened_times == 1
    later = SCRIPT.advance_watermark_to(125).add([row("late", 6)] * 2)
    source.log, source.stages = [*source.log[:3], batch(3)], stages_of(SCORES, later)
    clock.seconds += 10
    done = client.get("/q/0/facts", params={"version": began.headers["x-beamish-version"]})
    assert "Batch 3 is the last committed one" in done.text
    assert "From batch 2 to batch 3" in done.text
    assert source.opened_times == 2


def test_a_checkpoint_that_cannot_be_read_is_a_sentence_and_its_last_facts_stay():
    clock, source = Clock(), ScriptSource.after(SCORES, SCRIPT)
    client = client_of(source, clock=clock)
    client.get("/q/0/")
    for error, words in (
        (StateError("checkpoint '/checkpoints/scores': it is gone; give the folder"), "it is gone; give the folder."),
        (RuntimeError("java.lang.Oops\n\tat org.apache"), "it cannot be read now (RuntimeError: java.lang.Oops)"),
    ):
        source.fails = error
        clock.seconds += 10
        shown = client.get("/q/0/").text
        assert text(words) in shown
        assert "The facts below are those of batch 2." in shown
        assert "org.apache" not in shown
    source.fails = None
    clock.seconds += 10
    assert "those of batch 2" not in client.get("/q/0/").text


def test_a_checkpoint_that_has_no_batch_yet_is_waited_for():
    clock, source = Clock(), ScriptSource.after(SCORES, SCRIPT)
    source.fails = StateError("checkpoint '/checkpoints/scores': it has no committed batch")
    client = client_of(source, clock=clock)
    assert "it has no committed batch" in client.get("/q/0/").text
    assert client.get("/q/0/rows?stage=1", headers=PART).status_code == 400
    source.fails = None
    clock.seconds += 10
    answer = client.get("/q/0/facts")
    assert "Stage 1 of 1" in answer.text
    assert answer.headers["x-beamish-structure"]


def test_an_upgraded_query_gets_its_own_forms():
    clock, source = Clock(), ScriptSource.after(SCORES, SCRIPT)
    client = client_of(source, clock=clock)
    before = client.get("/q/0/facts").headers["x-beamish-structure"]
    chain = CASES["chain"]
    source.log, source.stages = [*source.log, batch(3)], stages_of(chain.pipeline, chain.before)
    clock.seconds += 10
    after = client.get("/q/0/facts")
    assert after.headers["x-beamish-structure"] != before
    assert "Stage 2 of 2" in after.text


def test_another_query_in_the_same_folder_starts_a_new_history():
    clock, source = Clock(), ScriptSource.after(SCORES, SCRIPT)
    client = client_of(source, clock=clock)
    client.get("/q/0/")
    source.log = [batch(0), batch(1)]
    clock.seconds += 10
    shown = client.get("/q/0/facts").text
    assert "Batch 1 is the last committed one" in shown
    assert "While this page was open" not in shown


def test_hostile_keys_names_and_values_are_text():
    name = 'k"><img src=x onerror=alert(1)>'
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(10)).key_by(name).window(bm.FixedWindows(60))
    pipeline = pipeline.accumulate(**{"<b>n": Count(), "<u>last": Sum("score")})
    script = TestStream().add([{name: HOSTILE, "ts": 5, "score": 1}, {name: "😀", "ts": 5, "score": 1}])
    source = ScriptSource.after(pipeline, script, name=f"/checkpoints/{HOSTILE}")
    client = client_of(source)
    pages = [client.get("/q/0/").text, client.get("/q/0/rows?stage=1").text]
    pages += [client.get(link).text for link in re.findall(r'href="(/q/0/why[^"]*)"', pages[-1])]
    pages.append(client.get("/q/0/rows", params={"stage": 1, "key0": HOSTILE}).text)
    pages.append(client.get("/q/0/rows", params={"stage": 1, "order": HOSTILE}).text)
    assert len(pages) == 6
    for shown in pages:
        check_is_plain(shown)
        assert not {"b", "u"} & {found for found, _ in Tags(shown).found}
        assert [one for one in Tags(shown).found if one[0] == "script"] == [
            ("script", {"src": "/page.js", "defer": None})
        ]
        assert "\u202e" not in shown


def test_hidden_values_are_nowhere(monkeypatch):
    monkeypatch.setenv(HIDE_VALUES, "1")
    script = TestStream().add([row("very secret", 5, 987_654)]).advance_watermark_to(1)
    dropped_rows = pa.table({"reason": ["expired"], "late_by": [5_000_000], "team": ["very secret"]})
    source = ScriptSource.after(
        SCORES, script, dropped_rows=dropped_rows, panes_of_key=pa.table({"team": ["very secret"]})
    )
    client = client_of(source)
    pages = [client.get("/q/0/").text, client.get("/q/0/rows?stage=1").text, client.get("/q/0/dropped").text]
    (link,) = re.findall(r'href="(/q/0/why[^"]*)"', pages[1])
    pages += [
        client.get(link).text,
        client.get("/q/0/facts.json").text,
        client.get(link.replace("why", "panes.svg")).text,
    ]
    for shown in pages:
        assert "very secret" not in shown
        assert "987654" not in shown.replace(",", "")
    assert "expired" in pages[2]
    assert "(hidden)" in pages[1]


def test_several_checkpoints_have_a_page_each():
    client = client_of(
        ScriptSource.after(SCORES, SCRIPT), ScriptSource.after(SCORES, SCRIPT, 9, name="/checkpoints/other")
    )
    assert "Batch 8 is the last" in client.get("/q/1/").text
    assert 'href="/q/1/"' in client.get("/q/0/").text
    assert client.get("/q/2/").headers["location"] == "/"


def test_fused_stages_are_framed_together():
    chain = CASES["chain_fused"]
    stages = stages_of(chain.pipeline, chain.before)
    apart = client_of(ScriptSource([batch(0)], stages)).get("/q/0/").text
    assert 'class="fused"' not in apart
    fused = [attrs.evolve(stage, operator=0) for stage in stages]
    together = client_of(ScriptSource([batch(0)], fused)).get("/q/0/").text
    assert together.count('<rect x="') > apart.count('<rect x="')
    assert 'class="fused"' in together


def test_skew_is_shown_by_shard():
    scripts = [
        TestStream().add([row(f"team {shard}", 60 * minute) for minute in range(many)])
        for shard, many in enumerate((2, 9, 1))
    ]
    shown = client_of(ScriptSource([batch(0)], [sharded(SCORES, scripts)])).get("/q/0/").text
    assert "Windows per shard: the largest has 2.2 times the mean" in shown
    assert "shard 1: 9 windows, 1 key" in shown


def test_panes_are_drawn_light_and_dark_if_they_are_kept():
    panes = table_of(TestStream().add([row("red", 5)]).advance_watermark_to(65).trace(SCORES))
    client = client_of(ScriptSource.after(SCORES, SCRIPT, panes_of_key=panes))
    (link, *_) = re.findall(r'href="(/q/0/why[^"]*)"', client.get("/q/0/rows?stage=1").text)
    answer = client.get(link, headers=PART).text
    paths = [given.get("srcset") or given.get("src") for name, given in Tags(answer).found if name in {"source", "img"}]
    drawn = [client.get(path) for path in paths]
    assert [one.headers["content-type"] for one in drawn] == ["image/svg+xml"] * 2
    assert drawn[0].content != drawn[1].content
    assert b"<svg" in drawn[0].content


def table_of(trace):
    """The panes of a trace as the rows of a table."""
    panes = [pane for _, of_step in trace for pane in of_step]
    info = ("kind", "timing", "index", "on_time_index", "is_first", "is_last", "change", "sequence", "watermark")
    return pa.table(
        {
            "team": [pane.key["team"] for pane in panes],
            "window": [{"start": pane.start, "end": pane.end} for pane in panes],
            "n": [pane.values["n"] for pane in panes],
            "total": [pane.values["total"] for pane in panes],
            "pane": [{name: getattr(pane, name) for name in info} for pane in panes],
            "timestamp": [pane.timestamp for pane in panes],
        }
    )


def test_dropped_rows_are_listed_with_their_reason():
    rows = pa.table({"reason": ["expired"] * 2, "late_by": [65_000_000, None], "team": ["red", "<b>"]})
    client = client_of(ScriptSource.after(SCORES, SCRIPT, dropped_rows=rows))
    assert 'data-source="/q/0/dropped"' in client.get("/q/0/").text
    shown = client.get("/q/0/dropped", headers=PART).text
    assert "1 minute 5 seconds" in shown
    assert "&lt;b&gt;" in shown


TOLD = """
# HELP beamish_panes_total Panes and retractions
# TYPE beamish_panes_total counter
beamish_panes_total{kind="PANE",query="sc\\"ores\\\\n",timing="ON_TIME"} 7.0
beamish_panes_created{kind="PANE",query="q",timing="ON_TIME"} 1.7e+09
beamish_input_rows_total{query="sc\\"ores\\\\n"} 1234.0
beamish_lag{query="sc\\"ores\\\\n",input="clicks"} 42.0
other_total{query="x"} 1
beamish_rows nonsense
"""


def test_metrics_of_the_listener_are_shown(tmp_path):
    found = Metrics(parsed(TOLD))
    assert found.queries == ['sc"ores\\n']
    source = ScriptSource.after(SCORES, SCRIPT, given_metrics=found)
    shown = client_of(source).get("/q/0/").text
    for words in ("<dt>rows in</dt><dd>1,234</dd>", "7 pane on time", "<dt>lag</dt><dd>42 clicks</dd>"):
        assert words in shown, words
    (tmp_path / "metrics.prom").write_text(TOLD)
    assert read_metrics(str(tmp_path / "metrics.prom")) == found
    assert "cannot be read now (FileNotFoundError)" in read_metrics(str(tmp_path / "none")).problem
    assert "cannot be read now (URLError)" in read_metrics("http://127.0.0.1:9/metrics").problem


def test_metrics_are_those_of_a_listener(tmp_path):
    began = datetime(2026, 1, 1, tzinfo=UTC)
    told = PrometheusMetrics(None, tmp_path / "metrics.prom")
    told.add("scores", BatchCounts(0, 5, 1.0, began, began, 2**20, {"panes_on_time": 3, "dropped_due_to_lateness": 2}))
    found = read_metrics(str(tmp_path / "metrics.prom"))
    assert found.by("scores", "beamish_input_rows") == {"": 5.0}
    assert found.by("scores", "beamish_panes", "timing")["on time"] == 3.0
    assert found.by("scores", "beamish_state_bytes") == {"": 2.0**20}


def test_tags_escape_all_but_markup():
    assert (
        tag("p", "<b>", Markup("<i>"), None, [1, ["&"]], class_="a\"'")
        == '<p class="a&quot;&#x27;">&lt;b&gt;<i>1&amp;</p>'
    )
    assert tag("input", hidden=True, data_x=None, value="") == '<input hidden value="">'
    assert text("a\u202eb\ud800") == "a\\u202eb\\ud800"
    assert (
        page.dropped(pa.table({"reason": pa.array([], pa.string())}))
        == '<p role="status">The table has no dropped row.</p>'
    )
