"""The rows as the table of docs/upgrading.md: ``python -m tests.upgrades.table`` prints it."""

from __future__ import annotations

from itertools import groupby

from tests.upgrades.rows import ROWS, Row

_HEAD = "| what changes between two runs | |\n|---|---|"
_ON_SPARK = (
    "| `spark.sql.shuffle.partitions`, with `shards=` set | continues; Spark keeps the number of the first run |",
    "| trigger and sink of the query (`writeStream`) | continues; Spark cannot read the folder of a file sink added later, other readers can |",
)
OF_SPARK = "test_spark_keeps_its_partitions_and_trigger_and_sink_may_be_others"
"""The test of these lines, in tests/spark/test_upgrades.py."""


def table() -> str:
    """All rows, part by part."""
    lines = [_HEAD]
    for part, rows in groupby(ROWS, key=lambda row: row.part):
        lines += [f"| **{part}** | |", *dict.fromkeys(map(_line, rows))]
        lines += _ON_SPARK if part == "the query" else ()
    return "\n".join(lines)


def _line(row: Row) -> str:
    change, _, becomes = (row.stands_for or row.change).partition(": ")
    if row.goes_on:
        return f"| {change} | continues{f': {becomes}' if becomes else ''} |"
    if row.migrated is None:
        return f"| {change} | refused{f': {becomes}' if becomes else ''} |"
    return f"| {change} | refused; `bm.migrate` {f'migrates the rest: {becomes}' if becomes else 'migrates it'} |"


if __name__ == "__main__":
    print(table())
