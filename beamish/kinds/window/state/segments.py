"""Segments: the windows that end in one span of time, stored together.

A step reads and writes the segments it touches, and expiry drops whole segments. Windows without an end are partitioned by a hash
of their key instead (endless.py). The length of a span adapts to the number of windows (``SegmentPolicy``).

Count windows by key are partitioned by a hash of their key (row_windows.py: parts), since each key has its own numbers: those
of a part that are not full are one segment, and full ones, which are only stored, are segmented by their ends. So the cost of a step
depends on what it touches, not on what is stored.

columns of a stored segment (one entry per window):
    <name>          the window table's stored columns (window_table.py); objects of custom triggers as binary
    key.<name>      its key
    state.<name>    its accumulators
    live.<name>     the last emitted values, if stored
    ids.ids         the ids of its rows, a list, with deduplication per window
columns of the companion (``i<number>``; one entry per inherited pane):
    owner           the position of its window in the segment
    start_us, end_us, timing, index, on_time_index, is_first, pane_time_us    the merged window, and its last pane (step.py)
    live.<name>     its values
columns of the index (one entry per segment, all int64):
    segment             its number
    windows             number of windows in it
    start_us, end_us    the span from their least start to their greatest end, microseconds since the epoch
    due_us, wake_us     the least watermark (for count windows the least reach) and the least clock at which something in it is
    due; NEVER_US: none
    keeps_until_us      for a join with retention in count windows, the least watermark at which a row is dropped; otherwise NEVER_US
    inherited_panes     1 if its windows have inherited panes, else 0
metadata of the index (JSON, under ``beamish``; ``WindowNote``): the format, the stage's spec (spec.py), the clocks, the number of rows
dropped so far by reason, the length of a segment's span of ends, and how many rows were numbered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from beamish.contract.clocks import Clocks
from beamish.contract.stored import Layout
from beamish.kernels.identity import same_identity
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.plan.spec import same_state
from beamish.tables.notes import FORMAT, WITH_GENERATIONS
from beamish.tables.older import OLDER, upgraded
from beamish.tables.records import HASHED
from beamish.triggers.trigger import NEVER_US

LAYOUT = Layout(
    "",
    ("start_us", "end_us", "due_us", "wake_us", "keeps_until_us"),
    rows="windows",
    companion=("i", "inherited_panes"),
    later={"keeps_until_us": NEVER_US},
    has_metadata=True,
    in_row_order=True,
    read=upgraded,
)
"""Their entries in a store."""


def counted_segments(
    span: int, end: NDArray[np.int64], part: NDArray[np.int64], full: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The segments of count windows by key.

    Args:
        span: the span of ends in a segment of full windows.
        end: int64, one per window, row numbers.
        part: int64, one per window, the part of its key.
        full: bool, one per window: whether its end is reached.

    Returns:
        int64, one per window: even if it is not full.
    """
    return np.where(full, (end // span * HASHED + part) * 2 + 1, part * 2)


def part_of_counted(segment: NDArray[np.int64]) -> NDArray[np.int64]:
    """The part of keys of each segment of count windows by key."""
    return segment // 2 % HASHED


_LAYOUT_FACTS = ("by_key", "forget_after_us")


@attrs.define
class WindowNote:
    """Metadata of a shard.

    Attributes:
        clocks: the current clocks.
        dropped: number of rows dropped so far, by reason.
        span_us: the length of a segment's span of ends.
        older: the metadata as written by an earlier version, while unchanged (older.py); None: written by this one.
        held: for a suppressed stage the name of the suppress and its number of buffered updates; None: never suppressed.
        has_generations: whether windows are in generations (endless.py).
    """

    clocks: Clocks
    dropped: dict[str, int]
    span_us: int
    older: Mapping[str, Any] | None = None
    held: Mapping[str, Any] | None = None
    has_generations: bool = False

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> WindowNote:
        """Read metadata from JSON."""
        clocks = Clocks.of(about["clocks"])
        return cls(clocks, about["dropped"], about["span_us"], about.get(OLDER), about.get("held"))

    def about(self, plan: WindowPlan, parts: Iterable[WindowPart]) -> dict[str, Any]:
        """As JSON; ``parts``: those of the shard."""
        return {
            **(
                {"format": FORMAT + WITH_GENERATIONS * self.has_generations, "spec": plan.spec}
                if self.older is None
                else self.older
            ),
            "clocks": attrs.asdict(self.clocks),
            "dropped": self.dropped,
            "span_us": self.span_us,
            **({} if self.held is None else {"held": dict(self.held)}),
            **{name: value for part in parts for name, value in (*part.layout_facts.items(), *part.noted().items())},
        }


def layout_facts(plan: WindowPlan) -> dict[str, Any]:
    """The metadata by which windows are cut into segments, or are due, beside the lateness."""
    return {name: value for part in plan.parts for name, value in part.layout_facts.items()}


@attrs.frozen
class Changed:
    """How the pipeline differs from the one that wrote the state.

    Attributes:
        options: whether the trigger or the lateness changed.
        trigger: whether the trigger changed.
        takes: whether types got wider, an accumulation was added, or other panes are emitted; or nothing was stored.
        layout_facts: whether the segmentation of windows (by key or not) or their expiry changed.
    """

    options: bool = False
    trigger: bool = False
    takes: bool = False
    layout_facts: bool = False

    @classmethod
    def since(cls, about: Mapping[str, Any], plan: WindowPlan) -> Changed:
        """The difference from this metadata."""
        then, now = about["spec"]["changeable"], plan.spec["changeable"]
        return cls(
            not same_identity(then, now),
            not same_identity(then.get("trigger"), now.get("trigger")),
            not same_state(about["spec"], plan.spec),
            {name: about[name] for name in _LAYOUT_FACTS if about.get(name)} != layout_facts(plan),
        )
