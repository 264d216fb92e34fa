"""Stages without windows tell what they store of keys, what is due, and when it ends: ``state().keys()`` and ``why``."""

from __future__ import annotations

import attrs
import pyarrow as pa
import pytest

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.checkpoint.stored_keys import why_of_keys
from beamish.checkpoint.words import QueryFacts
from beamish.contract.at_rest import Asked, Keeps
from beamish.flow import Description, descriptions
from beamish.kernels.spec import UnreadableError
from beamish.kinds.retime.stage import RetimeStage
from beamish.local import stages_after
from beamish.stage_facts import stage_facts
from beamish.testing import TestStream
from tests.checkpoints.cases import CASES
from tests.kinds.hold_back.stage import HoldBack

SOURCE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
ROWS = [{"ts": 30, "user": "ann", "v": 1}, {"ts": 70, "user": "ann", "v": 2}, {"ts": 100, "user": "bob", "v": 2}]
SCRIPT = TestStream().add(ROWS).advance_watermark_to(80)
SPANS = SOURCE.window(bm.Rolling({"2m": "2 minutes", "5m": "5 minutes"}, step="1 minute"))
FEATURES = SPANS.accumulate(n=Count(), total=Sum("v"))
MINUTE = SOURCE.over(bm.Preceding("1 minute"))
VERSIONS = SOURCE.versions("1 hour", values=["v"])


def stored(pipeline, key="ann", script=SCRIPT):
    """The state of a key: each sort with its number, and the seconds at which it is due and ends."""

    def second(time):
        return None if time is None else round(time.timestamp())

    return [
        (one.stored, one.entries, second(one.due), second(one.ends)) for one in pipeline.state(script).keys(key=key)
    ]


def test_rolling_spans_tell_their_slices_and_which_row_leaves_next():
    assert stored(FEATURES) == [("rows, in slices of 1 minute", 2, 120, 420), ("emitted rows", 1, None, None)]
    later = SCRIPT.advance_watermark_to(200)
    ((rows, emitted),) = [FEATURES.state(later).keys(key="ann")]
    assert rows.then == "rows leave the span '2m', and a row is emitted if values change"
    assert emitted.values == "n_2m=1, n_5m=2, total_2m=2, total_5m=3"
    last = FEATURES.state(SCRIPT.advance_watermark_to(419)).keys(key="ann")
    assert (last[0].entries, last[0].due.minute) == (1, 7)
    assert stored(FEATURES, script=SCRIPT.advance_watermark_to(420)) == []


BY_TWO = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user", "v")


@pytest.mark.parametrize(
    "pipeline",
    [
        BY_TWO.window(bm.Rolling({"5m": "5 minutes"}, step="1 minute")).accumulate(n=Count()),
        BY_TWO.over(bm.Preceding("1 minute")).accumulate(n=Count()),
        BY_TWO.fill_gaps("1 minute", by="last", within="1 hour"),
        BY_TWO.versions("1 hour"),
        BY_TWO.upserts(),
        bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).deduplicate("user", "v", within="1 hour"),
    ],
    ids=["rolling", "over", "gaps", "versions", "upserts", "deduplicate"],
)
def test_a_key_of_two_columns_has_both(pipeline):
    found = pipeline.state(SCRIPT)
    keys = {tuple(sorted(one.key.items())) for one in found.keys()}  # noqa: SIM118 - a view of the state
    assert keys == {(("user", row["user"]), ("v", row["v"])) for row in ROWS}


def test_a_history_tells_until_when_its_last_row_may_be_corrected():
    history = SPANS.window(bm.Rolling({"2m": "2 minutes"}, step="1 minute", keep="history")).accumulate(n=Count())
    late = history.allowed_lateness("1 minute")
    script = SCRIPT.advance_watermark_to(200)
    assert stored(late, "ann", script) == [
        ("rows, in slices of 1 minute", 2, 240, 300),
        ("emitted rows", 2, None, None),
    ]


def test_over_tells_what_waits_what_later_frames_hold_and_the_past():
    assert stored(MINUTE.accumulate(n=Count(), next=bm.Lead("v")), "bob") == [
        ("rows that wait for a row after each (Lead)", 1, 100, None)
    ]
    (waits, held) = stored(MINUTE.accumulate(n=Count(), next=bm.Lead("v")))
    assert waits[:3] == ("rows that wait for a row after each (Lead)", 1, None)  # until the end of time
    assert held[:2] == ("emitted rows, which are in the frame of later ones", 1)
    (held,) = stored(MINUTE.accumulate(n=Count()), "ann")
    assert held == ("emitted rows, which are in the frame of later ones", 2, None, 130)
    numbered = SOURCE.over(bm.Unbounded()).accumulate(n=bm.RowNumber()).forget_after("1 hour")
    assert stored(numbered) == [("rows before these, of which only counts and accumulators are stored", 2, None, 3670)]


