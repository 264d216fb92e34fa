"""Count which statements of ksqlDB's own cases ``bm.sql`` takes as they are typed.

Run: python tools/ksqldb_cases.py CHECKOUT [--windowed | --joins | --functions] [--refused]

CHECKOUT is a clone of github.com/confluentinc/ksql, or a folder that holds its query-validation-tests. Counted are the statements with
GROUP BY (``--windowed``: only those with WINDOW as well; ``--joins``: instead those with JOIN, whose tables are declared with the primary
key of the case; the cases' own aggregates are declared too) of cases that ksqlDB itself takes; ``--refused`` lists the others with the reason.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import beamish as bm
from beamish.accumulations import CountDistinct
from beamish.statement.names import KSQLDB

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
    parser.add_argument("--refused", action="store_true")
    options = parser.parse_args()
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
