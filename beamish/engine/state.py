"""A shard's state at rest: segments of the window table as Arrow bytes, and an index of them.

A segment holds the windows that end in one span of time (those that end at the end of time: whose keys share a
hash), so that a step reads and writes what it touches and expiry drops whole segments. The store maps names to
bytes:

    index       a row a segment (what it holds and when something in it is due), and in its metadata the format, the
                shard count, the pipeline's fingerprint, the clocks and the number of rows dropped so far
    s<number>   a segment: the window table's stored columns, keys, accumulators, the values last emitted
    o<number>   live panes of windows merged away, each with the number of its owner's row in the segment

All are Arrow IPC streams; nothing is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.engine.clocks import Clocks
from beamish.engine.windowing.inherited_panes import Orphans
from beamish.engine.windowing.window_table import NEW_SEGMENT, Indices, Pool, WindowTable, rows_without_columns
from beamish.errors import StateError
from beamish.kernels.codec import decode, encode
from beamish.kernels.codes import code_values, hash_rows
from beamish.plan import Plan
from beamish.windows.option import END_OF_TIME_US

FORMAT = 2
_HASHED_SEGMENTS = 64
_FEW_SEGMENTS = 16
_FEW_WINDOWS, _MANY_WINDOWS = 512, 65_536
_ENDLESS = -(2**62)
_SHORTEST_US, _LONGEST_US = 60_000_000, 10 * 365 * 86_400_000_000
_MOST_SEGMENTS = 2048
_NEVER = np.iinfo(np.int64).max

INDEX_COLUMNS = ("segment", "windows", "start_us", "end_us", "due_us", "wake_us", "orphans")


class Store(Protocol):
    """Where the bytes are: a dict in a test, Spark's state store on Spark."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, value: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


