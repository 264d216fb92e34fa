"""Stored windows as rows, for ``state()`` and ``inspect`` (docs/rules/running.md#kept-windows, #inspect).

columns of windows:
    key             struct of the key columns; missing without keys
    window          its bounds
    values          struct: the values of a pane now; null if closed
    new_rows        bigint: rows that are in no pane yet
    panes           bigint: number of panes emitted
    closed          boolean: its trigger has finished
and, if clocks are given:
    last_timing     of the last pane: EARLY, ON_TIME or LATE; null: no pane yet
    last_values     struct: its values, if stored; else null
    due             timestamp: the clock at which its trigger is evaluated; null: none
    expires         timestamp: the watermark at which it expires; null: the end of time, or a count window
    waits_for       text, to follow "it waits for"; null if closed, or if the trigger is unknown
    waits           a value of ``Waits``, only with ``first``
    watermark       timestamp: that of its key, with a watermark per key; null: none yet, or the end of time

columns of rows: the keys, ``time`` or for count windows ``number``, ``row``: the stored columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.at_rest import EVER, Answer, Asked, First, Keeps, Order, Waits, read_key
from beamish.contract.keys import shard_of
from beamish.contract.stored import Store
from beamish.contract.updates import TIMESTAMP, TIMINGS, window_column
from beamish.durations import span_in_words
from beamish.errors import PipelineError
from beamish.instants import END_OF_TIME_US, LATEST_US, instant_in_words
from beamish.kernels.buffers import Ints, cast, pick, plain
from beamish.kernels.codec import decode
from beamish.kernels.codes import factorize_values
from beamish.kernels.groups import Groups
from beamish.kernels.order import ranks, sort_keys, sort_order
from beamish.kinds.window.plan.binding import BoundAccumulation
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.segments import LAYOUT, Changed
from beamish.kinds.window.state.window_table import TreeColumns, TriggerNow, TriggerState, trigger_columns
from beamish.kinds.window.step.firing import extract
from beamish.kinds.window.stored.read_plan import ReadPlan
from beamish.kinds.window.stored.stored_windows import read_windows
from beamish.tables.entries import segment_name
from beamish.tables.segments import SegmentStore
from beamish.tables.working_table import columns_under, new_columns
from beamish.triggers.trigger import NEVER_US, Trigger, WindowIndices, in_words
from beamish.watermarks import NO_WATERMARK_US

TIME, NUMBER, ROW = "time", "number", "row"


@attrs.frozen(eq=False, kw_only=True)
class OfWindows(Answer):
    """An answer from the windows of a stage's shards.

    Attributes:
        of_plan: the stage's plan.
        key: values of key columns; omitted columns may have any value.
        span: the windows, microseconds since the epoch or row numbers.
        segment: the only entry to read; None: all of the span.
    """

    of_plan: ReadPlan
    key: Mapping[str, Any]
    span: tuple[int, int]
    segment: str | None = None

    @property
    def plan(self) -> WindowPlan:
        """The plan, as far as it is known."""
        return self.of_plan.plan

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the key columns."""
        return self.plan.keys

    @property
    def shard(self) -> int | None:  # type: ignore[override]
        """The shard of the key, if the whole key is given."""
        keys = self.plan.key_schema
        if not keys.names or not set(keys.names) <= self.key.keys():
            return None
        row = pa.table([pa.array([self.key[field.name]], field.type) for field in keys], schema=keys)
        return shard_of(row, self.plan.shards)

    @property
    def _span_read(self) -> tuple[int, int]:
        """The span of the segments to read."""
        return self.span

    def needs(self, notes: Store) -> Iterator[str]:
        yield from map(segment_name, self._numbers(SegmentStore(notes, LAYOUT)))
        for table in self.plan.progress.tables(self.plan):
            yield f"{table.layout.name}/"

    def _numbers(self, segments: SegmentStore) -> list[int]:
        start, end = self._span_read
        found = segments.numbers((segments.index["start_us"] < end) & (segments.index["end_us"] > start))
        return found if self.segment is None else [one for one in found if segment_name(one) == self.segment]

    def _read(self, store: Store, triggers: Iterable[str] = (), *, in_order: bool = True) -> pa.Table:
        """The windows, as ``read_windows`` has them."""
        segments = SegmentStore(store, LAYOUT)
        return read_windows(
            self.plan,
            segments,
            self._numbers(segments),
            span=self._span_read,
            key=self.key,
            triggers=triggers,
            in_order=in_order,
        )

    def _reached(self, store: Store, stored: pa.Table, watermark_us: int) -> int | Ints:
        """The progress that the ends of windows are compared with."""
        progress = self.plan.progress.open(self.plan, store, SegmentStore(store, LAYOUT).about)
        return progress.at_rest(self.plan, columns_under(stored, "key.", self.plan.key_schema), watermark_us)

    def _waits(self, stored: pa.Table, reached: int | Ints) -> Ints:
        """The conditions that windows wait for: indices of ``WAITS``."""
        end, closed, new_rows = (stored[name].to_numpy() for name in ("end_us", "closed", "unemitted_rows"))
        ended, trigger = end <= reached, self.of_plan.trigger
        fires_at_end = self.plan.progress.by_watermark and trigger is not None and _fires_at_end(trigger)
        for_watermark = ~ended & (end != END_OF_TIME_US) & fires_at_end
        of_open = np.where(for_watermark, WAITS.index(Waits.WATERMARK), WAITS.index(Waits.TRIGGER))
        return np.where(closed | (ended & (new_rows == 0)), WAITS.index(Waits.EXPIRY), of_open)


