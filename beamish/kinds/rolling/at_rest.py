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
from beamish.kinds.rolling.past import past_table
from beamish.kinds.rolling.plan import ENDLESS_US, TIME, RollingPlan
from beamish.kinds.rolling.tables import DEFAULT_POLICY, PAST, ROWS, SLICES, Past, Rows, rows_table, slices_table
from beamish.triggers.trigger import NEVER_US
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
        past = (f"{PAST}/",) if self.plan.has_lifetime else ()
        return (f"{SLICES}/", f"{ROWS}/", *past)

    def held(self, store: Store) -> tuple[pa.Table, Ints, Ints]:
        plan, watermark_us = self.plan, self.operator.open(store).clocks.watermark_us
        rows, slices = rows_table(plan).open(store).stored(), slices_table(plan, DEFAULT_POLICY).open(store).stored()
        rows = rows.take(rows["live"])
        past = past_table(plan).open(store) if plan.has_lifetime else None
        known = Past.none(plan.past_cells) if past is None else past.stored()
        keys = pa.concat_tables([one.cells.select(plan.key_cells.names) for one in (rows, slices, known)])
        code = factorize_rows(keys.columns, keys.num_rows)
        of_rows, of_slices = code[: len(rows)], code[len(rows) : len(rows) + len(slices)]
        latest = rows["time_us"] == of_rows.greatest(rows["time_us"])[of_rows.of]
        changes_us = _next_changes(plan, of_slices, slices["start_us"], watermark_us)
        if past is not None:
            ends, of_past = past.ends(known), code.of[len(rows) + len(slices) :]
            np.minimum.at(changes_us, of_past[ends > watermark_us], ends[ends > watermark_us])
        due_us = changes_us[of_rows.of[latest]]
        rows = rows.take(latest)
        return self.operator.rows([_updates(plan, rows)]), rows["time_us"], due_us


def stored_parts(plan: RollingPlan, store: Store, watermark_us: int) -> Iterator[StoredPart]:
    """The entries of keys in a shard: slices, and what changes when they enter and leave spans; emitted rows."""
    slices, rows = slices_table(plan, DEFAULT_POLICY).open(store).stored(), rows_table(plan).open(store).stored()
    start_us = slices["start_us"]
    then = "and a row is emitted if values change"
    changes = [(span.enters_us, f"rows enter the span {span.name!r}, {then}") for span in plan.spans]
    leaves = [span for span in plan.spans if span.leaves_us != ENDLESS_US]
    changes += [(span.leaves_us, f"rows leave the span {span.name!r}, {then}") for span in leaves]
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
    if plan.has_lifetime:
        past = past_table(plan).open(store)
        known = past.stored()
        ends = past.ends(known)
        yield StoredPart(
            "rows before these, of which only accumulators are stored",
            known.keyed(plan.of.key_schema.names),
            known["last_us"],
            known["last_us"],
            known["rows"],
            due_us=np.where(ends > watermark_us, ends, UNTIL_NEVER_US),
            then="a last row is emitted",
            ends_us=np.where(
                ends == NEVER_US, UNTIL_NEVER_US, np.minimum(ends, NEVER_US - plan.lateness_us) + plan.lateness_us
            ),
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
