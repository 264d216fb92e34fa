"""The past of keys, with a span without a beginning: slices that have left all others are folded into one per key.

A slice is folded once all boundaries that may still change hold it in the same spans. So later rows and removals of such a time are added to
the folded slice, and whatever is computed at an open boundary takes it as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.stored import Store
from beamish.errors import NumericOverflowError, UserFunctionError, cause
from beamish.kernels.buffers import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kinds.rolling.plan import RollingPlan
from beamish.kinds.rolling.tables import PAST, Past, totals_column
from beamish.kinds.rolling.values import naming
from beamish.kinds.window.plan.binding import BoundAccumulation
from beamish.tables.buckets import BucketedRecords
from beamish.tables.records import DUE, RecordTable, keyed_layout, record_table
from beamish.triggers.trigger import NEVER_US
from beamish.watermarks import NO_WATERMARK_US


@attrs.frozen(eq=False)
class PastSlices:
    """The folded slices of keys.

    Attributes:
        code: int64[n], which key each is of.
        rows: int64[n], numbers of rows.
        state: n accumulators; those that are not folded are of no rows.
        totals: int64[n, width].
    """

    code: Ints
    rows: Ints
    state: pa.Table
    totals: Ints


class PastOfKeys(BucketedRecords[Past]):
    """The folded slices of a shard.

    Args:
        plan: of the stage.
        store: the shard's.
    """

    def __init__(self, plan: RollingPlan, store: Store) -> None:
        super().__init__(store, keyed_layout(PAST), Past.none(plan.past_cells), plan.key_cells.names)
        self._plan = plan

    # Reading

    def of(self, keys: pa.Table, *, before_rows: bool = False) -> PastSlices:
        """The folded slices of those of some distinct keys that have one.

        Args:
            keys: the keys.
            before_rows: whether rows and removals are added to the accumulators, and so only those are needed that cannot be of the
                new rows alone.
        """
        at = self.find(keys)
        code = np.flatnonzero(at >= 0)
        records = self.records.take(at[code])
        code, records = code[records["rows"] > 0], records.take(records["rows"] > 0)
        folded = self._whole if before_rows else self._plan.folded
        own, place = records.state, pa.array(np.zeros(len(records), np.int64))
        wanted = {name for bound in folded for name in _names(bound)}
        none = self._plan.of.new_state
        columns = [own[name] if name in wanted else none[name].take(place) for name in none.schema.names]
        state = pa.table(columns, schema=none.schema).combine_chunks()
        return PastSlices(code, records["rows"], state, records.totals)

    def latest(self, keys: pa.Table) -> Ints:
        """Where the latest slice of each of some distinct keys starts; NO_WATERMARK_US: it has none."""
        at = self.find(keys)
        latest_us = np.full(len(at), NO_WATERMARK_US)
        latest_us[at >= 0] = self.records["last_us"][at[at >= 0]]
        return latest_us

    def ends(self, records: Past) -> Ints:
        """The boundary from which on the key of each record is not present, for want of rows."""
        forget_us = self._plan.forget_us
        if forget_us is None:
            return np.full(len(records), NEVER_US)
        return records["last_us"] + (forget_us + self._plan.step_us)

    @property
    def next_due_us(self) -> int | None:
        """The least watermark at which a key has its last row, or is dropped."""
        due = min(self.segments.index[DUE].tolist(), default=NEVER_US)
        return None if due == NEVER_US else due

    def load_due(self, watermark_us: int) -> None:
        """Load the segments in which something is due."""
        self.load_where(self.segments.index[DUE] <= watermark_us)

    # Changes

    def see(self, keys: pa.Table, start_us: Ints) -> None:
        """Note where slices with new rows start."""
        codes = factorize_rows(keys.columns, keys.num_rows)
        one = keys.take(pa.array(codes.first())).combine_chunks()
        at, last_us = self.find(one), codes.greatest(start_us)
        known = np.flatnonzero(at >= 0)
        old = self.records.take(at[known])
        later = last_us[known] > old["last_us"]
        self.remove(at[known[later]])
        self.add(old.take(later).with_columns(last_us=last_us[known[later]]))
        new = np.flatnonzero(at < 0)
        rows, totals = np.zeros(len(new), np.int64), np.zeros((len(new), self._plan.totals.width), np.int64)
        self._store(one.take(pa.array(new)), rows, last_us[new], totals, self._none_of(len(new)))

    def fold(self, keys: pa.Table, start_us: Ints, rows: Ints, state: pa.Table, *, whole: bool = False) -> None:
        """Fold slices, in order of time.

        Args:
            keys: n keys.
            start_us: int64[n], where they start.
            rows: int64[n], numbers of rows; below 0: removals.
            state: their accumulators.
            whole: whether accumulators without totals hold the folded slice already, as ``of(..., before_rows=True)`` has it; then
                keys are distinct.

        Raises:
            UserFunctionError, NumericOverflowError: by an accumulation; it names the key.
        """
        plan = self._plan
        codes = factorize_rows(keys.columns, keys.num_rows)
        one = keys.take(pa.array(codes.first())).combine_chunks()
        at = self.find(one)
        known = np.flatnonzero(at >= 0)
        before = self.records.take(at[known])
        last_us, rows_now = codes.greatest(start_us), codes.sum(rows)
        totals = np.zeros((codes.count, plan.totals.width), np.int64)
        np.add.at(totals, codes.of, plan.totals.lift(state))
        rows_now[known] += before["rows"]
        totals[known] += before.totals
        last_us[known] = np.maximum(last_us[known], before["last_us"])
        order = np.lexsort((start_us, codes.of))
        groups = Groups(known, codes.count).followed_by(codes[order])
        old, new, columns = before.state, state.take(pa.array(order)), list[pa.Array]()
        for bound in plan.folded:
            own = bound.state_of(new)
            if whole and bound in self._whole:
                columns += own
                continue
            both = [
                pa.concat_arrays([old[name].combine_chunks(), column])
                for name, column in zip(_names(bound), own, strict=True)
            ]
            try:
                columns += bound.accumulation.combine(groups, both)
            except (UserFunctionError, NumericOverflowError) as error:
                raise naming(error, one, np.arange(codes.count), last_us + plan.step_us) from cause(error)
        self.remove(at[known])
        some = rows_now > 0
        kept = pa.array(some)
        self._store(
            one.filter(kept), rows_now[some], last_us[some], totals[some], [column.filter(kept) for column in columns]
        )
        if plan.forget_us is not None:  # the key is known until it is dropped
            none = int((~some).sum())
            self._store(
                one.filter(pa.array(~some)),
                np.zeros(none, np.int64),
                last_us[~some],
                np.zeros((none, plan.totals.width), np.int64),
                self._none_of(none),
            )

    def _store(self, keys: pa.Table, rows: Ints, last_us: Ints, totals: Ints, state: Sequence[pa.Array]) -> None:
        own = [totals_column(self._plan.totals.carried(totals))] if self._plan.totals.width else []
        cells = pa.table([*keys.columns, *own, *state], schema=self._plan.past_cells).combine_chunks()
        self.add(Past.new(cells, rows=rows, last_us=last_us))

    def _none_of(self, count: int) -> list[pa.Array]:
        """Accumulators of no rows."""
        none, place = self._plan.of.new_state, pa.array(np.zeros(count, np.int64))
        return [none[name].combine_chunks().take(place) for bound in self._plan.folded for name in _names(bound)]

    @cached_property
    def _whole(self) -> list[BoundAccumulation]:
        """The accumulations whose accumulators rows are added to: removals need the rows that they remove."""
        return [
            bound for bound in self._plan.folded if self._plan.of.signed and bound.name not in self._plan.totals.fields
        ]

    def save(self, watermark_us: int) -> None:
        lateness_us = self._plan.lateness_us

        def due_us(last_us: Ints) -> Ints:
            if self._plan.forget_us is None:
                return np.full(len(last_us), NEVER_US)
            ends = last_us + (self._plan.forget_us + self._plan.step_us)
            due: Ints = np.where(ends > watermark_us, ends, ends + lateness_us)
            return due

        self.write_buckets(
            lambda of: np.ones(len(of), bool), lambda columns, runs: {DUE: runs.least(due_us(columns["last_us"]))}
        )


def _names(bound: BoundAccumulation) -> list[str]:
    """The names of the columns of its accumulator."""
    return [f"{bound.name}.{i}" for i in range(len(bound.fields))]


def past_table(plan: RollingPlan) -> RecordTable[PastOfKeys]:
    """Declare the table of folded slices."""
    names = plan.key_cells.names
    return record_table(keyed_layout(PAST), Past.none(plan.past_cells), names, lambda store: PastOfKeys(plan, store))
