"""Watermarks of Spark's batches. Imported without Spark."""

from __future__ import annotations

from peers.peer import Case

CLOCK = "clock"
"""The key of rows that only move the watermark."""
JOINS = ("join", "window_join")
"""Kinds of cases with two inputs."""


def sides_of(case: Case) -> list[str]:
    """The inputs of a case."""
    return ["left", "right"] if case["kind"] in JOINS else ["left"]


def watermarks(case: Case) -> list[int]:
    """The watermark of each batch, and after the last."""
    sides = sides_of(case)
    delay: int = case["delay"]
    latest = dict.fromkeys(sides, delay)
    found = [0]
    for event in case["script"]:
        for row in event["rows"]:
            latest[row["input"]] = max(latest[row["input"]], row["ts"])
        found.append(max(found[-1], min(latest.values()) - delay))
    return found
