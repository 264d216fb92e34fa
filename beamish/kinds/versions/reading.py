"""The versions that a shard holds at rest, as rows to look at."""

from __future__ import annotations

import base64
import json

import numpy as np
import pyarrow as pa

from beamish.contract.clocks import Clocks
from beamish.contract.pane_columns import timestamp_column
from beamish.contract.schemas import TIMESTAMP
from beamish.contract.store import Store
from beamish.errors import StateError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.codes import factorize_rows
from beamish.kernels.order import run_starts, sort_order
from beamish.kinds.versions.changes import Changes
from beamish.kinds.versions.horizon import horizon_us
from beamish.kinds.versions.note import ENTRY
from beamish.kinds.versions.options import VALID_FROM, VALID_TO
from beamish.kinds.versions.table import LAYOUT
from beamish.tables.segment_store import SegmentStore
from beamish.tables.segmented_records import SegmentedRecords
from beamish.watermarks import NO_WATERMARK_US


class StoredTable:
    """What a shard's store says of the versioned table in it.

    Attributes:
        cells: the columns of its changes: keys as ``key.<name>``, values as ``value.<name>``, ``sequence``.
        name: what the join calls it that keeps it; None: it is a stage of its own.
        oldest_us: the first instant of exact reads, microseconds.

    Raises:
        StateError: there is none.
    """

    def __init__(self, store: Store) -> None:
        stored = store.get(ENTRY)
        if stored is None:
            raise StateError("the state has no versioned table")
        self._store, about = store, json.loads(stored)
        self.cells = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(about["cells"])))
        self.name = about["name"]
        watermark_us, tolerance_us = Clocks.of(about["clocks"]).watermark_us, about["identity"].get("tolerance")
        self.oldest_us = horizon_us(watermark_us, about["spans"]["history"])
        self._begun_us = NO_WATERMARK_US if tolerance_us is None else horizon_us(self.oldest_us, tolerance_us)

    @property
    def schema(self) -> pa.Schema:
        """The columns of ``rows``."""
        own = [field for field in self.cells if field.name != "sequence"]
        own = [field.with_name(field.name.partition(".")[2]) for field in own]
        return pa.schema([*own, (VALID_FROM, TIMESTAMP), (VALID_TO, TIMESTAMP)])

    def rows(self, as_of_us: int | None) -> pa.Table:
        """Versions by key and time.

        Args:
            as_of_us: those valid at this instant, microseconds; None: those valid at the oldest or a later one.
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
        return pa.table([*cells.columns, *times], schema=self.schema)
