"""Count which statements of ksqlDB's own cases ``bm.sql`` takes as they are typed.

Run: python tools/ksqldb_cases.py CHECKOUT [--windowed | --joins | --functions | --tables] [--refused]

CHECKOUT is a clone of github.com/confluentinc/ksql, or a folder that holds its query-validation-tests. Counted are the statements with
GROUP BY (``--windowed``: only those with WINDOW as well; ``--joins``: instead those with JOIN, whose tables are declared with the primary
key of the case; the cases' own aggregates are declared too) of cases that ksqlDB itself takes; ``--refused`` lists the others with the reason.

``--tables`` runs the statements that group a table on the rows of their case, in a script, and compares the last row of each group with the
case's, but for groups without rows, of which ksqlDB keeps a row.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import beamish as bm
from beamish.accumulations import CountDistinct
from beamish.statement.grammar.names import KSQLDB
from beamish.testing import TestStream

WORDS = {
    "grouped": r"\bSELECT\b.*\bGROUP\s+BY\b",
    "windowed": r"\bSELECT\b.*\bWINDOW\b.*\bGROUP\s+BY\b",
    "joins": r"\bSELECT\b.*\bJOIN\b",
}
OWN = dict.fromkeys(
    ["TEST_UDAF", "VAR_ARG", "GENERIC_VAR_ARG", "MID_VAR_ARG", "MULTI_ARG", "FOUR_ARG", "FIVE_ARG", "OBJ_COL_ARG"],
    CountDistinct,
)
"""The cases' own aggregates, which their ksqlDB server has: any accumulation."""
WATERMARK = bm.BoundedOutOfOrderness(0)


def statements(folder: Path, kind: str = "grouped") -> Iterator[tuple[str, Mapping[str, bm.Pipeline]]]:
    """Each different statement of that kind, of the cases that ksqlDB takes, and the tables that it joins."""
    seen: set[str] = set()
    for path in sorted(folder.rglob("query-validation-tests/*.json")):
        text = re.sub(r"(?m)^\s*//.*$", "", path.read_text("utf-8"))
        for case in json.loads(text)["tests"]:
            said = case.get("statements", ())
            for statement in said:
                is_asked = re.search(WORDS[kind], statement, re.IGNORECASE | re.DOTALL)
                if "expectedException" in case or statement in seen or not is_asked:
                    continue
                seen.add(statement)
                yield statement, tables(said, statement)


