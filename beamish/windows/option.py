"""The contract of a window option: assignment of rows to windows, and merging."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from beamish.durations import Duration
from beamish.errors import OptionError, UserFunctionError, cause, check_memory, describe_foreign, shown
from beamish.instants import END_OF_TIME_US
from beamish.kernels.identity import plain_repr
from beamish.markup import html_table

FARTHEST = 2**62
"""Maximum distance from 0 of a number in a row."""


@attrs.frozen
class Numbering:
    """How rows are numbered, and how far out of order they may be.

    Attributes:
        over_stream: whether all rows are counted together; otherwise each key separately.
        order_by: the columns by which the rows of a bundle are numbered first; for assigned numbers only.
        numbered_by: the column with the numbers; None: numbers 0, 1, 2 and so on are assigned on arrival.
        delay: how far the reach trails the greatest number; for numbers in rows.
        idle: how long a key may be without rows before it is dropped; None: never dropped.
    """

    over_stream: bool
    order_by: tuple[str, ...] = ()
    numbered_by: str | None = None
    delay: int = 0
    idle: Duration | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.order_by if self.numbered_by is None else (self.numbered_by,)

    def describe(self) -> str:
        """How rows are numbered, in words."""
        which = "over all rows" if self.over_stream else "per key"
        if self.numbered_by is not None:
            words = f"rows are numbered by column {self.numbered_by}, {which}; a window is full when a number at its end has arrived"
            return words + (f" and {self.delay} more" if self.delay else "")
        by = ", ".join((*self.order_by, "event time", *(("key",) if self.over_stream else ()), "accumulated values"))
        words = f"rows are numbered 0, 1, 2, ... on arrival, {which}, in a micro-batch by {by}"
        if self.idle is not None:
            words += f"; a key whose last event time is {self.idle} behind the watermark expires, and its numbers restart at 0"
        elif not self.over_stream:
            words += "; the number of each key is stored forever"
        return words


Bounds = tuple[int, int]
"""``(start, end)`` of a window ``[start, end)``, in microseconds since the epoch."""

Times = NDArray[np.int64]


class WindowOption:
    """Assigns rows to windows. Subclass it for windows of your own.

    A subclass should be a frozen attrs class (equal by value, with a repr); a plain class is identified by its attributes, which
    must be plain values too. It defines ``assign`` and, if its windows merge, sets ``merging = True`` and may override ``merge``.
    Both must be pure functions, since a batch may be replayed.

    Example:
        >>> import attrs, beamish as bm
        >>> @attrs.frozen
        ... class UntilMidnight(bm.WindowOption):
        ...     def assign(self, timestamp_us):
        ...         day = 86_400_000_000
        ...         yield timestamp_us, timestamp_us - timestamp_us % day + day
    """

    merging: ClassVar[bool] = False
    """Whether overlapping windows of a key merge."""
    columns: Sequence[str] = ()
    """Columns passed to ``assign`` besides the timestamp, such as a gap per row."""
    __repr__ = plain_repr

    def assign(self, timestamp_us: int, /, *values: Any) -> Iterable[Bounds]:
        """The windows of a row: ``(start, end)`` pairs of whole microseconds since the epoch, start before end; empty: no window."""
        raise NotImplementedError(f"{type(self).__name__}.assign(timestamp_us) is not defined")

    def merge(self, windows: Sequence[Bounds], /) -> Iterable[tuple[Sequence[Bounds], Bounds]]:
        """Groups of windows of a key that merge, each as ``(members, result)``.

        ``windows`` are distinct and sorted. A window in no group stays as it is. The default merges overlapping windows
        (``a.start < b.end and b.start < a.end``; touching is not overlapping) into their span.
        """
        members: list[Bounds] = []
        end = 0
        for window in windows:
            if members and window[0] >= end:
                yield members, (members[0][0], end)
                members = []
            end = max(end, window[1]) if members else window[1]
            members.append(window)
        if members:
            yield members, (members[0][0], end)

    def describe(self) -> str:
        """A description of the windows."""
        return f"{self!r}, {'which merge' if self.merging else 'which do not merge'}"

    def _repr_html_(self) -> str:
        return html_table((), [(repr(self), self.describe())])

    @property
    def origin(self) -> WindowOption:
        """The option that assigned the windows, through any number of stages that inherit them."""
        return self

    @property
    def windowings(self) -> Mapping[str, WindowOption]:
        """The options of several windowings, by name; empty: a single, unnamed windowing."""
        return {}

    @property
    def is_all_of_time(self) -> bool:
        """Whether all of time is one window, without bounds."""
        return False

    @property
    def holds_its_rows(self) -> bool:
        """Whether a window contains the event times, or the numbers, of its rows; not known for custom options."""
        return type(self).__module__.startswith("beamish.windows.")

    @property
    def numbering(self) -> Numbering | None:
        """How rows are numbered for count windows, whose bounds are row numbers; None: bounds are times."""
        return None

    @property
    def counts_rows(self) -> bool:
        """Whether bounds are row numbers; the same for all of its windowings."""
        return any(one.numbering is not None for one in self.windowings.values() or (self,))

    @property
    def overlaps(self) -> bool:
        """Whether a row may be in several windows; set ``overlaps = False`` in a subclass without overlaps."""
        return True

    # The same on columns. Built-in options override it; the default calls ``assign`` row by row.

    @property
    def merges_by_overlap(self) -> bool:
        """Whether ``merge`` is the default, so that the engine may merge on columns."""
        return self.merging and type(self).merge is WindowOption.merge

    @property
    def period_us(self) -> int | None:
        """The distance of windows' ends, as a hint for segments; None: unknown."""
        return None

    @property
    def late_by_merged(self) -> bool:
        """Whether a row is expired by the window that it merges into, not by its own."""
        return False

    @property
    def in_state(self) -> WindowOption:
        """The option without what no state depends on."""
        return self

    @property
    def may_overlap(self) -> bool:
        """Whether a row may be in several windows, also if a subclass overrides the assignment without declaring it."""
        says = _depth(self, "overlaps") <= min(_depth(self, "assign"), _depth(self, "assign_columns"))
        return self.overlaps or not says

    @property
    def preaggregates(self) -> bool:
        """Whether rows of one key and slice may be pre-aggregated.

        True if the option defines ``slices``, and no subclass below that overrides the assignment.
        """
        if self.merging or self.columns:
            return False
        holds = _depth(self, "slices") <= min(_depth(self, "assign"), _depth(self, "assign_columns"))
        return holds and self.slices(np.empty(0, dtype=np.int64)) is not None

    def slices(self, timestamps_us: Times) -> Times | None:
        """The start of each row's slice: a time range whose rows, and whose start, are all in the same windows.

        Args:
            timestamps_us: int64, one per row.

        Returns:
            int64, one per row; None: unknown.
        """
        return None

    def assign_columns(self, timestamps_us: Times, *columns: Sequence[Any]) -> tuple[Times, Times, Times]:
        """Assign many rows.

        Args:
            timestamps_us: int64, one per row.
            columns: the values of ``self.columns``, of equal length.

        Returns:
            row (index into ``timestamps_us``), start and end: int64, one entry for each (row, window), by row.
        """
        rows: list[int] = []
        bounds: list[Bounds] = []
        for row, arguments in enumerate(zip(timestamps_us.tolist(), *columns, strict=True)):
            try:
                own = [read_window(window) for window in self.assign(*arguments)]
            except Exception as error:  # noqa: BLE001 - re-raised
                check_memory(error)
                raised = f"{self!r}.assign{shown(arguments)} raised {describe_foreign(error)}"
                result = UserFunctionError(f"{raised}; fix it and restart from the checkpoint; no data was lost")
                result.group, result.raised = row, raised
                raise result from cause(error)
            rows.extend([row] * len(own))
            bounds.extend(own)
        table = np.array(bounds, dtype=np.int64).reshape(-1, 2)
        return np.array(rows, dtype=np.int64), table[:, 0].copy(), table[:, 1].copy()


