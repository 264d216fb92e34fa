"""Accumulation modes, on-time and closing behaviors, timestamp combiners, buffer policies, and the watermark that a join waits for."""

from __future__ import annotations

import enum


class _Named(enum.Enum):
    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class AccumulationMode(_Named):
    """The content of a pane (Beam guide, "Window accumulation modes"; Dataflow paper, section 2.3)."""

    DISCARDING = "discarding"
    """Rows since the window's last pane."""
    ACCUMULATING = "accumulating"
    """All rows so far."""
    ACCUMULATING_AND_RETRACTING = "accumulating_and_retracting"
    """All rows so far, preceded by a RETRACTION that repeats the previous pane."""


class OnTimeBehavior(_Named):
    """Whether an ON_TIME firing emits a pane without new rows."""

    FIRE_ALWAYS = "fire_always"
    """It does."""
    FIRE_IF_NON_EMPTY = "fire_if_non_empty"
    """It does not."""


class ClosingBehavior(_Named):
    """Whether a window's last firing emits a pane without new rows."""

    FIRE_IF_NON_EMPTY = "fire_if_non_empty"
    """It does not."""
    FIRE_ALWAYS = "fire_always"
    """It does."""


class TimestampCombiner(_Named):
    """The timestamp of a pane."""

    END_OF_WINDOW = "end_of_window"
    """The window's last microsecond."""
    EARLIEST = "earliest"
    """The earliest event time of its new rows that were not late; without any, the window's last microsecond."""
    LATEST = "latest"
    """The latest event time of these rows; without any, the window's last microsecond."""


class RetractMerged(_Named):
    """When the panes of sessions that merged away are retracted."""

    AT_MERGE = "at_merge"
    """At once, in the bundle that merges them (Apex's rule)."""
    WITH_NEXT_PANE = "with_next_pane"
    """Together with the merged window's next pane (the Dataflow paper's rule)."""


class WhenFull(_Named):
    """The behavior of a suppress whose buffer is full (KIP-328)."""

    EMIT_EARLY = "emit_early"
    """Emit the updates due first early, until the rest fits."""
    SHUT_DOWN = "shut_down"
    """Stop the query with a ``BufferFullError``; it continues from the checkpoint with a larger buffer."""
    SPILL = "spill"
    """Emit nothing early; the limits bound the part in memory, all is in the state store."""


class WaitFor(_Named):
    """The inputs whose watermark a merge or an as-of join waits for."""

    BOTH_INPUTS = "both_inputs"
    """The least of all: in an as-of join the table is complete up to a row before the row is emitted."""
    LEFT_INPUT = "left_input"
    """In an as-of join the left input's only: an idle table holds nothing back."""
    FASTEST_INPUT = "fastest_input"
    """In a merge the greatest: a slow or idle input holds nothing back, and its rows may be late."""


AT_MERGE = RetractMerged.AT_MERGE
WITH_NEXT_PANE = RetractMerged.WITH_NEXT_PANE
EMIT_EARLY = WhenFull.EMIT_EARLY
SHUT_DOWN = WhenFull.SHUT_DOWN
SPILL = WhenFull.SPILL
BOTH_INPUTS = WaitFor.BOTH_INPUTS
LEFT_INPUT = WaitFor.LEFT_INPUT
FASTEST_INPUT = WaitFor.FASTEST_INPUT
