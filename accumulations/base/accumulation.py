"""The contract of an accumulation: what becomes of the rows of a window.

Laws (property tests of the same name):

1. ``merge`` is associative and commutative, with ``create()`` as identity.
2. ``add(a, v)`` equals ``merge(a, add(create(), v))``, but for Fold.
3. ``retract(add(a, v), v)`` equals ``a``, where ``retract`` is offered.

On columns an accumulator is one or more Arrow columns, its *state*: ``lift`` makes each row an accumulator of
its own, ``combine`` merges accumulators group by group, ``extract_columns`` reads the values. Everything the
engine does (pre-aggregate, add to a window, merge sessions, sum slices) is a ``combine``, except that new rows are
added by ``add_rows`` to accumulations that do not pre-aggregate.
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
from beamish.kernels.fields import Field
from beamish.kernels.groups import Groups
from beamish.kernels.identity import plain_repr
from beamish.kernels.type_names import arrow_type
from beamish.kernels.unshared import shared_object

KeptRows: TypeAlias = tuple[NDArray[np.int64], pa.Array, NDArray[np.int64]]
"""Rows that accumulators keep: their event times or numbers, the rows, the number of the accumulator of each."""


class Accumulation:
    """What becomes of a window's rows. Subclass it for accumulations of your own in plain Python.

    A subclass is best a frozen attrs class. It says which column it reads (``column``: a name, several, or None
    for the whole row as a dict) and the type of its result in Spark's words (``result_type``, such as "bigint",
    "double", "array<string>"), and defines ``create``, ``add``, ``merge`` and ``extract``. ``create`` is called for each window, and
    when the pipeline is checked. An accumulator is a
    plain value: None, bool, int, float, str, bytes, Decimal, date, datetime, timedelta, and lists, tuples, sets,
    frozensets and dicts of these; it is kept in the checkpoint. One that is another object says how by ``dump`` and
    ``load``. ``add`` and ``merge`` may change and return their first argument. Rows are added in the order of their event times; a null is added as None.

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
    """The column it reads: a name, several, or None for the whole row. (Any, since a subclass may say it more exactly.)"""
    result_type: str = ""
    __repr__ = plain_repr

    def create(self) -> Any:
        """The accumulator of no rows."""
        raise NotImplementedError

    def add(self, accumulator: Any, value: Any, /) -> Any:
        """The accumulator with one more row: the value of ``column``, a tuple if it names several, or the row."""
        raise NotImplementedError

    def merge(self, a: Any, b: Any, /) -> Any:
        """The accumulator of the rows of both."""
        raise NotImplementedError

    def extract(self, accumulator: Any, /) -> Any:
        """The value of a pane."""
        raise NotImplementedError

    def dump(self, accumulator: Any, /) -> Any:
        """An accumulator as the plain value that the checkpoint keeps; by default it is one.

        For accumulators that are objects, such as a sketch of another library: ``dump`` gives its bytes, ``load`` makes it
        again. Both are called in every batch that the accumulator is part of.
        """
        return accumulator

    def load(self, dumped: Any, /) -> Any:
        """The accumulator that was dumped."""
        return dumped

    retract: Any = None
    """``retract(self, accumulator, value)``: the accumulator with one row less. Optional."""

    def of(self, input_: Any) -> Accumulation:
        """The same of the rows of one input of a merge: ``Sum("amount").of("orders")`` (see ``bm.merge``).

        Raises:
            OptionError: it is not the name of an input.
        """
        from beamish.accumulations.base.one_input import OfInput

        if not isinstance(input_, str) or not input_:
            raise OptionError(f"{self!r}.of({input_!r}): must be the name of an input of bm.merge")
        return OfInput(self, input_)

    # The same on columns. Built-in accumulations redefine it; this one calls the methods above row by row.
    # `columns` are the input columns in the order of `inputs`, and `types` their Arrow types. Where `inputs` is None
    # it is one struct column, whose fields are all columns of the data, in their order.

    python: ClassVar[bool] = True
    """Whether the methods above do the work; False for the built-in accumulations, which work on columns."""

    # What matters in a merge of several inputs only (see base/one_input.py and joins.py).

    explodes: ClassVar[bool] = False
    """Whether a pane comes out as several rows, or none, by ``explode``. It is then the only one of its pipeline."""

    @property
    def names_of_inputs(self) -> tuple[str, ...]:
        """The inputs of a merge whose rows it takes, by name; none: it names none."""
        return ()

    def columns_of(self, input_: str) -> Iterable[str]:
        """The columns it asks for by name of that input."""
        return ()

    def bind(self, name: str, inputs: Mapping[str, MergedInput]) -> Accumulation:
        """The same over the merged rows of the inputs; ``name`` is the output column.

        Raises:
            ColumnError: an input lacks a column, or has it with a type that does not go.
        """
        return self

    def output_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The type of its output column: that of its value, unless it explodes."""
        return self.value_type(types)

    def explode(self, values: pa.Array, whole: NDArray[np.bool_]) -> tuple[NDArray[np.int64], pa.Array]:
        """The rows that values come out as.

        Args:
            values: one per pane.
            whole: bool, one per pane: whether it comes out as one row whatever its value, which is then null.

        Returns:
            for each row the number of its pane, and the rows, of the output type.
        """
        raise NotImplementedError

    @property
    def preaggregates(self) -> bool:
        """Whether rows may be combined before they reach their window, in any order (Fold without merge: no)."""
        return True

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """The columns it reads; None: all of them, one dict per row."""
        if self.column is None or isinstance(self.column, str):
            return None if self.column is None else (self.column,)
        return tuple(self.column)

    def check(self, name: str, *, merging: bool) -> None:
        """Check what only the pipeline knows; ``name`` is the output column.

        Raises:
            PipelineError: it does not go with windows that merge, or lacks something.
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
                f"accumulate({name}={self!r}): {kind.__name__} defines {one} without {other}; what one makes of an accumulator the "
                "other makes one of again"
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
                f"accumulate({name}={self!r}): {type(self).__name__} does not say the type of its result; add "
                "result_type = 'double', or whichever it is, in Spark's words"
            )
        self.value_type(())
        shared = self._shared_object()
        if shared is not None:
            raise PipelineError(
                f"accumulate({name}={self!r}): {type(self).__name__}.create() gives one and the same {type(shared).__name__} each time, so "
                "that windows would add to each other's; make a new one in create()"
            )

    def _shared_object(self) -> Any:
        """A mutable object that two accumulators would have in common; None: there is none, or ``create`` raises, as it will with a row."""
        try:
            return shared_object(self.create(), self.create())
        except Exception:  # noqa: BLE001 - what a worker has may be missing here
            return None

    def check_types(self, name: str, types: Sequence[pa.DataType]) -> None:
        """Check the types of its input columns.

        Raises:
            ColumnError: a column has a type it cannot accumulate.
        """

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The Arrow type of its value, after Spark's rules for the same aggregate."""
        return arrow_type(f"{type(self).__name__}(result_type)", self.result_type)

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        """The columns of its state. Where all have a merger, ``fields.combine_fields`` does what ``combine`` does."""
        return (Field(pa.binary()),)

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        """Make each row an accumulator of its own: the state's columns, one entry per row."""
        return self.reduce(columns, event_time_us, Groups.each(len(event_time_us)))

    def reduce(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64], groups: Groups) -> list[pa.Array]:
        """Accumulate rows group by group: ``combine(groups, lift(...))``, by whatever way is fastest.

        Args:
            columns: the input columns.
            event_time_us: int64, microseconds since the epoch, one per row.
            groups: of the rows; a group with no row gets the accumulator of no rows.

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
        """Go on from earlier accumulators with new rows: ``combine`` of ``state`` and ``reduce`` of the rows.

        The one way to continue a Fold without ``merge``, whose function is called with the old accumulator.

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
            groups: of the entries of ``state``; a group with no entry gets the accumulator of no rows.
            state: the state's columns.

        Returns:
            the state's columns, one entry per group.
        """
        return [rows.merge_accumulators(self, state[0], groups)]

    def kept(self, types: Sequence[pa.DataType]) -> Mapping[str, pa.DataType]:
        """The rows that it keeps: their struct types, by the input that they are of; "" where there is one; none: it keeps no rows."""
        return {}

    def kept_rows(self, state: Sequence[pa.Array], types: Sequence[pa.DataType], name: str) -> KeptRows:
        """The rows that accumulators keep, of one of the ``kept``.

        Returns:
            their event times or numbers (int64), the rows (structs), and the number of the accumulator that each is of (int64).
        """
        raise NotImplementedError(f"{type(self).__name__} keeps no rows")

    def check_state(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> None:
        """Raise what otherwise only the values of accumulators would: asked as rows come, where those that raise are dropped.

        A user's ``extract`` is not called: it may hold of more rows, and not of few.
        """

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        """The values, one per accumulator."""
        return rows.extract(self, state[0], self.value_type(types))


@attrs.frozen
class MergedInput:
    """An input of a merge, as accumulations see it.

    Attributes:
        name: of the input.
        number: in the order in which they were named, from 0.
        keys: the columns it is keyed by, by their own names.
        columns: all its columns, by their own names, with their types.
    """

    name: str
    number: int
    keys: tuple[str, ...]
    columns: Mapping[str, pa.DataType]

    def merged_name(self, column: str) -> str:
        """The column's name in the merged rows."""
        return merged_name(self.name, column)


def merged_name(input_: str, column: str) -> str:
    """The name of an input's column in the merged rows."""
    return f"{input_}.{column}"