class DictStore(dict[str, bytes]):
    """A store in memory."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def remove(self, name: str) -> None:
        self.pop(name, None)


@attrs.define
class State:
    """The index of a shard's segments, and the segments through it.

    Attributes:
        index: column name to int64 array, one entry a segment: its number, how many windows it holds, the span from
            the least start to the greatest end, the least watermark and the least clock at which something in it is
            due, and whether it has orphans.
        dropped: reason to number of rows dropped so far.
        span_us: how long a span of ends a segment holds.
        changed: whether the trigger or the lateness is another than the one the state was written with.
        rewrites: whether this step reads and writes all segments, since they are cut anew or the pipeline changed.
    """

    plan: Plan
    store: Store
    index: dict[str, NDArray[np.int64]]
    clocks: Clocks
    dropped: dict[str, int]
    span_us: int
    changed: bool = False
    rewrites: bool = False

    @classmethod
    def open(cls, plan: Plan, store: Store) -> State:
        """Read the index.

        Raises:
            StateError: it was written by another format, shard count or pipeline.
        """
        stored = store.get("index")
        if stored is None:
            empty = {name: np.empty(0, dtype=np.int64) for name in INDEX_COLUMNS}
            return cls(plan, store, empty, Clocks(), {}, _least_span_us(plan))
        table = _read(stored)
        about = json.loads(table.schema.metadata[b"beamish"])
        _check_same(about, plan)
        index = {name: table[name].to_numpy().copy() for name in INDEX_COLUMNS}
        changed = about["changeable"] != plan.changeable
        return cls(plan, store, index, Clocks(**about["clocks"]), about["dropped"], about["span_us"], changed)

    def begin_step(self) -> None:
        """Decide how segments are cut in this step: longer where they hold few windows, shorter where they hold many."""
        segments, windows = len(self.index["segment"]), int(self.index["windows"].sum())
        before = self.span_us
        if segments > _FEW_SEGMENTS and windows < segments * _FEW_WINDOWS:
            self.span_us *= -(-segments * _FEW_WINDOWS // windows)
        elif windows > segments * _MANY_WINDOWS:
            self.span_us //= -(-windows // (segments * _FEW_WINDOWS))
        self.span_us = min(max(self.span_us, _least_span_us(self.plan)), _LONGEST_US)
        self.rewrites = self.changed or self.span_us != before

    def segments_where(self, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The numbers of the segments for which ``wanted``, one flag an index entry, holds."""
        return self.index["segment"][wanted]

    def load(self, segments: Iterable[int], table: WindowTable, orphans: Orphans) -> None:
        """Read segments into the window table; those already in it or not stored are passed over."""
        loaded = set(np.unique(table["segment"]).tolist())
        known = set(self.index["segment"].tolist())
        for segment in segments:
            if segment in known and segment not in loaded:
                self._load_one(int(segment), table, orphans)

    def _load_one(self, segment: int, table: WindowTable, orphans: Orphans) -> None:
        stored = self.store.get(f"s{segment}")
        if stored is None:
            raise StateError(
                f"the index lists segment {segment}, but the state store does not have it: restore the checkpoint"
            )
        read = _read(stored)
        columns: dict[str, Any] = {}
        for name, (dtype, _) in table.stored.items():
            if not (self.changed and name.startswith("trigger")):
                columns[name] = _to_numpy(read[name], dtype)
        columns["touched"] = np.full(read.num_rows, self.rewrites)
        columns["segment"] = np.full(read.num_rows, segment, dtype=np.int64)
        columns["key_at"] = table.keys.append(_prefixed(read, "key.", table.keys.schema))
        columns["state_at"] = table.state.append(_prefixed(read, "state.", table.state.schema, self.plan.new_state))
        if self.plan.keeps_live:
            columns["live_at"] = table.live.append(_prefixed(read, "live.", table.live.schema))
        rows = table.append(columns, read.num_rows)
        held = self.store.get(f"o{segment}") if segment in self._with_orphans() else None
        if held is not None:
            orphans.read(_read(held), rows, table)

    def save(self, table: WindowTable, orphans: Orphans) -> None:
        """Write back the segments in which something was touched, and the index."""
        kept = ~table["gone"]
        target = segment_numbers(self.span_us, table["end_us"], table.keys, table["key_at"])
        touched = table["touched"]
        dirty = np.unique(np.concatenate([table["segment"][touched], target[touched & kept]]))
        dirty = dirty[dirty != NEW_SEGMENT]
        # A window may have moved into a segment that was not read: read it, since it is written as a whole.
        before = len(table)
        self.load(dirty.tolist(), table, orphans)
        if len(table) > before:
            kept = ~table["gone"]
            target = np.concatenate([target, table["segment"][before:]])
        known, with_orphans = set(self.index["segment"].tolist()), self._with_orphans()
        self._drop_from_index(dirty)
        rows = np.flatnonzero(kept & np.isin(target, dirty))
        code, _ = code_values(target[rows])
        order = np.argsort(code, kind="stable")
        segments = np.split(rows[order], np.flatnonzero(np.diff(code[order])) + 1)
        entries = [self._save_one(int(target[one[0]]), one, table, orphans) for one in segments if len(one)]
        written = {entry[0] for entry in entries}
        for segment in known.intersection(dirty.tolist()) - written:
            self.store.remove(f"s{segment}")
        for segment in with_orphans.intersection(dirty.tolist()) - {entry[0] for entry in entries if entry[-1]}:
            self.store.remove(f"o{segment}")
        if entries:
            new = np.array(entries, dtype=np.int64)
            for i, name in enumerate(INDEX_COLUMNS):
                self.index[name] = np.concatenate([self.index[name], new[:, i]])
        self.changed = self.rewrites = False
        self._save_index()

    def _save_one(self, segment: int, rows: Indices, table: WindowTable, orphans: Orphans) -> tuple[int, ...]:
        names, arrays = [], []
        for name in table.stored:
            names.append(name)
            arrays.append(_to_arrow(table[name][rows]))
        for prefix, pool, pointer in (("key.", table.keys, "key_at"), ("state.", table.state, "state_at")):
            taken = pool.take(table[pointer][rows])
            names.extend(prefix + name for name in taken.schema.names)
            arrays.extend(taken.columns)
        if self.plan.keeps_live:
            taken = table.live.take(table["live_at"][rows])
            names.extend("live." + name for name in taken.schema.names)
            arrays.extend(taken.columns)
        self.store.put(f"s{segment}", _bytes(pa.table(arrays, names=names)))
        held = orphans.of(rows, table)
        if held is not None:
            self.store.put(f"o{segment}", _bytes(held))
        due, wake = self._due(rows, table)
        start, end = int(table["start_us"][rows].min()), int(table["end_us"][rows].max())
        return segment, len(rows), start, end, due, wake, int(held is not None)

    def _due(self, rows: Indices, table: WindowTable) -> tuple[int, int]:
        """The least watermark and the least clock at which something is due in these windows."""
        end = table["end_us"][rows]
        # The end is due though nothing asks there: an empty pane at expiry is on time only if its step passes the end too.
        waits = table["asks_at_end"][rows] | self.plan.options.gives_empty_panes
        waits &= ~table["closed"][rows] & (end > self.clocks.watermark_us)
        due = int(np.where(waits, end, self.plan.expiry_us(end)).min())
        if not self.plan.options.trigger.needs_clock:
            return due, _NEVER
        open_ = rows[~table["closed"][rows]]
        return due, int(self.plan.options.trigger.wakes_at_columns(table.trigger, open_).min(initial=_NEVER))

    def _with_orphans(self) -> set[int]:
        return set(self.index["segment"][self.index["orphans"] > 0].tolist())

    def _drop_from_index(self, segments: NDArray[np.int64]) -> None:
        kept = ~np.isin(self.index["segment"], segments)
        self.index = {name: column[kept] for name, column in self.index.items()}

    def _save_index(self) -> None:
        about = {
            **self.plan.fingerprint,
            "changeable": self.plan.changeable,
            "format": FORMAT,
            "clocks": attrs.asdict(self.clocks),
            "dropped": self.dropped,
            "span_us": self.span_us,
        }
        table = pa.table(dict(self.index)).replace_schema_metadata({"beamish": json.dumps(about)})
        self.store.put("index", _bytes(table))


