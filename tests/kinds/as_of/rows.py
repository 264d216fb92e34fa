"""The rows of as-of joins, and what they met."""

from __future__ import annotations

from beamish.script import as_step
from tests.declared_options import said

ROWS = {"lefts": ("rows",), "tables": ("rows",)}


def met(pipeline, panes):
    """The id of each emitted row, and its match; each once."""
    found = {pane.values["id"]: pane.values[table_name(pipeline)] for pane in panes}
    assert len(found) == len(panes), "a row is emitted twice"
    return found


def table_name(pipeline):
    return pipeline.flow.takes[1].name


def value_names(pipeline, script):
    """The columns of a version; of a table of rows."""
    options, source = said(pipeline).versions, pipeline.flow.inputs[1]
    rows = (row for step in map(as_step, script.events) if step.input == source.name for row in step.rows)
    hidden = {*source.keys, source.event_time, options.deleted, options.sequence_by}
    return options.values or [name for name in next(rows) if name not in hidden]
