"""Write the table of ksqlDB's clauses and functions into docs/sql.md: what bm.sql supports, under which name, and why not.

Run: python tools/sql_table.py. Each clause is tried; functions are those of beamish/statement/grammar/names.py.
tests/statement/test_ksqldb.py compares the page with the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import beamish as bm
from beamish.statement.grammar.aggregates import NAMES
from beamish.statement.grammar.expressions import IN_PROCESS
from beamish.statement.grammar.names import KSQLDB, is_known
from beamish.testing import TestStream

PAGE = Path(__file__).parent.parent / "docs" / "sql.md"
TABLE = re.compile(r"(?<=<!-- tools/sql_table.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
WATERMARK = bm.BoundedOutOfOrderness(0)
TABLES = {name: bm.Pipeline().event_time("ts", WATERMARK).key_by("k").versions("1 day") for name in ("tab", "tab2")}
SCRIPT = TestStream().add([{"ts": 1, "k": "a", "v": "b"}])
GROUPED = "SELECT k, COUNT(*) FROM s {} GROUP BY k"
JOINED = "SELECT s.k {} EMIT CHANGES"
CLAUSES = {
    "CREATE TABLE AS": "CREATE TABLE c AS " + GROUPED,
    "WITH (VALUE_FORMAT)": "CREATE TABLE c WITH (VALUE_FORMAT = 'JSON') AS " + GROUPED,
    "WITH (PARTITIONS)": "CREATE TABLE c WITH (PARTITIONS = 1) AS " + GROUPED,
    "WITH (TIMESTAMP)": "CREATE TABLE c WITH (TIMESTAMP = 'ts') AS " + GROUPED,
    "CREATE STREAM AS ... JOIN": "CREATE STREAM c AS " + JOINED.format("FROM s JOIN tab ON s.k = tab.k"),
    "CREATE STREAM AS, without JOIN": "CREATE STREAM c AS SELECT k FROM s",
    "CREATE OR REPLACE": "CREATE OR REPLACE TABLE c AS " + GROUPED,
    "IF NOT EXISTS": "CREATE TABLE IF NOT EXISTS c AS " + GROUPED,
    "CREATE SOURCE": "CREATE SOURCE TABLE c (k INT)",
    "CREATE TABLE (columns)": "CREATE TABLE c (k INT)",
    "CREATE TYPE": "CREATE TYPE c AS INT",
    "CREATE SINK CONNECTOR": "CREATE SINK CONNECTOR c",
    "INSERT INTO": "INSERT INTO c " + GROUPED,
    **{word: f"{word} x" for word in ["ALTER", "ASSERT", "DEFINE", "DESCRIBE", "DROP", "EXPLAIN", "LIST", "PAUSE", "PRINT", "RESUME", "RUN", "SET", "SHOW", "TERMINATE", "UNDEFINE", "UNSET"]},
    "SELECT *": "SELECT *, COUNT(*) FROM s GROUP BY k",
    "SELECT * of a join": "SELECT * FROM s JOIN tab ON s.k = tab.k EMIT CHANGES",
    "AS": "SELECT k AS key, COUNT(*) AS n FROM s GROUP BY k",
    "FROM s AS t": "SELECT t.k, COUNT(*) FROM s AS t GROUP BY t.k",
    "WINDOW TUMBLING": GROUPED.format("WINDOW TUMBLING (SIZE 1 HOUR)"),
    "WINDOW HOPPING": GROUPED.format("WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 1 MINUTE)"),
    "WINDOW SESSION": GROUPED.format("WINDOW SESSION (1 HOUR)"),
    "RETENTION": GROUPED.format("WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 1 DAY)"),
    "GRACE PERIOD": GROUPED.format("WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 1 DAY)"),
    "WHERE": GROUPED.format("WHERE v > 1"),
    "GROUP BY": GROUPED,
    "SELECT without GROUP BY": "SELECT k FROM s EMIT CHANGES",
    "PARTITION BY": "SELECT k FROM s PARTITION BY k EMIT CHANGES",
    "HAVING": GROUPED + " HAVING COUNT(*) > 1",
    "EMIT CHANGES": GROUPED + " EMIT CHANGES",
    "EMIT FINAL": GROUPED.format("WINDOW TUMBLING (SIZE 1 HOUR)") + " EMIT FINAL",
    "LIMIT": GROUPED + " EMIT CHANGES LIMIT 3",
    **{f"{how} JOIN ... WITHIN": JOINED.format(f"FROM s {how} JOIN r WITHIN 1 HOUR ON s.k = r.k")
       for how in ("INNER", "LEFT", "RIGHT", "FULL")},
    "WITHIN (before, after) GRACE PERIOD": JOINED.format("FROM s JOIN r WITHIN (0 SECONDS, 1 HOUR) GRACE PERIOD 1 DAY ON s.k = r.k"),
    **{f"stream {how} JOIN table": JOINED.format(f"FROM s {how} JOIN tab ON s.k = tab.k") for how in ("INNER", "LEFT")},
    "stream JOIN table JOIN table": JOINED.format("FROM s JOIN tab ON s.k = tab.k JOIN tab2 ON s.j = tab2.k"),
    "stream JOIN stream JOIN stream": JOINED.format("FROM s JOIN r WITHIN 1 HOUR ON s.k = r.k JOIN q WITHIN 1 HOUR ON s.k = q.k"),
    "table JOIN table": "SELECT tab.k FROM tab JOIN tab2 ON tab.k = tab2.k EMIT CHANGES",
    "GROUP BY of a join": "SELECT s.k, COUNT(*) FROM s JOIN tab ON s.k = tab.k GROUP BY s.k EMIT CHANGES",
    "ON with another condition": JOINED.format("FROM s JOIN r WITHIN 1 HOUR ON s.k > r.k"),
}  # fmt: skip
"""A statement for each clause of ksqlDB's grammar (SqlBase.g4)."""
EXPRESSIONS = {
    "a->b": "a->b", "x[i]": "x[1]", "ARRAY[x]": "ARRAY[v]", "MAP(k := x)": "MAP('a' := v)", "STRUCT(a := x)": "STRUCT(a := v)",
    "CASE": "CASE WHEN v > 1 THEN 2 END", "CAST": "CAST(v AS BIGINT)", "BETWEEN": "v BETWEEN 1 AND 2", "IN": "v IN (1, 2)",
    "LIKE": "v LIKE 'a%'", "LIKE ESCAPE": "v LIKE 'a!%' ESCAPE '!'", "IS DISTINCT FROM": "v IS DISTINCT FROM 2",
    "x -> y": "TRANSFORM(v, x -> x + 1)", "x => y": "TRANSFORM(v, x => x + 1)", "AT TIME ZONE": "v AT TIME ZONE 'UTC'",
    "${variable}": "${v}",
}  # fmt: skip
"""Its expressions."""


