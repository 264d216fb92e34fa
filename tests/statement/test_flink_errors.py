"""Refused statements of Flink's: the line, a mark under the position, the rule and the fix (docs/flink-sql.md#refused)."""

import re
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import beamish as bm

MINUTE = "INTERVAL '1' MINUTE"
T = "CREATE TABLE t (k STRING, x INT, y DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND); "
TUMBLE = f"TUMBLE(TABLE t, DESCRIPTOR(ts), {MINUTE})"
BOUNDS = "GROUP BY window_start, window_end"
JOINED = "SELECT a.k, b.y FROM a JOIN b"
WINDOWED = f"SELECT a.k FROM (SELECT * FROM {TUMBLE.replace('TABLE t', 'TABLE a')}) a"
VIEW = f"CREATE VIEW v AS SELECT k, window_time AS r, SUM(x) AS s FROM {TUMBLE} GROUP BY window_start, window_end, window_time, k;"
P = "CREATE TABLE t (k STRING, p AS PROCTIME()); "
NUMBERED = "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS n FROM t) "


def flink(text, **options):
    return bm.sql(text, dialect="flink", **options)


REFUSED = {
    # literals
    'SELECT k, COUNT(*) FROM t WHERE k = ^"x" GROUP BY k': "Flink quotes texts as 'x' and names as `x`",
    "SELECT k, COUNT(*) FROM t WHERE k = 'a^\\n' GROUP BY k": "a backslash is itself in Flink",
    # declarations
    f"{T}CREATE TABLE ^t (k STRING); SELECT COUNT(*) FROM t": "declared twice",
    "CREATE ^VIEW v AS SELECT k FROM t; SELECT COUNT(*) FROM v": "a view is a query with GROUP BY.*first.then",
    f"{T}CREATE VIEW v AS ^SELECT k, COUNT(*) AS n FROM t GROUP BY k; SELECT SUM(n) FROM v": "numbered in windows alone",
    f"{T}{VIEW} SELECT SUM(s) FROM TUMBLE(TABLE v, DESCRIPTOR(^k), {MINUTE}) {BOUNDS}": "of its window_time",
    f"{T}{VIEW} SELECT SUM(^s + 1) FROM TUMBLE(TABLE v, DESCRIPTOR(r), {MINUTE}) {BOUNDS}": "not in the inner SELECT list",
    f"{T}{VIEW} ^SELECT SUM(s) FROM v": "grouped again in windows",
    "CREATE TABLE t (^ts AS TO_TIMESTAMP(x)); SELECT COUNT(*) FROM t": r"ts is computed.*df.withColumn\('ts'",
    "CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ^SOURCE_WATERMARK()); SELECT COUNT(*) FROM t": "ts minus an interval",
    "CREATE TABLE t (WATERMARK FOR ts AS ^ts + INTERVAL '1' SECOND); SELECT COUNT(*) FROM t": "another policy is an argument",
    "CREATE TABLE t (WATERMARK FOR ts AS ts, WATERMARK FOR ^u AS u); SELECT COUNT(*) FROM t": "there twice",
    "CREATE TABLE t (WATERMARK FOR ts AS ts - INTERVAL ^'1' MONTH); SELECT COUNT(*) FROM t": "not of a fixed length",
    "CREATE TABLE ^t (WATERMARK FOR ts AS ts) WITH ('scan.watermark.idle-timeout' = 'soon'); SELECT COUNT(*) FROM t": "'soon': must be a duration",
    f"{T};^;": "a query is missing after",
    f"{T}SELECT COUNT(*) FROM t; ^SELECT COUNT(*) FROM t": "a second query",
    "CREATE TABLE t ^LIKE u; SELECT COUNT(*) FROM t": "expected the end of the declaration",
    "^DROP TABLE t; SELECT COUNT(*) FROM t": "begins with|a command to a server",
    "SET ^'parallelism.default' = '4'; SELECT COUNT(*) FROM t": "has no effect here; leave it out.*allow-lateness",
    # settings
    f"SET ^'table.exec.emit.early-fire.enabled' = 'true'; {T}SELECT COUNT(*) FROM {TUMBLE} {BOUNDS}": "windows under GROUP BY alone",
    f"SET ^'table.exec.emit.allow-lateness' = '1 h'; {T}SELECT COUNT(*) FROM t": "windows under GROUP BY alone",
    f"SET ^'table.exec.emit.early-fire.enabled' = 'true'; {T}SELECT COUNT(*) FROM t GROUP BY TUMBLE(ts, {MINUTE})": "needs table.exec.emit.early-fire.delay",
    f"SET ^'table.exec.emit.early-fire.enabled' = 'yes'; {T}SELECT COUNT(*) FROM t GROUP BY TUMBLE(ts, {MINUTE})": "must be 'true' or 'false'",
    f"SET ^'table.exec.emit.allow-lateness' = 'long'; {T}SELECT COUNT(*) FROM t GROUP BY TUMBLE(ts, {MINUTE})": "'long': must be a duration",
    "SET 'table.exec.emit.late-fire.delay' = '1 s'; SET ^'table.exec.emit.late-fire.enabled' = 'true'; "
    f"{T}SELECT COUNT(*) FROM t GROUP BY TUMBLE(ts, {MINUTE})": "needs table.exec.emit.allow-lateness",
    f"SET ^'table.exec.emit.early-fire.delay' = '1 s'; {T}SELECT COUNT(*) FROM t GROUP BY SESSION(ts, {MINUTE})": "sessions do not fire early",
    # event time
    f"SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(^ts), {MINUTE}) {BOUNDS}": "no event time with a watermark.*WATERMARK FOR",
    f"{T}SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(^x), {MINUTE}) {BOUNDS}": "the event time of t is ts",
    f"{T}SELECT COUNT(*) FROM t GROUP BY TUMBLE(^x, {MINUTE})": "the event time of t is ts",
    f"{T}SELECT SUM(x) OVER (ORDER BY ^x) FROM t": "in the order of their event time",
    # window functions
    f"{T}SELECT COUNT(*) FROM ^TUMBLE(TABLE t, DESCRIPTOR(ts)) {BOUNDS}": r"TUMBLE: SIZE is missing; write TUMBLE\(TABLE t",
    f"{T}SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), ^SLIDE => {MINUTE}) {BOUNDS}": "SLIDE is not an argument of it",
    f"{T}SELECT COUNT(*) FROM TUMBLE(^t, DESCRIPTOR(ts), {MINUTE}) {BOUNDS}": "expected TABLE and the name",
    f"{T}SELECT COUNT(*) FROM TUMBLE(TABLE t, ^ts, {MINUTE}) {BOUNDS}": "expected DESCRIPTOR",
    f"{T}SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), ^60) {BOUNDS}": "expected INTERVAL",
    f"{T}SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL ^'1' YEAR) {BOUNDS}": "not of a fixed length",
    f"{T}SELECT COUNT(*) FROM ^TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0' SECOND) {BOUNDS}": "must be above 0",
    f"{T}SELECT COUNT(*) FROM ^CUMULATE(TABLE t, DESCRIPTOR(ts), {MINUTE}, INTERVAL '90' SECOND) {BOUNDS}": "a multiple of the step",
    f"{T}^SELECT * FROM CUMULATE(TABLE t, DESCRIPTOR(ts), {MINUTE}, {MINUTE}, {MINUTE}, TRUE)": "EMITONLYONUPDATE is of a query with GROUP BY",
    f"{T}SELECT COUNT(*) FROM ^TUMBLE(TABLE t PARTITION BY k, DESCRIPTOR(ts), {MINUTE}) {BOUNDS}": "only SESSION has it",
    f"{T}SELECT ^COUNT(*) FROM {TUMBLE}": "GROUP BY window_start, window_end is missing",
    f"{T}SELECT COUNT(*) FROM {TUMBLE} ^GROUP BY window_start": "GROUP BY window_start, window_end",
    f"{T}SELECT k FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), {MINUTE}) ^WHERE x > 1": "WHERE over SESSION",
    f"{T}SELECT COUNT(*) FROM SESSION(TABLE t, DESCRIPTOR(ts), {MINUTE}) ^{BOUNDS}, k": r"groups of \['k'\] in sessions of \[\]",
    f"{T}SELECT window_start, COUNT(*) FROM {TUMBLE} {BOUNDS} HAVING ^window_start IS NULL": "in the SELECT list only",
    # windows under GROUP BY
    f"{T}SELECT COUNT(*) FROM t GROUP BY ^HOP(ts, {MINUTE})": "HOP takes a time and slide and size",
    f"{T}SELECT ^TUMBLE_START(ts, INTERVAL '2' MINUTE), COUNT(*) FROM t GROUP BY TUMBLE(ts, {MINUTE})": "its arguments are those of the window",
    f"{T}SELECT ^TUMBLE_START(ts, {MINUTE}), COUNT(*) FROM t GROUP BY k": "missing",
    f"{T}SELECT COUNT(*) FROM t ^GROUP BY TUMBLE(ts, {MINUTE}), HOP(ts, {MINUTE}, {MINUTE})": "GROUP BY has one window",
    f"{T}SELECT COUNT(*) FROM {TUMBLE} GROUP BY ^TUMBLE(ts, {MINUTE})": "over windows",
    f"{T}SELECT COUNT(*) FROM {TUMBLE} GROUP BY ^ROLLUP (window_start, window_end, k)": "in some of its sets.*window_end, ROLLUP",
    f"{T}SELECT COUNT(*) FROM {TUMBLE} ^GROUP BY ROLLUP (k)": "names its windows",
    f"{T}SELECT COUNT(*) FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), {MINUTE}) {BOUNDS}, ^ROLLUP (k)": "ROLLUP over SESSION",
    f"{T}{VIEW} SELECT k, SUM(s) FROM TUMBLE(TABLE v, DESCRIPTOR(r), {MINUTE}) {BOUNDS}, ^CUBE (k)": "CUBE over the groups of v",
    f"{T}SELECT ^GROUPING(k), COUNT(*) FROM t GROUP BY k": "it tells totals from other groups",
    f"{T}SELECT k, SUM(x) OVER (PARTITION BY ^GROUPING(k) ORDER BY ts) FROM t": "it tells totals from other groups",
    # whole numbers
    "SELECT SUM(^x / 2) FROM t": "declare the columns in CREATE TABLE, CAST one to DOUBLE",
    "SELECT ^AVG(x) FROM t": r"write AVG\(CAST\(x AS DOUBLE\)\)",
    f"{T}SELECT ^STDDEV_POP(x) FROM t": r"write STDDEV_POP\(CAST\(x AS DOUBLE\)\)",
    # expressions
    "SELECT MAX(^a[1]) FROM t": r"ELEMENT_AT\(a, 1\)",
    "SELECT MAX(^SPLIT(k, ',')) FROM t": "Flink splits at a text",
    "SELECT MAX(^REGEXP_EXTRACT(k, 'a')) FROM t": "write the group",
    "SELECT ^DISTINCT k FROM t": "name the columns in GROUP BY",
    # queries
    "^SELECT k, x FROM t WHERE x > 1": "neither GROUP BY, an aggregate, OVER nor a join",
    "SELECT k, COUNT(*)^": "FROM is missing",
    "SELECT k, COUNT(*) FROM t GROUP BY k ^LIMIT 3": "TOPK",
    "SELECT k, COUNT(*) FROM t GROUP BY k ^UNION ALL SELECT 1": "UNION",
    "SELECT ^/*+ STATE_TTL('t' = '1d') */ COUNT(*) FROM t": "the hint STATE_TTL: no such hint here",
    "SELECT COUNT(*) FROM (^SELECT k FROM t)": "no subqueries",
    f"{T}SELECT k, SUM(x) OVER ^w FROM t": "no such window is defined",
    f"{T}^SELECT SUM(x) OVER (PARTITION BY window_start, window_end ORDER BY ts) FROM {TUMBLE}": "rows are numbered by ROW_NUMBER",
    f"{NUMBERED}^QUALIFY n <= 3": "write WHERE",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k ^QUALIFY n > 5": "QUALIFY without OVER.*HAVING",
    f"{JOINED} ON a.k = b.k AND a.ts BETWEEN b.ts - {MINUTE} AND b.ts ^QUALIFY a.x > 5": "QUALIFY without OVER.*WHERE",
    f"{NUMBERED}WHERE ^x > 3": "needs a bound",
    f"{T}SELECT * FROM (SELECT *, ROW_NUMBER() ^OVER (PARTITION BY k ORDER BY x) AS n FROM {TUMBLE}) WHERE n = 1": "PARTITION BY window_start, window_end",
    "SELECT * FROM t ^MATCH_RECOGNIZE (PARTITION BY k)": "not matched against patterns",
    "SELECT a FROM t, ^LATERAL f(x)": "LATERAL: a statement has one source",
    f"{P}SELECT ^p, COUNT(*) FROM t GROUP BY p": "p is processing time",
    f"{P}{NUMBERED.replace('ORDER BY x', 'ORDER BY ^p DESC')}WHERE n = 1": "only the first row of each key",
    f"{P}{NUMBERED.replace('ORDER BY x', 'ORDER BY ^p')}WHERE n = 2": "only the first row of each key",
    # joins
    f"{JOINED.replace('JOIN', '^JOIN')} ON a.k = b.k": "without bounds in time on both sides.*BETWEEN",
    f"{JOINED.replace('JOIN', '^JOIN')} ON a.k = b.k AND a.ts > b.ts - {MINUTE}": "without bounds in time on both sides",
    f"{JOINED.replace('JOIN', '^JOIN')} ON a.ts BETWEEN b.ts - {MINUTE} AND b.ts": "needs an equality of both sides",
    f"{JOINED.replace('JOIN', 'LEFT JOIN')} ON a.k = b.k AND ^a.x > 1 AND a.ts BETWEEN b.ts - {MINUTE} AND b.ts": "filter the rows of one side",
    f"{JOINED.replace('JOIN', '^JOIN')} ON a.k = b.k AND a.ts BETWEEN b.ts + INTERVAL '2' MINUTE AND b.ts + {MINUTE}": "Within",
    f"{JOINED} ON a.k = b.k AND a.ts >= b.ts - {MINUTE} AND ^a.x <= b.ts + {MINUTE}": "bounds of x and ts beside those of ts and ts",
    "SELECT a.k FROM a^, b": "needs an equality",
    f"{JOINED.replace('JOIN', '^JOIN')} FOR SYSTEM_TIME AS OF a.ts ON a.k = b.k": "not a versioned table.*PRIMARY KEY",
    f"{JOINED.replace('JOIN', '^JOIN')} FOR SYSTEM_TIME AS OF a.ts ON a.k = b.k AND a.ts > b.ts - {MINUTE}": "takes equalities alone",
    f"{WINDOWED} ^JOIN (SELECT * FROM {TUMBLE}) b ON a.k = b.k AND a.window_start = b.window_start": "a.window_end = b.window_end",
    f"{WINDOWED} ^JOIN b ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end": "both sides have the same windows|ON their bounds",
}


