"""Stored rows of a stage of rolling spans: the live row of each key, and when its values may change next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import numpy as np
import pyarrow as pa

from beamish.contract.held import HeldRows
from beamish.contract.stored import Store
from beamish.contract.stored_keys import UNTIL_NEVER_US, StoredPart
from beamish.contract.updates import EARLY, TIMESTAMP, Updates, make_block
from beamish.instants import END_OF_TIME_US
from beamish.kernels.buffers import Ints
from beamish.kernels.codes import factorize_rows
from beamish.kernels.groups import Groups
from beamish.kinds.rolling.plan import TIME, RollingPlan
from beamish.kinds.rolling.tables import DEFAULT_POLICY, ROWS, SLICES, Rows, rows_table, slices_table
from beamish.watermarks import NO_WATERMARK_US

NAME = "rolling spans"


@attrs.frozen(eq=False)
class LiveRows(HeldRows):
    """The live rows of shards.

    Attributes:
        plan: of the stage.
    """

    plan: RollingPlan

    def needs(self, notes: Store) -> Iterable[str]:
        return (f"{SLICES}/", f"{ROWS}/")

    def held(self, store: Store) -> tuple[pa.Table, Ints, Ints]:
        plan, watermark_us = self.plan, self.operator.open(store).clocks.watermark_us
        rows, slices = rows_table(plan).open(store).stored(), slices_table(plan, DEFAULT_POLICY).open(store).stored()
        rows = rows.take(rows["live"])
        keys = pa.concat_tables([one.cells.select(plan.key_cells.names) for one in (rows, slices)])
        code = factorize_rows(keys.columns, keys.num_rows)
        of_rows, of_slices = code[: len(rows)], code[len(rows) :]
        latest = rows["time_us"] == of_rows.greatest(rows["time_us"])[of_rows.of]
        due_us = _next_changes(plan, of_slices, slices["start_us"], watermark_us)[of_rows.of[latest]]
        rows = rows.take(latest)
        return self.operator.rows([_updates(plan, rows)]), rows["time_us"], due_us


def stored_parts(plan: RollingPlan, store: Store, watermark_us: int) -> Iterator[StoredPart]:
    """The entries of keys in a shard: slices, and what changes when they enter and leave spans; emitted rows."""
    slices, rows = slices_table(plan, DEFAULT_POLICY).open(store).stored(), rows_table(plan).open(store).stored()
    start_us = slices["start_us"]
    then = "and a row is emitted if values change"
    changes = [(span.enters_us, f"rows enter the span {span.name!r}, {then}") for span in plan.spans]
    changes += [(span.leaves_us, f"rows leave the span {span.name!r}, {then}") for span in plan.spans]
    ahead = np.array([start_us + change_us for change_us, _ in changes])
    ahead[ahead <= watermark_us] = UNTIL_NEVER_US
    yield StoredPart(
        f"rows, in slices of {plan.rolling.step}",
        slices.keyed(plan.of.key_schema.names),
        start_us,
        start_us,
        slices["rows"],
        due_us=ahead.min(axis=0),
        then=[changes[i][1] for i in ahead.argmin(axis=0).tolist()],
        ends_us=start_us + plan.kept_us + plan.lateness_us,
    )
    live = rows.take(rows["live"])
    yield StoredPart(
        "emitted rows",
        live.keyed(plan.of.key_schema.names),
        live["time_us"],
        live["time_us"],
        values=live.values,
        ends_us=np.where(live["is_last"], live["time_us"] + plan.lateness_us, UNTIL_NEVER_US),
    )


def _next_changes(plan: RollingPlan, groups: Groups, start_us: Ints, watermark_us: int) -> Ints:
    """The next boundary at which slices enter or leave a span, by group; END_OF_TIME_US: none."""
    found = np.full(groups.count, END_OF_TIME_US)
    for change_us in plan.changes_us:
        boundary_us = start_us + change_us
        ahead = boundary_us > watermark_us if watermark_us != NO_WATERMARK_US else np.ones(len(start_us), bool)
        np.minimum.at(found, groups.of[ahead], boundary_us[ahead])
    return found


def _updates(plan: RollingPlan, rows: Rows) -> Updates:
    """Stored rows as the panes that they were."""
    index, timing = rows["panes"] - 1, rows["timing"]
    block = make_block(
        len(rows),
        timing=timing,
        windowless=True,
        index=index,
        on_time_index=np.where(timing == EARLY, -1, rows["later_panes"] - 1),
        is_first=index == 0,
        is_last=rows["is_last"],
        pane_time_us=rows["time_us"],
    )
    time = pa.array(rows["time_us"]).cast(TIMESTAMP)
    keys = rows.keyed(plan.of.key_schema.names)
    if plan.history:
        return Updates(block, keys.append_column(TIME, time), rows.values)
    return Updates(block, keys, rows.values.add_column(0, TIME, time))
