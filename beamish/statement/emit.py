"""Which rows of a group are emitted, and when."""

from __future__ import annotations

from typing import Literal

import attrs

from beamish.durations import Duration

Kind = Literal["persistent", "push", "pull"]
Refinement = Literal["changes", "final"]


@attrs.frozen
class Emit:
    """Which rows of a group are emitted, and when.

    Attributes:
        kind: persistent with CREATE TABLE, push with EMIT alone, else pull.
        refinement: every change, or the final row; a pull query gives final rows.
        retracting: whether RETRACTING is set.
        every: at most how often; None: not set.
    """

    kind: Kind
    refinement: Refinement
    retracting: bool = False
    every: Duration | None = None
