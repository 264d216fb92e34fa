"""What is held between two steps: segments of slots and their index, in the stage's store under ``held/<name>/``.

index       what the segments hold, and JSON about them
s<number>   a segment: slots, with their keys as ``key.<name>`` and their values as ``value.<name>``
t<number>   what a segment's slots take back, with its values as ``value.<name>`` (only where there is something)

columns of the index (one entry per segment, int64; ``_us``: microseconds since the epoch):
    segment                     its number
    slots, bytes                how many slots it has, and bytes of keys and values
    since_us, since_clock_us    the least of its slots that may leave; NEVER_US: none may
    end_us                      their windows' least end
    lasts                       how many of these bring a last pane
    takes_back                  1 if there is something that its slots take back, else 0

Due times are not stored but reckoned, so that what is waited for may change between two runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.store import Store
from beamish.errors import StateError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Flags, Ints
from beamish.kinds.suppress.held_table import STORED_COLUMNS, TAKEN_COLUMNS, HeldTable
from beamish.tables.pool import columns_under
from beamish.tables.stored_tables import entry_bytes, naming_entry, read_entry, table_of, write_entry
from beamish.triggers.trigger import NEVER_US

FORMAT = 1
INDEX = "index"
_INDEX_COLUMNS = ("segment", "slots", "bytes", "since_us", "since_clock_us", "end_us", "lasts", "takes_back")


def entry_name(suppress: str, name: str) -> str:
    """An entry of a suppress, in its stage's store."""
    return f"held/{suppress}/{name}"


