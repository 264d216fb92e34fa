"""The visits of all clicks by a batch computation in plain Python, beside those in the table and in the topic of query.py."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import adbc_driver_postgresql.dbapi as postgresql

GAP, DELAY, LATENESS = timedelta(minutes=30), timedelta(minutes=10), timedelta(hours=1)


class Click(NamedTuple):
    """A record of the topic; ``ts`` is None if it is malformed."""

    partition: int
    offset: int
    user: str | None
    ts: datetime | None
    spent: int


class Visit(NamedTuple):
    """A session."""

    user: str | None
    start: datetime
    end: datetime
    clicks: int
    spent: int


def read_click(partition: int, offset: int, value: str) -> Click:
    """A click from its record."""
    try:
        click = json.loads(value)
    except json.JSONDecodeError:
        return Click(partition, offset, None, None, 0)
    return Click(partition, offset, click["user"], datetime.fromisoformat(click["ts"]), click["spent"])


def batch(clicks: Iterable[Click]) -> Counter[Visit]:
    """The sessions of clicks."""
    found: list[Visit] = []
    timed = [(str(click.user), click.ts, click) for click in clicks if click.ts]
    for _, ts, click in sorted(timed, key=lambda row: row[:2]):
        last = found[-1] if found else None
        if last and last.user == click.user and ts < last.end:
            found[-1] = last._replace(end=ts + GAP, clicks=last.clicks + 1, spent=last.spent + click.spent)
        else:
            found.append(Visit(click.user, ts, ts + GAP, 1, click.spent))
    return Counter(found)


def ask(database: str, statement: str) -> list[Any]:
    """The rows of a statement."""
    with postgresql.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def table(database: str) -> Counter[Visit]:
    """The visits in the table."""
    rows = ask(database, 'SELECT "user", window_start, window_end, clicks, spent FROM visits')
    return Counter(Visit(*row) for row in rows)


def folded(records: Iterable[tuple[str, str | None]]) -> Counter[Visit]:
    """The visits in the topic: per key the record with the greatest ``_sequence``; null deletes."""
    kept: dict[str, Mapping[str, Any]] = {}
    for key, text in records:
        value = json.loads(text) if text else None
        if value is None:
            kept.pop(key, None)
        elif key not in kept or value["_sequence"] > kept[key]["_sequence"]:
            kept[key] = value
    return Counter(map(_visit, kept.values()))


def _visit(value: Mapping[str, Any]) -> Visit:
    start, end = (datetime.fromisoformat(value[f"window_{side}"]) for side in ("start", "end"))
    return Visit(value.get("user"), start, end, value["clicks"], value["spent"])


def dropped(database: str) -> list[tuple[int, int, str]]:
    """Partition, offset and reason of each dropped click."""
    return ask(database, 'SELECT partition, "offset", reason FROM dropped_clicks')


def problems(
    clicks: Sequence[Click],
    dropped: Sequence[tuple[int, int, str]],
    in_table: Counter[Visit],
    in_topic: Counter[Visit],
) -> list[str]:
    """The differences between the batch computation and the query's output; each click is in a visit or among the dropped ones."""
    reasons = {(partition, offset): reason for partition, offset, reason in dropped}
    latest = max(click.ts for click in clicks if click.ts)
    expected = batch(click for click in clicks if click[:2] not in reasons)
    found: dict[str, Collection[object]] = {
        "clicks dropped twice": Counter(row[:2] for row in dropped) - Counter(reasons.keys()),
        "dropped clicks that are not in the topic": reasons.keys() - {click[:2] for click in clicks},
        "clicks wrongly dropped or kept": [one for one in clicks if not _is_right(one, reasons.get(one[:2]), latest)],
        "visits missing in the table": expected - in_table,
        "wrong visits in the table": in_table - expected,
        "visits missing in the topic": expected - in_topic,
        "wrong visits in the topic": in_topic - expected,
    }
    return [f"{len(wrong)} {name}, such as {[*wrong][:3]}" for name, wrong in found.items() if wrong]


def _is_right(click: Click, reason: str | None, latest: datetime) -> bool:
    if click.ts is None or reason is None:
        return (click.ts is None) == (reason == "null_event_time")
    return reason == "expired" and click.ts + GAP + LATENESS + DELAY <= latest