def read_window(window: Any) -> Bounds:
    """Validate a window from a user function.

    Raises:
        TypeError: not a pair of whole numbers.
        ValueError: start not before end, or beyond 64 bits.
    """
    try:
        first, last = window
    except (TypeError, ValueError):
        raise TypeError(f"window {window!r}: must be a pair; give each window of the row: yield start, end") from None
    try:
        start, end = operator.index(first), operator.index(last)
    except TypeError:
        raise TypeError(
            f"window ({first!r}, {last!r}): start and end must be whole numbers of microseconds since the epoch; for seconds use int(seconds * 1_000_000)"
        ) from None
    if not -END_OF_TIME_US <= start < end <= END_OF_TIME_US:
        raise ValueError(f"window ({start}, {end}): start must be before end, and both within 64 bits")
    return start, end


def assigned(
    option: WindowOption, timestamps_us: Times, columns: Sequence[Sequence[Any]]
) -> tuple[Times, Times, Times]:
    """Validate the result of ``assign_columns``.

    Raises:
        UserFunctionError: not three integer columns of equal length, or a start not before its end.
    """
    given: Any = option.assign_columns(timestamps_us, *columns)
    parts = given if isinstance(given, tuple) else (given,)
    kinds = [str(getattr(part, "dtype", type(part).__name__)) for part in parts]
    if kinds != ["int64"] * 3 or len({len(part) for part in parts}) > 1:
        raise UserFunctionError(
            f"{option!r}.assign_columns(...) returned {', '.join(kinds)}: must be row, start and end, each an int64 array, of equal length; start and end are microseconds since the epoch: for datetime64 use .astype('datetime64[us]').astype('int64')"
        )
    row, start, end = parts
    wrong = np.flatnonzero(start >= end)
    if len(wrong):
        at = wrong[0]
        error = UserFunctionError(
            f"{option!r}.assign_columns(...) returned the window ({start[at]}, {end[at]}): start must be before end"
        )
        error.group = int(row[at])
        raise error
    return row, start, end


def check_window(where: str, option: WindowOption) -> None:
    """Check that an option defines the assignment and valid column names.

    Raises:
        OptionError: it does not.
    """
    kind = type(option)
    if kind.assign is WindowOption.assign and kind.assign_columns is WindowOption.assign_columns:
        raise OptionError(
            f"{where}={option!r}: {kind.__name__} does not define assign; write assign(self, timestamp_us), which returns the row's windows as (start, end) in microseconds"
        )
    columns = option.columns
    if not isinstance(columns, (list, tuple)) or not all(isinstance(name, str) and name for name in columns):
        fix = (
            f"; write columns = ({columns!r},)"
            if isinstance(columns, str) and columns
            else ", such as columns = ('gap',)"
        )
        raise OptionError(
            f"{where}={option!r}: {kind.__name__}.columns is {columns!r}: must be a tuple of column names{fix}"
        )


def _depth(option: WindowOption, method: str) -> int:
    """The position in the option's class hierarchy of the class that defines this method."""
    return next(depth for depth, base in enumerate(type(option).__mro__) if method in vars(base))


__all__ = ["END_OF_TIME_US", "Bounds", "Times", "WindowOption"]
