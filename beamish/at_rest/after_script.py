"""State of the shards of a script after each event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from beamish.at_rest.stage_plans import window_plan
from beamish.contract.operator import Operator
from beamish.contract.relation import Relation
from beamish.contract.store import DictStore
from beamish.flow import Flow
from beamish.kinds.as_of.operator import AsOfOperator
from beamish.kinds.suppress.operator import SuppressOperator
from beamish.kinds.suppress.reading import held_rows
from beamish.kinds.versions.operator import VersionsOperator
from beamish.kinds.versions.reading import StoredTable
from beamish.kinds.window.kept_rows import kept_rows
from beamish.kinds.window.kept_windows import kept_windows
from beamish.local import stages_after
from beamish.script.events import Event


def held_after(flow: Flow, events: Sequence[Event], initial: Any = None) -> Iterator[tuple[Relation, pa.Table]]:
    """What each suppress holds after a script: what its stage gives, and rows (``kinds/suppress/reading.py``).

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong.
    """
    for operator, stores in _stores_after(flow, events, initial):
        if isinstance(operator, SuppressOperator):
            yield operator.gives, pa.concat_tables([held_rows(operator, store) for store in stores])


def tables_after(flow: Flow, events: Sequence[Event], initial: Any = None) -> Iterator[StoredTable]:
    """The versioned tables after a script.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong.
    """
    for operator, (store, *_) in _stores_after(flow, events, initial):
        if isinstance(operator, (VersionsOperator, AsOfOperator)):
            yield StoredTable(store)


def windows_after(
    flow: Flow, events: Sequence[Event], initial: Any, stage: Flow, span_us: tuple[int, int]
) -> pa.Table | None:
    """The windows that a stage keeps after a script (``kinds/window/kept_windows.py``); None: no row came.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong.
    """
    for below, (operator, stores) in zip(flow.flows, _stores_after(flow, events, initial), strict=False):
        if below is stage:
            plan = window_plan(operator)
            return pa.concat_tables([kept_windows(plan, store, span_us) for store in stores])
    return None


def rows_after(
    flow: Flow, events: Sequence[Event], initial: Any, *, stage: Flow, span: tuple[int, int], of: str | None
) -> pa.Table | None:
    """The rows that a stage keeps in its windows after a script (``kinds/window/kept_rows.py``); None: no row came.

    Raises:
        PipelineError, ColumnError, ScriptError: the pipeline, its columns or the script is wrong, or nothing keeps rows.
    """
    for below, (operator, stores) in zip(flow.flows, _stores_after(flow, events, initial), strict=False):
        if below is stage:
            plan = window_plan(operator)
            return pa.concat_tables([kept_rows(plan, store, span, of) for store in stores])
    return None


def _stores_after(flow: Flow, events: Sequence[Event], initial: Any) -> Iterator[tuple[Operator, Sequence[DictStore]]]:
    """The operator of each stage, and the stores of its shards after a script."""
    for below, stores in stages_after(flow, events, initial):
        yield below.operator, stores
