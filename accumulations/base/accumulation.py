"""The contract of an accumulation.

Laws (property tests of the same name):

1. ``merge`` is associative and commutative, with ``create()`` as identity.
2. ``add(a, v)`` equals ``merge(a, add(create(), v))``, except for Fold.
3. ``retract(add(a, v), v)`` equals ``a``, where ``retract`` is defined.

On columns an accumulator is one or more Arrow columns, its *state*: ``lift`` turns each row into an accumulator, ``combine``
merges accumulators group by group, ``extract_columns`` reads the values. Everything the engine does (pre-aggregate, add to a
window, merge sessions, sum slices) is a ``combine``, except that new rows are added by ``add_rows`` to accumulations that cannot
pre-aggregate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base import python as rows
from beamish.errors import OptionError, PipelineError
from beamish.kernels.buffers import plain
from beamish.kernels.codec import shared_object
from beamish.kernels.groups import Groups
from beamish.kernels.identity import plain_repr
from beamish.kernels.state_fields import Field
from beamish.kernels.type_names import parsed_type

KeptRows: TypeAlias = tuple[NDArray[np.int64], pa.Array, NDArray[np.int64]]
"""Stored rows of accumulators: their event times or row numbers, the rows, the index of each row's accumulator."""


class Accumulation:
    """An aggregation of a window's rows. Subclass it for accumulations of your own in plain Python.

    A subclass should be a frozen attrs class. It declares the column that it reads (``column``: a name, several, or None
    for the whole row as a dict) and its result type as a Spark DDL type (``result_type``, such as "bigint",
    "double", "array<string>"), and defines ``create``, ``add``, ``merge`` and ``extract``. ``create`` is called for each window, and
    when the pipeline is checked. An accumulator is a
    plain value: None, bool, int, float, str, bytes, Decimal, date, datetime, timedelta, and lists, tuples, sets,
    frozensets and dicts of these; it is stored in the checkpoint. For other objects define ``dump`` and ``load``. ``add`` and
    ``merge`` may change and return their first argument, ``extract`` changes none. Rows are added in the order of their event times;
    a null is added as None. Where rows can be retracted, define ``retract(self, accumulator, value)``, which undoes ``add``.

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

    column: Any = None
    """The column it reads: a name, several, or None for the whole row. (Typed Any, so that subclasses may narrow it.)"""
    result_type: str = ""
    __repr__ = plain_repr

    def create(self) -> Any:
        """The accumulator of no rows."""
        raise NotImplementedError

    def add(self, accumulator: Any, value: Any, /) -> Any:
        """Add a row: the value of ``column``, a tuple for several columns, or the row itself."""
        raise NotImplementedError

    def merge(self, a: Any, b: Any, /) -> Any:
        """Merge two accumulators of a window: of sessions that merge, or of rows aggregated before the shuffle."""
        raise NotImplementedError

    def extract(self, accumulator: Any, /) -> Any:
        """The value emitted in a pane."""
        raise NotImplementedError

    def dump(self, accumulator: Any, /) -> Any:
        """Convert an accumulator to the plain value that is stored; by default the accumulator itself.

        For accumulators that are objects, such as a sketch of another library: ``dump`` returns its bytes, ``load`` restores it.
        Both are called in every batch that touches the accumulator.
        """
        return accumulator

    def load(self, dumped: Any, /) -> Any:
        """Restore a dumped accumulator."""
        return dumped

    retract: Any = None
    """``retract(self, accumulator, value)``: the accumulator without a row that was added, nulls included. Optional."""

    def of(self, input_: Any) -> Accumulation:
        """Restrict it to the rows of one input of a merge: ``Sum("amount").of("orders")`` (see ``bm.merge``).

        Raises:
            OptionError: not the name of an input.
        """
        from beamish.accumulations.base.one_input import OfInput

        if not isinstance(input_, str) or not input_:
            raise OptionError(f"{self!r}.of({input_!r}): must be the name of an input of bm.merge")
        return OfInput(self, input_)

    # The same on columns. Built-in accumulations override it; the default calls the methods above row by row. `columns`
    # are the input columns in the order of `inputs`, and `types` their Arrow types. If `inputs` is None, there is a
    # single struct column with all columns of the data, in their order.

    python: ClassVar[bool] = True
    """Whether the row-by-row methods above are used; False for built-in accumulations."""

    # For merges of several inputs only (see base/one_input.py and joins.py).

    explodes: ClassVar[bool] = False
    """Whether a pane becomes several output rows, or none, by ``explode``. Such an accumulation is the only one of its pipeline."""

    @property
    def names_of_inputs(self) -> tuple[str, ...]:
        """Names of the merge inputs whose rows it takes; empty: none named."""
        return ()

    def columns_of(self, input_: str) -> Iterable[str]:
        """The columns of that input that it reads by name."""
        return ()

    def bind(self, name: str, inputs: Mapping[str, MergedInput]) -> Accumulation:
        """Bind it to the merged rows of the inputs; ``name`` is the output column.

        Raises:
            ColumnError: a column of an input is missing or has an unsupported type.
        """
        return self

    def output_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The type of its output column: that of its value, or of a row if it explodes."""
        return self.value_type(types)

    def explode(
        self, values: pa.Array, whole: NDArray[np.bool_], null_key: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], pa.Array]:
        """Explode values into output rows.

        Args:
            values: one per pane.
            whole: bool, one per pane: whether to emit exactly one row, with a null value.
            null_key: bool, one per pane: whether a column of its key is null.

        Returns:
            for each row the index of its pane, and the rows, of the output type.
        """
        raise NotImplementedError

    @property
    def preaggregates(self) -> bool:
        """Whether rows may be pre-aggregated, in any order (Fold without merge: no)."""
        return True

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """The columns it reads; None: the whole row as a dict."""
        if self.column is None or isinstance(self.column, str):
            return None if self.column is None else (self.column,)
        return tuple(self.column)

    def check(self, name: str, *, merging: bool) -> None:
        """Check it against the windows; ``name`` is the output column.

        Raises:
            PipelineError: it does not support merging windows, or a method is missing.
        """
        if not self.python:
            return
        for method in ("create", "add", "merge", "extract"):
            if getattr(type(self), method) is getattr(Accumulation, method):
                raise PipelineError(f"accumulate({name}={self!r}): {type(self).__name__} does not define {method}")
        kind = type(self)
        if (kind.dump is Accumulation.dump) != (kind.load is Accumulation.load):
            one, other = ("load", "dump") if kind.dump is Accumulation.dump else ("dump", "load")
            raise PipelineError(
                f"accumulate({name}={self!r}): {kind.__name__} defines {one} without {other}; dump() and load() are each other's inverse"
            )
        names = [self.column] if isinstance(self.column, str) else self.column
        several = isinstance(names, (list, tuple)) and names and all(isinstance(one, str) and one for one in names)
        if names is not None and not several:
            raise PipelineError(
                f"accumulate({name}={self!r}): {type(self).__name__}.column is {self.column!r}: must be the name of a column, "
                "several names, or None for the whole row as a dict"
            )
        if not self.result_type:
            raise PipelineError(
                f"accumulate({name}={self!r}): {type(self).__name__} has no result type; add result_type = 'double', or another Spark type"
            )
        self.value_type(())
        shared = self._shared_object()
        if shared is not None:
            raise PipelineError(
                f"accumulate({name}={self!r}): {type(self).__name__}.create() returns the same {type(shared).__name__} each time, so windows would share it; return a new one from create()"
            )

    def _shared_object(self) -> Any:
        """A mutable object that two new accumulators share; None: no such object, or ``create`` raises, as it will for a row."""
        try:
            return shared_object(self.create(), self.create())
        except Exception:  # noqa: BLE001 - what a worker has may be missing here
            return None

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        """Check the types of its input columns.

        Raises:
            ColumnError: a column has an unsupported type.
        """

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The Arrow type of its value, by Spark's rules for the same aggregate."""
        return parsed_type(f"{type(self).__name__}(result_type)", self.result_type)

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        """The columns of its state. If all have a merger, ``fields.combine_fields`` implements ``combine``."""
        return (Field(pa.binary()),)

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        """Turn each row into an accumulator: the state's columns, one entry per row."""
        return self.reduce(columns, event_time_us, Groups.each(len(event_time_us)))

    def reduce(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], groups: Groups) -> list[pa.Array]:
        """Accumulate rows group by group, as ``combine(groups, lift(...))`` but possibly faster.

        Args:
            columns: the input columns.
            event_time_us: int64, microseconds since the epoch, one per row.
            groups: of the rows; an empty group gets the accumulator of no rows.

        Returns:
            the state's columns, one entry per group.
        """
        return self.add_rows([rows.no_rows(groups.count)], columns, event_time_us, groups)

    def add_rows(
        self,
        state: Sequence[pa.Array],
        columns: Sequence[pa.Array],
        event_time_us: NDArray[np.int64],
        groups: Groups,
    ) -> list[pa.Array]:
        """Add new rows to accumulators: ``combine`` of ``state`` and ``reduce`` of the rows.

        A Fold without ``merge`` can only be continued this way: its function is called with the old accumulator.

        Args:
            state: the state's columns, one entry per group (the accumulator of no rows for a new group).
            columns, event_time_us, groups: as for ``reduce``.

        Returns:
            the state's columns, one entry per group.
        """
        values = [column.to_pylist() for column in map(plain, columns)]
        pairs = values[0] if len(values) == 1 else list(zip(*values, strict=True))
        return [rows.add_rows(self, state[0], pairs, groups, [event_time_us])]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        """Merge accumulators group by group.

        Args:
            groups: of the entries of ``state``; an empty group gets the accumulator of no rows.
            state: the state's columns.

        Returns:
            the state's columns, one entry per group.
        """
        return [rows.merge_accumulators(self, state[0], groups)]

    def kept(self, types: Sequence[pa.DataType]) -> Mapping[str, pa.DataType]:
        """Struct types of the rows that it stores, by input ("" for a single one); empty: it stores none."""
        return {}

    def kept_rows(self, state: Sequence[pa.Array], types: Sequence[pa.DataType], name: str) -> KeptRows:
        """The stored rows of accumulators, for one of the ``kept``.

        Returns:
            their event times or numbers (int64), the rows (structs), and the index of each row's accumulator (int64).
        """
        raise NotImplementedError(f"{type(self).__name__} stores no rows")

    def check_state(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> None:
        """Raise the errors that ``extract_columns`` would raise; called as rows arrive, so that rows causing them can be dropped.

        A user's ``extract`` is not called: it may fail for few rows and succeed for more.
        """

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        """The values, one per accumulator."""
        return rows.extract(self, state[0], self.value_type(types))


@attrs.frozen
class MergedInput:
    """A merge input, as accumulations see it.

    Attributes:
        name: of the input.
        number: in the order of declaration, from 0.
        keys: its key columns, by their own names.
        columns: all its columns, by their own names, with their types.
        named: the same, and the nested fields that the stage names.
    """

    name: str
    number: int
    keys: tuple[str, ...]
    columns: Mapping[str, pa.DataType]
    named: Mapping[str, pa.DataType] = attrs.field(default=attrs.Factory(lambda self: self.columns, takes_self=True))

    def merged_name(self, column: str) -> str:
        """The name of a column in the merged rows."""
        return merged_name(self.name, column)


def merged_name(input_: str, column: str) -> str:
    """The name of an input's column in the merged rows."""
    return f"{input_}.{column}"
