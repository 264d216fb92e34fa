"""Records that producers of changelogs write by default, after their documentation, and the table that they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

Record = dict[str, Any]


def row(ts: int, team: str, score: int) -> Record:
    return {"ts": ts, "team": team, "score": score}


def debezium(op: str, before: Record | None, after: Record | None) -> Record:
    return {"op": op, "before": before, "after": after, "ts_ms": 1, "source": "orders", "transaction": None}


A, B, C = row(1, "red", 5), row(2, "red", 7), row(3, "blue", 2)
TOMBSTONE: Record = dict.fromkeys(debezium("d", None, None))
"""A null value: every column of it is null."""
TRUNCATE = debezium("t", None, None)
MESSAGE = debezium("m", None, None)
"""By ``pg_logical_emit_message``, with a column ``message`` beside."""


@attrs.frozen
class Produced:
    """Records of a producer.

    Attributes:
        format: that they are read by.
        records: in order.
        table: the rows that the table holds then.
    """

    format: str
    records: Sequence[Record]
    table: Sequence[Record]


def words(column: str, *changes: tuple[str, Record], **beside: Any) -> list[Record]:
    return [{**data, column: word, **beside} for word, data in changes]


PRODUCED = {
    "Debezium: initial snapshot": Produced("debezium", [debezium("r", None, A), debezium("r", None, C)], [A, C]),
    "Debezium: create, update": Produced("debezium", [debezium("c", None, A), debezium("u", A, B)], [B]),
    "Debezium: delete, with its tombstone": Produced(
        "debezium", [debezium("c", None, A), debezium("c", None, B), debezium("d", A, None), TOMBSTONE], [B]
    ),
    "Debezium: update of a primary key": Produced(
        "debezium", [debezium("c", None, A), debezium("d", A, None), TOMBSTONE, debezium("c", None, C)], [C]
    ),
    "Debezium: topics of heartbeats, schema changes and transactions beside": Produced(
        "debezium",
        [
            debezium("c", None, A),
            {**TOMBSTONE, "ts_ms": 5},
            {**TOMBSTONE, "ts_ms": 6, "source": "schema"},
            {**TOMBSTONE, "transaction": "END"},
        ],
        [A],
    ),
    "Flink's debezium-json: an update is d and c": Produced(
        "debezium", [debezium("c", None, A), debezium("d", A, None), debezium("c", None, B)], [B]
    ),
    "Flink's row kinds, short": Produced(
        "flink", words("op", ("+I", A), ("+I", C), ("-U", A), ("+U", B), ("-D", C)), [B]
    ),
    "Flink's row kinds, long": Produced(
        "flink",
        words("op", ("INSERT", A), ("INSERT", C), ("UPDATE_BEFORE", A), ("UPDATE_AFTER", B), ("DELETE", C)),
        [B],
    ),
    "Iceberg's changelog view, _change_type renamed": Produced(
        "flink",
        words("op", ("INSERT", A), ("UPDATE_BEFORE", A), ("UPDATE_AFTER", B), _change_ordinal=0, _commit_snapshot_id=7),
        [B],
    ),
    "Delta's change data feed": Produced(
        "delta-cdf",
        words(
            "_change_type",
            *(("insert", A), ("insert", C), ("update_preimage", A), ("update_postimage", B), ("delete", C)),
            _commit_version=1,
            _commit_timestamp=1,
        ),
        [B],
    ),
}


def totals(table: Sequence[Record]) -> dict[str, tuple[int, int]]:
    """Number and sum of the scores, by team."""
    scores: dict[str, list[int]] = {}
    for one in table:
        scores.setdefault(one["team"], []).append(one["score"])
    return {team: (len(of_team), sum(of_team)) for team, of_team in scores.items()}