def segment_numbers(
    span_us: int, end_us: NDArray[np.int64], keys: Pool, key_at: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The segment that each of some windows belongs to, by its end, or by its key if it ends at the end of time."""
    number = end_us // span_us
    endless = np.flatnonzero(end_us == END_OF_TIME_US)
    if len(endless):
        hashes = hash_rows(keys.take(key_at[endless]).columns, len(endless))
        number[endless] = _ENDLESS + (hashes % np.uint64(_HASHED_SEGMENTS)).astype(np.int64)
    return number


def _least_span_us(plan: Plan) -> int:
    period = plan.window.period_us or 3_600_000_000
    return min(max(period, _SHORTEST_US, plan.options.allowed_lateness.us // _MOST_SEGMENTS), _LONGEST_US)


def _check_same(about: dict[str, Any], plan: Plan) -> None:
    if about["format"] != FORMAT:
        raise StateError(
            f"the checkpoint has state format {about['format']}, this version of beamish writes {FORMAT}: start from a new "
            "checkpoint, or use the version that wrote it"
        )
    for what, now in plan.fingerprint.items():
        then = about[what]
        # One accumulation more is safe: it counts from now on. Another meaning under an old name is not.
        same = {name: now.get(name) for name in then} == then if what == "accumulations" else then == now
        if not same:
            raise StateError(
                f"the checkpoint was written with {what} {then}, the pipeline now has {now}: keep the old one, or start "
                "from a new checkpoint (a trigger, allowed lateness, behaviors, only_updated_panes, with_dropped and "
                "further accumulations may change)"
            )


def _read(stored: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(stored)) as reader:
        return reader.read_all()


_WRITE = pa.ipc.IpcWriteOptions(compression="lz4")


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITE) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _to_arrow(column: NDArray[Any]) -> pa.Array:
    if column.dtype == object:
        return pa.array([None if cell is None else encode(cell) for cell in column.tolist()], pa.binary())
    return pa.array(column)


def _to_numpy(column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
    if dtype == "object":
        cells = np.empty(len(column), dtype=object)
        cells[:] = [None if cell is None else decode(cell) for cell in column.to_pylist()]
        return cells
    return np.array(column.to_numpy(), dtype=dtype)


def _prefixed(table: pa.Table, prefix: str, schema: pa.Schema, new: pa.Table | None = None) -> pa.Table:
    """The columns under a prefix; one that was not stored is as in ``new`` (one row), else null."""
    columns = []
    for field in schema:
        if prefix + field.name in table.schema.names:
            columns.append(table[prefix + field.name])
        elif new is None:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            columns.append(new[field.name].take(pa.array(np.zeros(table.num_rows, dtype=np.int64))))
    return pa.table(columns, schema=schema) if columns else rows_without_columns(table.num_rows)
