"""The rows as the table of docs/upgrading.md: ``python -m tests.upgrades.table`` prints it."""

from __future__ import annotations

from itertools import groupby

from tests.upgrades.rows import ROWS, Row

_HEAD = "| what changes between two runs | |\n|---|---|"
_ALSO = {
    "the query": (
        "| `spark.sql.shuffle.partitions`, with `shards=` said | goes on; Spark keeps the number of the first run |",
        "| trigger and sink of the query (`writeStream`) | goes on |",
    ),
    "a stage of windows": (
        "| a wider type of a key, or of what an accumulation reads: `int` to `bigint`, `decimal(10,2)` to `decimal(20,2)` | goes on |",
        "| a wider type of these under a suppress, `retain` or `deduplicate`, or in windows of rows | refused |",
        "| any other type of these | refused |",
    ),
    "a chain": ("| a stage of another kind in the place of one | refused |",),
}
"""What other tests show: test_widened_types.py, spark/test_upgrades.py; and rows that are one line."""


def table() -> str:
    """All rows, part by part."""
    lines = [_HEAD]
    for part, rows in groupby(ROWS, key=lambda row: row.part):
        lines += [
            f"| **{part}** | |",
            *(_line(row) for row in rows if "in the place of" not in row.change or row.migrates),
        ]
        lines += _ALSO.get(part, ())
    return "\n".join(lines)


def _line(row: Row) -> str:
    change, _, becomes = row.change.partition(": ")
    if row.goes_on:
        return f"| {change} | goes on{f': {becomes}' if becomes else ''} |"
    return f"| {change} | refused{'; `bm.migrate` carries it over' if row.migrates else ''} |"


if __name__ == "__main__":
    print(table())
