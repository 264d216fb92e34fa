"""The EMIT clause and CREATE TABLE: which rows of a group come out, and when."""

from __future__ import annotations

from typing import Literal

import attrs

from beamish.durations import Duration
from beamish.statement.clauses import Clauses
from beamish.statement.cursor import Cursor
from beamish.statement.text import Text

_RULE = "write EMIT FINAL, EMIT CHANGES, EMIT CHANGES RETRACTING or EMIT CHANGES EVERY 10 SECONDS"

Kind = Literal["persistent", "push", "pull"]
Refinement = Literal["changes", "final"]


@attrs.frozen
class Emit:
    """Which rows of a group come out, and when.

    Attributes:
        kind: persistent with CREATE TABLE, push with EMIT alone, else pull.
        refinement: every change, or the final row; a pull query gives final rows.
        retracting: whether RETRACTING is said.
        every: at most how often; None: not said.
    """

    kind: Kind
    refinement: Refinement
    retracting: bool = False
    every: Duration | None = None


def emit_of(text: Text, clauses: Clauses) -> Emit:
    """What the EMIT clause says, or what holds without one.

    Raises:
        SqlError: it is not written as one is, or FINAL is said without a window.
    """
    created = clauses.name is not None
    if "EMIT" not in clauses.begins:
        return Emit("persistent", "changes") if created else Emit("pull", "final")
    begins = clauses.begins["EMIT"]
    cursor = Cursor(text, begins, clauses.words["EMIT"], _RULE)
    kind: Kind = "persistent" if created else "push"
    if cursor.take("FINAL"):
        cursor.end()
        if "WINDOW" not in clauses.begins:
            raise text.error(
                clauses.words["EMIT"][0].start,
                "EMIT FINAL without WINDOW: no row is final, since more may always come; say WINDOW TUMBLING (SIZE 5 MINUTES) "
                "after FROM, or EMIT CHANGES",
            )
        return Emit(kind, "final")
    if not cursor.take("CHANGES"):
        raise cursor.error("expected CHANGES or FINAL")
    retracting = cursor.take("RETRACTING")
    every = cursor.duration("EVERY", least=1) if cursor.take("EVERY") else None
    cursor.end()
    return Emit(kind, "changes", retracting, every)
