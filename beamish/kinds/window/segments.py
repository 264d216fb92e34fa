"""Segments: the windows that end in one span of time, stored together.

A step reads and writes the segments it touches, and expiry drops whole segments. Windows without an end are partitioned by a hash
of their key instead. The length of a span adapts to the number of windows (``SegmentPolicy``).

Windows that are counted by key are cut by a hash of their key (row_windows.py: parts), since each key has come to a number of its own: those
of a part that are not full are one segment, and full ones, which are only kept, lie by spans of ends beside it. So a step costs what it
touches, whatever is kept.

columns of a stored segment (one entry per window):
    <name>          the window table's stored columns (window_table.py); objects of custom triggers as binary
    key.<name>      its key
    state.<name>    its accumulators
    live.<name>     the last emitted values, if stored
    ids.ids         the ids of its rows, a list, with deduplication per window
columns of the companion (``i<number>``; one entry per inherited pane):
    owner           the position of its window in the segment
    start_us, end_us, timing, index, on_time_index, is_first, pane_time_us    the merged window, and its last pane (output.py)
    live.<name>     its values
columns of the index (one entry per segment, all int64):
    segment             its number
    windows             number of windows in it
    start_us, end_us    the span from their least start to their greatest end, microseconds since the epoch
    due_us, wake_us     the least watermark (for count windows the least reach) and the least clock at which something in it is
    due; NEVER_US: none
    keeps_until_us      for a join with retention in count windows, the least watermark at which a row is dropped; otherwise NEVER_US
    inherited_panes     1 if its windows have inherited panes, else 0
metadata of the index (JSON, under ``beamish``; note.py): the format, the stage's spec (spec.py), the clocks, the number of rows
dropped so far by reason, how long a span of ends a segment holds, and how many rows were numbered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beamish.contract.kept import INDEX, Layout
from beamish.tables.keyed_records import HASHED
from beamish.tables.notes import kind_entry
from beamish.tables.older import upgraded
from beamish.tables.stored_tables import WINDOWINGS
from beamish.triggers.trigger import NEVER_US

kind_entry(INDEX, "a stage with windows", beside=[WINDOWINGS])
kind_entry(WINDOWINGS, "a stage with several windowings", beside=[INDEX])

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
