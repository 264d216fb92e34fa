"""Compare the output of a killed query with that of an uninterrupted one."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tools.drill.cuts import cuts, moving
from tools.drill.pipelines import DRILLED, lasting
from tools.drill.promised import promised
from tools.drill.query import Query
from tools.drill.report import Report


def compare(alone: Query, killed: Query, report: Report, *, in_order: bool) -> None:
    """Compare row by row, and report what differs.

    Where the batches of the one that was killed were cut in another way, all of its rows are compared with what the engine gives in
    process for these.

    Args:
        alone: the one that was left alone.
        killed: the other.
        report: what is counted.
        in_order: whether keys of a shard have a fixed order; not with several executors.
    """
    rows, of_alone = _came(killed), _came(alone)
    report.compared[killed.title] += 1
    report.rows[killed.title] += len(rows)
    whole, came = (_lasting(killed.name, of_one, in_order=in_order) for of_one in (of_alone, rows))
    wrong = _differences("left alone", whole, came)
    if wrong and (noted := moving(cuts(killed))) != (noted_alone := moving(cuts(alone))):
        report.cut[killed.title] += 1
        one, other = next(pair for pair in zip_longest(noted_alone, noted) if pair[0] != pair[1])
        print(f"{killed.title}: cut in another way: {other}, left alone {one}", flush=True)
        wrong = _differences("in process", _bare(promised(killed)), _bare(rows))
    if wrong:
        batches = [f"{query.folder.name}: {batch}" for query in (alone, killed) for batch in cuts(query)]
        report.say_wrong(killed.title, "\n".join([*wrong, *batches]))


def _lasting(name: str, rows: list[dict[str, Any]], *, in_order: bool) -> list[dict[str, Any]]:
    """The part of the output that is the same in every run with the same batches."""
    if DRILLED[name].by_clock:
        return lasting(rows)
    return rows if in_order else _ranked(rows)


def _differences(what: str, whole: Sequence[Any], came: Sequence[Any]) -> list[str]:
    """Lines about missing and unexpected rows."""
    missing, more = (Counter(map(repr, rows)) for rows in (whole, came))
    both = missing & more
    missing, more = missing - both, more - both
    if not (missing or more):
        return []
    return [
        f"of {len(whole)} rows ({what}) {missing.total()} are missing, {more.total()} came that are others",
        *(f"- {row}" for row in sorted(missing)[:6]),
        *(f"+ {row}" for row in sorted(more)[:6]),
    ]


def _came(query: Query) -> list[dict[str, Any]]:
    """The output rows of a query."""
    return [_plain(row) for row in ds.dataset(_files(query), format="parquet").to_table().to_pylist()]


def _plain(value: Any) -> Any:
    """A value with its times as text in one format."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).astimezone(dt.UTC).isoformat()
    return value


def _ranked(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows numbered within their key, since which key's come first is up to the order in which executors give what they read."""
    numbered, count = [], Counter[str]()
    for row in sorted(rows, key=lambda row: int(row["pane"]["sequence"]) if row.get("pane") else 0):
        number = count[key := repr(row.get("k"))]
        count[key] += 1
        numbered.append({**row, "pane": {**row["pane"], "sequence": number}} if row.get("pane") else row)
    return numbered


def _bare(rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Rows without numbers that depend on the order within a shard."""
    return [_plain({**row, "pane": {**row["pane"], "sequence": None}} if row.get("pane") else row) for row in rows]


def _files(query: Query) -> list[str]:
    """The output files, as recorded by the sink."""
    if query.sink == "batches":
        return [str(path) for path in sorted(query.out.glob("[0-9]*")) if pq.read_metadata(path).num_rows]
    logs = (query.out / "_spark_metadata").glob("[0-9]*")
    noted = {json.loads(line)["path"] for log in logs for line in log.read_text().splitlines()[1:]}
    return sorted(path.removeprefix("file://") for path in noted)
