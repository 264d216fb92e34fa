"""Flink's SQL as text (docs/flink-sql.md): what it compiles to, and what is refused; Flink judges its answers (peers/flink_sql)."""

import pickle

import pytest

import beamish as bm
from beamish.accumulations import (
    Count,
    CountDistinct,
    FullOuterJoin,
    InnerJoin,
    LeftOuterJoin,
    Max,
    Mean,
    RightOuterJoin,
    StdDev,
    Sum,
    TopRows,
)
from beamish.statement.flink.times import interval_us
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterProcessingTime, AfterWatermark, Always, Never, Repeatedly

T = "CREATE TABLE t (k STRING, x INT, y DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('a' = 'b');\n"
FIVE = bm.BoundedOutOfOrderness("5 seconds")
MINUTE = "INTERVAL '1' MINUTE"


def flink(text, **options):
    return bm.sql(text, dialect="flink", **options)


def by_hand(*keys):
    return bm.Pipeline().event_time("ts", FIVE).key_by(*keys)


def shown(query, script):
    return [(str(pane.kind), *{**pane.key, **pane.values}.values()) for pane in query.run(script)]


WINDOWS = {
    f"TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE})": bm.FixedWindows("1 minute"),
    f"TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE}, INTERVAL '-10' SECONDS))": bm.FixedWindows("1 minute", -10),
    f"tumble(data => table t, timecol => descriptor(`ts`), size => {MINUTE}, `offset` => -INTERVAL '10' SECOND)": bm.FixedWindows(
        "1 minute", -10
    ),
    f"TUMBLE(DATA => TABLE db.t, SIZE => {MINUTE}, TIMECOL => DESCRIPTOR(ts))": bm.FixedWindows("1 minute"),
    f"HOP(TABLE t, DESCRIPTOR(ts), {MINUTE}, INTERVAL '2' HOURS)": bm.SlidingWindows("2 hours", "1 minute"),
    "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '0:30' MINUTE TO SECOND, INTERVAL '1' DAY(3), INTERVAL '0.5' SECOND)": bm.SlidingWindows(
        "1 day", 30, 0.5
    ),
    f"CUMULATE(TABLE t, DESCRIPTOR(ts), {MINUTE}, INTERVAL '1' HOUR)": bm.CumulativeWindows("1 hour", "1 minute"),
    f"CUMULATE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), STEP => {MINUTE}, SIZE => INTERVAL '1' HOUR, `OFFSET` => {MINUTE}, "
    "EMITONLYONUPDATE => false)": bm.CumulativeWindows("1 hour", "1 minute", "1 minute"),
}


@pytest.mark.parametrize("function", WINDOWS)
def test_a_window_function_gives_final_rows_of_its_windows(function):
    query = flink(f"{T}SELECT k, window_start, SUM(x) AS s FROM {function} GROUP BY k, window_start, window_end")
    made = by_hand("k").window(WINDOWS[function]).trigger(Never()).accumulating().accumulate(**{"SUM(x)": Sum("x")})
    assert query.pipeline == made
    assert (query.kind, query.refinement) == ("push", "final")


@pytest.mark.parametrize(
    ("partition", "keys"),
    [(" PARTITION BY k", ["k"]), (" PARTITION BY (k, x)", ["k", "x"]), (" PARTITION BY k, x", ["k", "x"]), ("", [])],
)
@pytest.mark.parametrize("named", [True, False])
def test_sessions_are_of_their_partition(partition, keys, named):
    names = ["DATA => ", "TIMECOL => ", "GAP => "] if named else ["", "", ""]
    arguments = ", ".join(map("".join, zip(names, [f"TABLE t{partition}", "DESCRIPTOR(ts)", MINUTE], strict=True)))
    group = ", ".join(["window_start", *keys, "window_end"])
    query = flink(f"{T}SELECT window_end, COUNT(*) AS n FROM SESSION({arguments}) GROUP BY {group}")
    sessions = bm.Sessions("1 minute", late_rows="session")
    made = by_hand(*keys).window(sessions).trigger(Never()).accumulating()
    assert query.pipeline == made.accumulate(**{"COUNT(*)": Count()})