WAITS = tuple(Waits)


def _fires_at_end(trigger: Trigger) -> bool:
    return trigger.waits_for_end or any(map(_fires_at_end, trigger.parts))


@attrs.frozen(eq=False, kw_only=True)
class Windows(OfWindows):
    """Windows that overlap a span, by key, end and start.

    Attributes:
        clocks: the watermark and the clock at which they wait, microseconds; None: conditions are not computed.
        first: only the first ones, in an order; needs clocks; None: all.
    """

    clocks: tuple[int, int] | None = None
    first: First | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns, as in the module docstring."""
        plan = self.plan
        values = pa.struct(list(plan.value_schema)) if plan.value_schema.names else None
        columns = {
            "key": pa.struct(list(plan.key_schema)) if plan.keys else None,
            "window": plan.options.window_type,
            "values": values,
            "new_rows": pa.int64(),
            "panes": pa.int64(),
        }
        waits = {
            "last_timing": pa.string(),
            "last_values": values if plan.options.keeps_values else None,
            "closed": pa.bool_(),
            "due": TIMESTAMP,
            "expires": TIMESTAMP,
            "waits_for": pa.string(),
            "waits": None if self.first is None else pa.string(),
            "watermark": None if plan.options.key_watermark is None else TIMESTAMP,
        }
        columns |= {"closed": pa.bool_()} if self.clocks is None else waits
        return pa.schema([(name, type_) for name, type_ in columns.items() if type_ is not None])

    def read(self, store: Store) -> pa.Table:
        plan, about, trigger = self.plan, SegmentStore(store, LAYOUT).about, self.of_plan.trigger
        is_new = bool(about) and Changed.since(about, plan).trigger
        asked = None if self.clocks is None or is_new else trigger
        stored = self._read(store, () if asked is None else dict(trigger_columns(asked)), in_order=self.first is None)
        if not stored.num_rows:
            return self.schema.empty_table()
        reached = NO_WATERMARK_US if self.clocks is None else self._reached(store, stored, self.clocks[0])
        waits = np.empty(0, np.int64)
        if self.first is not None:
            waits = self._waits(stored, reached)
            at = _first(self.first, stored, waits)
            stored, waits = stored.take(at), waits[at]
            reached = reached if isinstance(reached, int) else reached[at]
        columns = _state_columns(plan, stored)
        if self.clocks is not None:
            columns |= _past_columns(plan, stored)
            columns |= {
                "due": pa.nulls(stored.num_rows, TIMESTAMP),
                "waits_for": pa.nulls(stored.num_rows, pa.string()),
                "waits": pa.array(WAITS, pa.string()).take(pa.array(waits)),
                "watermark": _of_keys(np.broadcast_to(reached, stored.num_rows)),
            }
            if trigger is not None:
                columns |= _waits(plan, trigger, stored, (reached, self.clocks[1]), is_new=is_new)
        return pa.table([columns[field.name] for field in self.schema], schema=self.schema)


def _first(first: First, stored: pa.Table, waits: Ints) -> Ints:
    """The indices of the first windows."""
    every = np.arange(stored.num_rows)
    at = every if first.waits is None else np.flatnonzero(waits == WAITS.index(first.waits))
    end, start = stored["end_us"].to_numpy()[at], stored["start_us"].to_numpy()[at]
    match first.order:
        case Order.NEXT:
            by = [waits[at] == WAITS.index(Waits.EXPIRY), end, start]
        case Order.LAST:
            by = [-end, -start]
        case Order.ROWS:
            by = [-stored["unemitted_rows"].to_numpy()[at], end, start]
        case Order.PANES:
            by = [-stored["panes"].to_numpy()[at], end, start]
    return at[np.lexsort(by[::-1])[: first.count]]


def _state_columns(plan: WindowPlan, stored: pa.Table) -> dict[str, Any]:
    """The columns of a window and its contents."""
    rows, closed = stored.num_rows, stored["closed"].to_numpy()
    state = columns_under(stored, "state.", plan.state_schema)
    bounds = {column: stored[column].to_numpy() for column in ("start_us", "end_us")}
    open_ = pa.array(np.where(closed, -1, np.arange(rows)), mask=closed)
    return {
        "key": _struct(columns_under(stored, "key.", plan.key_schema), np.zeros(rows, bool)),
        "window": window_column({**bounds, "windowless": np.zeros(rows, bool)}, plan.options.window_type),
        "values": _struct(extract(plan, state.take(open_)), closed),
        "new_rows": stored["unemitted_rows"],
        "panes": stored["panes"],
        "closed": stored["closed"],
    }


def _past_columns(plan: WindowPlan, stored: pa.Table) -> dict[str, Any]:
    """The columns of the last pane, and the expiry of a window."""
    timing = pa.array(stored["timing"].to_numpy().astype(np.int64), mask=stored["panes"].to_numpy() == 0)
    expires = plan.expiry_us(stored["end_us"].to_numpy())
    live = columns_under(stored, "live.", plan.value_schema if plan.options.keeps_values else pa.schema([]))
    return {
        "last_timing": pa.array(TIMINGS, pa.string()).take(timing),
        "last_values": _struct(live, ~stored["has_pane"].to_numpy()),
        "expires": _timestamp(
            expires, np.full(len(expires), not plan.progress.by_watermark) | (expires == END_OF_TIME_US)
        ),
    }


def _waits(
    plan: WindowPlan, trigger: Trigger, stored: pa.Table, at_clocks: tuple[int | Ints, int], *, is_new: bool
) -> TreeColumns:
    """The reasons why open windows have not fired, and the clock at which their trigger is evaluated.

    ``is_new``: the trigger has changed, and is shown in its initial state.
    """
    rows, (progress, clock_us) = stored.num_rows, at_clocks
    columns = {name: stored[name].to_numpy() for name in ("start_us", "end_us")}
    declared = dict(trigger_columns(trigger))
    if is_new:
        columns |= new_columns(declared, rows)
    else:
        columns |= {name: _trigger_state(stored[name], dtype) for name, (dtype, _) in declared.items()}
    closed = stored["closed"].to_numpy()
    at = np.flatnonzero(~closed)
    state = TriggerState(trigger, columns)
    now = _Waiting(plan, columns, progress, clock_us)
    if is_new:
        new_rows = stored["unemitted_rows"].to_numpy()
        shown = at[new_rows[at] > 0]
        trigger.on_rows_columns(state, shown, new_rows[shown], now)
    due = np.full(rows, NEVER_US)
    due[at] = trigger.wakes_at_columns(state, at)
    place = np.full(rows, -1)
    place[at] = np.arange(len(at))
    words = trigger.waits_for_columns(state, at, now).take(pa.array(place, mask=closed))
    return {"due": _timestamp(due, due == NEVER_US), "waits_for": words}


class _Waiting(TriggerNow):
    """The context of triggers of stored windows (``triggers/trigger.py``: Waiting)."""

    def __init__(self, plan: WindowPlan, columns: TreeColumns, progress: int | Ints, clock_us: int) -> None:
        super().__init__(columns, progress, clock_us, plan.window.merging)
        self._of_rows, self._unless_extended = not plan.progress.by_watermark, plan.unless_extended
        self._of_keys = plan.options.key_watermark is not None

    def until_end(self, at: WindowIndices) -> pa.Array:
        end, unless = self.end_us[at], self._unless_extended
        if self._of_keys:
            both = np.stack([end, np.broadcast_to(self.progress_us(at), end.shape)])
            distinct, of = np.unique(both, axis=1, return_inverse=True)
            words = [watermark_to_reach(end_us, at_us, unless, of_key=True) for end_us, at_us in distinct.T.tolist()]
            return pa.array(words, pa.string()).take(pa.array(of.ravel()))
        if not self._of_rows:
            return in_words(end, lambda end_us: watermark_to_reach(end_us, int(self._progress), unless))
        progress = self._progress if isinstance(self._progress, int) else self._progress[at]
        return in_words(
            end - np.minimum(progress, end), lambda left: f"it to be full{unless}: {left} more row{'s' * (left != 1)}"
        )


def watermark_to_reach(end_us: int, watermark_us: int, unless: str = "", *, of_key: bool = False) -> str:
    """The reason why the end of a window has not been reached at a watermark, to follow "it waits for".

    ``unless``: the end is not fixed; ``of_key``: the watermark is that of its key.
    """
    if end_us == END_OF_TIME_US:
        return "the end of time, which a stream does not reach"
    whose = "its key's" if of_key else "the"
    words = f"{whose} watermark to reach its end, {instant_in_words(end_us)}"
    if watermark_us >= end_us:
        return f"{words}, which it has"
    return f"{words}{unless}" + (
        "" if watermark_us == NO_WATERMARK_US else f": {span_in_words(end_us - watermark_us)} to go"
    )


def _timestamp(us: Ints, unknown: NDArray[np.bool_]) -> pa.Array:
    return pa.array(np.minimum(us, LATEST_US), pa.int64(), mask=unknown).cast(TIMESTAMP)


def _of_keys(watermark_us: Ints) -> pa.Array:
    """Watermarks as a column."""
    return _timestamp(watermark_us, np.isin(watermark_us, [NO_WATERMARK_US, END_OF_TIME_US]))


def _struct(table: pa.Table, null: NDArray[np.bool_]) -> pa.Array:
    columns: Sequence[pa.Array] = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(columns, fields=list(table.schema), mask=pa.array(null))


def _trigger_state(column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
    if dtype != "object":
        return column.to_numpy().astype(dtype)  # type: ignore[no-any-return]
    cells = np.empty(len(column), dtype=object)
    cells[:] = [None if cell is None else decode(cell) for cell in column.to_pylist()]
    return cells


@attrs.frozen(eq=False, kw_only=True)
class Rows(OfWindows):
    """Rows in a span, by key, place and row; each once, in however many windows it is.

    Attributes:
        of: the accumulation or input that stores them; None: the only one.
        schema: the columns, as the head of this file has them.
    """

    of: str | None
    schema: pa.Schema

    @property
    def _span_read(self) -> tuple[int, int]:
        # A custom window may not contain its rows' times.
        return self.span if self.plan.window.holds_its_rows else EVER

    def read(self, store: Store) -> pa.Table:
        plan = self.plan
        bound, called = keeper(plan, self.of)
        table = self._read(store)
        table = table.filter(pa.array(~table["closed"].to_numpy()))
        state = bound.state_of(columns_under(table, "state.", plan.state_schema))
        place, rows, window = bound.accumulation.kept_rows(state, bound.types, called)
        inside = np.flatnonzero((place >= self.span[0]) & (place < self.span[1]))
        place, rows, window = place[inside], pick(rows, inside), window[inside]
        keys = [pick(table[f"key.{key}"].combine_chunks(), window) for key in plan.key_schema.names]
        once = _once(keys, place, rows, window)
        place, rows, keys = place[once], pick(rows, once), [pick(column, once) for column in keys]
        where = pa.array(place) if plan.options.counts_rows else pa.array(place).cast(TIMESTAMP)
        columns = [*keys, where, cast(rows, self.schema.field(ROW).type)]
        return pa.table(columns, schema=self.schema)


def answer_of(of: ReadPlan, asked: Asked, kind: type[OfWindows] = Windows, **more: Any) -> OfWindows:
    """The answer to a question about windows or their rows; ``more``: of its class, ``Rows`` for rows, else ``kind``.

    Raises:
        OptionError, PipelineError: see ``AtRest.answer``.
    """
    if asked.what is Keeps.ROWS:
        kind, more = Rows, {**more, "of": asked.of, "schema": _rows_schema(of.plan, asked.of)}
    return kind(of_plan=of, key=read_key(asked.what, asked.key, of.plan.key_schema), span=asked.span, **more)


def keeper(plan: WindowPlan, of: str | None) -> tuple[BoundAccumulation, str]:
    """The accumulation that stores the selected rows, and its name for them.

    Raises:
        PipelineError: no accumulation stores rows, or several do and none is named, or the named one does not.
    """
    named = [(name, bound) for bound in plan.accumulations for name in _names(bound)]
    known = {name: (bound, name) for name, bound in named}
    if not known:
        raise PipelineError(
            "rows(): no accumulation stores rows; Collect('column') stores one column, CoGroup and joins store whole rows"
        )
    if of is None and len(known) == 1:
        return next(iter(known.values()))
    if of not in known:
        raise PipelineError(
            f"rows(of={of!r}): rows are stored for {list(known)}; name one: rows(of={next(iter(known))!r})"
        )
    if sum(name == of for name, _ in named) > 1:
        raise PipelineError(f"rows(of={of!r}): an accumulation and an input have this name; rename the accumulation")
    return known[of]


def _names(bound: BoundAccumulation) -> list[str]:
    """The names of an accumulation's stored rows: its inputs, or its column."""
    return [name or bound.name for name in bound.accumulation.kept(bound.types)]