@pytest.mark.parametrize("text", REFUSED)
def test_errors_mark_the_position_and_name_the_fix(text):
    at, said = text.index("^"), text.replace("^", "", 1)
    options = (
        {}
        if T in text or P in text or "DESCRIPTOR(^ts)" in text
        else {"event_time": "ts", "watermark": bm.BoundedOutOfOrderness(0)}
    )
    with pytest.raises(bm.SqlError, match=f"(?s){REFUSED[text]}") as raised:
        flink(said, **options)
    assert (raised.value.line, raised.value.column) in {(1, at + 1), (1, max(1, at))}, str(raised.value)


def test_a_source_is_declared_once():
    text = f"{T}SELECT COUNT(*) FROM {TUMBLE} {BOUNDS}"
    with pytest.raises(bm.SqlError, match="t declares a WATERMARK"):
        flink(text, event_time="ts", watermark=bm.BoundedOutOfOrderness(0))
    table = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("k").versions("1 day")
    with pytest.raises(bm.SqlError, match="t is also in"):
        flink(text, tables={"T": table})


def test_the_dialect_and_what_it_needs_are_checked():
    with pytest.raises(bm.OptionError, match=r"dialect='mysql'.*'ksqldb' or 'flink'"):
        bm.sql("SELECT COUNT(*) FROM t", dialect="mysql")
    with pytest.raises(bm.OptionError, match="event_time=None"):
        bm.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k EMIT CHANGES")


