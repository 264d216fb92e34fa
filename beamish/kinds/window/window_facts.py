"""What is to be known of the windows of a shard at rest: for whoever asks why one has not fired (docs/rules/running.md#inspect).

columns:
    key             struct of the key columns; not there where the pipeline is not keyed
    windowing       under several windowings the name of one
    window          its bounds
    values          struct: what a pane would hold now; null of a closed window
    new_rows        bigint: rows that are in no pane yet
    panes           bigint: how many came out
    last_timing     of the last pane: EARLY, ON_TIME or LATE; null: none came out
    last_values     struct: its values, where they are kept; else null
    closed          boolean: its trigger has finished
    due             timestamp: the clock at which its trigger is asked; null: it waits for none
    expires         timestamp: the watermark at which it expires; null: the end of time, or windows are of rows
    waits_for       text, in words that follow "it waits for"; null of a closed window, or where the trigger is unknown
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.pane_columns import TIMINGS, window_column
from beamish.contract.schemas import TIMESTAMP
from beamish.contract.store import Store
from beamish.durations import span_in_words
from beamish.instants import END_OF_TIME_US, LATEST_US, instant_in_words
from beamish.kernels.arrays import Ints
from beamish.kernels.codec import decode
from beamish.kernels.codes import normalise
from beamish.kernels.identity import same_identity
from beamish.kinds.window.firing import extract
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.reaches import Reaches
from beamish.kinds.window.read_identity import ReadPlan
from beamish.kinds.window.stored_windows import read_index, read_segment
from beamish.kinds.window.trigger_tree import Columns, TriggerNow, TriggerState, trigger_columns
from beamish.tables.pool import columns_under
from beamish.tables.prefixed import under
from beamish.tables.stored_tables import naming_entry, segment_name
from beamish.tables.working_table import new_columns
from beamish.triggers.trigger import NEVER_US, Trigger, WindowIndices, in_words
from beamish.watermarks import NO_WATERMARK_US
from beamish.windows.windowings import WINDOWING


@attrs.frozen(eq=False)
class WindowReader:
    """Reads the windows of the shards of a stage.

    Attributes:
        plans: by the name of the windowing; of one without a name None.
        watermark_us, clock_us: how far the stage has come.
    """

    plans: Mapping[str | None, ReadPlan]
    watermark_us: int
    clock_us: int

    @property
    def schema(self) -> pa.Schema:
        """The columns, as the head of this file has them."""
        plan = next(iter(self.plans.values())).plan
        values = [pa.field("values", pa.struct(list(plan.value_schema)))] if plan.value_schema.names else []
        last = [pa.field("last_values", pa.struct(list(plan.value_schema)))] if values and plan.keeps_values else []
        return pa.schema(
            [
                *([pa.field("key", pa.struct(list(plan.key_schema)))] if plan.keys else []),
                *([pa.field(WINDOWING, pa.string())] if None not in self.plans else []),
                pa.field("window", plan.window_type),
                *values,
                pa.field("new_rows", pa.int64()),
                pa.field("panes", pa.int64()),
                pa.field("last_timing", pa.string()),
                *last,
                pa.field("closed", pa.bool_()),
                pa.field("due", TIMESTAMP),
                pa.field("expires", TIMESTAMP),
                pa.field("waits_for", pa.string()),
            ]
        )

    def read(self, store: Store) -> pa.Table:
        """The windows of a shard; of its segments those that the store has."""
        tables = [self.schema.empty_table()]
        for name, of in self.plans.items():
            own = under(name, store)
            index = read_index(own)
            is_new = bool(index.about) and not same_identity(
                index.about["changeable"]["trigger"], of.plan.changeable["trigger"]
            )
            for number in index.segments["segment"].to_pylist():
                if own.get(segment_name(number)) is not None:
                    with naming_entry(segment_name(number)):
                        tables.append(self._read(name, of, own, read_segment(own, number), trigger_is_new=is_new))
        return pa.concat_tables(tables)

    def _read(
        self, name: str | None, of: ReadPlan, store: Store, stored: pa.Table, *, trigger_is_new: bool
    ) -> pa.Table:
        plan, rows = of.plan, stored.num_rows
        numbers = {column: stored[column].to_numpy() for column in _NUMBERS}
        closed, panes = numbers["closed"], numbers["panes"]
        end = numbers["end_us"]
        open_ = pa.array(np.where(closed, -1, np.arange(rows)), mask=closed)
        keys = columns_under(stored, "key.", plan.key_schema)
        columns: dict[str, Any] = {
            WINDOWING: pa.array([name] * rows, pa.string()),
            "window": window_column(
                {"start_us": numbers["start_us"], "end_us": end, "windowless": np.zeros(rows, bool)}, plan.window_type
            ),
            "new_rows": pa.array(numbers["unemitted_rows"]),
            "panes": pa.array(panes),
            "last_timing": pa.array(TIMINGS, pa.string()).take(
                pa.array(numbers["timing"].astype(np.int64), mask=panes == 0)
            ),
            "closed": pa.array(closed),
            "expires": _expires(plan, end),
        }
        if plan.keys:
            columns["key"] = _struct(keys, np.zeros(rows, bool))
        if plan.value_schema.names:
            state = columns_under(stored, "state.", plan.state_schema, plan.new_state)
            columns["values"] = _struct(extract(plan, state.take(open_)), closed)
            if plan.keeps_values:
                live = columns_under(stored, "live.", plan.value_schema)
                columns["last_values"] = _struct(live, ~numbers["has_pane"])
        trigger = of.trigger
        if trigger is None:
            columns |= {"due": pa.nulls(rows, TIMESTAMP), "waits_for": pa.nulls(rows, pa.string())}
        else:
            progress = self._progress(plan, store, keys)
            columns |= self._waits(plan, trigger, stored, progress, is_new=trigger_is_new)
        return pa.table([columns[field.name] for field in self.schema], schema=self.schema)

    def _progress(self, plan: WindowPlan, store: Store, keys: pa.Table) -> int | Ints:
        """How far what windows are cut by has come: the watermark; of windows of rows the reach of each."""
        if not plan.counts_rows:
            return self.watermark_us
        reaches = Reaches(plan, store)
        if self.watermark_us == END_OF_TIME_US:
            reaches.end()
        normal = (
            pa.table([normalise(column.combine_chunks()) for column in keys.columns], schema=plan.key_schema)
            if plan.keys
            else keys
        )
        return reaches.of(reaches.find(normal))

    def _waits(
        self, plan: WindowPlan, trigger: Trigger, stored: pa.Table, progress: int | Ints, *, is_new: bool
    ) -> Columns:
        """What open windows wait for; ``is_new``: by another trigger than the shard knows yet, as it will begin."""
        columns = {name: stored[name].to_numpy() for name in ("start_us", "end_us")}
        declared = dict(trigger_columns(trigger))
        if is_new:
            columns |= new_columns(declared, stored.num_rows)
        else:
            columns |= {name: _state(stored[name], dtype) for name, (dtype, _) in declared.items()}
        closed = stored["closed"].to_numpy()
        at = np.flatnonzero(~closed)
        state = TriggerState(trigger, columns)
        now = _Waiting(columns, progress, self.clock_us, plan.window.merging, of_rows=plan.counts_rows)
        if is_new:
            new_rows = stored["unemitted_rows"].to_numpy()
            shown = at[new_rows[at] > 0]
            trigger.on_rows_columns(state, shown, new_rows[shown], now)
        due = np.full(stored.num_rows, NEVER_US)
        due[at] = trigger.wakes_at_columns(state, at)
        words = trigger.waits_for_columns(state, at, now)
        place = np.full(stored.num_rows, -1)
        place[at] = np.arange(len(at))
        return {
            "due": _timestamp(due, due == NEVER_US),
            "waits_for": words.take(pa.array(place, mask=closed)),
        }


_NUMBERS = ("start_us", "end_us", "closed", "unemitted_rows", "panes", "has_pane", "timing")


class _Waiting(TriggerNow):
    """What triggers see of windows at rest (``triggers/trigger.py``: Waiting)."""

    def __init__(self, columns: Columns, progress: int | Ints, clock_us: int, merging: bool, *, of_rows: bool) -> None:
        super().__init__(columns, progress, clock_us, merging)
        self._of_rows = of_rows

    def until_end(self, at: WindowIndices) -> pa.Array:
        end = self.end_us[at]
        if not self._of_rows:
            return in_words(end, lambda end_us: watermark_to_pass(end_us, int(self._progress)))
        progress = self._progress if isinstance(self._progress, int) else self._progress[at]
        return in_words(
            end - np.minimum(progress, end), lambda left: f"it to be full: {left} more row{'s' * (left != 1)}"
        )


def watermark_to_pass(end_us: int, watermark_us: int) -> str:
    """What a window that ends then waits for, at a watermark, in words that follow "it waits for"."""
    if end_us == END_OF_TIME_US:
        return "the end of time, which a stream does not reach"
    words = f"the watermark to pass its end, {instant_in_words(end_us)}"
    if watermark_us == NO_WATERMARK_US:
        return f"{words}; there is no watermark yet"
    return (
        f"{words}: {span_in_words(end_us - watermark_us)} to go" if watermark_us < end_us else f"{words}, which it has"
    )


def _expires(plan: WindowPlan, end_us: Ints) -> pa.Array:
    expires = plan.expiry_us(end_us)
    return _timestamp(expires, np.full(len(end_us), plan.counts_rows) | (expires == END_OF_TIME_US))


def _timestamp(us: Ints, unknown: NDArray[np.bool_]) -> pa.Array:
    return pa.array(np.minimum(us, LATEST_US), pa.int64(), mask=unknown).cast(TIMESTAMP)


def _struct(table: pa.Table, null: NDArray[np.bool_]) -> pa.Array:
    columns: Sequence[pa.Array] = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(columns, fields=list(table.schema), mask=pa.array(null))


def _state(column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
    """A column of a trigger's state."""
    if dtype != "object":
        return column.to_numpy().astype(dtype)  # type: ignore[no-any-return]
    cells = np.empty(len(column), dtype=object)
    cells[:] = [None if cell is None else decode(cell) for cell in column.to_pylist()]
    return cells