ROWS = (
    TestStream()
    .add([{"ts": 1, "k": "a", "x": 3, "y": 0.5}, {"ts": 61, "k": "a", "x": 4, "y": 0.25}])
    .add([{"ts": 62, "k": None, "x": 6, "y": 1.0}])
)


def test_bounds_and_the_time_of_windows_are_columns():
    query = flink(
        f"{T}SELECT window_start, window_end, window_time, SUM(x) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE}) "
        "GROUP BY window_start, window_end, window_time"
    )
    panes = query.run(ROWS.advance_watermark_to(60))
    assert [list(map(str, pane.values.values())) for pane in panes] == [
        ["1970-01-01 00:00:00+00:00", "1970-01-01 00:01:00+00:00", "1970-01-01 00:00:59.999000+00:00", "3"]
    ]
    assert list(panes[0].values) == ["window_start", "window_end", "window_time", "EXPR$3"]


def test_a_window_may_need_a_row_in_its_last_step():
    """The rows and answers are those of Flink's page of window functions."""
    source = "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' MINUTE, INTERVAL '10' MINUTE, INTERVAL '0' SECOND, true)"
    query = flink(f"{T}SELECT SUM(x) AS total, window_end FROM {source} GROUP BY window_start, window_end")
    rows = TestStream().add(
        [{"ts": minute * 60, "k": "a", "x": x} for minute, x in ((5, 4), (7, 2), (9, 5), (11, 3), (13, 1), (17, 6))]
    )
    rows = rows.advance_watermark_to(3600)
    assert [(row[1], row[2].minute) for row in shown(query, rows)] == [
        (4, 6),
        (6, 8),
        (11, 10),
        (3, 12),
        (4, 14),
        (10, 18),
    ]
    every = flink(query.text.replace(", true)", ", false)"))
    assert [row[1] for row in shown(every, rows)] == [4, 6, 11, 3, 4, 4, 10, 10]
    few = flink(f"{query.text} HAVING COUNT(*) < 2")
    assert [row[1] for row in shown(few, rows)] == [4, 3]


def test_groups_without_windows_are_changes_and_need_no_event_time():
    query = flink("SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING COUNT(*) < 3")
    rows = TestStream().add([{"k": "a"}]).add([{"k": None}, {"k": "a"}]).add([{"k": "a"}])
    assert shown(query, rows) == [
        ("PANE", "a", 1),
        ("PANE", None, 1),
        ("RETRACTION", "a", 1),
        ("PANE", "a", 2),
        ("RETRACTION", "a", 2),
    ]
    everything = flink("SELECT COUNT(*), MAX(k) FROM t")
    assert shown(everything, rows)[-1] == ("PANE", 4, "a")


def test_a_key_may_be_left_out():
    assert shown(flink("SELECT COUNT(*) FROM t GROUP BY k"), TestStream().add([{"k": "a"}, {"k": "b"}])) == [
        ("PANE", 1),
        ("PANE", 1),
    ]