def tables(declared: list[str], statement: str) -> dict[str, bm.Pipeline]:
    """The tables that a statement joins, by the name that it uses, as far as other statements declare a primary key."""
    keys = {}
    for one in declared:
        found = re.match(
            r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(\w+)\s*\(.*?(\w+)\s+[^,(]*?PRIMARY\s+KEY", one, re.IGNORECASE
        )
        if found:
            keys[found[1].upper()] = found[2]
    names = re.findall(r"\b(?:FROM|JOIN)\s+(\w+)", statement, re.IGNORECASE)
    rows = bm.Pipeline().event_time("ROWTIME", WATERMARK)
    return {name: rows.key_by(keys[name.upper()]).versions("1 day") for name in names if name.upper() in keys}


def refusal(statement: str, declared: Mapping[str, bm.Pipeline]) -> str | None:
    """Why ``bm.sql`` refuses a statement; None: it takes it."""
    try:
        bm.sql(
            statement,
            event_time="ROWTIME",
            watermark=WATERMARK,
            tables=declared,
            aggregates=OWN,
            offset="ROWOFFSET",
        )
    except bm.SqlError as error:
        return str(error).partition("\n")[0].partition(": ")[2]
    return None


def grouped_tables(folder: Path) -> Iterator[tuple[str, list[str] | None, list[str]]]:
    """The statements that group a table, with the values of our last rows and of ksqlDB's, as sorted texts; None: it is refused."""
    for path in sorted(folder.rglob("query-validation-tests/*.json")):
        text = re.sub(r"(?m)^\s*//.*$", "", path.read_text("utf-8"))
        for case in json.loads(text)["tests"]:
            declared = {one["name"]: one for one in map(declaration, case.get("statements", ())) if one}
            for statement in case.get("statements", ()):
                found = re.search(
                    r"TABLE\s+(\w+)\s.*\bSELECT\b.*?\bFROM\s+(\w+)(?!.*\bJOIN\b).*GROUP\s+BY", statement, FLAGS
                )
                source = declared.get(found[2].upper()) if found else None
                if found is None or source is None or "expectedException" in case:
                    continue
                last = {
                    json.dumps(one.get("key")): one["value"]
                    for one in case["outputs"]
                    if one["topic"].upper() == found[1].upper()
                }
                theirs = sorted(shown(value) for value in last.values() if value is not None)
                rows = [row_of(source, one) for one in case["inputs"] if one["topic"] == source["topic"]]
                yield statement, live_rows(statement, found[2], source, rows), theirs


FLAGS = re.IGNORECASE | re.DOTALL
LONG = "3650 days"


def declaration(statement: str) -> dict[str, Any] | None:
    """The table that a statement declares: its name, topic, keys, and types by column."""
    found = re.match(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?TABLE\s+(\w+)\s*\((.*)\)\s*WITH\s*\((.*)\)", statement, FLAGS)
    if found is None:
        return None
    columns = [one.strip().split(None, 1) for one in re.split(r",(?![^<(]*[>)])", found[2])]
    topic = re.search(r"kafka_topic\s*=\s*'([^']*)'", found[3], re.IGNORECASE)
    types = {name.upper(): type_.upper() for name, type_ in columns}
    keys = [name for name, type_ in types.items() if "PRIMARY KEY" in type_]
    return {"name": found[1].upper(), "topic": topic and topic[1], "keys": keys, "types": types}


def row_of(table: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of a topic as a change of the table."""
    others = [name for name in table["types"] if name not in table["keys"]]
    key, value = record.get("key"), record.get("value")
    named = {**_fields(table["keys"], key), **_fields(others, value)}
    row = {name: _typed(type_, named.get(name)) for name, type_ in table["types"].items()}
    return {**row, "ROWTIME": (record.get("timestamp") or 0) / 1000, "TOMBSTONE": value is None}


def _fields(names: list[str], value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {name.upper(): one for name, one in value.items()}
    parts = value.split(",") if isinstance(value, str) and len(names) > 1 else [value]
    return dict(zip(names, parts, strict=False))


def _typed(type_: str, value: Any) -> Any:
    if value in (None, ""):
        return None
    if re.match("INT|BIGINT", type_):
        return int(value)
    return float(value) if type_.startswith("DOUBLE") else value


def live_rows(statement: str, name: str, table: Mapping[str, Any], rows: list[dict[str, Any]]) -> list[str] | None:
    """The values of the live rows that a statement gives after a script with a bundle for each change; None: it is refused."""
    versions = bm.Pipeline().event_time("ROWTIME", bm.BoundedOutOfOrderness(LONG)).key_by(*table["keys"])
    declared = {name: versions.versions(LONG, deleted="TOMBSTONE")}
    script = TestStream()
    for row in rows:
        script = script.add([row])
    try:
        query = bm.sql(statement, event_time="ROWTIME", watermark=WATERMARK, tables=declared, aggregates=OWN)
        panes = bm.live(query.run(script))
    except bm.SqlError:
        return None
    return sorted(shown(pane.values) for pane in panes if None not in pane.key.values())


def shown(value: Any) -> str:
    """The values of a row of either, without names; a number that is whole has no fraction."""
    values = value.replace('"', "").split(",") if isinstance(value, str) else value
    values = list(values.values()) if isinstance(values, Mapping) else values
    return ",".join("" if one is None else f"{one:.12g}" if isinstance(one, float) else str(one) for one in values)


def agrees(ours: list[str] | None, theirs: list[str]) -> bool:
    """Whether the rows are equal but for groups without rows."""
    left = Counter(theirs)
    left.subtract(ours or ())
    return (
        ours is not None
        and min(left.values(), default=0) >= 0
        and all(re.search(r"(^|,)(0|0.0|\[\]|\{\}|)$", one) for one in +left)
    )


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--windowed", action="store_const", const="windowed", dest="kind", default="grouped")
    kind.add_argument("--joins", action="store_const", const="joins", dest="kind")
    kind.add_argument(
        "--functions", action="store_true", help="the functions of its pages that docs/sql.md does not list"
    )
    kind.add_argument("--tables", action="store_true", help="compare the rows that grouped tables give")
    parser.add_argument("--refused", action="store_true")
    options = parser.parse_args()
    if options.tables:
        compared = [*grouped_tables(options.checkout)]
        wrong = [(said, ours, theirs) for said, ours, theirs in compared if not agrees(ours, theirs)]
        print(f"{len(compared) - len(wrong)} of {len(compared)} statements over a table agree")
        for said, ours, theirs in wrong:
            print(f"    {said}\n        here {ours}\n        ksqlDB {theirs}")
        return
    if options.functions:
        pages = (path.read_text("utf-8") for path in options.checkout.rglob("ksqldb-reference/*-functions.md"))
        named = {name for page in pages for name in re.findall(r"(?m)^##+ \W*`([A-Z_0-9]+)`", page)}
        print(f"{len(named & {*KSQLDB})} of {len(named)} functions are listed;", *sorted(named - {*KSQLDB}))
        return
    found = {said: refusal(said, declared) for said, declared in statements(options.checkout, options.kind)}
    taken = sum(why is None for why in found.values())
    print(f"{taken} of {len(found)} statements are taken")
    if options.refused:
        for why, count in Counter(why for why in found.values() if why is not None).most_common():
            print(f"{count:4}  {why[:150]}")
            print(*(f"          {one}" for one, other in found.items() if other == why), sep="\n")


if __name__ == "__main__":
    main()
