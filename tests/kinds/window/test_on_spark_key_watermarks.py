"""A watermark per key on Spark, across a restart (rules/key-watermarks.md#watermark-per-key)."""

import pyarrow as pa

import beamish as bm
from beamish.accumulations import Count
from beamish.testing import TestStream
from tests.twin.run import run

PIPELINE = (
    bm.Pipeline()
    .event_time("ts", bm.BoundedOutOfOrderness(0))
    .key_by("team")
    .window(bm.FixedWindows(10))
    .watermark_per_key(0, at_most=60)
    .with_dropped()
    .accumulate(n=Count())
)
BUNDLES = [{"slow": 1, "fast": 31}, {"slow": 2, "fast": 42}, {"slow": 5, "fast": 75}, {"slow": 9, "fast": 80}]


def shown(panes):
    return sorted((p.key["team"], p.start.second, str(p.reason or p.timing), p.values.get("n")) for p in panes)


def test_a_stream_ends_windows_by_the_watermark_of_their_key(files, run_query):
    rows = files(ts=pa.timestamp("us", "UTC"), team=pa.string())
    script, given = TestStream(), []
    for first, second in (BUNDLES[:2], BUNDLES[2:]):
        for bundle in (first, second):
            rows.add(*({"ts": second * 1_000_000, "team": team} for team, second in bundle.items()))
            script = script.add([{"ts": second, "team": team} for team, second in bundle.items()])
            script = script.advance_watermark_to(bundle["fast"])
        given += [pane for batch in run_query(PIPELINE, rows.stream()) for pane in batch]
    assert shown(given) == shown(run(PIPELINE, script.events))
    assert shown(given) == [
        ("fast", 10, "ON_TIME", 1),
        ("fast", 30, "ON_TIME", 1),
        ("fast", 40, "ON_TIME", 1),
        ("slow", 0, "ON_TIME", 3),
        ("slow", 0, "expired", None),
    ]
