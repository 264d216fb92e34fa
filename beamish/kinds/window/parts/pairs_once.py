"""Joins that emit each pair once: retention of rows in windows after they fire.

See docs/rules/stages.md#each-pair-once. Rows are stored in the accumulators (accumulations/base/pairs_once.py).

columns:
    keeps_until_us      the least watermark at which one of its rows expires, or NEVER_US; for joins with ``keep_for``
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.base.pairs_once import PairsOnce
from beamish.accumulations.joins import Join
from beamish.contract.drops import OUT_OF_RETENTION
from beamish.contract.relation import Relation
from beamish.contract.stored import Store
from beamish.errors import PipelineError
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import NO_VALUE, Flags, Ints, numbers
from beamish.kernels.column_names import INPUT, KEPT_BY, NUMBER
from beamish.kernels.groups import Groups
from beamish.kinds.suppress.option import Suppress
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.plan.part import WindowPart
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.kinds.window.state.window_table import WindowTable
from beamish.kinds.window.step.bundle import Bundle
from beamish.kinds.window.step.drops import drop_from_windows
from beamish.kinds.window.step.entries import Entries
from beamish.kinds.window.step.firing import Firing
from beamish.kinds.window.step.step import Step
from beamish.modes import AccumulationMode
from beamish.triggers.trigger import NEVER_US, WindowIndices
from beamish.windows.within import Within

KEEPS_UNTIL = "keeps_until_us"


def joins_once(accumulations: Mapping[str, Accumulation]) -> Iterator[tuple[str, Join]]:
    """The join with ``once``, and its name; it is the only accumulation of its stage."""
    for name, one in accumulations.items():
        if isinstance(one, Join) and one.once:
            yield name, one


def check_pairs_once(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check that a stage can emit each pair once.

    Raises:
        PipelineError: it accumulates, its input retracts, or unmatched rows may be in several windows.
    """
    window = options.window
    for name, join in joins_once(options.accumulations):
        where = f"accumulate({name}={join!r})"
        if any(relation.retracts for relation in takes):
            raise PipelineError(
                f"{where} over rows that are retracted: a pair is emitted once and cannot be retracted; leave once=True out, or "
                "make the stage before accumulating() or discarding()"
            )
        if options.mode not in (None, AccumulationMode.DISCARDING):
            raise PipelineError(
                f"{where} with {options.mode}: its panes hold only new pairs; use .discarding(), or leave once=True out"
            )
        if window is None or window.windowings or not window.may_overlap:
            continue
        own = f"; if each row is in one window, set overlaps = False in {type(window).__name__}"
        own = own if type(window).__module__.partition(".")[0] != "beamish" else ""
        if window.merging:
            raise PipelineError(
                f"{where} in {window!r}: a row may be in several windows that merge, and then be joined twice; leave once=True "
                f"out{own}"
            )
        if (join.keeps_left or join.keeps_right) and not isinstance(window, Within):  # there a row has one of its own
            raise PipelineError(
                f"{where} in {window!r}: a row may be in several windows, and none knows whether it had a match in another; use "
                f"InnerJoin, or windows that do not overlap{own}"
            )


def check_pairs_once_suppressed(options: WindowOptions, suppress: Suppress) -> None:
    """Check that a join with ``once`` is not suppressed (PipelineError: it is)."""
    for name, join in joins_once(options.accumulations):
        raise PipelineError(
            f"suppress({suppress.until!r}) over accumulate({name}={join!r}): each pair is emitted once, so there is nothing to "
            "suppress; remove the suppress or once=True"
        )


def describe_pairs_once(join: Join, options: WindowOptions) -> str:
    """When a pair is emitted, and which rows are stored, for explain."""
    window = options.window
    several = window is not None and window.may_overlap and not isinstance(window, Within)  # where a pair is in one
    words = "each is emitted once, when its second row arrives" + ", in the first window with both" * several
    if window is not None and window.merging:
        words += " or their windows merge"
    alone = [name for name, comes in ((join.left, join.keeps_left), (join.right, join.keeps_right)) if comes]
    if alone:
        words += f"; an unmatched row of {' or '.join(alone)} is emitted once, in the last pane or when it expires"
    limits = [f"the latest {rows} rows of {name}" for name, rows in join.keep_rows.items()]
    limits += [f"rows of {name} until the watermark is {kept} past them" for name, kept in join.keep_for.items()]
    of_all = f"; stored per key and window: {' and '.join(limits)}" if limits else "; a window stores its rows"
    return words + of_all