WHOLE = (
    T + "SET 'table.exec.emit.early-fire.enabled' = 'false';\nINSERT INTO s SELECT a.k, b.`y`, AVG(x) / 2 AS z\nFROM "
    f"TABLE(HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SLIDE => {MINUTE}, SIZE => {MINUTE})) AS a -- one\n"
    "WHERE x <> 1 AND k IN ('a', 'it''s') GROUP BY window_start, window_end, k HAVING COUNT(*) > 1 "
    "WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) QUALIFY n = 1;"
)
WORDS = sorted(
    {
        *re.findall(r"\w+|[^\w\s]", WHOLE),
        "JOIN",
        "FOR SYSTEM_TIME AS OF",
        "ROW_NUMBER() OVER (",
        "/*+",
        "*/",
        "\n",
        "é",
        "(SELECT",
    }
)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 12), st.sampled_from(WORDS)), max_size=4))
@example([(0, 400, "")])
def test_a_text_that_is_garbled_raises_errors_of_its_own(changes):
    text = WHOLE
    for at, length, word in changes:
        text = text[:at] + word + text[at + length :]
    is_a_statement_or_sql_error(text)


@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_words_thrown_together_raise_errors_of_their_own(text):
    is_a_statement_or_sql_error(text)
    is_a_statement_or_sql_error(f"{T}SELECT k, COUNT(*) AS n, {text} FROM t GROUP BY k")


def is_a_statement_or_sql_error(text):
    with suppress(bm.SqlError):
        flink(text)
