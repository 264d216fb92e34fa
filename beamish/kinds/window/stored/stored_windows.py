"""Stored windows: the metadata of shards, and the windows in segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import of_key
from beamish.contract.stored import TAKES, Store, widest
from beamish.kernels.buffers import plain
from beamish.kernels.order import sort_keys, sort_order
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.segments import LAYOUT, Changed
from beamish.kinds.window.stored.read_plan import ReadPlan, read_plan
from beamish.tables.entries import naming_entry, segment_name
from beamish.tables.segments import SegmentStore
from beamish.tables.working_table import columns_under

NUMBERS = {
    "start_us": pa.int64(),
    "end_us": pa.int64(),
    "closed": pa.bool_(),
    "unemitted_rows": pa.int64(),
    "panes": pa.int64(),
    "has_pane": pa.bool_(),
    "timing": pa.int8(),
}
"""The columns of the window table (window_table.py) that describe a window and its panes."""


def read_windows(
    plan: WindowPlan,
    segments: SegmentStore,
    numbers: Iterable[int],
    *,
    span: tuple[int, int],
    key: Mapping[str, Any],
    triggers: Iterable[str] = (),
    in_order: bool = True,
) -> pa.Table:
    """The windows of segments that overlap a span.

    Args:
        plan: the stage's plan.
        segments: the segments of a shard.
        numbers: the numbers of the segments to read.
        span: microseconds since the epoch, or numbers of rows.
        key: only those of keys with these values.
        triggers: columns of the trigger's state to include.
        in_order: whether by key, end and start.

    Returns:
        the columns ``NUMBERS``, ``key.<name>``, ``state.<name>``, ``live.<name>`` if last values are stored, and ``triggers``; their
        types are those of the plan, which may be wider than the stored ones.

    Raises:
        StateError: a segment is not there, or cannot be read.
    """
    stored = [(number, segments.read(number)) for number in numbers]
    tables = [_windows_of_plan(plan, pa.table({name: pa.array([], type_) for name, type_ in NUMBERS.items()}), ())]
    for _, group in groupby(stored, key=lambda one: one[1].schema):  # an older one may lack columns
        alike = list(group)
        with naming_entry(segment_name(alike[0][0])):
            tables.append(_windows_of_plan(plan, pa.concat_tables([segment for _, segment in alike]), triggers))
    windows = _selected(plan, pa.concat_tables(tables[1:] or tables), span, key)
    return _in_order(plan, windows) if in_order else windows


def _windows_of_plan(plan: WindowPlan, stored: pa.Table, triggers: Iterable[str]) -> pa.Table:
    live = plan.value_schema if plan.options.keeps_values else pa.schema([])
    parts = {
        "key.": columns_under(stored, "key.", plan.key_schema),
        "state.": columns_under(stored, "state.", plan.state_schema, plan.new_state),
        "live.": columns_under(stored, "live.", live),
    }
    columns = {name: stored[name].cast(type_) for name, type_ in NUMBERS.items()}
    columns |= {prefix + name: part[name] for prefix, part in parts.items() for name in part.schema.names}
    return pa.table(columns | {name: stored[name] for name in triggers})


def _selected(plan: WindowPlan, windows: pa.Table, span: tuple[int, int], key: Mapping[str, Any]) -> pa.Table:
    start, end = (windows[name].to_numpy() for name in ("start_us", "end_us"))
    meant = (start < span[1]) & (end > span[0])
    if key:
        meant &= of_key(columns_under(windows, "key.", plan.key_schema), key)
    return windows if meant.all() else windows.filter(pa.array(meant))


def _in_order(plan: WindowPlan, windows: pa.Table) -> pa.Table:
    keys = columns_under(windows, "key.", plan.key_schema)
    by_key = [of for column in keys.columns for of in sort_keys(plain(column.combine_chunks()))]
    return windows.take(sort_order([*by_key, windows["end_us"].to_numpy(), windows["start_us"].to_numpy()]))


@attrs.frozen(eq=False)
class SegmentFacts:
    """A segment of windows.

    Attributes:
        shard: the shard's id.
        entry: the name of its entry in the store.
        windows: the number of its windows.
        start_us, end_us: their span: microseconds, or row numbers.
        due_us: the least watermark at which something in it is due.
        clock_due_us: the least clock.
    """

    shard: int
    entry: str
    windows: int
    start_us: int
    end_us: int
    due_us: int
    clock_due_us: int


@attrs.frozen(eq=False)
class NotedWindows:
    """The windows of a stage, from the metadata of its shards.

    Attributes:
        plan: None: not a window stage.
        segments: of all shards.
        abouts: the metadata of each shard, by its id.
    """

    plan: ReadPlan | None
    segments: list[SegmentFacts]
    abouts: Mapping[int, Mapping[str, Any]]


def noted_windows(
    notes: Mapping[int, Store], known: ReadPlan | None, *, prefix: str = "", **described: Any
) -> NotedWindows:
    """Read the metadata of a stage's shards.

    Args:
        notes: per shard its metadata entries; the stage is read from the first.
        known: the pipeline's plan, used if it equals the stored one.
        prefix: the prefix of the entries' names.
        described: arguments for ``read_plan`` from its description.

    Raises:
        StateError: they cannot be read.
    """
    there = {shard: own for shard, store in notes.items() if (own := SegmentStore(store, LAYOUT)).about}
    segments = [one for shard, own in there.items() for one in _segments(shard, own, prefix)]
    abouts = {shard: own.about for shard, own in there.items()}
    plan = _plan([notes[shard] for shard in there], next(iter(abouts.values())), known, **described) if there else None
    return NotedWindows(plan, segments, abouts)


def _plan(stores: Sequence[Store], first: Mapping[str, Any], known: ReadPlan | None, **described: Any) -> ReadPlan:
    """The plan, from the metadata of shards; ``first``: that of the first one."""
    schemas = widest(stored for store in stores if (stored := store.get(TAKES)) is not None)
    if known is not None and not Changed.since(first, known.plan).options:
        return known
    return read_plan(first["spec"], schemas, **described)


def _segments(shard: int, segments: SegmentStore, prefix: str) -> Iterator[SegmentFacts]:
    for row in pa.table(segments.index).to_pylist():
        bounds = [row[column] for column in ("windows", "start_us", "end_us", "due_us", "wake_us")]
        yield SegmentFacts(shard, prefix + segment_name(row["segment"]), *bounds)
