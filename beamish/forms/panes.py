"""The rows of a stored table of panes: a retraction retracts the pane that it repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from beamish.errors import ColumnError, PipelineError
from beamish.forms.form import InputForm, Unfolded
from beamish.pane import PaneKind


@attrs.frozen
class FromPanes(InputForm):
    """Each row is a pane, a retraction or a dropped row, by ``pane.kind``. Its window becomes two data columns."""

    def call(self) -> str:
        return ".from_panes()"

    def describe(self) -> str:
        return "each is a pane of a stored table: a RETRACTION takes an equal row back"

    def check_columns(self, names: Any) -> None:
        """Check that they are panes.

        Raises:
            ColumnError: they are not panes.
        """
        for name in ("pane", "window", "timestamp"):
            if name not in names:
                raise ColumnError(
                    f"from_panes(): there is no column {name!r}, so these are not panes; the columns are {list(names)}"
                )
        for name in ("window_start", "window_end"):
            if name in names:
                raise ColumnError(f"from_panes(): column {name!r}: the window's bounds have this name; rename yours")

    def unfold(self, row: Mapping[str, Any]) -> Iterator[Unfolded]:
        self.check_columns(row)
        kind, window = row["pane"]["kind"], row["window"] or {"start": None, "end": None}
        if kind == PaneKind.DROPPED:
            return
        data: dict[str, Any] = {}
        for name, value in row.items():
            if name == "window":
                data |= {"window_start": window["start"], "window_end": window["end"]}
            elif name not in ("pane", "dropped"):
                data[name] = value
        yield data, -1 if kind == PaneKind.RETRACTION else 1


def is_of_panes(fields: Iterable[str]) -> bool:
    """Whether a struct ``pane`` with these fields is a pipeline's."""
    return {"kind", "timing", "index"} <= set(fields)


def not_as_rows(event_time: Any) -> PipelineError:
    """The error for panes that are used as plain rows."""
    return PipelineError(
        f"event_time({event_time!r}) over a table of panes (their column 'pane' says so): as plain rows, retractions and replaced panes would be counted like panes; write bm.Pipeline().from_panes().event_time({event_time!r}, ...). To use them as plain rows anyway, drop or rename that column first: df.drop('pane')"
    )
