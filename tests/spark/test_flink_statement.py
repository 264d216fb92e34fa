"""Statements of Flink's SQL on Spark: a batch gives what a script gives."""

from datetime import UTC, datetime

import pytest

import beamish as bm
from beamish.testing import TestStream

pytestmark = pytest.mark.spark

MINUTE = "INTERVAL '1' MINUTE"
T = "CREATE TABLE {0} (k STRING, x BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);"
WINDOWS = f"TUMBLE(TABLE {{}}, DESCRIPTOR(ts), {MINUTE})"
STATEMENTS = {
    "cumulate": "SELECT k, window_start, window_time, AVG(x) AS mean, SUM(x) / COUNT(*), SUM(x) * 1.5E0 / 2 AS half "
    f"FROM CUMULATE(TABLE a, DESCRIPTOR(ts), {MINUTE}, INTERVAL '2' MINUTE) WHERE x > 1 GROUP BY window_start, window_end, k",
    "updated": f"SELECT k, window_end, COUNT(*) FROM CUMULATE(TABLE a, DESCRIPTOR(ts), {MINUTE}, INTERVAL '2' MINUTE, {MINUTE}, TRUE) "
    "GROUP BY window_start, window_end, k",
    "session": f"SELECT COUNT(*) AS n, SESSION_END(ts, {MINUTE}) AS e FROM a GROUP BY SESSION(ts, {MINUTE}), k",
    "top": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY x DESC) AS n "
    f"FROM {WINDOWS.format('a')}) WHERE n = 1",
    "top of groups": "SELECT n, total AS most, k, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
    "ORDER BY total DESC) AS n FROM (SELECT window_start, window_end, k, SUM(x) AS total "
    f"FROM {WINDOWS.format('a')} GROUP BY window_start, window_end, k)) WHERE n <= 1",
    "view": f"CREATE VIEW v AS SELECT window_time AS r, SUM(x) AS s FROM {WINDOWS.format('a')} GROUP BY window_start, window_end, "
    "window_time, k; SELECT window_end, MAX(s) AS m FROM TUMBLE(TABLE v, DESCRIPTOR(r), INTERVAL '2' MINUTE) "
    "GROUP BY window_start, window_end",
    "rollup": "SELECT k, x % 2 AS odd, window_end, GROUPING(x % 2) AS g, GROUPING_ID(x % 2, k) AS id, COUNT(DISTINCT k) AS n "
    f"FROM {WINDOWS.format('a')} GROUP BY window_start, window_end, CUBE (k, x % 2)",
    "alone": f"SELECT k, x, window_end FROM {WINDOWS.format('a')}",
    "join": f"SELECT a.k, a.x AS mine, b.x AS theirs, b.window_start AS w FROM (SELECT * FROM {WINDOWS.format('a')}) a LEFT JOIN "
    f"(SELECT * FROM {WINDOWS.format('b')}) b ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end",
}
ROWS = {
    "a": [(1, "u", 3), (20, "v", 6), (59, "u", 5), (61, "u", 7), (100, None, 2), (119, "v", 1)],
    "b": [(5, "u", 9), (62, "w", 4)],
}


def rows(name):
    return [{"ts": datetime.fromtimestamp(ts, UTC), "k": k, "x": x} for ts, k, x in ROWS[name]]


@pytest.mark.xdist_group("flink statements")
@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_batch_gives_what_a_script_gives(spark, kind):
    text = STATEMENTS[kind]
    names = ["a", "b"] if "JOIN" in text else ["a"]
    query = bm.sql("".join(map(T.format, names)) + text, dialect="flink")
    script = TestStream()
    for name in names:
        script = script.add(rows(name), **({"input": name} if len(names) > 1 else {}))
    panes = query.run(script.advance_watermark_to_infinity())
    frames = {name: spark.createDataFrame(rows(name), "ts timestamp, k string, x long") for name in names}
    df = query.apply(**frames) if len(names) > 1 else query.apply(frames["a"])
    found = [
        {name: at(value) for name, value in row.asDict().items() if name not in ("window", "pane", "timestamp")}
        for row in df.collect()
    ]
    expected = [{name: at(value) for name, value in {**pane.key, **pane.values}.items()} for pane in panes]
    assert sorted(map(str, map(sorted, map(dict.items, found)))) == sorted(
        map(str, map(sorted, map(dict.items, expected)))
    )
    assert found


def at(value):
    """A time as a number of seconds."""
    return value.astimezone(UTC).timestamp() if isinstance(value, datetime) else value
