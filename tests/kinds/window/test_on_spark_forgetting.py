"""Expiry of idle keys (rules/windows.md#forget-after) on Spark, across a restart; and triggers that wait for the end."""

import pyarrow as pa

import beamish as bm
from beamish.accumulations import Count, Sum
from beamish.testing import TestStream
from beamish.triggers import Never

PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.GlobalWindow())
    .trigger(Never())
    .forget_after("30 seconds")
    .accumulating()
    .accumulate(n=Count(), s=Sum("score"))
)


def test_a_stream_emits_a_key_when_it_expires_and_drops_its_state(files, run_query):
    rows = files(ts=pa.timestamp("us", "UTC"), team=pa.string(), score=pa.int64())

    def at(second, team):
        return {"ts": second * 1_000_000, "team": team, "score": second}

    rows.add(at(1, "a"), at(2, "b")).add(at(3, "a")).add(at(32, "c"))
    first = run_query(PIPELINE, rows.stream())
    rows.add(at(40, "b")).add(at(90, "c"))
    second = run_query(PIPELINE, rows.stream())
    given = [
        (p.key["team"], p.values["n"], p.values["s"], str(p.timing), p.index, p.is_last)
        for batch in first + second
        for p in batch
    ]
    assert given == [  # c had a row again before it was forgotten
        ("b", 1, 2, "ON_TIME", 0, True),
        ("a", 2, 4, "ON_TIME", 0, True),
        ("b", 1, 40, "ON_TIME", 0, True),
    ]
    script = TestStream()
    for row in (at(1, "a"), at(2, "b")), (at(3, "a"),), (at(32, "c"),), (at(40, "b"),), (at(90, "c"),):
        script = script.add([{**one, "ts": one["ts"] / 1_000_000} for one in row])
        script = script.advance_watermark_to(max(one["score"] for one in row))
    in_process = [(p.key["team"], p.values["n"]) for p in PIPELINE.run(script)]
    assert sorted(in_process) == sorted((team, n) for team, n, *_ in given)
