"""Input forms: how the rows of a source encode changes. Without one a row is an insert (docs/rules/changelogs.md#input-forms).

Rows can be changes in five ways. In two of them a row inserts or deletes a whole row, which the next stage adds or retracts;
these are the forms here. In the others a row is an upsert by key, so only the stage that stores the table knows the
row it replaces; these are stages.

    from_changelog(format)    inserts and deletions of whole rows      ``FromChangelog``
    from_panes()              a table of panes, by ``pane.kind``       ``FromPanes``
    upserts(...)              upserts by key, stored                   kinds/upserts/stage.py
    changes(...)              upserts by key, held back                kinds/changes/stage.py
    versions(...)             upserts by key and time                  kinds/versions/stage.py

They share a vocabulary: ``deleted``, ``sequence_by``, and reasons for dropped rows (``DropReason``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import attrs

from beamish.errors import ColumnError, OptionError, PipelineError, ScriptError, shown
from beamish.pane import PaneKind
from beamish.python_values import python_value

Unfolded = tuple[Mapping[str, Any], int]
"""A data row, and 1 for an insert or -1 for a retraction of an equal row."""


class InputForm(Protocol):
    """A frozen value. On Spark it is implemented on columns (``spark/rows/columns.py``)."""

    def call(self) -> str:
        """The call on a pipeline that declares it."""
        ...

    def describe(self) -> str:
        """The meaning of its rows, for explain."""
        ...

    def unfold(self, row: Mapping[str, Any]) -> Iterator[Unfolded]:
        """The signed data rows that a row stands for.

        Raises:
            ColumnError: a required column is missing.
            ScriptError: a value is invalid.
        """
        ...


_IMAGES = {"insert": 1, "update_postimage": 1, "update_preimage": -1, "delete": -1}
WORDS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "spark": ("_change_type", _IMAGES),
    "delta-cdf": ("_change_type", _IMAGES),
    "flink": (
        "op",
        {"INSERT": 1, "UPDATE_AFTER": 1, "UPDATE_BEFORE": -1, "DELETE": -1, "+I": 1, "+U": 1, "-U": -1, "-D": -1},
    ),
}
"""Formats with a row per image: the column of the operation, and its values."""
BEFORE_AND_AFTER: Mapping[str, tuple[bool, bool]] = {
    "c": (False, True),
    "r": (False, True),
    "u": (True, True),
    "d": (True, False),
}
"""For each Debezium ``op``, which of ``before`` and ``after`` it has."""
NO_ROWS: Mapping[str, str] = {
    "t": "the table was truncated, and the feed does not name the rows that this deletes. Set the connector's skipped.operations=t (its "
    "default), and after a truncation start from a new snapshot and an empty checkpoint",
    "m": "a logical decoding message does not belong to a row of the table. Leave its topic (<topic.prefix>.message) out, or filter it: "
    "df.where(\"op IS DISTINCT FROM 'm'\")",
}
"""Debezium events that do not change a row, and how to handle them."""
FORMATS = (*WORDS, "debezium", "diff")
MOST_TIMES = 2**31 - 1
"""How often a ``_diff`` may insert or delete its row."""


def _check_format(_: Any, __: Any, value: Any) -> None:
    if value not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        fix = "; for upserts by key use .upserts(...)" if value in ("upsert", "kafka") else ""
        raise OptionError(f"from_changelog(format={value!r}): must be one of {known}{fix}")


@attrs.frozen
class FromChangelog(InputForm):
    """Each row is a change of a table with bag semantics: whole rows are inserted and deleted.

    Attributes:
        format: among ``FORMATS``.
    """

    format: str = attrs.field(validator=_check_format)

    def call(self) -> str:
        return f".from_changelog(format={self.format!r})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are not data."""
        if self.format in WORDS:
            return (WORDS[self.format][0],)
        return ("op", "before", "after") if self.format == "debezium" else ("_diff",)

    def describe(self) -> str:
        return f"each is a change ({', '.join(self.columns)}): a delete retracts an equal row"

    def check_columns(self, names: Any) -> None:
        """Check that the columns are there (ColumnError: a column is missing)."""
        for name in self.columns:
            if name not in names:
                raise ColumnError(
                    f"{self.call()[1:]}: there is no column {name!r}; the columns are {list(names)}{self._missing_fix(names)}"
                )

    def _missing_fix(self, names: Any) -> str:
        if self.format != "debezium":
            return ""
        if any(name.startswith("__") for name in names):
            return " (ExtractNewRecordState has flattened these records to upserts, without the row before: leave that transformation out, or read them with .upserts(...))"
        return " (for records with a schema, select payload.*)"

    def wrong(self, column: str, value: Any) -> str:
        """The message for an unknown operation."""
        known = {
            "debezium": tuple(BEFORE_AND_AFTER),
            "diff": (f"a whole number from {-MOST_TIMES} to {MOST_TIMES}",),
        }.get(self.format)
        known = known or tuple(WORDS[self.format][1])
        is_event = self.format == "debezium" and isinstance(value, str) and value in NO_ROWS
        why = f": {NO_ROWS[value]}" if is_event else ""
        return f"{self.call()[1:]}: a row has {column}={shown(value)}; must be {', '.join(known)}{why}"

    @property
    def no_image(self) -> str:
        """The message for a change that lacks an image."""
        return f"{self.call()[1:]}: a row lacks the 'before' or 'after' that its 'op' needs, so the row to retract is unknown; have the database log whole rows (PostgreSQL: REPLICA IDENTITY FULL), or read it as upserts with .upserts(...)"

    def unfold(self, row: Mapping[str, Any]) -> Iterator[Unfolded]:
        self.check_columns(row)
        data = {name: value for name, value in row.items() if name not in self.columns}
        if self.format == "debezium":
            yield from self._images(row)
        elif self.format == "diff":
            times = python_value(row["_diff"])
            if type(times) is not int or abs(times) > MOST_TIMES:
                raise ScriptError(self.wrong("_diff", times))
            yield from [(data, 1 if times > 0 else -1)] * abs(times)
        else:
            column, words = WORDS[self.format]
            if not isinstance(row[column], str) or row[column] not in words:
                raise ScriptError(self.wrong(column, row[column]))
            yield data, words[row[column]]

    def _images(self, row: Mapping[str, Any]) -> Iterator[Unfolded]:
        if all(row[name] is None for name in self.columns):
            return  # a tombstone
        if not isinstance(row["op"], str) or row["op"] not in BEFORE_AND_AFTER:
            raise ScriptError(self.wrong("op", row["op"]))
        for name, is_needed, sign in zip(("before", "after"), BEFORE_AND_AFTER[row["op"]], (-1, 1), strict=True):
            if is_needed:
                if row[name] is None:
                    raise ScriptError(self.no_image)
                if not isinstance(row[name], Mapping):
                    raise ScriptError(
                        f"{self.call()[1:]}: {name!r} is {shown(row[name])}; must be a dict of column to value"
                    )
                yield row[name], sign


@attrs.frozen
class FromPanes(InputForm):
    """Each row is a pane, a retraction or a dropped row, by ``pane.kind``. Its window becomes two data columns."""

    def call(self) -> str:
        return ".from_panes()"

    def describe(self) -> str:
        return "each is a pane of a stored table: a RETRACTION removes an equal row"

    def check_columns(self, names: Any) -> None:
        """Check that they are panes (ColumnError: they are not panes)."""
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
        for name, fields in (("pane", {"kind"}), ("window", {"start", "end"})):
            known = isinstance(row[name], Mapping) and fields <= set(row[name])
            if not (known or (row[name] is None and name == "window")):
                raise ScriptError(
                    f"from_panes(): a row has {name}={shown(row[name])}; must be a dict with {', '.join(sorted(fields))}"
                )
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
