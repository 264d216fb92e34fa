"""A question about windows: of which key, which window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from beamish.at_rest.stage_facts import StageFacts
from beamish.errors import OptionError, PipelineError
from beamish.instants import END_OF_TIME_US, instant_in_words, instant_us
from beamish.kinds.window.plan import WindowPlan
from beamish.kinds.window.read_identity import UnknownWindows


@attrs.frozen
class Question:
    """Which windows are meant.

    Attributes:
        key: values of key columns; those of others may be anything.
        start, end: of the window, microseconds since the epoch or numbers of rows; end None: not said; both None: any.
    """

    key: Mapping[str, Any]
    start: int | None = None
    end: int | None = None

    @property
    def span(self) -> tuple[int, int]:
        """The span that the window, if one is meant, overlaps."""
        if self.start is None:
            return -END_OF_TIME_US, END_OF_TIME_US
        return self.start, self.start + 1 if self.end is None else self.end


def read_question(stage: StageFacts, call: str, key: Any, window: Any) -> Question:
    """Read what is asked.

    Args:
        stage: whose windows are asked about.
        call: the name of the call, for messages.
        key: a dict of key columns; or the value of the only one; None: any.
        window: when it starts (aware datetime, seconds, or a number of a row), any time in it, or a pair (start, end); None: any.

    Raises:
        PipelineError: the stage has no windows.
        OptionError: there is no such key column, its values are of another type, or the window is none.
    """
    plan = stage.plan
    if plan is None:
        raise PipelineError(
            f"{call}(): stage {stage.number} has no windows, so none of its waits; ask another: stage=1"
        )
    wanted = _key(stage, call, key)
    if window is None:
        return Question(wanted)
    if isinstance(window, tuple) and len(window) == 2:
        start, end = (_bound(plan, f"{call}(window)", bound) for bound in window)
        if start >= end:
            raise OptionError(f"{call}(window={window!r}): it ends before it begins; give (start, end)")
        return Question(wanted, start, end)
    return Question(wanted, _bound(plan, f"{call}(window)", window))


def _key(stage: StageFacts, call: str, key: Any) -> dict[str, Any]:
    schema = stage.key_schema
    if key is None:
        return {}
    if not isinstance(key, Mapping):
        if len(schema.names) != 1:
            raise OptionError(
                f"{call}(key={key!r}): the key columns are {schema.names}; give a dict of theirs, such as "
                f"key={{{(schema.names or ['name'])[0]!r}: ...}}"
            )
        key = {schema.names[0]: key}
    wanted = {}
    for name, value in key.items():
        if name not in schema.names:
            raise OptionError(f"{call}(key={dict(key)!r}): {name!r} is no key column; they are {schema.names}")
        wanted[name] = _value(f"{call}(key={dict(key)!r})", value, schema.field(name))
    return wanted


def _value(where: str, value: Any, field: pa.Field) -> Any:
    try:
        return pa.scalar(value, field.type).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise OptionError(f"{where}: key column {field.name!r} is {field.type}; give such a value") from None


def _bound(plan: WindowPlan, where: str, value: Any) -> int:
    if not plan.counts_rows:
        return instant_us(where, value, OptionError)
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f"{where}={value!r}: windows are of rows; give the number of a row, a whole number")
    return value


def read_texts(stage: StageFacts, keys: Sequence[str], window: str | None) -> tuple[dict[str, Any], Any]:
    """A question in texts, as a command line has it: ``name=value``, and a time such as 2026-01-01T10:14, in UTC unless it says.

    Raises:
        OptionError: a text cannot be read.
    """
    plan, schema, key = stage.plan, stage.key_schema, {}
    assert plan is not None  # noqa: S101 - a question is about windows
    for text in keys:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--key {text}: say which column: --key {(schema.names or ['name'])[0]}={text}")
        if name not in schema.names:
            raise OptionError(f"--key {text}: {name!r} is no key column; they are {schema.names}")
        try:
            key[name] = pa.array([value]).cast(schema.field(name).type)[0].as_py()
        except pa.ArrowException:
            raise OptionError(f"--key {text}: key column {name!r} is {schema.field(name).type}") from None
    if window is None:
        return key, None
    try:
        return key, int(window) if plan.counts_rows else _time(window)
    except ValueError:
        what = "the number of a row" if plan.counts_rows else "a time such as 2026-01-01T10:14"
        raise OptionError(f"--window {window}: must be {what}") from None


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.utcoffset() is not None else time.replace(tzinfo=UTC)


def windows_at(plan: WindowPlan, start: int) -> list[tuple[int, int]] | None:
    """The windows that hold a time, as the window option assigns them to a row; None: it takes more than a time to know."""
    window = plan.window
    if (
        plan.inherits_windows
        or window.columns
        or plan.counts_rows
        or window.merging
        or isinstance(window, UnknownWindows)
    ):
        return None
    _, starts, ends = window.assign_columns(np.array([start], dtype=np.int64))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def bounds_in_words(plan: WindowPlan, start: int, end: int | None) -> str:
    """A window's bounds in words."""
    if plan.counts_rows:
        return f"[{start}, {'...' if end is None else end})"
    if end == END_OF_TIME_US:
        return "[all of time)"
    first = instant_in_words(start)
    last = "..." if end is None else instant_in_words(end)
    return f"[{first}, {last[11:] if last[:10] == first[:10] else last})"
