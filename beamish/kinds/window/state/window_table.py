"""The window table: one row per (key, window) that a step works on.

Small numbers are numpy columns in ``columns``. Keys, accumulators and the last emitted values are Arrow and stay
where they are, in pools; a window points at its entry (``key_at``, ``state_at``, ``values_at``), so that a change is an
entry appended and a pointer moved.

stored columns (one entry per window; ``_us``: int64, microseconds since the epoch):
    start_us, end_us    the window; for count windows row numbers, not microseconds
    closed              bool: its trigger has finished, rows are dropped until it expires
    unemitted_rows      int64: rows that are in no pane yet
    unemitted_since_us  the progress (step.py) at the arrival of the first of them; NEVER_US without any
    net_rows            int64: rows in it less retractions; counted for retracting input, otherwise 0
    pane_time_us        timestamp of its next pane with a combiner; NO_VALUE without a row
    panes               int64: number of panes emitted
    non_early_panes     int64: number of them that were not EARLY
    has_pane            bool: its last pane is live: emitted and not retracted
    timing              int8: of the last pane (TIMINGS)
    last_pane_time_us   timestamp of the last pane under a combiner
    asks_at_end         bool: it is evaluated when its progress reaches its end
    trigger.../...      the trigger tree's (``TriggerState``)
    ...                 those of the parts (planning.py)
working columns:
    gone                bool: it expired or was merged away; not written back
    touched             bool: it differs from what is stored
    segment             int64: the segment it was read from; NO_VALUE if from none
    group               int64: for count windows the group (row_windows.py) of its rows; NO_ENTRY: not looked up yet; for a watermark per
                        key the record (key_watermarks.py) of its key
    key_at, state_at, values_at     int64: its entries in the pools of keys, of accumulators, and of last emitted values (stored if
                        panes are retracted or compared), like ``<name>_at`` in the pools of parts; NO_ENTRY: none

Two markers: NO_VALUE, the least int64, for a missing value, and ``NEVER_US``, the greatest, for a time that is never reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beamish.errors import NumericOverflowError, UserFunctionError, cause, shown
from beamish.instants import instant
from beamish.kernels.buffers import NO_ENTRY, NO_VALUE, Ints
from beamish.kernels.codec import ALLOWED, decode, encode
from beamish.kernels.groups import Groups
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.tables.working_table import Columns, Companions, Declared, Pool, WorkingTable
from beamish.triggers.trigger import NEVER_US, Trigger, WindowIndices
from beamish.watermarks import known_us

TreeColumns = dict[str, Any]
ValuesOf = Callable[[str, NDArray[np.intp]], pa.Array]


class TriggerState:
    """The state of one trigger of the tree: a view of its columns in the window table, named by its position in the tree."""

    def __init__(self, trigger: Trigger, columns: TreeColumns, place: str = "trigger") -> None:
        self._columns, self._place = columns, place
        self.parts = [TriggerState(part, columns, f"{place}.{i}") for i, part in enumerate(trigger.parts)]

    @property
    def finished(self) -> NDArray[np.bool_]:
        return self._columns[f"{self._place}/finished"]  # type: ignore[no-any-return]

    def __getitem__(self, column: str) -> Any:
        return self._columns[f"{self._place}/{column}"]


def trigger_columns(trigger: Trigger, place: str = "trigger") -> Iterator[tuple[str, tuple[str, Any]]]:
    """The columns of a trigger tree: name, (dtype, value in a new window)."""
    yield f"{place}/finished", ("bool", False)
    for name, column in trigger.columns.items():
        yield f"{place}/{name}", column
    for i, part in enumerate(trigger.parts):
        yield from trigger_columns(part, f"{place}.{i}")


class TriggerNow:
    """The clocks, for the current windows of the table.

    ``progress``: the watermark; for count windows the reach of each.
    ``values_of(name, windows)`` gives the values of an accumulation that panes of these windows would have.
    ``earliest_us``: the least event time of the rows that are shown, per window; None: they are not new.
    """

    def __init__(
        self,
        columns: TreeColumns,
        progress: int | NDArray[np.int64],
        clock_us: int,
        merging: bool,
        values_of: ValuesOf | None = None,
        *,
        earliest_us: Ints | None = None,
    ) -> None:
        self._columns, self._progress, self._values_of, self._earliest_us = columns, progress, values_of, earliest_us
        self.clock_us, self.merging = clock_us, merging
        self.start_us, self.end_us = columns["start_us"], columns["end_us"]
        self.at_end = self.end_us <= progress

    def watermark_us(self, window: int) -> int | None:
        return known_us(self._progress if isinstance(self._progress, int) else int(self._progress[window]))

    def progress_us(self, at: NDArray[np.intp]) -> int | Ints:
        return self._progress if isinstance(self._progress, int) else self._progress[at]

    def earliest_us(self, at: NDArray[np.intp]) -> Ints:
        if self._earliest_us is not None:
            return self._earliest_us[at]
        least: Ints = np.maximum(self.start_us[at], self.progress_us(at))
        return least

    def value_is_within(self, name: str, at: NDArray[np.intp], at_least: Any, at_most: Any) -> NDArray[np.bool_]:
        if self._values_of is None:
            raise AssertionError(f"the trigger asks for the value of {name!r}, and there are no values")
        values = self._values_of(name, at)
        within = pc.greater_equal(values, at_least) if at_most is None else pc.less_equal(values, at_most)
        if pa.types.is_floating(values.type) and at_most is None:  # NaN is above all others, as in Max
            within = pc.or_(within, pc.is_nan(values))
        return pc.fill_null(within, False).to_numpy(zero_copy_only=False).astype(bool)  # type: ignore[no-any-return] # noqa: FBT003

    def ask_at_end(self, at: NDArray[np.intp]) -> None:
        self._columns["asks_at_end"][at] |= ~self.at_end[at]


class TriggerMerge:
    """Merging windows.

    Attributes:
        part: intp[p], the parts' indices in the table.
        of: intp[p], for each part the number of its result.
        into: intp[r], the results' indices.
        groups: the parts by result.
        vanished: the removed parts, and the result of each.
    """

    def __init__(self, part: NDArray[np.intp], of: NDArray[np.intp], into: NDArray[np.intp]) -> None:
        self.part, self.of, self.into = part, of, into
        vanish = part != into[of]
        self.vanished = part[vanish], into[of][vanish]
        self.groups = Groups(of, len(into))

    def any(self, column: Any) -> Any:
        return self.groups.any(column[self.part])

    def all(self, column: Any) -> Any:
        return self.groups.all(column[self.part])

    def sum(self, column: Any) -> Any:
        return self.groups.sum(column[self.part].astype(np.int64, copy=False))

    def least(self, column: Any) -> Any:
        return self.groups.least(column[self.part].astype(np.int64, copy=False))

    def greatest(self, column: Any) -> Any:
        return self.groups.greatest(column[self.part].astype(np.int64, copy=False))

    def lists(self, column: Any) -> list[list[Any]]:
        lists: list[list[Any]] = [[] for _ in self.into]
        for part, of in zip(self.part.tolist(), self.of.tolist(), strict=True):
            lists[of].append(column[part])
        return lists

    def only(self, results: NDArray[np.bool_]) -> TriggerMerge:
        number = np.cumsum(results) - 1
        kept = results[self.of]
        return TriggerMerge(self.part[kept], number[self.of[kept]], self.into[results])


STORED_COLUMNS: Declared = {
    "start_us": ("int64", 0),
    "end_us": ("int64", 0),
    "closed": ("bool", False),
    "unemitted_rows": ("int64", 0),
    "unemitted_since_us": ("int64", NEVER_US),
    "net_rows": ("int64", 0),
    "pane_time_us": ("int64", NO_VALUE),
    "panes": ("int64", 0),
    "non_early_panes": ("int64", 0),
    "has_pane": ("bool", False),
    "timing": ("int8", 0),
    "last_pane_time_us": ("int64", NO_VALUE),
    "asks_at_end": ("bool", False),
}
_WORKING_COLUMNS: Declared = {
    "values_at": ("int64", NO_ENTRY),
}


class WindowTable(WorkingTable):
    """The windows of a step.

    Args:
        plan: the stage's plan.
        instead: values of columns that are set instead of read from stored windows.
        missing: values of columns that stored windows lack.
    """

    companion_rows: Companions

    def __init__(
        self, plan: WindowPlan, *, instead: Mapping[str, Any] | None = None, missing: Mapping[str, Any] | None = None
    ) -> None:
        self._plan, self._instead, self._missing = plan, instead or {}, missing or {}
        kept: Declared = {name: column for part in plan.parts for name, column in part.columns.items()}
        self.keys, self.state = Pool(plan.key_schema), Pool(plan.state_schema)
        self.values = Pool(plan.value_schema)
        self.pools = {name: Pool(schema) for part in plan.parts for name, schema in part.pools.items()}
        pools = {"key.": ("key_at", self.keys), "state.": ("state_at", self.state)}
        pools |= {f"{name}.": (f"{name}_at", pool) for name, pool in self.pools.items()}
        pools |= {"live.": ("values_at", self.values)} if plan.options.keeps_values else {}
        trigger = plan.options.trigger
        super().__init__(
            {**STORED_COLUMNS, **kept, **dict(trigger_columns(trigger))},
            {**_WORKING_COLUMNS, **plan.progress.working},
            pools,
        )
        self.trigger = TriggerState(trigger, self.columns)
        companions = {name: column for part in plan.parts for name, column in part.companions.items()}
        self.companion_rows = Companions(companions, "live.", self.values)

    def read(self, stored: pa.Table, segment: Ints) -> Ints:
        at = super().read(stored, segment)
        plan, names = self._plan, stored.schema.names
        if (
            plan.options.keeps_values
            and not plan.options.retracts
            and not any(name.startswith("live.") for name in names)
        ):
            self["has_pane"][at] = False  # its values were not stored, so the next pane is compared with none
        return at

    def given(self, stored: pa.Table) -> Columns:
        given = {**self._instead, **{name: v for name, v in self._missing.items() if name not in stored.schema.names}}
        return {name: np.full(stored.num_rows, value) for name, value in given.items()}

    def new_entry(self, prefix: str) -> pa.Table | None:
        return self._plan.new_state if prefix == "state." else None

    def of_stored(self, column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
        if dtype != "object":
            return super().of_stored(column, dtype)
        cells = np.empty(len(column), dtype=object)
        cells[:] = [None if cell is None else decode(cell) for cell in column.to_pylist()]
        return cells

    def to_stored(self, column: NDArray[Any]) -> pa.Array:
        if column.dtype != object:
            return super().to_stored(column)
        try:
            return pa.array([None if cell is None else encode(cell) for cell in column.tolist()], pa.binary())
        except TypeError as error:
            raise UserFunctionError(
                f"a custom trigger: its state is or contains {error}, which cannot be stored in the checkpoint; build it of "
                f"{ALLOWED}"
            ) from error

    def cut(self, at: Ints, first: Ints) -> Iterator[pa.Table]:
        stored = self.stored(at)  # at once: many segments cost about as much as one
        yield from (stored.slice(own, size) for own, size in zip(first, np.diff(first, append=len(at)), strict=True))

    def append_windows(
        self, start_us: NDArray[np.int64], end_us: NDArray[np.int64], key_at: NDArray[np.int64]
    ) -> WindowIndices:
        """Append new windows. Returns their indices."""
        return self.append(len(start_us), {"start_us": start_us, "end_us": end_us, "key_at": key_at})


@contextmanager
def naming_window(table: WindowTable, at: NDArray[np.int64] | None = None) -> Iterator[None]:
    """Add key and window to errors raised inside.

    Args:
        table: the window table.
        at: the windows indexed by the error's group; None: the group is the index in the table.
    """
    try:
        yield
    except (UserFunctionError, NumericOverflowError) as error:
        if error.group is None:
            raise
        window = error.group if at is None else int(at[error.group])
        bounds = ", ".join(_time(int(table[name][window])) for name in ("start_us", "end_us"))
        raise _with(error, f"{_key(table, int(table['key_at'][window]))}, window [{bounds})") from cause(error)


@contextmanager
def naming_key(table: WindowTable, key_at: NDArray[np.int64]) -> Iterator[None]:
    """Add the key to errors raised inside; ``key_at``: the positions of the keys indexed by the error's group."""
    try:
        yield
    except UserFunctionError as error:
        if error.group is None:
            raise
        raise _with(error, _key(table, int(key_at[error.group]))) from cause(error)


def _key(table: WindowTable, key_at: int) -> str:
    key: list[dict[str, Any]] = table.keys.take(np.array([key_at])).to_pylist()
    return f"key {shown(key[0])}"


def _time(us: int) -> str:
    try:
        return instant(us).isoformat()
    except OverflowError:  # the end of time, or a custom window beyond the year 9999
        return f"{us} us"


def _with(error: UserFunctionError | NumericOverflowError, where: str) -> Exception:
    named = type(error)(f"{where}: {error}")
    named.raised = error.raised and f"{where}: {error.raised}"
    return named
