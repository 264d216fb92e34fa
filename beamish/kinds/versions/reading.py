"""The stored versions of a shard, as rows."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.at_rest import Answer, Asked, AtRest
from beamish.contract.clocks import Clocks, horizon_us
from beamish.contract.stored import Store
from beamish.contract.stored_keys import StoredPart
from beamish.contract.updates import TIMESTAMP, timestamp_column
from beamish.errors import OptionError, StateError
from beamish.instants import END_OF_TIME_US, instant
from beamish.kernels.codes import factorize_rows
from beamish.kernels.order import run_starts, sort_order
from beamish.kinds.versions.folding import Changes
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.kinds.versions.table import LAYOUT
from beamish.tables.notes import VERSIONS
from beamish.tables.records import SegmentedRecords
from beamish.tables.segments import SegmentStore
from beamish.watermarks import NO_WATERMARK_US


def rows_schema(cells: pa.Schema) -> pa.Schema:
    """The columns of a table's versions; ``cells``: as in ``StoredTable``."""
    own = [field.with_name(field.name.partition(".")[2]) for field in cells if field.name != "sequence"]
    return pa.schema([*own, (VALID_FROM, TIMESTAMP), (VALID_TO, TIMESTAMP)])


class StoredTable:
    """The versioned table in a shard's store.

    Attributes:
        cells: the columns of its changes: keys as ``key.<name>``, values as ``value.<name>``, ``sequence``.
        name: its name in the join; None: a stage of its own.
        oldest_us: the first instant of exact reads, microseconds.
    """

    def __init__(self, store: Store) -> None:
        self._store, about = store, json.loads(store.get(VERSIONS) or b"")
        self.cells = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(about["cells"])))
        self.name = about["name"]
        watermark_us, tolerance_us = Clocks.of(about["clocks"]).watermark_us, about["identity"].get("tolerance")
        self.oldest_us = horizon_us(watermark_us, about["spans"]["history"])
        self._begun_us = NO_WATERMARK_US if tolerance_us is None else horizon_us(self.oldest_us, tolerance_us)

    def rows(self, as_of_us: int | None) -> pa.Table:
        """Versions by key and time.

        Args:
            as_of_us: versions valid at this instant, microseconds; None: versions valid at the oldest instant or later.
        """
        changes = SegmentedRecords(SegmentStore(self._store, LAYOUT), Changes.none(self.cells)).stored()
        changes = changes.take(changes["counts"] & ~changes["deletes"])
        code = factorize_rows(changes.keys, len(changes)).of
        order = sort_order([code, changes["from_us"]])
        changes, code = changes.take(order), code[order]
        starts = np.flatnonzero(run_starts([code, changes["version_us"]]))
        changes = changes.take(np.append(starts[1:], len(code))[: len(starts)] - 1)
        from_us, to_us = changes["version_us"], changes["to_us"]
        since_us, until_us = (self.oldest_us, END_OF_TIME_US) if as_of_us is None else (as_of_us, as_of_us)
        is_open = to_us == END_OF_TIME_US
        valid = (from_us <= until_us) & np.where(is_open, from_us >= self._begun_us, since_us < to_us)
        changes, from_us, to_us = changes.take(valid), from_us[valid], to_us[valid]
        cells = changes.cells.drop_columns(["sequence"]) if "sequence" in changes.cells.schema.names else changes.cells
        none = np.zeros(len(from_us), dtype=bool)
        times = [timestamp_column(from_us, none), pa.array(to_us, mask=to_us == END_OF_TIME_US).cast(TIMESTAMP)]
        return pa.table([*cells.columns, *times], schema=rows_schema(self.cells))


def stored_versions(store: Store, keys: Sequence[str], what: str) -> Iterator[StoredPart]:
    """The versions of a shard's keys; ``keys``: the names that the stage has for them."""
    if store.get(VERSIONS) is None:
        return
    rows = StoredTable(store).rows(None)
    from_us = rows[VALID_FROM].combine_chunks().cast(pa.int64()).to_numpy()
    own = rows.select(list(range(len(keys)))).rename_columns(list(keys))
    values = rows.drop_columns([*rows.schema.names[: len(keys)], VALID_FROM, VALID_TO])
    yield StoredPart(what, own, from_us, from_us, values=values)


@attrs.frozen(eq=False)
class TableAtRest(AtRest):
    """The versioned table of a stage.

    Attributes:
        tables: its parts in the shards, at least one.
    """

    tables: Sequence[StoredTable]

    @classmethod
    def of(cls, notes: Sequence[Store], name: str | None) -> TableAtRest:
        """The table with this name (StateError: there is no such table)."""
        tables = [StoredTable(store) for store in notes if store.get(VERSIONS) is not None]
        if all(table.name != name for table in tables):
            raise StateError(f"versions({name!r}): there is no versioned table of this name")
        return cls(tables)

    def answer(self, asked: Asked) -> Answer:
        oldest_us, as_of_us = max(table.oldest_us for table in self.tables), asked.as_of_us
        if as_of_us is not None and as_of_us < oldest_us:
            raise OptionError(
                f"versions(as_of={asked.as_of!r}): before the history, which begins at {instant(oldest_us)}; give a later time, or a longer history from the table's first run on"
            )
        return Versions(self.tables[0].cells, as_of_us)


@attrs.frozen(eq=False)
class Versions(Answer):
    """The versions in a table.

    Attributes:
        cells: as those of ``StoredTable``.
        as_of_us: as in ``StoredTable.rows``.
    """

    cells: pa.Schema
    as_of_us: int | None

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the key columns."""
        return tuple(name.removeprefix("key.") for name in self.cells.names if name.startswith("key."))

    @property
    def schema(self) -> pa.Schema:
        """Keys, values, ``valid_from``, ``valid_to``."""
        return rows_schema(self.cells)

    def needs(self, notes: Store) -> Iterable[str]:
        return (LAYOUT.entry(""),)

    def read(self, store: Store) -> pa.Table:
        return self.schema.empty_table() if store.get(VERSIONS) is None else StoredTable(store).rows(self.as_of_us)