SETTINGS = {
    "early-fire.enabled true; early-fire.delay 10 s": (Repeatedly(AfterProcessingTime(10)), None, 0),
    "early-fire.enabled true; early-fire.delay 0 ms": (Always(), None, 0),
    "allow-lateness 1 h": (None, None, 0),
    "allow-lateness 1 h; early-fire.enabled true; early-fire.delay 0 ms": (Always(), None, 0),
    "allow-lateness 1 h; late-fire.enabled true; late-fire.delay 0": (None, Always(), "1 hour"),
    "allow-lateness 1 h; late-fire.enabled true; late-fire.delay 1min": (
        None,
        Repeatedly(AfterProcessingTime("1 minute")),
        "1 hour",
    ),
    "early-fire.enabled false": (None, None, 0),
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_settings_of_the_output_are_triggers_and_lateness(settings):
    early, late, lateness = SETTINGS[settings]
    sets = "".join(
        f"SET 'table.exec.emit.{key}' = '{value}';"
        for key, _, value in (one.partition(" ") for one in settings.split("; "))
    )
    query = flink(f"{sets}{T}SELECT k, TUMBLE_END(ts, {MINUTE}), COUNT(*) FROM t GROUP BY k, TUMBLE(ts, {MINUTE})")
    made = by_hand("k").window(bm.FixedWindows("1 minute")).allowed_lateness(lateness)
    if early or late:
        made = made.trigger(AfterWatermark(early=early, late=late)).accumulating_and_retracting()
        made = made.on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)
    else:
        made = made.trigger(Never()).accumulating()
    assert query.pipeline == made.accumulate(**{"COUNT(*)": Count()})


def test_windows_under_group_by_have_their_bounds():
    query = flink(
        f"{T}SELECT HOP_START(ts, {MINUTE}, INTERVAL '2' MINUTE), HOP_END(ts, {MINUTE}, INTERVAL '2' MINUTE) AS e, "
        f"HOP_ROWTIME(ts,{MINUTE},INTERVAL '2' MINUTE), COUNT(*) FROM t GROUP BY HOP(ts, {MINUTE}, INTERVAL '2' MINUTE)"
    )
    assert query.pipeline.flow.stage.options.window == bm.SlidingWindows("2 minutes", "1 minute")
    first = query.run(ROWS.advance_watermark_to(60))[0].values
    assert [str(value) for value in first.values()] == [
        "1969-12-31 23:59:00+00:00",
        "1970-01-01 00:01:00+00:00",
        "1970-01-01 00:00:59.999000+00:00",
        "1",
    ]


def test_division_and_means_of_whole_numbers_are_whole():
    query = flink(T + "SELECT AVG(x), AVG(y), SUM(x) / COUNT(*), -7 / 2, SUM(y) / 4, AVG(CAST(x AS DOUBLE)) FROM t")
    options = query.pipeline.flow.stage.options
    assert options.accumulations["AVG(y)"] == Mean("y")
    rows = TestStream().add([{"k": "a", "x": 3, "y": 0.5, "ts": 1}, {"k": "a", "x": 4, "y": 0.25, "ts": 2}])
    assert shown(query, rows) == [("PANE", 3, 0.375, 3, -3, 0.1875, 3.5)]
    assert flink(T + "SELECT AVG(x) FROM t WHERE x IS NULL").run(rows) == []
    assert flink("SELECT STDDEV_SAMP(y * 1.0) FROM t").pipeline.flow.stage.options.accumulations == {
        "STDDEV_SAMP(y * 1.0)": StdDev("y * 1.0")
    }


NUMBERED = "SELECT {} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS n FROM {}) WHERE {}"


@pytest.mark.parametrize(
    ("by", "where", "top"),
    [
        ("x DESC", "n <= 3", TopRows(3, by="x")),
        ("x", "n < 3 AND x > 1", TopRows(2, by="x", least=True)),
        ("ts", "n = 1", TopRows(1, by="ts", least=True)),
        ("x DESC, y ASC", "n <= 3", TopRows(3, by=["x", "y"], least=[False, True])),
        ("x, y DESC", "n <= 3", TopRows(3, by=["x", "y"], least=[True, False])),
        ("ts DESC", "1 >= n", TopRows(1, by="ts")),
    ],
)
def test_rows_by_number_are_corrected_however_late(by, where, top):
    query = flink(T + NUMBERED.format("*", "k", by, "t", where))
    made = by_hand("k").window(bm.GlobalWindow()).trigger(Always()).accumulating_and_retracting().only_updated_panes()
    assert query.pipeline == made.accumulate(**{"first rows": top})