def outcome(statement: str) -> str:
    """Whether a statement is supported, and where; or why not, without the fix that only fits this text."""
    try:
        query = bm.sql(
            statement.format("") if "{}" in statement else statement,
            event_time="ts",
            watermark=WATERMARK,
            tables=TABLES,
        )
    except bm.SqlError as error:
        said = str(error).partition("\n")[0].partition(": ")[2].partition("; the clauses are")[0]
        said = re.sub(r"^([A-Z.*=> ]+|\$.*?|there is no GROUP BY|\w+ is a table): | \(docs/[^)]*\)", "", said)
        return "refused: " + said.partition("; write ")[0]
    try:
        query.run(SCRIPT)
    except bm.BeamishError as error:  # of the one row, mostly
        return "supported, on Spark only" if "only Spark computes this" in str(error) else "supported"
    return "supported"


def clauses() -> Iterator[tuple[str, str]]:
    """The rows of clauses: the clauses, and what becomes of them."""
    found: dict[tuple[bool, str], list[str]] = {}
    for clauses_, are_statements in ((CLAUSES, True), (EXPRESSIONS, False)):
        for name, one in clauses_.items():
            statement = one if are_statements else "SELECT k, MAX({}) FROM s GROUP BY k".replace("{}", one)
            found.setdefault((are_statements, outcome(statement)), []).append(f"`{name}`")
    for (_, said), names in found.items():
        yield ", ".join(names), said


def functions() -> Iterator[tuple[str, str]]:
    """The rows of functions."""
    same = [name for name, spark in KSQLDB.items() if not spark]
    yield listed(name for name in same if name in NAMES), "[aggregates](#aggregates), supported"
    yield listed(name for name in same if name in IN_PROCESS), "supported, in [scripts](#in-process) too"
    yield listed(name for name in same if name not in NAMES and name not in IN_PROCESS), "supported, on Spark only"
    others: dict[tuple[bool, str], list[str]] = {}
    for name, spark in KSQLDB.items():
        if spark:
            others.setdefault((is_known(name), spark), []).append(name)
    for (differs, spark), names in sorted(others.items(), key=lambda one: (one[0][0], one[1])):
        said = "refused: neither Spark nor bm.sql has it" if spark == "-" else _code(spark)
        yield listed(names), said + (": Spark's differs" if differs else "")


def listed(names: Iterable[str]) -> str:
    """Names in one code span."""
    return f"`{' '.join(sorted(names))}`"


def _code(spark: str) -> str:
    """Spark's words, of which only the expressions are code."""
    return re.sub(r"[A-Za-z_]+\(.*\)|^\w [-+] INTERVAL.*", lambda found: f"`{found[0]}`", spark)


def table() -> str:
    """The table as it stands in the page."""
    rows = ["| ksqlDB | here |", "|---|---|", *(f"| {name} | {said} |" for name, said in (*clauses(), *functions()))]
    return "\n".join(["", *rows, "", ""])


def main() -> None:
    """Write it."""
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
