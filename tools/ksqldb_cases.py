"""Count which statements of ksqlDB's own cases ``bm.sql`` takes as they are typed.

Run: python tools/ksqldb_cases.py CHECKOUT [--windowed] [--refused]

CHECKOUT is a clone of github.com/confluentinc/ksql, or a folder that holds its query-validation-tests. Counted are the statements with
GROUP BY (``--windowed``: only those with WINDOW as well) of cases that ksqlDB itself takes; ``--refused`` lists the others with the reason.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import beamish as bm


def statements(folder: Path, *, windowed: bool) -> Iterator[str]:
    """Each different statement that groups, of the cases that are not refused by ksqlDB."""
    words = r"\bSELECT\b.*\bWINDOW\b.*\bGROUP\s+BY\b" if windowed else r"\bSELECT\b.*\bGROUP\s+BY\b"
    seen: set[str] = set()
    for path in sorted(folder.rglob("query-validation-tests/*.json")):
        text = re.sub(r"(?m)^\s*//.*$", "", path.read_text("utf-8"))
        for case in json.loads(text)["tests"]:
            for statement in case.get("statements", ()):
                if (
                    "expectedException" in case
                    or statement in seen
                    or not re.search(words, statement, re.IGNORECASE | re.DOTALL)
                ):
                    continue
                seen.add(statement)
                yield statement


def refusal(statement: str) -> str | None:
    """Why ``bm.sql`` refuses a statement; None: it takes it."""
    try:
        bm.sql(statement, event_time="ROWTIME", watermark=bm.BoundedOutOfOrderness(0))
    except bm.SqlError as error:
        return str(error).partition("\n")[0].partition(": ")[2]
    return None


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--windowed", action="store_true")
    parser.add_argument("--refused", action="store_true")
    options = parser.parse_args()
    found = {statement: refusal(statement) for statement in statements(options.checkout, windowed=options.windowed)}
    taken = sum(why is None for why in found.values())
    print(f"{taken} of {len(found)} statements are taken")
    if options.refused:
        for why, count in Counter(why for why in found.values() if why is not None).most_common():
            print(f"{count:4}  {why[:150]}")
            print(*(f"          {one}" for one, other in found.items() if other == why), sep="\n")


if __name__ == "__main__":
    main()