def _rows_schema(plan: WindowPlan, of: str | None) -> pa.Schema:
    bound, name = keeper(plan, of)
    kept = bound.accumulation.kept(bound.types)
    place = (NUMBER, pa.int64()) if plan.options.counts_rows else (TIME, TIMESTAMP)
    for key in plan.keys:
        if key in (place[0], ROW):
            raise PipelineError(f"rows(): the output has a column {key!r} of its own; rename the key column")
    return pa.schema([*plan.key_schema, place, (ROW, kept["" if "" in kept else name])])


def _once(keys: Sequence[pa.Array], place: Ints, rows: pa.Array, window: Ints) -> Ints:
    """The rows to show, in order: equal rows as often as in the window that has most of them."""
    by_key = [key for column in keys for key in sort_keys(plain(column))]
    rank = ranks([*by_key, place, *sort_keys(plain(rows))])
    in_window = factorize_values(rank * (int(window.max(initial=0)) + 1) + window)
    order = sort_order([in_window.of])
    copy = np.empty(len(rank), dtype=np.int64)
    copy[order] = Groups(in_window.of[order], in_window.count).positions()
    alike = factorize_values(rank * (int(copy.max(initial=0)) + 1) + copy)
    shown = alike.first()
    return shown[sort_order([rank[shown]])]
