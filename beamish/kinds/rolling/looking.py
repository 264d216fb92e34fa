"""Keys that are looked at at boundaries, with their totals, slices and emitted rows, under a common coding of keys.

When the watermark passes boundaries, totals there are those at the watermark before, and what enters and leaves spans since. When late rows
correct a history, boundaries that have passed are looked at, and totals are computed from slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.contract.updates import EARLY, LATE, ON_TIME
from beamish.instants import END_OF_TIME_US, LATEST_US
from beamish.kernels.buffers import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.order import run_starts
from beamish.kinds.rolling.past import PastOfKeys
from beamish.kinds.rolling.plan import PAST_US, RollingPlan
from beamish.kinds.rolling.tables import EmittedRows, Slices, StandingTotals
from beamish.kinds.rolling.values import KeySlices, totals_from_slices
from beamish.tables.records import Records
from beamish.tables.timed_records import TimedRecords
from beamish.watermarks import NO_WATERMARK_US


@attrs.frozen(eq=False)
class Asked:
    """Keys, and boundaries at which they are looked at.

    Attributes:
        keys: n rows of key cells.
        boundary_us: int64[n].
        timing: int8[n], of a row that is emitted there.
        change: int64[n, width], by what the totals of the key change there.
    """

    keys: pa.Table
    boundary_us: Ints
    timing: NDArray[np.int8]
    change: Ints

    @classmethod
    def at(cls, plan: RollingPlan, keys: pa.Table, boundary_us: Ints | int, timing: int) -> Asked:
        """Keys with the same timing, whose totals do not change."""
        count = keys.num_rows
        return cls(
            keys,
            np.broadcast_to(np.asarray(boundary_us, np.int64), count),
            np.full(count, timing, np.int8),
            np.zeros((count, plan.totals_width), np.int64),
        )

    @classmethod
    def concat(cls, parts: Sequence[Asked]) -> Asked:
        """All of them."""
        return cls(
            pa.concat_tables([part.keys for part in parts]),
            np.concatenate([part.boundary_us for part in parts]),
            np.concatenate([part.timing for part in parts]),
            np.concatenate([part.change for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.boundary_us)


@attrs.frozen(eq=False)
class Looked:
    """The keys that are looked at, each at some boundaries.

    Attributes:
        keys: the keys, by code.
        slices_of: gives their slices that may count there.
        code, boundary_us: int64[n]: a key and a boundary, ordered, each pair once.
        timing: int8[n], of a row that is emitted there.
        totals: int64[n, width], the totals there.
        of_rows: int64[m], the code of the key of each of their emitted rows.
        rows_at: int64[m], the index of each in memory.
    """

    keys: pa.Table
    slices_of: Callable[[], KeySlices]
    code: Ints
    boundary_us: Ints
    timing: NDArray[np.int8]
    totals: Ints
    of_rows: Ints
    rows_at: Ints


def keys_of(plan: RollingPlan, records: Records, at: Ints) -> pa.Table:
    """The key cells of some records."""
    return records.cells.select(plan.key_cells.names).take(pa.array(at))


@attrs.frozen(eq=False)
class Looking:
    """The tables of a shard that keys are looked up in.

    Attributes:
        plan: of the stage.
        slices, totals, rows, past: the tables; of the past only with a span without a beginning.
    """

    plan: RollingPlan
    slices: TimedRecords[Slices]
    totals: StandingTotals
    rows: EmittedRows
    past: PastOfKeys | None

    def ahead(self, asked: Asked, beside: Asked | None, watermark_us: int, *, stands: bool) -> Looked:
        """Keys at boundaries past the ones that totals are of.

        Args:
            asked: keys, and what changes at boundaries.
            beside: more changes, which count for keys that are asked early.
            watermark_us: of this part of the step.
            stands: whether the totals at the last boundary until the watermark are stored.
        """
        plan = self.plan
        every = asked if beside is None else Asked.concat([asked, beside])
        codes = factorize_rows(every.keys.columns, len(every))
        count = int(codes.of[: len(asked)].max(initial=-1)) + 1
        keys = every.keys.take(pa.array(codes.first()[:count])).combine_chunks()
        of_rows, rows_at = self._rows_of(keys)
        early = np.zeros(codes.count, bool)
        early[codes.of[: len(asked)][asked.timing == EARLY]] = True
        own = early[codes.of]
        own[: len(asked)] = True
        code, boundary_us, timing, change = codes.of[own], every.boundary_us[own], every.timing[own], every.change[own]
        if plan.history:
            more = _rows_since(self.rows.records["time_us"], of_rows, rows_at, code, boundary_us)
            code, boundary_us = (
                np.concatenate([code, of_rows[more]]),
                np.append(boundary_us, self.rows.records["time_us"][rows_at[more]]),
            )
            timing = np.append(timing, np.full(len(more), ON_TIME, np.int8))
            change = np.concatenate([change, np.zeros((len(more), plan.totals_width), np.int64)])
        order = np.lexsort((boundary_us, code))
        starts = np.flatnonzero(run_starts([code[order], boundary_us[order]]))
        change = np.add.reduceat(change[order], starts, axis=0)
        code, boundary_us, timing = code[order][starts], boundary_us[order][starts], timing[order][starts]
        first = np.flatnonzero(run_starts([code]))
        of_first = np.repeat(np.arange(len(first)), np.diff(first, append=len(code)))
        totals = np.cumsum(change, axis=0)
        before = totals[first] - change[first]
        totals += (self.totals.of(keys)[code[first]] - before)[of_first]
        if stands:
            reached = boundary_us <= watermark_us
            last = np.flatnonzero(reached & np.append((code[1:] != code[:-1]) | ~reached[1:], True))
            self.totals.replace(keys.take(pa.array(code[last])), totals[last])
        self._leave_out(keys, code, boundary_us, totals)
        if not plan.history:  # an early row is ahead, and stays
            latest_us = np.full(count, NO_WATERMARK_US)
            latest_us[of_rows] = self.rows.records["time_us"][rows_at]
            kept = boundary_us >= latest_us[code]
            code, boundary_us, timing, totals = code[kept], boundary_us[kept], timing[kept], totals[kept]
        slices_of = self._slices_of(keys, boundary_us)
        return Looked(keys, slices_of, code, boundary_us, timing, totals, of_rows, rows_at)

    def back(self, asked: Asked, watermark_us: int) -> Looked:
        """Keys of a history from a boundary on: a ``LATE`` one at the first boundary that its new rows may have changed."""
        plan = self.plan
        codes = factorize_rows(asked.keys.columns, len(asked))
        keys = asked.keys.take(pa.array(codes.first())).combine_chunks()
        of_rows, rows_at = self._rows_of(keys)
        until_us = plan.boundary(min(watermark_us, LATEST_US))
        slices_of = self._slices_of(keys, np.append(asked.boundary_us, until_us))
        slices = slices_of()
        since_us = np.full(codes.count, END_OF_TIME_US)
        np.minimum.at(since_us, codes.of, asked.boundary_us)
        late = np.zeros(codes.count, bool)
        late[codes.of[asked.timing == LATE]] = True
        parts = [(codes.of, asked.boundary_us)]
        for change_us in plan.changes_us:
            changes = slices.start_us + change_us
            inside = late[slices.code] & (changes >= since_us[slices.code]) & (changes <= until_us)
            parts.append((slices.code[inside], changes[inside]))
        time_us = self.rows.records["time_us"]
        more = _rows_since(time_us, of_rows, rows_at, codes.of, asked.boundary_us)
        parts.append((of_rows[more], time_us[rows_at[more]]))
        if self.past is not None and plan.forget_us is not None:
            ends = self.past.latest(keys) + (plan.forget_us + plan.step_us)
            ended = np.flatnonzero(late & (ends >= since_us) & (ends <= until_us))
            parts.append((ended, ends[ended]))
        code, boundary_us = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((boundary_us, code))
        order = order[run_starts([code[order], boundary_us[order]])]
        code, boundary_us = code[order], boundary_us[order]
        timing = np.where(boundary_us > until_us, EARLY, LATE).astype(np.int8)
        totals = totals_from_slices(plan, slices, code, boundary_us)
        self._leave_out(keys, code, boundary_us, totals)
        return Looked(keys, slices_of, code, boundary_us, timing, totals, of_rows, rows_at)

    def _leave_out(self, keys: pa.Table, code: Ints, boundary_us: Ints, totals: Ints) -> None:
        """Set the totals of keys to 0 at boundaries where they are not present, for want of rows."""
        if self.past is not None and self.plan.forget_us is not None:
            totals[boundary_us > self.past.latest(keys)[code] + self.plan.forget_us] = 0

    def _rows_of(self, keys: pa.Table) -> tuple[Ints, Ints]:
        """The emitted rows of distinct keys: the code of each, and its index in memory."""
        self.rows.load_keys(keys)
        at = np.flatnonzero(self.rows.alive & (self.rows.records["panes"] > 0))
        of, inside = self._codes(keys, keys_of(self.plan, self.rows.records, at))
        return of, at[inside]

    def _codes(self, keys: pa.Table, others: pa.Table) -> tuple[Ints, NDArray[np.bool_]]:
        """The codes of those of other keys that are among some distinct keys, and which are."""
        both = pa.concat_tables([keys, others])
        code = factorize_rows(both.columns, both.num_rows).of[keys.num_rows :]
        return code[code < keys.num_rows], code < keys.num_rows

    def _slices_of(self, keys: pa.Table, boundary_us: Ints) -> Callable[[], KeySlices]:
        """The slices of distinct keys that may count, or have just left spans, at boundaries."""

        @cache
        def read() -> KeySlices:
            plan = self.plan
            if not len(boundary_us):
                none = np.zeros((0, plan.totals.width), np.int64)
                return KeySlices(boundary_us, boundary_us, boundary_us, plan.of.new_state.slice(0, 0), none)
            since_us = NO_WATERMARK_US if plan.has_lifetime else int(boundary_us.min()) - plan.kept_us
            at = self.slices.between(since_us, int(boundary_us.max()))
            of, inside = self._codes(keys, keys_of(plan, self.slices.records, at))
            own = self.slices.records.take(at[inside])
            start_us, rows, state, totals = own["start_us"], own["rows"], own.state, plan.totals.lift(own.state)
            if self.past is not None:
                past = self.past.of(keys)
                of, rows = np.append(past.code, of), np.append(past.rows, rows)
                start_us = np.append(np.full(len(past.code), PAST_US), start_us)
                state, totals = pa.concat_tables([past.state, state]), np.concatenate([past.totals, totals])
            return KeySlices.ordered(of, start_us, rows, state, totals)

        return read


def _rows_since(time_us: Ints, of_rows: Ints, rows_at: Ints, code: Ints, boundary_us: Ints) -> Ints:
    """Which emitted rows are at the first boundary where their key is looked at, or after it."""
    since_us = np.full(int(code.max(initial=-1)) + 1, END_OF_TIME_US)
    np.minimum.at(since_us, code, boundary_us)
    return np.flatnonzero(time_us[rows_at] >= since_us[of_rows])
