"""The options of ``Pipeline.over``: frames, functions of a row's place among the rows of its key, and the stage's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.base.columnar import column_field
from beamish.durations import Duration, read_not_negative
from beamish.errors import ColumnError, OptionError, PipelineError
from beamish.kernels.expressions import Formula
from beamish.kernels.identity import InOrder
from beamish.modes import AccumulationMode
from beamish.python_values import NotPlainError, python_value
from beamish.triggers.default import Default
from beamish.triggers.trigger import Trigger

MOST_ROWS = 2**20
"""The greatest number of rows of a frame, and the greatest distance of Lag and Lead."""


class Frame:
    """Which rows of its key the accumulations of a row hold: ``bm.Preceding``, ``bm.PrecedingRows``, ``bm.Unbounded``."""

    __slots__ = ()

    def describe(self) -> str:
        """As text, for explain."""
        raise NotImplementedError

    @property
    def span_us(self) -> int:
        """How far back its rows are, microseconds; 0 if that is not a span."""
        return 0

    @property
    def rows(self) -> int:
        """How many rows before the row it holds; 0 if that is not a number."""
        return 0


@attrs.frozen
class Preceding(Frame):
    """The rows of the key at ``ts - span`` up to ``ts``, both included: SQL's RANGE frame. Rows of equal time hold each other.

    Args:
        span: a duration of at least 0.

    Raises:
        OptionError: not a duration, or negative.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Sum
        >>> spent = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
        ...     .key_by("user")
        ...     .over(bm.Preceding("1 hour"))
        ...     .accumulate(spent=Sum("amount"))
        ... )
        >>> rows = [{"ts": ts, "user": "ann", "amount": amount} for ts, amount in [(0, 5), (1800, 7), (5000, 1)]]
        >>> script = bm.testing.TestStream().add(rows).advance_watermark_to(6000)
        >>> [pane.values["spent"] for pane in spent.run(script)]
        [5, 12, 8]
    """

    span: Duration = attrs.field(converter=read_not_negative)

    def describe(self) -> str:
        return f"the rows of its key from {self.span} before it up to its time"

    @property
    def span_us(self) -> int:
        return self.span.us


def _check_rows(owner: Any, attribute: attrs.Attribute[Any], value: object) -> None:
    least = 0 if attribute.name == "count" else 1
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_ROWS:
        raise OptionError(
            f"{type(owner).__name__}({attribute.name}={value!r}): must be a whole number of rows, from {least} to {MOST_ROWS}"
        )


@attrs.frozen
class PrecedingRows(Frame):
    """The row and the ``count`` rows of its key before it: SQL's ROWS frame.

    Args:
        count: how many rows before it, from 0 to 1,048,576.

    Raises:
        OptionError: not such a number.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Mean
        >>> smooth = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
        ...     .over(bm.PrecedingRows(1))
        ...     .accumulate(mean=Mean("x"))
        ... )
        >>> script = bm.testing.TestStream().add([{"ts": ts, "x": ts * 2} for ts in range(3)]).advance_watermark_to(9)
        >>> [pane.values["mean"] for pane in smooth.run(script)]
        [0.0, 1.0, 3.0]
    """

    count: int = attrs.field(validator=_check_rows)

    def describe(self) -> str:
        return f"itself and the {self.count} rows of its key before it"

    @property
    def rows(self) -> int:
        return self.count


@attrs.frozen
class Unbounded(Frame):
    """All rows of the key up to the row's time, with those of equal time: the frame of SQL's OVER with ORDER BY alone.

    Its state is one accumulator per key, for ever.

    Example:
        >>> import beamish as bm
        >>> from beamish.accumulations import Sum
        >>> balance = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
        ...     .key_by("account")
        ...     .over(bm.Unbounded())
        ...     .accumulate(balance=Sum("change"))
        ... )
        >>> rows = [{"ts": 1, "account": 7, "change": 10}, {"ts": 2, "account": 7, "change": -3}]
        >>> [pane.values["balance"] for pane in balance.run(bm.testing.TestStream().add(rows).advance_watermark_to(9))]
        [10, 7]
    """

    def describe(self) -> str:
        return "all rows of its key up to its time"


class OverFunction(Accumulation):
    """A value of a row by its place among the rows of its key, for ``over`` alone."""

    __slots__ = ()

    python = False
    of_frame = False
    """Whether it reads its frame, not all rows of its key."""
    counts = False
    """Whether it counts all rows of its key."""

    @property
    def reach(self) -> int:
        """How many rows before it, or if negative after it, it reads."""
        return 0

    @property
    def inputs(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def check(self, name: str, *, merging: bool) -> None:
        raise PipelineError(
            f"accumulate({name}={self!r}): a value by a row's place among others, which only .over(...) has; use .over(bm.Unbounded()), or an accumulation such as First or Last"
        )

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        return

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return types[0] if types else pa.int64()


@attrs.frozen
class FirstValue(OverFunction):
    """The column in the first row of the frame, null included.

    Args:
        column: a name.

    Raises:
        OptionError: not a name.
    """

    column: str = column_field()
    of_frame = True


@attrs.frozen
class LastValue(OverFunction):
    """The column in the last row of the frame, null included: with ``PrecedingRows`` the row's own.

    Args:
        column: a name.

    Raises:
        OptionError: not a name.
    """

    column: str = column_field()
    of_frame = True


def _read_default(value: object) -> Any:
    try:
        value = python_value(value)
        pa.scalar(value)
    except (NotPlainError, pa.ArrowException, TypeError, ValueError, OverflowError):
        raise OptionError(
            f"default={value!r}: must be a value such as a column holds: a number, a text, a time"
        ) from None
    return value


class _Shift(OverFunction):
    """``Lag`` and ``Lead``."""

    __slots__ = ()

    column: str
    n: int
    default: Any

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        try:
            pa.scalar(self.default, types[0])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise ColumnError(
                f"accumulate({name}={self!r}): column {self.column!r} is {types[0]}, the default is not; give a default of this type"
            ) from None


@attrs.frozen
class Lag(_Shift):
    """The column in the row ``n`` before it, of all rows of its key.

    Args:
        column: a name.
        n: how many rows before it, from 1.
        default: the value without such a row.

    Raises:
        OptionError: an argument is invalid.
        ColumnError: the default is not of the column's type.

    Example:
        >>> import beamish as bm
        >>> steps = (
        ...     bm.Pipeline()
        ...     .event_time("ts", bm.BoundedOutOfOrderness(0))
        ...     .over(bm.Unbounded())
        ...     .accumulate(before=bm.Lag("x"), number=bm.RowNumber())
        ... )
        >>> script = bm.testing.TestStream().add([{"ts": 1, "x": "a"}, {"ts": 2, "x": "b"}]).advance_watermark_to(9)
        >>> [(pane.values["x"], pane.values["before"], pane.values["number"]) for pane in steps.run(script)]
        [('a', None, 1), ('b', 'a', 2)]
    """

    column: str = column_field()
    n: int = attrs.field(default=1, validator=_check_rows)
    default: object = attrs.field(default=None, converter=_read_default)

    @property
    def reach(self) -> int:
        return self.n


@attrs.frozen
class Lead(_Shift):
    """The column in the row ``n`` after it, of all rows of its key: a row waits until the watermark has passed that row.

    Args:
        column: a name.
        n: how many rows after it, from 1.
        default: the value without such a row, at the end of time.

    Raises:
        OptionError: an argument is invalid.
        ColumnError: the default is not of the column's type.
    """

    column: str = column_field()
    n: int = attrs.field(default=1, validator=_check_rows)
    default: object = attrs.field(default=None, converter=_read_default)

    @property
    def reach(self) -> int:
        return -self.n


@attrs.frozen
class RowNumber(OverFunction):
    """The number of the row among all rows of its key, from 1."""

    counts = True


@attrs.frozen
class Rank(OverFunction):
    """1 plus the number of rows of its key before it, by event time and ``order_by`` alone."""

    counts = True


@attrs.frozen
class DenseRank(OverFunction):
    """1 plus the number of distinct event times, with ``order_by``, of the rows of its key before it."""

    counts = True


def _named(accumulations: Mapping[str, Accumulation]) -> InOrder[Accumulation]:
    return InOrder(accumulations)


def _named_formulas(formulas: Mapping[str, Formula]) -> InOrder[Formula]:
    return InOrder(formulas)


def _check_order_by(_: Any, __: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise OptionError(f"over(order_by={value!r}): must be the name of a column")


@attrs.frozen
class OverOptions:
    """The options of an over stage, by the names of ``WindowOptions``.

    Attributes:
        frame: which rows the accumulations of a row hold.
        order_by: the column that orders rows of the same key and time; None: all columns do.
        trigger: when rows are emitted: when the watermark passes them, or with an early part as they arrive.
        allowed_lateness: how far behind the watermark a row may be.
        mode: discarding, or retracting to correct emitted rows; None: not set.
        forget_after: how far past a key's latest row the watermark is when its state is dropped; None: never.
        with_dropped: whether dropped rows are emitted.
        accumulations: accumulations and functions, by the name of their column.
        derived: computed columns, by name.
        having: the condition on rows of the output; None: all.
        explode: the column whose items become rows; None: each row is one.
    """

    frame: Frame
    order_by: str | None = attrs.field(default=None, validator=_check_order_by)
    trigger: Trigger = Default()
    allowed_lateness: Duration = attrs.field(default=Duration(0), converter=read_not_negative)
    mode: AccumulationMode | None = None
    forget_after: Duration | None = None
    with_dropped: bool = False
    accumulations: Mapping[str, Accumulation] = attrs.field(factory=dict, converter=_named)
    derived: Mapping[str, Formula] = attrs.field(factory=dict, converter=_named_formulas)
    having: Formula | None = None
    explode: str | None = None

    @property
    def arguments(self) -> str:
        """The arguments of ``over``, as source code."""
        words = repr(self.frame)
        return words if self.order_by is None else f"{words}, order_by={self.order_by!r}"

    @property
    def early(self) -> bool:
        """Whether rows are emitted as they arrive."""
        return self.trigger.can_fire_before_end()

    @property
    def retracts(self) -> bool:
        """Whether emitted rows are corrected."""
        return self.mode is AccumulationMode.ACCUMULATING_AND_RETRACTING

    @property
    def functions(self) -> Mapping[str, OverFunction]:
        """The functions of a row's place."""
        return {name: one for name, one in self.accumulations.items() if isinstance(one, OverFunction)}

    @property
    def over_frame(self) -> Mapping[str, Accumulation]:
        """The accumulations of the frame."""
        return {name: one for name, one in self.accumulations.items() if not isinstance(one, OverFunction)}

    @property
    def lead(self) -> int:
        """How many rows after a row are awaited."""
        return max((0, *(-one.reach for one in self.functions.values())))

    @property
    def lag(self) -> int:
        """How many rows before a row are read, besides those of a span."""
        return max((self.frame.rows, *(one.reach for one in self.functions.values())))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names."""
        named = [] if self.order_by is None else [self.order_by]
        for one in self.accumulations.values():
            named += one.inputs or ()
        return tuple(dict.fromkeys(named))