def test_a_window_function_alone_gives_each_row_with_its_windows():
    query = flink(
        f"{T}SELECT *, x + 1 AS more FROM HOP(TABLE t, DESCRIPTOR(ts), {MINUTE}, INTERVAL '2' MINUTE) WHERE x < 6"
    )
    rows = [[str(value) for value in row[2:]] for row in shown(query, ROWS.advance_watermark_to(60))]
    assert [(row[0], row[3][:16], row[4][:16], row[6]) for row in rows] == [
        ("a", "1969-12-31 23:59", "1970-01-01 00:01", "4"),
        ("a", "1970-01-01 00:00", "1970-01-01 00:02", "4"),
        ("a", "1970-01-01 00:00", "1970-01-01 00:02", "5"),
        ("a", "1970-01-01 00:01", "1970-01-01 00:03", "5"),
    ]
    sessions = flink(
        f"{T}SELECT k, x, window_end FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' MINUTE)"
        " WHERE k = 'a' OR k IS NULL"
    )
    assert [str(row[3])[11:19] for row in shown(sessions, ROWS.advance_watermark_to(200))] == ["00:03:01"] * 2 + [
        "00:03:02"
    ]


def test_the_first_row_by_arrival_is_emitted_once():
    declared = "CREATE TABLE t (k STRING, x INT, p AS PROCTIME()) WITH (...);"
    query = flink(declared + NUMBERED.format("k, x, n", "k", "p ASC", "t", "n = 1"))
    once = bm.Pipeline().key_by("k").window(bm.GlobalWindow()).trigger(AfterCount(1), allow_data_loss=True).discarding()
    assert query.pipeline == once.accumulate(**{"first rows": TopRows(1, by="k", least=True)})
    rows = TestStream().add([{"k": "a", "x": 2}]).add([{"k": "b", "x": 5}, {"k": "a", "x": 1}, {"k": "b", "x": 4}])
    assert shown(query, rows) == [("PANE", "a", 2, 1), ("PANE", "b", 4, 1)]


def test_rows_by_number_in_each_window_are_final():
    source = f"TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE})"
    query = flink(T + NUMBERED.format("*", "window_start, k, window_end", "x DESC", source, "n <= 1"))
    assert query.pipeline == by_hand("k").window(bm.FixedWindows("1 minute")).accumulate(
        **{"first rows": TopRows(1, by="x")}
    )
    first = query.run(ROWS.advance_watermark_to(60))[0]
    assert list({**first.key, **first.values}) == [
        "k",
        "ts",
        "x",
        "y",
        "window_start",
        "window_end",
        "window_time",
        "n",
    ]
    assert (
        shown(
            flink(T + NUMBERED.format("window_end, x AS most", "window_start, window_end", "x DESC", source, "n = 1")),
            ROWS.advance_watermark_to(120),
        )[1][2]
        == 6
    )


GROUPED = "SELECT window_start, window_end AS e, k, SUM(x) AS s, COUNT(*) FROM {} GROUP BY window_start, window_end, k"


@pytest.mark.parametrize(
    ("items", "partition", "first"),
    [
        ("*", "window_start, e", ["window_start", "e", "k", "s", "EXPR$4", "n"]),
        ("n, s AS most", "e, window_start", ["n", "most"]),
        ("k, n", "window_start, k, e", ["k", "n"]),
    ],
)
def test_groups_are_numbered_in_each_window(items, partition, first):
    grouped = GROUPED.format(f"TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE})")
    query = flink(T + NUMBERED.format(items, partition, "s DESC", f"({grouped})", "n <= 1"))
    rows = TestStream().add([{"ts": ts, "k": k, "x": x} for ts, k, x in ((61, "a", 4), (62, "b", 6), (63, "a", 1))])
    panes = query.run(rows.advance_watermark_to(60).advance_watermark_to(120))
    values = [{**pane.key, **pane.values} for pane in panes]
    known = {"k": "b", "s": 6, "most": 6, "EXPR$4": 1, "n": 1}
    assert all(value == known[name] for name, value in values[-1].items() if name in known)
    assert sorted(values[-1]) == sorted(first)
    assert len(panes) == (2 if ", k" in partition else 1)


