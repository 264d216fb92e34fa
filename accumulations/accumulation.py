"""The contract of an accumulation: what becomes of the rows of a window.

Laws (property tests of the same name):

1. ``merge`` is associative and commutative, with ``create()`` as identity.
2. ``add(a, v)`` equals ``merge(a, add(create(), v))``, but for Fold.
3. ``retract(add(a, v), v)`` equals ``a``, where ``retract`` is offered.

On columns an accumulator is one or more Arrow columns, its *state*: ``lift`` makes each row an accumulator of
its own, ``combine`` merges accumulators group by group, ``extract_columns`` reads the values. Everything the
engine does - pre-aggregate, add to a window, merge sessions, sum slices - is a ``combine``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Merger = Literal["sum", "min", "max"]


@attrs.frozen
class Field:
    """One column of an accumulator's state.

    Attributes:
        type: its Arrow type.
        merger: how two are merged, nulls ignored (all null: null); None: ``combine`` does it.
        initial: its value in an accumulator of no rows.
    """

    type: pa.DataType
    merger: Merger | None = None
    initial: Any = None


class Accumulation:
    """What becomes of a window's rows. Subclass it for accumulations of your own in plain Python.

    A subclass is best a frozen attrs class. It says which column it reads (``column``: a name, several, or None
    for the whole row as a dict) and the type of its result in Spark's words (``result_type``, such as "bigint",
    "double", "array<string>"), and defines ``create``, ``add``, ``merge`` and ``extract``. An accumulator is a
    plain value: None, bool, int, float, str, bytes, Decimal, date, datetime, and lists, tuples, sets, frozensets
    and dicts of these; it is kept in the checkpoint. ``add`` and ``merge`` may change and return their first argument.

    Example:
        >>> import attrs
        >>> from beamish.accumulations import Accumulation
        >>> @attrs.frozen
        ... class Product(Accumulation):
        ...     column: str
        ...     result_type = "double"
        ...     def create(self): return 1.0
        ...     def add(self, accumulator, value): return accumulator * value
        ...     def merge(self, a, b): return a * b
        ...     def extract(self, accumulator): return accumulator
    """

    column: str | Sequence[str] | None = None
    result_type: str = ""

    def create(self) -> Any:
        """The accumulator of no rows."""
        raise NotImplementedError

    def add(self, accumulator: Any, value: Any) -> Any:
        """The accumulator with one more row: the value of ``column``, a tuple if it names several, or the row."""
        raise NotImplementedError

    def merge(self, a: Any, b: Any) -> Any:
        """The accumulator of the rows of both."""
        raise NotImplementedError

    def extract(self, accumulator: Any) -> Any:
        """The value of a pane."""
        raise NotImplementedError

    retract: ClassVar[Callable[..., Any] | None] = None
    """``retract(self, accumulator, value)``: the accumulator with one row less. Optional."""

    # The same on columns. Built-in accumulations redefine it; this one calls the methods above row by row.
    # `types` are the Arrow types of `inputs`, in their order.

    python: ClassVar[bool] = True
    """Whether the methods above do the work; False for the built-in accumulations, which work on columns."""
    preaggregates: ClassVar[bool] = True
    """Whether rows may be combined before they reach their window, in any order (Fold: no)."""

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """The columns it reads; None: all of them, as a dict a row."""
        if self.column is None or isinstance(self.column, str):
            return None if self.column is None else (self.column,)
        return tuple(self.column)

    def check(self, name: str, *, merging: bool) -> None:
        """Check what only the pipeline knows; ``name`` is the output column.

        Raises:
            PipelineError: it does not go with windows that merge, or lacks something.
        """

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        """Check the types of its input columns.

        Raises:
            ColumnError: a column has a type it cannot accumulate.
        """

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The Arrow type of its value, after Spark's rules for the same aggregate."""
        raise NotImplementedError

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        """The columns of its state."""
        raise NotImplementedError

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        """Make each row an accumulator of its own: the state's columns, one entry a row."""
        raise NotImplementedError

    def reduce(
        self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], group: NDArray[np.int64], groups: int
    ) -> list[pa.Array]:
        """Accumulate rows group by group: ``combine(group, groups, lift(...))``, by whatever way is fastest."""
        return self.combine(group, groups, self.lift(columns, event_time_us))

    def combine(self, group: NDArray[np.int64], groups: int, state: Sequence[pa.Array]) -> list[pa.Array]:
        """Merge accumulators group by group.

        Args:
            group: for each entry of ``state`` the group it belongs to, 0 to groups - 1, in any order.
            groups: how many there are; a group with no entry gets the accumulator of no rows.
            state: the state's columns.

        Returns:
            the state's columns, one entry a group.
        """
        raise NotImplementedError

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        """The values, one an accumulator."""
        raise NotImplementedError
