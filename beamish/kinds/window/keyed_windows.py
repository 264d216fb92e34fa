"""Windows of keys as columns, to be compared with each other on columns.

columns (one entry per window):
    key                 int64[n], code of its key; codes compare within one step's known windows and rows only
    start_us, end_us    int64[n], microseconds since the epoch
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from beamish.contract.keyed_windows import KeyedWindows
from beamish.kernels.codes import factorize_rows
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.entries import Entries
from beamish.kinds.window.step import Step
from beamish.triggers.trigger import WindowIndices


def known_and_own(step: Step, bundle: Bundle, entries: Entries) -> tuple[WindowIndices, KeyedWindows, KeyedWindows]:
    """The live windows of the table, and the entries' own, with a common coding of keys.

    Returns:
        known: intp[k], indices into the window table.
        known_windows: k windows.
        own: one window per entry.
    """
    table = step.table
    known = np.flatnonzero(~table["gone"])
    keys = table.keys.take(table["key_at"][known])
    both = [pa.chunked_array([*a.chunks, *b.chunks]) for a, b in zip(keys.columns, bundle.keys.columns, strict=True)]
    code = factorize_rows(both, len(known) + len(bundle.time_us)).of
    known_windows = KeyedWindows(code[: len(known)], table["start_us"][known], table["end_us"][known])
    return known, known_windows, KeyedWindows(code[len(known) :][entries.row], entries.start_us, entries.end_us)
