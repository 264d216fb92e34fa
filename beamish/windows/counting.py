"""Count windows: a number of rows of a key, or of the stream, and sessions ended by other rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

import attrs
import numpy as np

from beamish.costs import check_windows_per_row
from beamish.durations import Duration, read_positive_or_none
from beamish.errors import OptionError
from beamish.windows.option import Bounds, Numbering, Times, WindowOption
from beamish.windows.time_windows import slide

_MOST = 2**40
"""Maximum number of rows of a window."""


def _whole(least: int) -> Any:
    """A validator: a whole number of rows, at least this many."""

    def check(option: Any, field: attrs.Attribute[Any], value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
            raise OptionError(
                f"{type(option).__name__}({field.name}={value!r}): must be a whole number of rows, from {least} to 2^40"
            )

    return check


def _columns(value: str | Sequence[str] | None) -> Any:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _check_columns(option: Any, field: attrs.Attribute[Any], value: Sequence[object]) -> None:
    for name in value:
        if not isinstance(name, str) or not name:
            raise OptionError(
                f"{type(option).__name__}({field.name}={value!r}): must be the name of a column, or several"
            )


def _check_column(option: Any, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise OptionError(f"{type(option).__name__}({field.name}={value!r}): must be the name of a column")


def _check_offset(option: Any, field: attrs.Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST:
        raise OptionError(f"{type(option).__name__}({field.name}={value!r}): must be a whole number of rows")


def _check_over(option: Any, field: attrs.Attribute[Any], value: object) -> None:
    if value not in ("key", "stream"):
        raise OptionError(
            f"{type(option).__name__}({field.name}={value!r}): must be 'key' or 'stream', the rows that are counted together"
        )


def _check_numbers(option: CountWindows | CountSessions) -> None:
    """Rules for the numbering options."""
    name = type(option).__name__
    if option.order_by and option.numbered_by is not None:
        raise OptionError(
            f"{name}(order_by={option.order_by!r}, numbered_by={option.numbered_by!r}): rows with their own numbers need no order; use one of the two"
        )
    if option.delay and option.numbered_by is None:
        raise OptionError(
            f"{name}(delay={option.delay!r}): rows numbered on arrival are never late; add numbered_by, or leave it out"
        )


@attrs.frozen
class CountWindows(WindowOption):
    """Windows of ``size`` rows, a new one every ``period`` rows (Samza's SAMZA-552; Flink's ``countWindow``).

    Rows are numbered 0, 1, 2 and so on, separately for each key, and windows are ``[start, end)`` over these numbers. A window
    ends when it is full: its last row fires its on-time pane. Bounds of count windows are row numbers: ``window struct<start:
    bigint, end: bigint>``.

    Args:
        size: number of rows of a window, at least 1.
        period: number of rows from one start to the next, at least 1; None: ``size``, consecutive windows; 1: SQL's ``ROWS
            size-1 PRECEDING``; more than ``size``: rows between windows are in none.
        over: "key": the rows of each key are counted separately; "stream": all rows together, in one shard.
        order_by: the columns by which the rows of a bundle (a micro-batch) are numbered; then, as by default, by event time, over
            the stream by key, and by the accumulated columns, in Spark's order.
        numbered_by: a column of whole numbers in the rows, in any order, with gaps; windows are over these.
        offset: the number at which a window starts.
        delay: with ``numbered_by``: how far out of order rows may be and still be on time, at least 0.
        idle: over keys: when the watermark is this far past a key's last event time, its windows are emitted, and it counts from 0 again;
            None: each key is stored for ever, as a number or two.

    Raises:
        OptionError: an argument is invalid, or they do not work together.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Sum
        >>> sums = bm.Pipeline().key_by("k").window(bm.CountWindows(3)).accumulate(total=Sum("v"))
        >>> script = bm.testing.TestStream().add([{"k": "a", "v": v} for v in (1, 2, 3, 4)])
        >>> [(pane.window, pane.values) for pane in sums.run(script)]
        [(RowWindow(start=0, end=3), {'total': 6})]
    """

    size: int = attrs.field(validator=_whole(1))
    period: int | None = attrs.field(default=None, validator=attrs.validators.optional(_whole(1)))
    over: Literal["key", "stream"] = attrs.field(default="key", kw_only=True, validator=_check_over)
    order_by: str | Sequence[str] | None = attrs.field(
        default=None, kw_only=True, converter=_columns, validator=_check_columns
    )
    numbered_by: str | None = attrs.field(default=None, kw_only=True, validator=_check_column)
    offset: int = attrs.field(default=0, kw_only=True, validator=_check_offset)
    delay: int = attrs.field(default=0, kw_only=True, validator=_whole(0))
    idle: Duration | None = attrs.field(default=None, kw_only=True, converter=read_positive_or_none)

    def __attrs_post_init__(self) -> None:
        _check_numbers(self)
        check_windows_per_row(f"CountWindows({self.size}, {self.every})", self.size, self.every)
        if self.idle is not None and self.over == "stream":
            raise OptionError(
                f"CountWindows(idle={self.idle!r}, over='stream'): idle applies to keys, not to the stream; leave one of them out"
            )

    @property
    def every(self) -> int:
        """Number of rows from one start to the next."""
        return self.size if self.period is None else self.period

    @property
    def numbering(self) -> Numbering:
        return Numbering(self.over == "stream", tuple(self.order_by or ()), self.numbered_by, self.delay, self.idle)

    @property
    def overlaps(self) -> bool:
        return self.every < self.size

    def describe(self) -> str:
        words = f"of {self.size} rows, one every {self.every}"
        if self.every > self.size:
            words += "; rows between them are in none"
        elif self.every < self.size:
            words += "; a row is in each that contains its number"
        return f"{words}; full with its last row"

    @property
    def period_us(self) -> int:
        return self.every

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        _, start, end = self.assign_columns(np.array([timestamp_us], dtype=np.int64))
        return zip(start.tolist(), end.tolist(), strict=True)

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        return slide(timestamps_us, self.size, self.every, self.offset)


@attrs.frozen
class CountSessions(WindowOption):
    """Sessions ended by other rows: a session continues while at most ``others`` rows of other keys are between two rows of its key.

    Row n of the stream starts as ``[n, n + others + 2)`` of its key, and overlapping windows of a key merge into their span. So
    another row of another key ends the session, at once. All rows are numbered together, in one shard.

    Args:
        others: number of rows of other keys that leave a session open, at least 0.
        order_by: as for ``CountWindows``.
        numbered_by: as for ``CountWindows``.
        delay: as for ``CountWindows``.

    Raises:
        OptionError: an argument is invalid, or they do not work together.

    Example:
        >>> import beamish as bm
        >>> bm.CountSessions(50).describe()
        'sessions: rows of a key with at most 50 rows of other keys between them; they grow and merge as rows arrive'
    """

    others: int = attrs.field(validator=_whole(0))
    order_by: str | Sequence[str] | None = attrs.field(
        default=None, kw_only=True, converter=_columns, validator=_check_columns
    )
    numbered_by: str | None = attrs.field(default=None, kw_only=True, validator=_check_column)
    delay: int = attrs.field(default=0, kw_only=True, validator=_whole(0))

    merging: ClassVar[bool] = True

    def __attrs_post_init__(self) -> None:
        _check_numbers(self)

    @property
    def numbering(self) -> Numbering:
        return Numbering(True, tuple(self.order_by or ()), self.numbered_by, self.delay)  # noqa: FBT003

    @property
    def overlaps(self) -> bool:
        return False

    def describe(self) -> str:
        return (
            f"sessions: rows of a key with at most {self.others} rows of other keys between them; they grow and merge as rows "
            "arrive"
        )

    @property
    def period_us(self) -> int:
        return self.others + 2

    def assign(self, timestamp_us: int, *values: Any) -> Iterable[Bounds]:
        yield timestamp_us, timestamp_us + self.others + 2

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        return np.arange(len(timestamps_us), dtype=np.int64), timestamps_us, timestamps_us + self.others + 2