class HeldStore:
    """The entries of a suppress in a store.

    Attributes:
        index: the index's columns.
        about: further notes about what is held, in terms of JSON.
    """

    def __init__(self, store: Store, name: str) -> None:
        """Read the index.

        Raises:
            StateError: it is of another format, or cannot be read.
        """
        self._store, self._name = store, name
        self._stored = store.get(self._entry(INDEX))
        self.about: dict[str, Any] = {}
        self.index: dict[str, NDArray[np.int64]] = {column: np.empty(0, np.int64) for column in _INDEX_COLUMNS}
        if self._stored is None:
            return
        table = table_of(self._entry(INDEX), self._stored)
        with naming_entry(self._entry(INDEX)):
            self.about = json.loads(table.schema.metadata[b"beamish"])
            self.index = {column: table[column].to_numpy().copy() for column in _INDEX_COLUMNS}
        if self.about["format"] != FORMAT:
            raise StateError(
                f"the checkpoint holds updates of suppress {name!r} in format {self.about['format']}, this version of beamish "
                f"writes {FORMAT}: start from a new checkpoint, or use the version that wrote it"
            )

    def _entry(self, name: str) -> str:
        return entry_name(self._name, name)

    @property
    def slots(self) -> int:
        """Number of slots held."""
        return int(self.index["slots"].sum())

    def read(self, number: int, held: HeldTable) -> Ints:
        """Append a segment's slots to the held table; gives their indices."""
        name = self._entry(f"s{number}")
        stored = read_entry(self._store, name)
        with naming_entry(name):
            columns = {column: _to_numpy(stored[column], dtype) for column, (dtype, _) in STORED_COLUMNS.items()}
            key_at = held.keys.append(columns_under(stored, "key.", held.keys.schema))
            values_at = held.values.append(columns_under(stored, "value.", held.values.schema))
            rows = held.append(
                stored.num_rows,
                **columns,
                key_at=key_at,
                values_at=values_at,
                segment=number,
                held_before=True,
                touched=False,
            )
        if self.index["takes_back"][self.index["segment"] == number].any():
            self._read_taken(number, held, rows)
        return rows

    def _read_taken(self, number: int, held: HeldTable, rows: Ints) -> None:
        name = self._entry(f"t{number}")
        stored = read_entry(self._store, name)
        with naming_entry(name):
            columns = {column: _to_numpy(stored[column], STORED_COLUMNS[column][0]) for column in TAKEN_COLUMNS}
            values_at = held.values.append(columns_under(stored, "value.", held.values.schema))
            held.take_back(rows[stored["owner"].to_numpy()], columns, values_at)

    def write(self, number: int, held: HeldTable, rows: Ints, may_leave: Flags) -> None:
        """Write slots as a segment, in place of what it was; none: it goes.

        Args:
            number: the segment's.
            held: the held table.
            rows: int64, the slots.
            may_leave: bool, one per slot of the table: whether it can leave by itself.
        """
        had = self.index["segment"] == number
        had_taken = bool(self.index["takes_back"][had].any())
        self.index = {name: column[~had] for name, column in self.index.items()}
        if not len(rows):
            if had.any():
                self._store.remove(self._entry(f"s{number}"))
                self._remove_taken(number, had=had_taken)
            return
        stored = {name: pa.array(held[name][rows]) for name in STORED_COLUMNS}
        keys, values = held.keys.take(held["key_at"][rows]), held.values.take(held["values_at"][rows])
        stored |= {f"key.{name}": keys[name] for name in keys.schema.names}
        stored |= {f"value.{name}": values[name] for name in values.schema.names}
        write_entry(self._store, self._entry(f"s{number}"), pa.table(stored))
        takes_back = self._write_taken(number, held, rows, had=had_taken)
        leaves = rows[may_leave[rows]]
        entry = {
            "segment": number,
            "slots": len(rows),
            "bytes": int(held["bytes"][rows].sum()),
            "since_us": int(held["since_us"][leaves].min(initial=NEVER_US)),
            "since_clock_us": int(held["since_clock_us"][leaves].min(initial=NEVER_US)),
            "end_us": int(ends(held)[leaves].min(initial=NEVER_US)),
            "lasts": int((held["is_last"] & held["has_pane"])[leaves].sum()),
            "takes_back": int(takes_back),
        }
        self.index = {name: np.append(column, entry[name]) for name, column in self.index.items()}

    def _write_taken(self, number: int, held: HeldTable, rows: Ints, *, had: bool) -> bool:
        mine = np.isin(held.taken["owner"], rows)
        if not mine.any():
            self._remove_taken(number, had=had)
            return False
        position = np.full(len(held), -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        values = held.values.take(held.taken["values_at"][mine])
        stored = {name: pa.array(held.taken[name][mine]) for name in TAKEN_COLUMNS}
        stored["owner"] = pa.array(position[held.taken["owner"][mine]])
        stored |= {f"value.{name}": values[name] for name in values.schema.names}
        write_entry(self._store, self._entry(f"t{number}"), pa.table(stored))
        return True

    def _remove_taken(self, number: int, *, had: bool) -> None:
        if had:
            self._store.remove(self._entry(f"t{number}"))

    def save(self) -> None:
        """Write the index, if it is another than before."""
        about = json.dumps({"format": FORMAT, **self.about})
        table = pa.table(self.index).replace_schema_metadata({"beamish": about})
        stored = entry_bytes(table)
        if stored != self._stored:
            self._store.put(self._entry(INDEX), stored)
            self._stored = stored

    def segments(self, wanted: Flags | Iterable[int]) -> Sequence[int]:
        """The numbers of segments: those of some entries of the index, or of some numbers those that are there."""
        if isinstance(wanted, np.ndarray) and wanted.dtype == bool:
            return self.index["segment"][wanted].tolist()  # type: ignore[no-any-return]
        known = set(self.index["segment"].tolist())
        return [number for number in dict.fromkeys(wanted) if number in known]


def ends(held: HeldTable) -> Ints:
    """The ends of slots' windows, int64 microseconds; of what is in no window the end of time."""
    return np.where(held["windowless"], END_OF_TIME_US, held["end_us"])


def _to_numpy(column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
    return np.array(column.to_numpy(), dtype=dtype)
