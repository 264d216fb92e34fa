"""The parts of window stages, in their order: that in which rows pass them (docs/rules/output.md#dropped-rows)."""

from __future__ import annotations

import pyarrow as pa

from beamish.kinds.window.duplicates import DuplicatesPart
from beamish.kinds.window.event_time import WatermarkProgress
from beamish.kinds.window.forgetting import ForgettingPart
from beamish.kinds.window.merged_panes import MergedPanesPart
from beamish.kinds.window.pairs_once import PairsOncePart
from beamish.kinds.window.part import Progress, WindowPart
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.removals import RemovalsPart
from beamish.kinds.window.retention import RetentionPart
from beamish.kinds.window.row_errors import RowErrorsPart
from beamish.kinds.window.row_windows import RowProgress
from beamish.kinds.window.timestamps import TimestampsPart

PARTS: tuple[type[WindowPart], ...] = (
    RetentionPart,
    PairsOncePart,
    RowErrorsPart,
    DuplicatesPart,
    RemovalsPart,
    TimestampsPart,
    ForgettingPart,
    MergedPanesPart,
)


def progress_of(plan: WindowPlan) -> Progress:
    """How far the windows of a plan come."""
    numbering = plan.options.numbering
    if numbering is None:
        return WatermarkProgress()
    return RowProgress(numbering, pa.schema([]) if numbering.over_stream else plan.key_schema)


def parts_of(plan: WindowPlan) -> tuple[WindowPart, ...]:
    """The parts that a plan asks for."""
    return tuple(part for kind in PARTS if (part := kind.of(plan)) is not None)
