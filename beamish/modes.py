"""How one pane of a window relates to the next: accumulation modes, behaviours, combiners; full buffers; whom a join waits for."""

from __future__ import annotations

import enum


class _Named(enum.Enum):
    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class AccumulationMode(_Named):
    """What a pane holds (Beam guide, "Window accumulation modes"; Dataflow paper, section 2.3)."""

    DISCARDING = "discarding"
    """What came since the window's last pane."""
    ACCUMULATING = "accumulating"
    """All that came so far."""
    ACCUMULATING_AND_RETRACTING = "accumulating_and_retracting"
    """All so far, and before it a RETRACTION that repeats the pane it takes back."""


class OnTimeBehavior(_Named):
    """Whether a firing that is ON_TIME gives a pane when nothing is new in it."""

    FIRE_ALWAYS = "fire_always"
    """It does."""
    FIRE_IF_NON_EMPTY = "fire_if_non_empty"
    """It does not."""


class ClosingBehavior(_Named):
    """Whether a window's last firing gives a pane when nothing is new in it."""

    FIRE_IF_NON_EMPTY = "fire_if_non_empty"
    """It does not."""
    FIRE_ALWAYS = "fire_always"
    """It does."""


class TimestampCombiner(_Named):
    """What a pane's timestamp is."""

    END_OF_WINDOW = "end_of_window"
    """The window's last microsecond."""
    EARLIEST = "earliest"
    """The earliest event time of its new rows that came in time; if there is none, the window's last microsecond."""
    LATEST = "latest"
    """The latest event time of these rows; if there is none, the window's last microsecond."""


class RetractMerged(_Named):
    """When the panes of sessions that were merged away are retracted."""

    AT_MERGE = "at_merge"
    """At once, in the bundle that merged them (Apex's rule)."""
    WITH_NEXT_PANE = "with_next_pane"
    """Together with the merged window's next pane (the Dataflow paper's rule)."""


class WhenFull(_Named):
    """What a suppress does when its buffer is full (KIP-328)."""

    EMIT_EARLY = "emit_early"
    """What is due first comes out before its time, until the rest fits."""
    SHUT_DOWN = "shut_down"
    """The query stops with a ``BufferFullError``; it goes on from the checkpoint with a larger buffer."""
    SPILL = "spill"
    """Nothing comes out early; the limits bound how much of it is in memory at once, all is in the state store."""


class WaitFor(_Named):
    """Whose watermark the rows of an as-of join wait for."""

    BOTH_INPUTS = "both_inputs"
    """The least of both: the table is complete up to a row before it comes out."""
    LEFT_INPUT = "left_input"
    """The left input's alone: a table that is quiet holds nothing back."""


AT_MERGE = RetractMerged.AT_MERGE
WITH_NEXT_PANE = RetractMerged.WITH_NEXT_PANE
EMIT_EARLY = WhenFull.EMIT_EARLY
SHUT_DOWN = WhenFull.SHUT_DOWN
SPILL = WhenFull.SPILL
BOTH_INPUTS = WaitFor.BOTH_INPUTS
LEFT_INPUT = WaitFor.LEFT_INPUT