def test_gaps_tell_the_next_one_that_is_filled_and_the_last():
    filled = SOURCE.fill_gaps("10 seconds", by="last", within="1 minute")
    assert stored(filled) == [("cells of 10 seconds with rows", 1, 90, 140)]
    (one,) = filled.state(SCRIPT).keys(key="ann")
    assert one.then == "a gap is filled"
    (one,) = filled.state(SCRIPT.advance_watermark_to(135)).keys(key="ann")
    assert (one.due, one.then) == (one.ends, "it takes no more rows, and nothing is filled after it")


def test_deduplication_tells_until_when_an_id_is_remembered():
    once = SOURCE.deduplicate("v", within="1 minute")
    assert stored(once, {"user": "ann", "v": 2}) == [("ids of rows", 1, 130, 130)]
    assert stored(
        bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).deduplicate("v", within="forever"), 2
    ) == [("ids of rows", 1, None, None)]


def test_upserts_tell_the_row_of_a_key_and_until_when_a_delete_is_stored():
    table = SOURCE.upserts(deleted="gone", keep_deleted="1 minute")
    script = TestStream().add([{**row, "gone": False} for row in ROWS])
    assert stored(table, script=script) == [("rows", 1, None, None)]
    (one,) = table.state(script).keys(key="ann")
    assert (one.values, one.then) == ("ts=70, v=2", "it expires: the next row of its key is an insert, however old")
    gone = script.add([{"ts": 80, "user": "ann", "v": None, "gone": True}])
    assert stored(table, script=gone) == [("deletes", 1, 140, 140)]
    assert stored(table, script=gone.advance_watermark_to(140)) == []


def test_tables_and_joins_with_them_tell_versions_and_rows_that_wait():
    assert stored(VERSIONS) == [("versions", 2, None, None)]
    joined = bm.as_of_join(left=bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)), right=VERSIONS, on="user")
    script = TestStream().add(ROWS, input="right").add([{"ts": 90, "user": "ann"}], input="left")
    assert stored(joined, "ann", script.advance_watermark_to(80)) == [
        ("rows of left that wait", 1, 90, None),
        ("versions of right", 2, None, None),
    ]
    correcting = joined.accumulating_and_retracting()
    assert ("rows of left that wait", 1, 90, None) in stored(correcting, "ann", script.advance_watermark_to(80))


def test_a_suppress_tells_its_buffer_beside_the_state_of_its_stage():
    rates = SOURCE.changes()
    name = "updates buffered by the suppress 'suppress'"
    by_time = bm.UntilTimeLimit("1 hour", clock="event")
    assert stored(rates.suppress(by_time)) == [(name, 1, 3630, None)]
    assert [one[:2] for one in stored(FEATURES.suppress(by_time))] == [
        ("rows, in slices of 1 minute", 2),
        ("emitted rows", 1),
        (name, 1),
    ]
    (one,) = rates.suppress(bm.UntilTimeLimit("1 hour", clock="processing")).state(SCRIPT).keys(key="ann")
    assert one.due is None
    assert one.then.endswith("emits them when the clock reaches 1970-01-01 01:00:00")


def test_without_keys_there_is_one():
    every = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))
    rolling = every.window(bm.Rolling({"2m": "2 minutes"}, step="1 minute")).accumulate(n=Count())
    assert [one[:2] for one in stored(rolling, None)] == [("rows, in slices of 1 minute", 3), ("emitted rows", 1)]
    assert "Stored of the only key: rows, in slices of 1 minute (3)" in rolling.why(SCRIPT)


def test_why_says_what_is_stored_what_is_waited_for_and_how_far_it_is():
    answer = FEATURES.why(SCRIPT, key="ann")
    assert answer.startswith(
        "Stored of key user='ann': rows, in slices of 1 minute (2), from 1970-01-01 00:00:00 to 1970-01-01 00:01:00; "
        "emitted rows (1), at 1970-01-01 00:01:00, the last with n_2m=1, n_5m=1, total_2m=1, total_5m=1. "
        "When the watermark reaches 1970-01-01 00:02:00, 40 seconds from now, rows enter the span '2m', and a row is emitted if "
        "values change."
    )
    assert answer.endswith(
        "The watermark is at 1970-01-01 00:01:20. In a TestStream rows do not move the watermark: call advance_watermark_to(...)."
    )
    assert "Nothing is stored of key user='zoe'" in FEATURES.why(SCRIPT, key="zoe")
    late = SCRIPT.advance_watermark_to(1000).add([{"ts": 5, "user": "ann", "v": 1}])
    assert "Rows dropped by this stage so far: 1 as expired." in FEATURES.why(late, key="ann")
    assert "Rows that wait for a row after each (Lead): the first of them is emitted" in MINUTE.accumulate(
        next=bm.Lead("v")
    ).why(SCRIPT, key="ann")