def test_the_groups_of_a_view_are_grouped_again():
    view = f"CREATE VIEW v AS {GROUPED.format(f'TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE})')}, window_time;".replace(
        "SUM(x)", "window_time AS r, SUM(x)"
    )
    query = flink(
        f"{T}{view} SELECT window_start, k, SUM(s) / COUNT(*), MAX(s) AS most "
        f"FROM TUMBLE(TABLE v, DESCRIPTOR(r), INTERVAL '2' MINUTE) GROUP BY window_start, window_end, k"
    )
    again = bm.Pipeline().key_by("k").window(bm.FixedWindows("2 minutes")).trigger(Never()).accumulating()
    first = by_hand("k").window(bm.FixedWindows("1 minute")).trigger(Never()).accumulating()
    first = first.accumulate(**{"SUM(x)": Sum("x"), "COUNT(*)": Count()})
    assert query.pipeline == first.then(
        again.accumulate(**{"SUM(s)": Sum("SUM(x)"), "COUNT(*)": Count(), "MAX(s)": Max("SUM(x)")})
    )
    rows = TestStream().add([{"ts": ts, "k": "a", "x": x} for ts, x in ((1, 4), (62, 6), (63, 1))])
    (pane,) = query.run(rows.advance_watermark_to(120))
    assert (pane.key["k"], pane.values["EXPR$2"], pane.values["most"]) == ("a", 5, 7)


def test_qualify_is_a_condition_on_numbers():
    inner = "SELECT k, x, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) AS n FROM t"
    assert flink(f"{inner} QUALIFY n <= 2").pipeline == flink(f"SELECT * FROM ({inner}) WHERE n <= 2").pipeline


@pytest.mark.parametrize("items", ["*", "k, x", "x, place AS p", "K"])
def test_first_rows_of_a_script_without_rows(items):
    numbered = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS place FROM t"
    query = flink(f"{T}SELECT {items} FROM ({numbered}) WHERE place <= 2")
    assert query.run(TestStream().advance_watermark_to(3)) == []
    given = TestStream().add([{"k": "a", "x": 1, "y": 0.5, "ts": 1}])
    assert query.scripted(TestStream()).keys == query.scripted(given).keys


def test_over_gives_final_rows_and_takes_named_windows():
    frame = "PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"
    made = by_hand("k").over(bm.Preceding("1 hour")).accumulate(**{"SUM(x)": Sum("x"), "COUNT(*)": Count()})
    for over, rest in ((f"({frame})", ""), ("w", f" WINDOW v AS (ORDER BY ts), w AS ({frame})")):
        query = flink(f"{T}SELECT k, SUM(x) OVER {over} AS s, COUNT(*) OVER {over} FROM t{rest}")
        assert query.pipeline == made
        assert query.refinement == "final"


PAIR = {"event_time": "ts", "watermark": FIVE}
BOTH = TestStream().add([{"ts": 1, "k": 1, "x": 3}, {"ts": 9, "k": 2, "x": 4}], input="a")
BOTH = BOTH.add([{"ts": 5, "k": 1, "z": 7}], input="b").advance_watermark_to_infinity()
SECONDS = "INTERVAL '{}' SECOND"


