"""How much of its past a key keeps (docs/rules/windows.md#retention).

After a bundle each key that got a row keeps its latest windows within a budget; the others *fall out*: they give their last pane, and
go. Of each key the latest window that fell out is noted (fallen.py), since rows for it and for those before it are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from beamish.contract.drops import OUT_OF_RETENTION
from beamish.kernels.arrays import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kernels.order import run_starts
from beamish.kernels.sizes import bytes_of_rows
from beamish.kinds.window.bundle import Bundle
from beamish.kinds.window.drops import drop_from_windows
from beamish.kinds.window.entries import Entries
from beamish.kinds.window.fallen import FallenWindows
from beamish.kinds.window.firing import fire
from beamish.kinds.window.retention_option import Retention
from beamish.kinds.window.step import Step
from beamish.tables.keyed_records import parts_of_keys
from beamish.triggers.trigger import WindowIndices


def drop_fallen(step: Step, bundle: Bundle, entries: Entries) -> Entries:
    """Drop the entries whose windows, or windows after them, fell out; gives the rest."""
    fallen = step.state.fallen
    if fallen is None or not len(entries.row):
        return entries
    keys = step.table.keys.take(entries.key_at)
    gone = fallen.are_gone(keys, entries.start_us, entries.end_us)
    drop_from_windows(step, bundle, entries.only(gone), OUT_OF_RETENTION)
    return entries.only(~gone)


def let_fall(step: Step, came: WindowIndices) -> None:
    """Let the windows fall out that are beyond the budget of their key, of the keys whose windows ``came``, which got a row."""
    fallen, retention = step.state.fallen, step.plan.options.retention
    if fallen is None or retention is None or not len(came):
        return
    at, groups = _latest_first(step, came)
    place = groups.positions()
    over = np.zeros(len(at), dtype=bool)
    for budget, sizes in _sizes(step, retention, at):
        # Sums do not fall, so all windows before the first that is over are over too.
        total = np.cumsum(sizes)
        over |= total - (total - sizes)[place == 0][groups.of] > budget
    falls = np.flatnonzero(over & (place > 0))
    if len(falls):
        latest = run_starts([groups.of[falls]])
        _fall(step, fallen, at[falls], at[falls[latest]])


def _latest_first(step: Step, came: WindowIndices) -> tuple[WindowIndices, Groups]:
    """The windows of the keys of some, the latest of each first, and which are of one key."""
    table = step.table
    keys = table.keys.take(table["key_at"][came])
    step.load(np.isin(step.state.part_of_segments, np.unique(parts_of_keys(keys))))
    at = np.flatnonzero(~table["gone"])
    own = table.keys.take(table["key_at"][at])
    both = [pa.chunked_array([*a.chunks, *b.chunks], a.type) for a, b in zip(own.columns, keys.columns, strict=True)]
    code = factorize_rows(both, len(at) + len(came)).of
    wanted = np.isin(code[: len(at)], code[len(at) :])
    at, key = at[wanted], code[: len(at)][wanted]
    order = np.lexsort((-table["start_us"][at], -table["end_us"][at], key))
    first = run_starts([key[order]])
    return at[order], Groups(np.cumsum(first) - 1, int(first.sum()))


def _sizes(step: Step, retention: Retention, at: WindowIndices) -> Iterator[tuple[int, Ints]]:
    """Each budget, and how much of it windows are."""
    table = step.table
    if retention.windows is not None:
        yield retention.windows, np.ones(len(at), dtype=np.int64)
    if retention.rows is not None:
        yield retention.rows, table["rows"][at]
    if retention.bytes is not None:
        yield retention.bytes, bytes_of_rows(table.state.take(table["state_at"][at]))


def _fall(step: Step, fallen: FallenWindows, at: WindowIndices, latest: WindowIndices) -> None:
    """Windows fall out; ``latest``: the latest of each key among them."""
    table = step.table
    fallen.note(table.keys.take(table["key_at"][latest]), table["start_us"][latest], table["end_us"][latest])
    open_ = at[~table["closed"][at]]
    fire(step, open_, np.ones(len(open_), dtype=bool))
    table["gone"][at] = True
    table["touched"][at] = True
