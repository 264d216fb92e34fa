"""The expected result of a pipeline: a function of rows, or a query over them."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs
import pyarrow as pa

from beamish.errors import OptionError
from beamish.instants import instant_us
from beamish.packages import installed
from beamish.pane import Pane
from beamish.script import Row, as_step
from beamish.testing.laws.runs import words
from beamish.testing.stream import Runnable, TestStream

Expected = str | Callable[..., Any]
"""A function of rows, or a query."""


@attrs.frozen
class Query:
    """A query in DuckDB's SQL over the rows: of the table ``rows``, or of those of the inputs' names."""

    text: str

    def __call__(self, rows: Any) -> list[dict[str, Any]]:
        import duckdb

        tables = rows if isinstance(rows, Mapping) else {"rows": rows}
        if not any(tables.values()):
            return []
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name, of in tables.items():
                connection.register(name, pa.Table.from_pylist(list(of)))
            found: list[dict[str, Any]] = connection.sql(self.text).to_arrow_table().to_pylist()
        return found


def read_expected(expected: Any) -> Callable[..., Any]:
    """The function that computes what is expected.

    Raises:
        OptionError: neither a function nor a query, or DuckDB is missing.
    """
    if isinstance(expected, str):
        if not installed("duckdb"):
            raise OptionError(
                f"check(expected={expected!r}): a query runs in DuckDB: pip install 'beamish[duckdb]', or give a function of the rows"
            )
        return Query(expected)
    if not callable(expected):
        raise OptionError(
            f"check(expected={expected!r}): must be a function of the rows, or a query over the table rows"
        )
    function: Callable[..., Any] = expected
    return function


def rows_of(pipeline: Runnable, script: TestStream, without: Sequence[Pane] = ()) -> Any:
    """The rows of a script in the order of arrival, but for dropped ones: a list; of several inputs lists by name."""
    sources = pipeline.flow.completed.sources
    gone = [_comparable(pane.values) for pane in without]
    found: dict[str | None, list[dict[str, Any]]] = {source.name: [] for source in sources}
    for step in map(as_step, script.events):
        for row in step.rows:
            key = _comparable(row)
            if key in gone:
                gone.remove(key)
            else:
                found[step.input].append(copy.deepcopy(dict(row)))
    return found if len(sources) > 1 else found[sources[0].name]


def _comparable(row: Row) -> str:
    """The values of a row, of one input or as one struct per input; nulls say nothing."""
    values = {name: value for name, value in row.items() if value is not None}
    if len(values) == 1 and isinstance(only := next(iter(values.values())), dict):
        values = {name: value for name, value in only.items() if value is not None}
    return repr(sorted((name, _plain(value)) for name, value in values.items()))


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return instant_us("row", value) if value.tzinfo else value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_rows(expected: Any) -> list[dict[str, Any]]:
    """The result of a function as rows.

    Raises:
        OptionError: something else.
    """
    if isinstance(expected, pa.Table):
        rows: list[dict[str, Any]] = expected.to_pylist()
        return rows
    if hasattr(expected, "to_dict") and hasattr(expected, "columns"):
        return list(expected.to_dict("records"))
    if isinstance(expected, Mapping) or not isinstance(expected, Iterable):
        raise OptionError(
            f"expected(rows) returned {expected!r:.100}: must be rows, a list of dicts of column to value"
        )
    found = list(expected)
    for row in found:
        if not isinstance(row, Mapping):
            raise OptionError(f"expected(rows) returned the row {row!r:.100}: must be a dict of column to value")
    return [dict(row) for row in found]


def columns_of(pane: Pane) -> dict[str, Any]:
    """A pane as a row: its key, its values, ``window``, ``start`` and ``end``."""
    bounds = {} if pane.window is None else {"start": pane.window[0], "end": pane.window[1]}
    window = None if pane.window is None else (pane.window[0], pane.window[1])
    return {"window": window, **bounds, **pane.key, **pane.values}


def given_rows(panes: Sequence[Pane], expected: Sequence[Row]) -> list[dict[str, Any]]:
    """Panes as rows with the columns of the expected rows, or with all if none are expected; times are numbers where those are.

    Raises:
        OptionError: a column that panes do not have.
    """
    names = list(dict.fromkeys(name for row in expected for name in row))
    found = []
    for pane in panes:
        columns = columns_of(pane)
        if unknown := [name for name in names if name not in columns]:
            raise OptionError(
                f"expected(rows) has the column {unknown[0]!r}: a pane has {', '.join(columns)}; leave it out, or rename it"
            )
        found.append({name: columns[name] for name in names} if names else {**pane.key, **pane.values})
    as_numbers = {name for row in expected for name, value in row.items() if isinstance(value, int | float)}
    return [{name: _seconds(value) if name in as_numbers else value for name, value in row.items()} for row in found]


def _seconds(value: Any) -> Any:
    return instant_us("pane", value) / 1e6 if isinstance(value, dt.datetime) else value


def comparable_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows in an order of their own, times in UTC, pairs as tuples."""
    plain = [{name: _in_utc(row[name]) for name in sorted(row)} for row in rows]
    return sorted(plain, key=_order)


_KINDS: Mapping[str, Any] = {"a bool": bool, "a number": (int, float, Decimal), "a text": str, "bytes": bytes}


def check_types(expected: Sequence[Row], given: Sequence[Row]) -> None:
    """Check that the values of a column may be equal (OptionError: those of panes are always of another type)."""
    for name in expected[0] if expected else ():
        ours, theirs = ({_kind(row[name]) for row in rows if row[name] is not None} for rows in (expected, given))
        if ours and theirs and not ours & theirs:
            raise OptionError(
                f"expected(rows) has {min(ours)} in the column {name!r}, where panes have {min(theirs)}, so they are never equal; "
                "convert the expected values"
            )


def _kind(value: Any) -> str:
    return next((kind for kind, types in _KINDS.items() if isinstance(value, types)), type(value).__name__)


def _in_utc(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
    if isinstance(value, list | tuple):
        return list(map(_in_utc, value))
    return value


def _order(row: Row) -> str:
    """Floats that are nearly equal have one place."""
    return repr([(name, f"{value:.6g}" if isinstance(value, float | int) else value) for name, value in row.items()])


def row_in_words(row: Row) -> str:
    """A row as a line."""
    return words(({}, None), row)