@pytest.mark.parametrize(
    "bounds",
    [
        "b.ts BETWEEN a.ts - INTERVAL '2' SECOND AND a.ts + INTERVAL '4' SECOND",
        "a.ts BETWEEN b.ts - INTERVAL '4' SECOND AND b.ts + INTERVAL '2' SECOND",
        "a.ts >= b.ts - INTERVAL '4' SECOND AND (a.ts <= b.ts + INTERVAL '2' SECOND)",
        "a.ts + INTERVAL '4' SECOND >= b.ts AND b.ts + INTERVAL '2' SECOND >= a.ts",
        "a.ts BETWEEN b.ts - INTERVAL '4' SECOND AND b.ts + INTERVAL '2' SECOND AND a.ts >= b.ts - INTERVAL '9' SECOND",
        "a.ts >= b.ts - INTERVAL '4' SECOND AND a.ts BETWEEN b.ts - INTERVAL '9' SECOND AND b.ts + INTERVAL '2' SECOND",
    ],
)
@pytest.mark.parametrize(
    ("how", "join"),
    [
        ("JOIN", InnerJoin),
        ("LEFT JOIN", LeftOuterJoin),
        ("RIGHT OUTER JOIN", RightOuterJoin),
        ("FULL JOIN", FullOuterJoin),
    ],
)
def test_an_interval_join_is_within_its_bounds(bounds, how, join):
    query = flink(f"SELECT a.k, b.z FROM a {how} b ON a.k = b.k AND {bounds}", **PAIR)
    options = query.pipeline.flow.stage.options
    within = bm.Within(4, of="a", after=2) if join is RightOuterJoin else bm.Within(2, of="b", after=4)
    assert options.window == within
    assert options.accumulations["pair"] == join("a", "b", once=join is InnerJoin)
    assert ("PANE", 1, 7) in shown(query, BOTH)


def test_a_join_may_stand_under_where():
    query = flink(
        "SELECT o.k, z FROM a o, b AS s WHERE o.k = s.k AND x > 2 AND x < z AND o.ts BETWEEN s.ts - INTERVAL '4' HOUR AND s.ts",
        **PAIR,
    )
    assert shown(query, BOTH) == [("PANE", 1, 7)]
    after = flink(
        "SELECT a.k FROM a, b WHERE a.k = b.k AND a.ts BETWEEN b.ts + INTERVAL '1' SECOND AND b.ts + INTERVAL '2' SECOND",
        **PAIR,
    )
    assert after.pipeline.flow.stage.options.window == bm.Within(2, of="b", after=-1)
    half_open = flink(
        "SELECT a.k FROM a, b WHERE a.k = b.k AND a.ts >= b.ts AND a.ts < b.ts + INTERVAL '1' SECOND", **PAIR
    )
    assert half_open.pipeline.flow.stage.options.window == bm.Within("999999 microseconds", of="b")


@pytest.mark.parametrize(("how", "join"), [("", InnerJoin), ("LEFT", LeftOuterJoin), ("FULL OUTER", FullOuterJoin)])
def test_a_join_of_windows_is_in_them(how, join):
    side = f"(SELECT * FROM TABLE(TUMBLE(TABLE {{}}, DESCRIPTOR(ts), {MINUTE})))"
    query = flink(
        f"SELECT a.k, z, a.window_start AS ws FROM {side.format('a')} a {how} JOIN {side.format('b')} AS b "
        "ON a.window_start = b.window_start AND a.k = b.k AND b.window_end = a.window_end",
        **PAIR,
    )
    options = query.pipeline.flow.stage.options
    assert options.window == bm.FixedWindows("1 minute")
    assert options.accumulations["pair"] == join("a", "b")
    assert [row[:3] for row in shown(query, BOTH)] == [("PANE", 1, 7)] + ([("PANE", 2, None)] if how else [])


RATES = """
    CREATE TABLE rates (
        currency STRING, rate DOUBLE, ut TIMESTAMP(3) METADATA FROM `value.ts` VIRTUAL, note ROW<a INT, b MAP<STRING, INT>>,
        WATERMARK FOR ut AS ut - INTERVAL '15' SECOND, CONSTRAINT pk PRIMARY KEY (currency) NOT ENFORCED
    ) WITH ('connector' = 'kafka', /* ... */);
"""
PRICED = "SELECT t.k, x * rate AS v FROM t LEFT JOIN rates FOR SYSTEM_TIME AS OF t.ts{} ON t.k = {}.currency"


