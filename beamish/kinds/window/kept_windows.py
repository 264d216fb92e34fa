"""The windows that a shard keeps at rest, as rows to look at (docs/rules/running.md#kept-windows)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.contract.pane_columns import window_column
from beamish.contract.store import Store
from beamish.errors import OptionError
from beamish.kernels.buffers import plain
from beamish.kernels.order import sort_keys, sort_order
from beamish.kinds.window.firing import extract
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.state import State
from beamish.kinds.window.window_table import WindowTable
from beamish.tables.prefixed import StoreUnder
from beamish.windows.windowings import WINDOWING

NEW_ROWS, PANES, CLOSED = "new_rows", "panes", "closed"


def kept_schema(plan: WindowPlan) -> pa.Schema:
    """The columns of kept windows: keys, ``windowing``, ``window``, values, ``new_rows``, ``panes``, ``closed``."""
    of = next(iter(plan.windowings.values()), plan)
    name = [(WINDOWING, pa.string())] if plan.windowings else []
    own = [
        ("window", of.window_type),
        *of.value_schema,
        (NEW_ROWS, pa.int64()),
        (PANES, pa.int64()),
        (CLOSED, pa.bool_()),
    ]
    return pa.schema([*of.key_schema, *name, *own])


def key_names(names: Sequence[str]) -> list[str]:
    """Those of the columns that are the key."""
    return list(names[: list(names).index("window")])


def check_key(names: Sequence[str], key: Mapping[str, Any], call: str = "windows") -> None:
    """Check that the key columns have these names.

    Raises:
        OptionError: one has not.
    """
    for name in key:
        if name not in names:
            raise OptionError(f"{call}(key={dict(key)!r}): {name!r} is no key column; they are {list(names)}")


def kept_windows(plan: WindowPlan, store: Store, span_us: tuple[int, int]) -> pa.Table:
    """The windows of a shard that overlap a span of time, by key, end and start.

    Args:
        plan: the stage's plan.
        store: the shard's.
        span_us: the span, microseconds since the epoch.

    Returns:
        rows in ``kept_schema``; values are what a pane would hold now, null of a closed window.

    Raises:
        StateError: the state was written by another stage or format, or cannot be read.
    """
    return of_each_windowing(plan, store, lambda of, under: _kept(of, under, *span_us))


def of_each_windowing(plan: WindowPlan, store: Store, read: Callable[[WindowPlan, Store], pa.Table]) -> pa.Table:
    """What is read of a stage; of several windowings, what is read of each, which a column after the keys names."""
    if not plan.windowings:
        return read(plan, store)
    each = []
    for name, of in plan.windowings.items():
        rows = read(of, StoreUnder(name, store))
        names = pa.array([name] * rows.num_rows, pa.string())
        each.append(rows.add_column(len(of.key_schema), WINDOWING, names))
    return pa.concat_tables(each)


def open_windows(plan: WindowPlan, store: Store, span: tuple[int, int]) -> WindowTable:
    """The windows of the segments of a shard that overlap a span (microseconds, or numbers of rows), as a table of windows."""
    state = State.open(plan, store)
    windows, index = state.windows(), state.index
    windows.load_where((index["start_us"] < span[1]) & (index["end_us"] > span[0]))
    return windows.rows


def _kept(plan: WindowPlan, store: Store, since_us: int, until_us: int) -> pa.Table:
    table = open_windows(plan, store, (since_us, until_us))
    at = np.flatnonzero((table["start_us"] < until_us) & (table["end_us"] > since_us))
    keys = table.keys.take(table["key_at"][at])
    by_key = [key for name in keys.schema.names for key in sort_keys(plain(keys[name].combine_chunks()))]
    order = sort_order([*by_key, table["end_us"][at], table["start_us"][at]])
    at = at[order]
    keys = table.keys.take(table["key_at"][at])
    values = extract(plan, table.state.take(table["state_at"][at]))
    open_ = pa.array(np.where(table["closed"][at], -1, np.arange(len(at))), mask=table["closed"][at])
    bounds = {name: table[name][at] for name in ("start_us", "end_us")}
    window = window_column({**bounds, "windowless": np.zeros(len(at), dtype=bool)}, plan.window_type)
    about = [table["unemitted_rows"][at], table["panes"][at], table["closed"][at]]
    columns = [*keys.columns, window, *values.take(open_).columns, *map(pa.array, about)]
    return pa.table(columns, schema=kept_schema(plan))