class PairsOncePart(WindowPart):
    """Stores the rows of a join with ``once``.

    Args:
        join: the only accumulation of the stage.
        numbered: how many rows of the shard have a number.
    """

    keeps_state = True

    def __init__(self, join: PairsOnce, numbered: int = 0) -> None:
        self._join, self._numbered = join, numbered
        self._for_some_time = any(keeps.for_us is not None for keeps in join.keeps)
        self.columns = {KEEPS_UNTIL: ("int64", NEVER_US)} if self._for_some_time else {}
        self.waits_for_end = join.gives_alone

    @classmethod
    def of(cls, plan: WindowPlan) -> PairsOncePart | None:
        return cls(plan.exploding) if isinstance(plan.exploding, PairsOnce) else None

    def open(self, plan: WindowPlan, store: Store, about: Mapping[str, Any]) -> PairsOncePart:
        return PairsOncePart(self._join, about.get("numbered", 0))

    def noted(self) -> Mapping[str, Any]:
        return {"numbered": self._numbered} if self._join.numbered else {}

    def prepare(self, step: Step, bundle: Bundle) -> None:
        """Add a unique row number per shard, and the event time by which rows expire."""
        if self._join.numbered:
            first, self._numbered = self._numbered, self._numbered + bundle.table.num_rows
            own = pa.array(np.arange(first, self._numbered, dtype=np.int64))
            bundle.table = bundle.table.append_column(NUMBER, own)
        if self._join.dated:
            bundle.table = bundle.table.append_column(KEPT_BY, pa.array(_kept_by_us(bundle)))

    def admit(self, step: Step, bundle: Bundle, entries: Entries) -> Entries:
        """Drop the entries of rows that are past the ``keep_for`` of their input."""
        if not self._for_some_time or not len(entries.row):
            return entries
        old = np.zeros(bundle.table.num_rows, dtype=bool)
        which = numbers(bundle.table[INPUT].combine_chunks())
        for side, keeps in zip(self._join.sides, self._join.keeps, strict=True):
            if keeps.for_us is not None:
                old |= (which == side.number) & (keeps.until_us(_kept_by_us(bundle)) <= step.watermark_us)
        drop_from_windows(step, bundle, entries.only(old[entries.row]), OUT_OF_RETENTION)
        return entries.only(~old[entries.row])

    def ordered(self, step: Step, groups: Groups, target: WindowIndices) -> Groups:
        """Order by window end, then start: a pair is emitted in the first window with both rows."""
        if not self._join.numbered:
            return groups
        at = target[groups.first()]
        place = np.empty(groups.count, dtype=np.int64)
        place[np.lexsort((step.table["start_us"][at], step.table["end_us"][at]))] = np.arange(groups.count)
        return Groups(place[groups.of], groups.count)

    def on_rows(self, step: Step, bundle: Bundle, entries: Entries, groups: Groups, at: WindowIndices) -> None:
        if self._join.cuts:
            self._cut(step, at)

    def on_fire(self, step: Step, firing: Firing) -> None:
        """Emit unmatched rows with the last pane."""
        if self._join.gives_alone:
            at = firing.at[firing.last]
            state = self._join.of_last_pane(_state(step, at))
            _set_state(step, at, state)
            firing.emitted[firing.last] |= self._join.has_due(state)

    def after_fire(self, step: Step, firing: Firing) -> None:
        """Mark pairs as emitted; rows stay, except after the last pane."""
        stays = firing.at[~firing.last]
        _set_state(step, stays, self._join.after_pane(_state(step, stays)))
        if self._for_some_time:
            step.table[KEEPS_UNTIL][firing.at[firing.last]] = NEVER_US

    def on_progress(self, step: Step, open_: Flags) -> Flags | None:
        """Expire rows that the watermark has passed; unmatched ones count as new rows."""
        table = step.table
        if not self._for_some_time:
            return None
        at = np.flatnonzero(open_ & (table[KEEPS_UNTIL] <= step.watermark_us))
        if not len(at):
            return None
        alone = self._cut(step, at)
        table["touched"][at] = True
        at, alone = at[alone > 0], alone[alone > 0]
        table["unemitted_rows"][at] += alone
        table["unemitted_since_us"][at] = np.minimum(table["unemitted_since_us"][at], step.progress(at))
        step.plan.options.trigger.on_rows_columns(table.trigger, at, alone, step.now())
        asked = np.zeros(len(open_), dtype=bool)
        asked[at] = True
        return asked

    def due_us(self, table: WindowTable, at: WindowIndices) -> Ints | None:
        return table[KEEPS_UNTIL][at] if self._for_some_time else None

    def _cut(self, step: Step, at: WindowIndices) -> Ints:
        """Expire rows of windows; returns the number of unmatched ones: int64, one per window."""
        state, alone = self._join.cut(_state(step, at), step.watermark_us)
        _set_state(step, at, state)
        if self._for_some_time:
            step.table[KEEPS_UNTIL][at] = self._join.kept_until_us(state)
        return alone


def _kept_by_us(bundle: Bundle) -> Ints:
    """The event times for retention; the end of time for rows without."""
    return np.where(bundle.time_us == NO_VALUE, END_OF_TIME_US, bundle.time_us)


def _state(step: Step, at: WindowIndices) -> list[pa.Array]:
    return [column.combine_chunks() for column in step.table.state.take(step.table["state_at"][at]).columns]


def _set_state(step: Step, at: WindowIndices, state: list[pa.Array]) -> None:
    step.table["state_at"][at] = step.table.state.append(pa.table(state, schema=step.plan.state_schema))