@pytest.mark.parametrize("alias", ["rates", "r"])
def test_a_temporal_join_reads_a_declared_table(alias):
    query = flink(T + RATES + PRICED.format("" if alias == "rates" else f" AS {alias}", alias))
    rows = TestStream().add([{"ut": 0, "currency": "e", "rate": 2.0}], input="rates")
    rows = rows.add(
        [{"ts": 5, "k": "e", "x": 3}, {"ts": 6, "k": "f", "x": 3}], input="t"
    ).advance_watermark_to_infinity()
    assert shown(query, rows) == [("PANE", "e", 6.0), ("PANE", "f", None)]
    table = bm.Pipeline().event_time("ut", bm.BoundedOutOfOrderness(15)).key_by("currency").versions("1 day")
    given = flink(T + PRICED.format("", "rates"), tables={"rates": table})
    assert given.pipeline == flink(T + RATES + PRICED.format("", "rates")).pipeline


def test_the_target_of_a_query_is_its_name():
    text = "SELECT /*+ BROADCAST(t) */ k, COUNT(DISTINCT x) FROM t /*+ OPTIONS('a' = 'b') */ GROUP BY k"
    query = flink(
        f"CREATE TEMPORARY TABLE IF NOT EXISTS db.sink (k STRING, PRIMARY KEY (k) NOT ENFORCED) WITH (...);\nINSERT INTO db.sink (k, n) {text};;"
    )
    assert (query.name, query.kind) == ("sink", "persistent")
    assert query.pipeline.flow.stage.options.accumulations == {"COUNT(DISTINCT x)": CountDistinct("x")}
    assert flink(f"CREATE TABLE sink WITH ('format' = 'json') AS {text}").name == "sink"


def test_event_time_may_be_an_argument():
    text = f"SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE}) GROUP BY window_start, window_end"
    assert flink(text, watermark=FIVE).pipeline == flink(text, **PAIR).pipeline == flink(T + text).pipeline
    idle = T.replace("'a' = 'b'", "'scan.watermark.idle-timeout' = '1 min'")
    source = flink(idle + text).pipeline.flow.sources[0]
    assert source.watermark == bm.BoundedOutOfOrderness("5 seconds", idle_timeout="1 minute")


def test_explain_says_when_rows_are_emitted():
    windowed = flink(
        f"{T}SELECT * FROM {{}} WHERE n = 1".format(
            f"(SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY x) AS n FROM TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE}))"
        )
    )
    assert "one for each row, when the window expires" in windowed.explain()
    assert "window_start, window_end, window_time, ROW_NUMBER() as n" in " ".join(windowed.explain().split())
    late = flink(f"{T}SELECT COUNT(*) FROM t GROUP BY TUMBLE(ts, {MINUTE})").explain()
    assert "table.exec.emit.allow-lateness is not set" in late


def test_a_query_is_a_value():
    query = flink(f"{T}SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    assert pickle.loads(pickle.dumps(query)) == query
    assert eval(repr(query), {"sql": bm.sql}) == query


@pytest.mark.parametrize(
    ("said", "us"),
    [
        (("5", "MINUTES", None), 300_000_000),
        (("-1.5", "SECOND", None), -1_500_000),
        (("+1", "DAY", None), 86_400_000_000),
        (("1 12", "DAY", "HOUR"), 129_600_000_000),
        (("1:30", "HOUR", "MINUTE"), 5_400_000_000),
        (("0:0:0.000001", "HOUR", "SECOND"), 1),
        (("2", "WEEK", None), 1_209_600_000_000),
        (("1", "MONTH", None), None),
        (("1.5", "MINUTE", None), None),
        (("1", "HOUR", "MINUTE"), None),
        (("1:2", "YEAR", "MONTH"), None),
        (("x", "SECOND", None), None),
    ],
)
def test_intervals_have_a_fixed_length(said, us):
    assert interval_us(*said) == us
