"""A selection of windows by key and window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import pyarrow as pa

from beamish.contract.at_rest import EVER, Asked, Keeps, read_key
from beamish.errors import OptionError, PipelineError
from beamish.instants import END_OF_TIME_US, instant_in_words, instant_us
from beamish.kinds.window.plan.plan import WindowPlan
from beamish.stage_facts import StageFacts


@attrs.frozen
class Question:
    """A selection of windows.

    Attributes:
        key: values of some key columns.
        start, end: of the window, microseconds since the epoch or row numbers; end None: not given; both None: any.
    """

    key: Mapping[str, Any]
    start: int | None = None
    end: int | None = None

    @property
    def asked(self) -> Asked:
        """The possible windows: those that overlap the span."""
        if self.start is None:
            return Asked(Keeps.WINDOWS, self.key, EVER)
        return Asked(Keeps.WINDOWS, self.key, (self.start, self.start + 1 if self.end is None else self.end))


Keeping = Mapping[int, Collection[Keeps]]
"""The views that stages keep, by their numbers."""
_WORDS = {Keeps.WINDOWS: "windows", Keeps.ROWS: "windows", Keeps.KEYS: "state by key alone"}


def stage_meant(call: str, stage: int | None, keeping: Keeping, *meant: Keeps) -> int:
    """The number of the selected stage.

    Args:
        call: for messages.
        stage: its number, as given; None: the only one.
        keeping: what each keeps.
        meant: what it must keep: one of these. Without ``stage`` one that keeps the first is preferred.

    Raises:
        PipelineError: no stage keeps it, or several do and ``stage`` is missing.
    """
    having = [[number for number, kept in keeping.items() if what in kept] for what in meant]
    every, words = sorted({number for one in having for number in one}), " or ".join(_WORDS[what] for what in meant)
    if not every:
        others = sorted({what for kept in keeping.values() for what in kept})
        ask = " or ".join(f"state(...).{what}()" for what in others)
        raise PipelineError(f"{call}(): no stage has {words}{ask and f'; ask {ask}'}")
    chosen = next(one for one in having if one)
    if stage is None and len(chosen) == 1:
        return chosen[0]
    if stage is None or stage not in every or isinstance(stage, bool):
        raise PipelineError(
            f"{call}(stage={stage!r}): stages with {words} are {', '.join(map(str, every))}; name one: {call}(stage={every[0]})"
        )
    return stage


def check_no_window(call: str, number: int, window: Any) -> None:
    """Check that no window of a stage without windows is asked for (OptionError: one is)."""
    if window is not None:
        raise OptionError(
            f"{call}(window={window!r}): stage {number} has no windows, and stores state by key; leave window out: {call}(key=...)"
        )


def read_question(stage: StageFacts, call: str, key: Any, window: Any) -> Question:
    """Read a selection of windows.

    Args:
        stage: the stage, which has windows.
        call: the name of the call, for messages.
        key: a dict of key columns; or the value of a single one; None: any.
        window: its start (aware datetime, ISO text, seconds, or a row number), a time in it, or a pair (start, end); None: any.

    Raises:
        OptionError: no such key column, a value of another type, or an invalid window.
    """
    plan = stage.plan
    assert plan is not None  # noqa: S101 - see stage_meant
    wanted = read_key(call, key, stage.key_schema)
    if window is None:
        return Question(wanted)
    if isinstance(window, tuple) and len(window) == 2:
        start, end = (_bound(plan, f"{call}(window)", bound) for bound in window)
        if start >= end:
            raise OptionError(f"{call}(window={window!r}): it ends before it begins; give (start, end)")
        return Question(wanted, start, end)
    return Question(wanted, _bound(plan, f"{call}(window)", window))


def _bound(plan: WindowPlan, where: str, value: Any) -> int:
    if not plan.window.counts_rows:
        return instant_us(where, _time_or_same(where, value), OptionError)
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f"{where}={value!r}: count windows are bounded by row numbers; give a whole number")
    return value


def _time_or_same(where: str, value: Any) -> Any:
    """Parse a text as a time."""
    if not isinstance(value, str):
        return value
    try:
        return _time(value)
    except ValueError:
        raise OptionError(
            f"{where}={value!r}: must be text such as 2026-01-01T10:14Z, seconds since the epoch, or an aware datetime"
        ) from None


def read_texts(
    plan: WindowPlan | None, schema: pa.Schema, keys: Sequence[str], window: str | None
) -> tuple[dict[str, Any], Any]:
    """Read a selection from command-line texts: ``name=value``, and a time such as 2026-01-01T10:14, in UTC by default.

    Args:
        plan: of the stage's windows; None: it has none.
        schema: its key columns.
        keys, window: the texts.

    Raises:
        OptionError: an invalid text.
    """
    key = {}
    for text in keys:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--key {text}: name the column: --key {(schema.names or ['name'])[0]}={text}")
        if name not in schema.names:
            raise OptionError(f"--key {text}: {name!r} is not a key column; they are {schema.names}")
        try:
            key[name] = pa.array([value]).cast(schema.field(name).type)[0].as_py()
        except pa.ArrowException:
            raise OptionError(f"--key {text}: key column {name!r} is {schema.field(name).type}") from None
    if window is None:
        return key, None
    try:
        return key, int(window) if plan is not None and plan.window.counts_rows else _time(window)
    except ValueError:
        what = (
            "the number of a row" if plan is not None and plan.window.counts_rows else "a time such as 2026-01-01T10:14"
        )
        raise OptionError(f"--window {window}: must be {what}") from None


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.utcoffset() is not None else time.replace(tzinfo=UTC)


def bounds_in_words(plan: WindowPlan, start: int, end: int | None) -> str:
    """A window's bounds in words."""
    if plan.window.counts_rows:
        return f"[{start}, {'...' if end is None else end})"
    if end == END_OF_TIME_US:
        return "[all of time)"
    first = instant_in_words(start)
    last = "..." if end is None else instant_in_words(end)
    return f"[{first}, {last[11:] if last[:10] == first[:10] else last})"