def test_why_of_many_keys_shows_the_first_ones():
    many = TestStream().add([{"ts": 1, "user": str(i), "v": i} for i in range(5)])
    answer = FEATURES.why(many)
    assert answer.count("Stored of key") == 3
    assert answer.endswith("2 more keys; narrow it down with why(key=...).")
    assert answer.count("There is no watermark yet") == 1


def test_why_prefers_windows_and_takes_the_number_of_a_stage():
    counts = SOURCE.window(bm.FixedWindows("1 minute")).accumulate(n=Count())
    chain = counts.then(bm.Pipeline().key_by("user").over(bm.Unbounded()).accumulate(k=Count()))
    assert chain.why(SCRIPT, key="bob").startswith("The window ")
    assert "(1)" in chain.why(SCRIPT, key="ann", stage=2)
    both = FEATURES.then(bm.Pipeline().key_by("user").over(bm.Unbounded()).accumulate(k=Count()))
    with pytest.raises(bm.PipelineError, match=r"state by key alone are 1, 2; name one: why\(stage=1\)"):
        both.why(SCRIPT)


def described(pipeline, script):
    """The description of its last stage as stored, and that stage."""
    (*_, (bound, stores)) = stages_after(pipeline.flow.completed, script.events)
    return descriptions(bound)[-1], bound, stores


@pytest.mark.parametrize(
    "pipeline", [FEATURES, MINUTE.accumulate(n=Count()), VERSIONS, SOURCE.deduplicate("v", within=5)]
)
def test_a_checkpoint_answers_without_the_pipeline(pipeline):
    about, bound, stores = described(pipeline, SCRIPT)
    stage, takes = Description.read(about).rebuilt()
    with_schemas = [attrs.evolve(one, schema=own.schema) for one, own in zip(takes, bound.operator.takes, strict=True)]
    rebuilt = stage.bind(with_schemas, shards=1)
    both = [one.answer(Asked(Keeps.KEYS)).read(stores[0]) for one in (rebuilt, bound.operator)]
    assert both[0].equals(both[1])
    rows, facts = both[0].to_pylist(), stage_facts(dict(enumerate(stores)), about)
    query = QueryFacts(7, 0, facts.watermark_us + 3_600_000_000, is_last=True)
    answer = why_of_keys(facts, {}, bound.operator.stored_keys.names, rows, query)
    assert "after batch 7" in answer
    assert pa.types.is_string(both[0].schema.field("stored").type)


def test_functions_of_a_pipeline_are_not_in_its_checkpoint():
    own = SPANS.accumulate(n=bm.accumulations.Reduce(max, "v"))
    about, _, _ = described(own, SCRIPT)
    with pytest.raises(UnreadableError):
        Description.read(about).rebuilt()


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_stage_answers(name):
    case = CASES[name]
    for number, below in enumerate(case.pipeline.flow.completed.flows, 1):
        if not isinstance(below.stage.core, (HoldBack, RetimeStage)):  # the latter stores no rows
            assert {Keeps.WINDOWS, Keeps.KEYS} & below.stage.keeps(below.takes).keys()
            assert case.pipeline.why(case.before, stage=number)


@pytest.mark.deep
def test_a_checkpoint_on_spark_answers_as_a_script_does(spark, tmp_path):
    """Two stages in one operator."""
    chain = SPANS.accumulate(n=Count()).then(bm.Pipeline().key_by("user").over(bm.Unbounded()).accumulate(k=Count()))
    SCRIPT.on_spark(spark, chain, shards=2, checkpoint=tmp_path)
    rows = chain.state(spark, tmp_path / "checkpoint").keys(stage=1).collect()
    expected = {(one.key["user"], one.stored, one.entries, one.then) for one in chain.state(SCRIPT).keys(stage=1)}
    assert {(row.user, row.stored, row.entries, row.then) for row in rows} == expected
    found = bm.inspect(spark, tmp_path / "checkpoint")  # the pipeline is not needed
    # Only what moves the watermark differs from a script.
    answer = found.why(key="ann", stage=2).partition(" The watermark")[0]
    assert answer == chain.why(SCRIPT, key="ann", stage=2).partition(" The watermark")[0]
    assert "rows, in slices of 1 minute" in found._asked_in_texts(["user=bob"], None, 1)
    with pytest.raises(bm.PipelineError, match=r"windows\(\): no stage has windows; ask state\(...\).held\(\)"):
        found.windows()
