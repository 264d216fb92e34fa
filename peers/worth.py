"""Whether a case tests something: both sides emit rows, and it has late rows, merges or retractions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from peers.peer import Case, Peer, Row
from peers.twin import by_twin

ABOUT_THE_CASE = ("refused", "expired", "described", "failed", "full")
"""Streams that have no pane."""
SILENT, EASY = 0.15, 0.35
"""The most of the drawn cases that emit nothing, or have nothing hard: others are left out."""
HARD = ("late", "again", "merged", "retracted", "tied")


def tested(case: Case, here: Sequence[Row], there: Sequence[Row]) -> set[str]:
    """The parts of a case that test something.

    ``emits``: both sides emit. ``late``: a row comes behind the watermark, or behind an earlier row where rows move it. ``again``: a window
    or a key has several rows in the answer. ``merged``: a session has several rows. ``retracted``: a row is deleted, or replaced by
    another. ``tied``: a key has rows of equal time. ``refused``: one side refuses the pipeline, or fails. ``hard``: any of these but
    ``emits`` and ``refused``.
    """
    ours, theirs = list(_panes(here)), list(_panes(there))
    answers = [*here, *there]
    found = {
        "emits": bool(ours) and bool(theirs),
        "late": _late(case),
        "again": max(Counter(json.dumps(row["stream"]) for row in ours).values(), default=0) > 1,
        "merged": '"session' in json.dumps(case).lower() and any(len(row.get("rows") or ()) > 1 for row in ours),
        "retracted": any(row.get("replaced") or ("rows" in row and row["rows"] is None) for row in ours)
        or any(row.get("gone") for row in _rows(case)),
        "tied": max(Counter((row["key"], row["ts"]) for row in _rows(case)).values(), default=0) > 1,
        "refused": any(row.get("refused") for row in answers) or any("failed" in row for row in answers),
    }
    return {name for name, holds in found.items() if holds} | ({"hard"} if any(found[name] for name in HARD) else set())


def _panes(rows: Sequence[Row]) -> Iterator[Row]:
    return (row for row in rows if row["stream"][:1] not in [[name] for name in ABOUT_THE_CASE])


def _rows(case: Case) -> Iterator[Mapping[str, Any]]:
    for event in case["script"]:
        yield from event.get("rows", [])


def _late(case: Case) -> bool:
    """Without watermarks in the script, rows move it."""
    moves = not any("watermark" in event for event in case["script"])
    watermark = float("-inf")
    for event in case["script"]:
        if "watermark" in event:
            watermark = float("inf") if event["watermark"] == "infinity" else event["watermark"]
        for row in event.get("rows", []):
            if row["ts"] < watermark:
                return True
            watermark = max(watermark, row["ts"]) if moves else watermark
    return False


@attrs.define
class Quota:
    """Leaves out drawn cases that test little.

    Attributes:
        peer: the peer.
        kept, silent, easy: how many cases it has kept, and of these how many emit nothing, and have nothing hard.
    """

    peer: Peer
    kept: int = 0
    silent: int = 0
    easy: int = 0

    def __call__(self, case: Case) -> bool:
        """Whether to keep a case."""
        here = by_twin(self.peer, case)
        found = tested(case, here, here)
        if self.peer.predicted is not None and "emits" in found:
            found = tested(case, here, self.peer.predicted(case))
        silent, easy = "emits" not in found, "hard" not in found
        if (silent and self.silent > SILENT * self.kept) or (easy and self.easy > EASY * self.kept):
            return False
        self.kept, self.silent, self.easy = self.kept + 1, self.silent + silent, self.easy + easy
        return True
