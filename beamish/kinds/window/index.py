"""The index of a shard's segments: what they hold and when something in them is due. It is the store's entry ``index``.

columns (one entry per segment, all int64):
    segment             its number
    windows             number of windows in it
    start_us, end_us    the span from their least start to their greatest end, microseconds since the epoch
    due_us, wake_us     the least watermark (of windows of rows the least reach) and the least clock at which something in it is due; NEVER_US: none
    keeps_until_us      of windows of rows, of which a join lets go as the watermark moves, the least at which one does; else NEVER_US
    inherited_panes     1 if its windows have inherited panes, else 0
metadata (JSON, under ``beamish``): the format, the stage's identity, what of it may change, the clocks, the number of rows
dropped so far by reason, how long a span of ends a segment holds, and how many rows were numbered.
"""

from __future__ import annotations

from typing import Any

from beamish.contract.kept import Layout
from beamish.contract.store import Store
from beamish.kernels.arrays import Ints
from beamish.tables.notes import check_format
from beamish.tables.segment_store import SegmentStore
from beamish.triggers.trigger import NEVER_US

LAYOUT = Layout(
    "",
    ("start_us", "end_us", "due_us", "wake_us", "keeps_until_us"),
    rows="windows",
    companion=("i", "inherited_panes"),
    later={"keeps_until_us": NEVER_US},
    has_metadata=True,
    in_row_order=True,
    check=lambda about: check_format(about["format"]),
)
"""How windows lie in a store."""


def read_index_entry(store: Store) -> tuple[dict[str, Ints], dict[str, Any]] | None:
    """The index's columns and metadata; None: nothing was stored yet.

    Raises:
        StateError: its bytes are not what was written, or of another format.
    """
    segments = SegmentStore(store, LAYOUT)
    return None if segments.is_new else (segments.index, segments.about)
