"""Binding a window stage's options to its inputs: the plan."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from beamish.accumulations.base.columnar import is_number
from beamish.accumulations.joins import Join
from beamish.contract.inputs import check_keys, check_where, find_column, has_no_rows, merged_inputs, merged_schema
from beamish.contract.relation import Relation
from beamish.errors import ColumnError
from beamish.kernels.column_names import SIGN, is_reserved
from beamish.kernels.expressions import check_condition
from beamish.kinds.deduplicate.plan import check_ids
from beamish.kinds.window.parts.anchors import AnchorsPart
from beamish.kinds.window.parts.duplicates import DuplicatesPart
from beamish.kinds.window.parts.event_time import WatermarkProgress
from beamish.kinds.window.parts.forgetting import ForgettingPart
from beamish.kinds.window.parts.key_watermarks import KeyProgress
from beamish.kinds.window.parts.match_conditions import MatchConditionsPart
from beamish.kinds.window.parts.merged_panes import MergedPanesPart
from beamish.kinds.window.parts.null_keys import NullKeysPart
from beamish.kinds.window.parts.pairs_once import PairsOncePart
from beamish.kinds.window.parts.removals import RemovalsPart
from beamish.kinds.window.parts.retention import RetentionPart
from beamish.kinds.window.parts.row_errors import RowErrorsPart
from beamish.kinds.window.parts.row_windows import RowProgress, check_numbering
from beamish.kinds.window.parts.timestamps import TimestampsPart
from beamish.kinds.window.plan.binding import BoundAccumulation, bind_accumulations
from beamish.kinds.window.plan.options import WindowOptions
from beamish.kinds.window.plan.part import Progress, WindowPart
from beamish.kinds.window.plan.plan import WindowPlan

PARTS: tuple[type[WindowPart], ...] = (
    MatchConditionsPart,
    NullKeysPart,
    RetentionPart,
    PairsOncePart,
    RowErrorsPart,
    DuplicatesPart,
    RemovalsPart,
    TimestampsPart,
    ForgettingPart,
    MergedPanesPart,
    AnchorsPart,
)


def progress_of(plan: WindowPlan) -> Progress:
    """The progress of a plan's windows."""
    numbering = plan.options.numbering
    if numbering is None:
        return KeyProgress.of(plan) or WatermarkProgress()
    return RowProgress(numbering, pa.schema([]) if numbering.over_stream else plan.key_schema)


def parts_of(plan: WindowPlan) -> tuple[WindowPart, ...]:
    """The parts of a plan."""
    return tuple(part for kind in PARTS if (part := kind.of(plan)) is not None)


def make_plan(
    options: WindowOptions, takes: Sequence[Relation], shards: int, *, suppressed: bool = False
) -> WindowPlan:
    """Bind a window stage to its inputs and their schemas; ``suppressed``: a suppress follows.

    Raises:
        ColumnError: a column is missing, ambiguous, or of the wrong type.
    """
    schema = merged_schema(takes) if takes[0].name is not None else takes[0].columns
    window_columns = options.window.columns if options.window else ()
    added = [name for name in window_columns if is_reserved(name) and name not in schema.names]
    schema = pa.schema(
        [
            *schema,
            *((name, pa.int64()) for name in added),
            *([(SIGN, pa.int8())] if any(relation.retracts for relation in takes) else []),
        ]
    )
    keys = takes[0].keys
    check_keys(schema, keys)
    for name in window_columns:
        find_column(schema, f"window({options.window!r})", name)
    accumulations = tuple(
        bind_accumulations(options.accumulations, merged_inputs(takes, schema), schema, options.window, keys)
    )
    _check_asked_values(options, accumulations)
    for relation in takes:
        check_where(relation, relation.where or options.where)
        _check_match_conditions(options, relation)
    numbering = options.numbering
    if numbering is not None:
        check_numbering(options.window, numbering, schema)
    if options.deduplication is not None:
        check_ids(schema, options.deduplication)
    everything = options.lists_dropped or any(bound.accumulation.inputs is None for bound in accumulations)
    wanted = {
        SIGN,
        *keys,
        *window_columns,
        *options.id_columns,
        *(() if numbering is None else numbering.columns),
        *(column for bound in accumulations for column in bound.columns),
    }
    travelling = [field for field in schema if everything or field.name in wanted]
    plan = WindowPlan(options, tuple(takes), pa.schema(travelling), shards, accumulations, suppressed)
    plan.progress, plan.parts = progress_of(plan), parts_of(plan)
    return plan


def _check_match_conditions(options: WindowOptions, relation: Relation) -> None:
    """Check the condition of an input of a join against its columns (ColumnError: not a condition over these columns)."""
    for name, join in options.accumulations.items():
        condition = join.match_if.get(str(relation.name)) if isinstance(join, Join) else None
        if condition is not None and not has_no_rows(relation):
            where = f"accumulate({name}={type(join).__name__}(match_if={{{relation.name!r}: {condition!r}}}))"
            check_condition(where, condition, relation.columns)


def _check_asked_values(options: WindowOptions, accumulations: Sequence[BoundAccumulation]) -> None:
    for bound in accumulations:
        type_ = bound.accumulation.value_type(bound.types)
        if bound.name in options.trigger.asked_values and not is_number(type_):
            raise ColumnError(
                f"trigger {options.trigger!r}: the value of {bound.name}={bound.bound!r} is {type_}, and must be a number; use "
                "another accumulation, such as Count()"
            )
