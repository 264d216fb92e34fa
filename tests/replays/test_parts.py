"""The parts of a replay that need no Spark: which rows decide a key, pseudonyms, steps, comparison, the record."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

import beamish as bm
from beamish import __main__ as program
from beamish.accumulations import Count, Sum
from beamish.pane import Pane, PaneTiming, Window
from beamish.recording import RecordedBatch, Recorder, read_record
from beamish.replays.comparison import came_from, compared, first_differing
from beamish.replays.masking import Masks
from beamish.replays.needed import read_key, rows_needed
from beamish.replays.steps import BatchStep, Stepper, fewest, selection, within
from beamish.replays.subject import Subject
from beamish.replays.written import Written
from beamish.replays.written import test_name as name_of
from beamish.script import MicroBatch, Step
from beamish.spark.replay.delta import DeltaTable, PastDelta, _files
from beamish.spark.replay.delta_log import DeltaLog
from beamish.spark.replay.log import PastBatch, PastQuery
from beamish.spark.replay.read_call import ReadCall
from beamish.spark.replay.sources import (
    PastFiles,
    PastSession,
    PastTopics,
    _numberings,
    files_as_they_are,
    made_by,
)
from beamish.testing import TestStream
from tests.refused import cases, refused
from tests.replays import replay_app as app
from tests.replays.delta_in_memory import TABLE, Stored
from tests.replays.delta_in_memory import at as position

START = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
MINUTES = START.key_by("user", "team").window(bm.FixedWindows(60)).accumulate(total=Sum("points"), n=Count())
KEYED_AGAIN = {
    "by one of its keys": (MINUTES.then(bm.Pipeline().key_by("team").accumulate(n=Count())), "team", {"team": "red"}),
    "by a value": (MINUTES.then(bm.Pipeline().key_by("total").accumulate(n=Count())), "total", {}),
    "key sets": (
        START.key_by("team", bm.Rollup("city")).window(bm.FixedWindows(60)).accumulate(n=Count()),
        "team",
        {"team": "red"},
    ),
    "a total of key sets": (
        START.key_by(bm.Rollup("team")).window(bm.FixedWindows(60)).accumulate(n=Count()),
        "team",
        {},
    ),
    "changes of a table": (
        bm.Pipeline()
        .from_changelog("flink")
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("team")
        .window(bm.FixedWindows(60))
        .accumulating()
        .accumulate(n=Count()),
        "team",
        {},
    ),
}


@pytest.mark.parametrize("name", KEYED_AGAIN)
def test_rows_that_a_key_needs(name):
    pipeline, column, expected = KEYED_AGAIN[name]
    assert rows_needed(pipeline.flow, {column: "red"}) == {None: expected}


def test_a_join_needs_the_key_of_each_input():
    joined = bm.merge(a=START.key_by("x"), b=START.key_by("y")).window(bm.FixedWindows(60)).accumulate(n=Count())
    assert rows_needed(joined.flow, read_key(list(Subject(joined).keys or ()), 5)) == {"a": {"x": 5}, "b": {"y": 5}}


def test_pseudonyms_are_equal_for_equal_values_and_keep_their_order():
    rows = [{"user": "cy", "n": 70}, {"user": "ann", "n": 30}, {"user": None, "n": 70}, {"user": "cy", "n": 5}]
    masks = Masks.of(["user", "n"], rows, ["user", "n", "ts"])
    assert [masks.row(row) for row in rows] == [
        {"user": "user-2", "n": 3},
        {"user": "user-1", "n": 2},
        {"user": None, "n": 3},
        {"user": "user-2", "n": 1},
    ]
    pane = Pane({"user": "cy"}, None, {"all": ["ann", {"user": "cy"}], "count": 70})
    assert masks.pane(pane).values == {"all": ["user-1", {"user": "user-2"}], "count": 70}


def test_a_step_has_only_what_moves():
    stepper = Stepper([None])
    row = {"ts": 1}
    assert stepper.step(3, {None: [row]}, {None: None}, 10) == BatchStep(3, Step((row,), None, None, 10))
    assert stepper.step(4, {}, {None: 5}, 10) == BatchStep(4, Step((), None, 5, None))
    assert stepper.step(5, {}, {None: 5}, 9) == BatchStep(5, Step())
    both = Stepper(["a", "b"])
    assert both.step(0, {"a": [row], "b": ()}, {"b": 5}, 1).event == MicroBatch(
        (Step((row,), "a"), Step((), "b", 5)), 1
    )
    assert both.step(1, {"b": [row]}, {None: 7}, 2).event == MicroBatch((Step((), None, 7), Step((row,), "b")), 2)


PLAYS = START.key_by("team").window(bm.FixedWindows(60)).accumulate(n=Count())


def steps(*events):
    return [BatchStep(number, event) for number, event in enumerate(events)]


def test_steps_in_which_nothing_happens_are_left_out():
    row = {"ts": 1, "team": "red"}
    script = steps(
        Step((row,)), Step(watermark_us=20_000_000), Step(watermark_us=60_000_000), Step(watermark_us=61_000_000)
    )
    assert [one.batch for one in fewest(Subject(PLAYS), script, lambda _: True)] == [0, 2]


def test_a_step_that_counts_stays():
    idle = START.event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout=5)).key_by("team")
    counted = idle.window(bm.FixedWindows(10)).accumulate(n=Count())
    row = {"ts": 1, "team": "red"}
    script = steps(
        Step((row,), clock_us=100_000_000),
        Step((), None, 4_000_000),
        *(Step(clock_us=us * 1_000_000) for us in range(105, 120)),
    )
    kept = fewest(Subject(counted), script, lambda _: True)
    assert [str(pane) for pane in counted.run(TestStream(tuple(one.event for one in kept)))]


def test_rows_of_other_windows_are_left_out():
    rows = [{"ts": second, "team": "red"} for second in (1, 70, 130)]
    script = steps(Step(tuple(rows)), Step(watermark_us=300_000_000))
    select = selection({"team": "red"}, "1970-01-01T00:01:30", [])
    (first, _) = within(Subject(PLAYS), script, select)
    assert first.event.rows == (rows[1],)
    panes = PLAYS.run(TestStream(tuple(one.event for one in script)))
    assert [pane for pane in panes if selection({}, "00:01", panes)(pane)] == [panes[1]]


def at(second):
    return datetime.fromtimestamp(second, UTC)


def pane(n, second, index=0):
    return Pane({"k": 1}, Window(at(0), at(60)), {"n": n}, timing=PaneTiming.EARLY, index=index, watermark=at(second))


WATERMARKS = {0: None, 1: at(10), 2: at(20), 3: at(30)}


@pytest.mark.parametrize(
    ("came", "given", "differs_in"),
    [
        ([pane(1, 10), pane(2, 20)], [(1, pane(1, 10)), (2, pane(2, 20))], None),
        ([pane(1, 10), pane(9, 20)], [(1, pane(1, 10)), (3, pane(2, 20))], 2),
        ([pane(1, 10)], [(1, pane(1, 10)), (2, pane(2, 20))], 2),
        ([pane(1, 10), pane(2, 30)], [(1, pane(1, 10))], 3),
        ([pane(1, 10), pane(2, 99)], [(1, pane(1, 10))], None),  # after the last replayed batch
    ],
)
def test_the_first_batch_that_differs(came, given, differs_in):
    assert compared(came_from(came, ["k"]), given, WATERMARKS).differs_in == differs_in


def test_a_table_of_live_rows_is_compared_with_the_last_panes():
    import pyarrow as pa

    def table(n):
        return pa.table({"k": [1], "window_start": [at(0)], "window_end": [at(60)], "n": [n], "_sequence": [4]})

    given = [(1, pane(1, 10)), (2, pane(2, 20, 1))]
    assert compared(came_from(table(2), ["k"]), given, WATERMARKS).differs_in is None
    found = compared(came_from(table(7), ["k"]), given, WATERMARKS)
    assert (found.differs_in, "the table has n=7; the pipeline gives n=2" in found.difference) == (2, True)


def test_stored_windows_are_compared_by_halving():
    asked = []

    def is_same(batch):
        asked.append(batch)
        return batch < 37

    assert first_differing(range(100), is_same) == 37
    assert len(asked) < 10
    assert first_differing(range(30), is_same) is None


def progress(batch, watermark="1970-01-01T00:00:00.000Z"):
    sources = [
        SimpleNamespace(startOffset="None", endOffset='{"logOffset":0}'),
        SimpleNamespace(startOffset='{"t":{"0":1}}', endOffset='{"t":{"0":2}}'),
    ]
    return SimpleNamespace(
        id="q", batchId=batch, timestamp="2026-01-01T12:00:00.250Z", eventTime={"watermark": watermark}, sources=sources
    )


def test_a_record_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "new" / "record.jsonl"
    batches = [RecordedBatch.read(progress(0)), RecordedBatch.read(progress(1, "2026-01-01T11:00:00.000Z"))]
    recorder = Recorder(path)
    for one in batches:
        recorder.add(one)
    assert read_record(path) == batches
    assert [one.watermark_us for one in batches] == [None, 1767265200_000_000]
    assert batches[0].starts == (None, '{"t":{"0":1}}')
    path.write_text(path.read_text() + '{"query": "q", "ba')  # the process was killed
    assert read_record(path) == batches
    path.write_text("no record\n" + json.dumps({}))
    with pytest.raises(bm.OptionError, match="line 1 is not a line of"):
        read_record(path)


def query_of(*lines):
    """A query with these offsets of each source after its first batches."""
    ends = list(zip(*lines, strict=True))
    starts = [(None,) * len(lines), *ends]
    return PastQuery(
        "q", [PastBatch(n, n, None, start, end) for n, (start, end) in enumerate(zip(starts, ends, strict=False))]
    )


FILES, MORE, TICKS = (
    ['{"logOffset":0}', '{"logOffset":1}'],
    ['{"logOffset":0}', '{"logOffset":2}'],
    ['{"tick": 1, "clock_us": 5000000}', '{"tick": 2, "clock_us": 6000000}'],
)


@pytest.mark.parametrize(
    ("lines", "numberings"),
    [
        ([FILES, MORE], [[0, 1], [0, 1], [0, 1]]),
        ([FILES, TICKS, MORE, TICKS, FILES], [[0, 1, 2, 3, 4], [0, 1, 2, 1, 3], [0, 1, 2, 1, 0]]),
    ],
)
def test_a_source_that_is_there_twice_may_have_one_folder(lines, numberings):
    assert list(_numberings(query_of(*lines))) == numberings


def test_heartbeats_are_the_clock_and_no_source():
    query = query_of(FILES, TICKS)
    assert (query.sources, query.has_heartbeats) == ([0], True)
    assert [batch.heartbeat_us() for batch in query.batches] == [5_000_000, 6_000_000]
    assert query_of(FILES).batches[0].heartbeat_us() is None


TOPICS = PastTopics('{"clicks": {"0": 3}}', frozenset({"clicks"}))


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        ({"subscribe": "views, clicks"}, True),
        ({"Subscribe": "views"}, False),
        ({"subscribePattern": "cl.*"}, True),
        ({"subscribePattern": "c"}, False),
        ({"assign": '{"clicks": [0]}'}, True),
    ],
)
def test_the_topics_of_a_call_are_recognised(options, fits):
    assert TOPICS.fits(ReadCall("kafka", options, None)) is fits
    assert not TOPICS.fits(ReadCall("parquet", options, None))


def test_offsets_begin_where_the_query_began_and_new_partitions_at_their_first():
    end = '{"clicks": {"0": 9, "1": 4, "2": 0}}'
    assert TOPICS._spans(None, end) == {"clicks": {"0": (3, 9), "1": (-2, 4), "2": (-2, 0)}}
    assert TOPICS._spans('{"clicks": {"0": 9, "1": 2}}', '{"clicks": {"0": 9, "1": 4}}') == {"clicks": {"1": (2, 4)}}


class Topic:
    """A session whose Kafka topic has the records of partition 0 from an offset on."""

    def __init__(self, first):
        self.first, self.read, self.asked = first, self, []

    def format(self, _):
        return Reading(self, {})

    def createDataFrame(self, rows, schema):  # noqa: N802
        return Records([])


class Reading:
    """A reader of it."""

    def __init__(self, topic, options):
        self._topic, self._options = topic, options

    def options(self, **options):
        return Reading(self._topic, {**self._options, **options})

    def option(self, name, value):
        return self.options(**{name: value})

    def load(self):
        self._topic.asked.append(self._options)
        first, last = (json.loads(self._options[name])["clicks"]["0"] for name in ("startingOffsets", "endingOffsets"))
        return Records(range(max(first, self._topic.first), last))


class Records:
    """Its records."""

    def __init__(self, offsets):
        self._offsets = offsets

    def groupBy(self, *_):  # noqa: N802
        return self

    def agg(self, _):
        return self

    def collect(self):
        return [{"topic": "clicks", "partition": 0, "first": min(self._offsets)}] if self._offsets else []


def upto(offset):
    return json.dumps({"clicks": {"0": offset}})


@pytest.mark.spark  # min() of a column needs a session
@pytest.mark.parametrize(("first", "lost", "reads"), [(0, 0, 1), (3, 0, 1), (4, 1, 2), (5, 1, 2), (6, 2, 2), (9, 3, 2)])
def test_batches_whose_records_are_gone(spark, first, lost, reads):
    topic, ends = Topic(first), [upto(end) for end in (5, 7, 9)]
    asked = ReadCall(
        "kafka", {"kafka.bootstrap.servers": "b", "subscribe": "clicks", "maxOffsetsPerTrigger": "2"}, None
    )
    spans = list(zip([None, *ends], ends, strict=False))
    assert TOPICS.lost(cast("Any", topic), asked, spans) == lost
    assert len(topic.asked) == reads
    assert topic.asked[-1] == {
        "kafka.bootstrap.servers": "b",
        "assign": '{"clicks": [0]}',
        "failOnDataLoss": "false",
        "startingOffsets": upto(3),
        "endingOffsets": upto(4 if reads == 1 else 9),
    }


@pytest.mark.parametrize(
    ("path", "asked", "fits"),
    [
        ("file:///in/plays/1.json", "/in/plays", True),
        ("file:///in/plays/1.json", "file:///in/pla*/", True),
        ("file:///in/a%20b/1.json", "/in/a b", True),
        ("s3a://bucket/in/1.json", "s3a://bucket/in", True),
        ("file:///in/views/1.json", "/in/plays", False),
    ],
)
def test_the_folder_of_a_call_is_recognised(path, asked, fits):
    assert PastFiles([(0, path)]).fits(ReadCall("json", {}, None, (asked,))) is fits


def test_a_reader_takes_the_calls_of_a_stream_reader():
    calls = []
    spark = PastSession(cast("Any", SimpleNamespace(conf="of the session")), calls.append)
    spark.readStream.format("kafka").option("subscribe", "t").options(a=True, b=None).load()
    spark.readStream.schema("a int").option("multiLine", 5).json("/in")
    spark.readStream.load("/in", format="orc")
    assert calls == [
        ReadCall("kafka", {"subscribe": "t", "a": "true"}, None),
        ReadCall("json", {"multiLine": "5"}, "a int", ("/in",)),
        ReadCall("orc", {}, None, ("/in",)),
    ]
    assert spark.conf == "of the session"


def test_a_query_takes_steps_of_several_inputs():
    def row(second, v):
        return {"k": "a", "ts": second, "v": v}

    orders, payments = [row(1, 3), row(2, 4)], [row(1, 6), row(3, 7)]
    at_once = TestStream().step({"orders": orders, "payments": payments}).step({"payments": [row(4, 8)], "orders": ()})
    apart = TestStream().step(orders, input="orders").step(payments, input="payments")
    apart = apart.step([row(4, 8)], input="payments")
    found = [pane.values for pane in app.pairs.run(at_once)]
    assert found == [pane.values for pane in app.pairs.run(apart)]
    assert [(one["ordered"], one["paid"]) for one in found] == [(3, 8), (4, 8), (3, 9), (4, 9)]  # 6 is no longer there


HOSTILE = "\"\"\"\nimport os; os.abort()\n''' \\ \u2028 # x"


def test_hostile_values_stay_text():
    row = {"ts": 1, "team": HOSTILE}
    panes = PLAYS.run(TestStream().add([row]).advance_watermark_to(60))
    written = Written(
        pipeline="app:scores",
        about=[f"Replay of team={HOSTILE!r}.", f"It differs: {HOSTILE}"],
        steps=steps(Step((row,)), Step(watermark_us=60_000_000)),
        dropped=[(0, f"dropped: {HOSTILE}")],
        expected=[(1, one) for one in panes],
        name=name_of(f"replay of team {HOSTILE}"),
        only={"team": HOSTILE},
        windows=[one.window for one in panes],
        initial={},
        with_dropped=False,
        hides_dropped=True,
        difference=(0, HOSTILE),
    )
    text = written.text().replace("from app import scores", "")
    names = {"scores": PLAYS}
    exec(compile(text, "test_red.py", "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test()
    assert names["SCRIPT"].events[0].rows == (row,)


VIEWS = bm.sql(
    "SELECT team, COUNT(*) AS n FROM plays GROUP BY team EMIT CHANGES",
    event_time="ts",
    watermark=bm.BoundedOutOfOrderness(0),
)
MANAGED = {0: [{"protocol": {"readerFeatures": ["catalogManaged", "columnMapping"]}}, {"metaData": {"id": "t"}}]}
REFUSED = {
    "an input that is a stream": lambda: made_by(cast("Any", 5), [None]),
    "an input of no name": lambda: made_by({"c": print}, ["a", "b"]),
    "a function that returns nothing": lambda: made_by(lambda _: None, ["a", "b"])(None),
    "Kafka without a function": lambda: files_as_they_are({0: TOPICS}, [None]),
    "text files without a function": lambda: files_as_they_are({0: PastFiles([(0, "file:///in/1.txt")])}, [None]),
    "Delta without a function": lambda: files_as_they_are({0: PastDelta(cast("Any", None), "1f-2")}, [None]),
    "commits that rewrite rows": lambda: _files(TABLE, ReadCall("delta", {}, None), position(2), position(6)),
    "a feature of a table": lambda: DeltaTable(cast("Any", None), "/lake/plays", DeltaLog(Stored(MANAGED))).check(),
    "a value for the key of a join": lambda: Subject(app.pairs).read("red"),
    "initial rows of a query": lambda: Subject(VIEWS).tables([{"ts": 1}]),
    "neither a pipeline nor a query": lambda: Subject.of(5),
    "a key that is not JSON": lambda: program._key(["{team"]),
    "no such key column": lambda: read_key(list(Subject(PLAYS).keys or ()), {"user": 1}),
    "a value for several key columns": lambda: read_key(list(Subject(MINUTES).keys or ()), "red"),
    "a mask of no column": lambda: Masks.of(["name"], [{"user": 1}], ["user"]),
    "a mask of a time": lambda: Masks.of(["ts"], [{"ts": at(0)}], ["ts"]),
    "a window that is not a time": lambda: selection({}, "noon", []),
    "a time of day without windows": lambda: selection({}, "12:00", []),
    "no session": lambda: bm.replay(cast("Any", "spark"), "checkpoint", PLAYS),
    "no record": lambda: read_record("nowhere/record.jsonl"),
    "a record that cannot be written": lambda: Recorder("/dev/null/record.jsonl"),
    "rows by input and an input": lambda: TestStream().step({"a": [{"ts": 1}]}, input="a"),
    "watermarks by input and plain rows": lambda: TestStream().step([{"ts": 1}], watermark={"a": 1}),
}


@cases(REFUSED)
def test_refusals(name):
    refused(__file__, name, REFUSED[name])
