"""The reach of each group of rows that are counted together: how far their numbers have come (docs/rules/windows.md#windows-of-rows).

Groups are keys, or the stream, which is one group.

columns (one entry per group):
    reach       int64: given numbers: how many rows it has; brought: the greatest number that came + 1, less the delay; NONE before
                the first row
    latest_us   int64, microseconds: the latest event time of its rows; NONE: none had one
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.store import Store
from beamish.instants import END_OF_TIME_US
from beamish.kernels.arrays import Ints
from beamish.kinds.window.plan import WindowPlan
from beamish.tables.keyed_records import NOWHERE, KeyedRecords
from beamish.tables.pool import rows_without_columns
from beamish.tables.records import Records

NAME = "reaches"
"""Before the entries of reaches in a shard's store."""
NONE = np.iinfo(np.int64).min
"""No row has come; no event time."""


@attrs.frozen(eq=False)
class Reach(Records):
    """How far groups have come."""

    COLUMNS: ClassVar[dict[str, tuple[str, Any]]] = {"reach": ("int64", NONE), "latest_us": ("int64", NONE)}


class Reaches(KeyedRecords[Reach]):
    """The groups of a shard, those that a step has read.

    Args:
        plan: the stage's plan; its windows are of rows.
        store: the shard's.

    Raises:
        StateError: the index cannot be read.
    """

    def __init__(self, plan: WindowPlan, store: Store) -> None:
        numbering = plan.numbering
        assert numbering is not None  # noqa: S101 - windows of rows say how rows are numbered
        self._idle_us = None if numbering.idle is None else numbering.idle.us
        super().__init__(plan.key_schema if plan.counts_by_key else pa.schema([]), Reach, store, NAME)
        self._together = not plan.counts_by_key
        self._before: Ints | None = None
        self._ended = self._ended_before = False

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which a group may have fallen idle; None: none ever does."""
        return None if self._idle_us is None else self.next_due

    def of(self, groups: Ints) -> Ints:
        """The reach of each group now; one that is nowhere has been forgotten, so it is endless."""
        return self._of(self._reach, groups, ended=self._ended)

    def of_stream(self) -> int:
        """How far the rows have come that are all counted together; of rows that are counted by key no number is right for all."""
        return int(self.of(self.find(rows_without_columns(1), new=True))[0]) if self._together else NONE

    def before(self, groups: Ints) -> Ints:
        """The same when this part of the step began."""
        before = self._reach if self._before is None else self._before
        return self._of(np.append(before, self._reach[len(before) :]), groups, ended=self._ended_before)

    @property
    def _reach(self) -> Ints:
        return self.records["reach"]

    def _of(self, reach: Ints, groups: Ints, *, ended: bool) -> Ints:
        if ended:
            return np.full(len(groups), END_OF_TIME_US)
        return np.where(groups == NOWHERE, END_OF_TIME_US, np.append(reach, END_OF_TIME_US)[groups])

    def begin_part(self) -> None:
        """A part of the step begins: what is reached from now on is new."""
        self._before, self._ended_before = None, self._ended

    def end(self) -> None:
        """The end of time has come: all is reached."""
        self._ended = True

    def counted(self, groups: Ints) -> Ints:
        """How many rows each group has; of given numbers."""
        return np.maximum(self._reach[groups], 0)

    def advance(self, groups: Ints, reach: Ints, latest_us: Ints) -> None:
        """Groups have come so far; it does not go back.

        Args:
            groups: int64[n], indices of groups, each once.
            reach: int64[n].
            latest_us: int64[n], the latest event time of their new rows; NONE: none had one.
        """
        self._note_before()
        records = self.records
        for name, values in (("reach", reach), ("latest_us", latest_us)):
            records[name][groups] = np.maximum(records[name][groups], values)
        self.touch(groups)

    def idle(self, watermark_us: int) -> Ints:
        """The groups that are idle at a watermark: int64, indices."""
        if self._idle_us is None:
            return np.empty(0, dtype=np.int64)
        self.load_due(watermark_us)
        latest_us = self.records["latest_us"]
        over = (latest_us != NONE) & (_until_us(latest_us, self._idle_us) <= watermark_us)
        return np.flatnonzero(self.alive & over)

    def forget(self, groups: Ints) -> None:
        """Their windows are at their ends, and if there are further rows of them, these are numbered from 0 on."""
        self._note_before()
        self._reach[groups] = END_OF_TIME_US
        self.remove(groups)

    def _note_before(self) -> None:
        if self._before is None:
            self._before = self._reach.copy()

    def save(self, watermark_us: int) -> None:
        """Write what the step has changed, wherever the watermark stands."""
        self.save_due(lambda groups: groups["reach"] != NONE, lambda groups: self._due_us(groups["latest_us"]))
        self._before = None

    def _due_us(self, latest_us: Ints) -> Ints:
        if self._idle_us is None:
            return np.full(len(latest_us), END_OF_TIME_US)
        return np.where(latest_us == NONE, END_OF_TIME_US, _until_us(latest_us, self._idle_us))


def _until_us(latest_us: Ints, idle_us: int) -> Ints:
    return np.minimum(latest_us, END_OF_TIME_US - idle_us) + idle_us
