"""Changes of a table as rows of a changelog's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Data = Mapping[str, Any]


def as_rows(format_: str, before: Data | None, after: Data | None) -> list[dict[str, Any]]:
    """A change as rows of a format.

    Args:
        format_: a format of ``from_changelog``.
        before: the row before; None: an insert.
        after: the row after; None: a delete.
    """
    if format_ == "debezium":
        op = "u" if before and after else "d" if before else "c"
        tombstone: dict[str, Any] = {"op": None, "before": None, "after": None}
        return [{"op": op, "before": before, "after": after}, *([tombstone] if op == "d" else [])]
    if format_ == "diff":
        return [{**row, "_diff": by} for row, by in ((before, -1), (after, 1)) if row]
    name, both, alone = {
        "spark": ("_change_type", ("update_preimage", "update_postimage"), ("delete", "insert")),
        "delta-cdf": ("_change_type", ("update_preimage", "update_postimage"), ("delete", "insert")),
        "flink": ("op", ("-U", "UPDATE_AFTER"), ("DELETE", "+I")),
    }[format_]
    words = both if before and after else alone
    return [{**row, name: word} for row, word in zip((before, after), words, strict=True) if row]
