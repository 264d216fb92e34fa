"""The explain text of a statement."""

from __future__ import annotations

from collections.abc import Iterator

from beamish.explain import Line, text_of
from beamish.statement.compile import Compiled


def explained(statement: Compiled, pipeline: str) -> str:
    """Explain a statement.

    Args:
        statement: the statement.
        pipeline: the explain text of its pipeline.
    """
    return "\n".join([text_of(_before(statement)), pipeline, text_of(_after(statement))])


def _before(statement: Compiled) -> Iterator[Line]:
    yield "query", _query(statement)
    yield "source", f"the rows of {statement.rows.name}, which are those of the DataFrame or the script"
    if statement.where is not None:
        yield (
            "where",
            f"rows for which {_one_line(statement.where.said)} is true go on; the others do not move the watermark",
        )
    if statement.computed:
        computed = ", ".join(_one_line(expression.said) for expression in statement.computed)
        yield "computed", f"for each row, before it is in a window: {computed}"


def _query(statement: Compiled) -> str:
    name = f" {statement.name}" if statement.name else ""
    kind = statement.emit.kind
    if kind == "pull":
        return "pull: asks a batch DataFrame once, one final row for each group and window"
    if statement.emit.refinement == "final":
        return f"{kind}{name}, final rows: one for each group and window, when the window expires"
    return f"{kind}{name}, changes: a PANE sets its group and window, a RETRACTION takes that back"


def _after(statement: Compiled) -> Iterator[Line]:
    if statement.having is not None:
        yield "having", f"panes and retractions for which {_one_line(statement.having.said)} is true come out"
    shown = (
        name if name.lower() == said.lower() else f"{said} as {name}"
        for name, said in ((item.expression.name, _one_line(item.expression.said)) for item in statement.shown)
    )
    yield "shown", f"{', '.join(shown)}; then window, pane and timestamp"
    windows = statement.windows
    unsaid = []
    if windows.grace is None and not windows.option.is_all_of_time:
        unsaid.append("GRACE PERIOD is not said, so it is 0: a row that comes after its window's end is dropped")
    if windows.retention is not None:
        unsaid.append(f"RETENTION {windows.retention} has no effect: results are kept by whoever takes them")
    if statement.properties:
        unsaid.append(f"WITH ({', '.join(statement.properties)}) has no effect: a DataFrame has no format")
    if unsaid:
        yield "note", "; ".join(unsaid)


def _one_line(said: str) -> str:
    return " ".join(said.split())
