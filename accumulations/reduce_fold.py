"""Reduce and Fold: user-defined functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.accumulation import Accumulation
from beamish.accumulations.base.columnar import Columnar, column_field, function_field
from beamish.accumulations.base.python import add_rows, failed, merge_accumulators, typed
from beamish.errors import OptionError, PipelineError, cause
from beamish.kernels.buffers import flags, plain, plain_type, valid
from beamish.kernels.codec import ALLOWED, encode, unshared
from beamish.kernels.groups import Groups
from beamish.kernels.order import Keys, is_orderable, sort_keys, sort_order
from beamish.kernels.state_fields import Field
from beamish.kernels.type_names import parsed_type

_INFERRED = {bool: "boolean", int: "bigint", float: "double", str: "string"}


@attrs.frozen
class Reduce(Columnar):
    """The values of a column reduced by a binary function, nulls ignored (Beam: ``CombineFn`` of a binary function).

    Args:
        fn: takes two values and returns one of the column's type. It must be associative and commutative: the
            order and grouping of the calls are not fixed.
        column: of any type.

    Returns:
        the column's type; null if there is no value.

    Raises:
        OptionError: fn is not a function, or the column is not a name.
        UserFunctionError: fn raised, or returned something that is not of the column's type.

    Example:
        >>> import operator
        >>> from beamish.accumulations import Reduce
        >>> Reduce(operator.or_, "flags")
        Reduce(fn=_operator.or_, column='flags')
    """

    fn: Callable[[Any, Any], Any] = function_field()
    column: str = column_field()

    python = True

    def check(self, name: str, *, merging: bool) -> None:
        pass

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return plain_type(types[0])

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        return (Field(plain_type(types[0]), None, None, self.column),)

    def lift(self, columns: Sequence[pa.Array], event_time_us: NDArray[np.int64]) -> list[pa.Array]:
        return [plain(columns[0])]

    def add_rows(
        self,
        state: Sequence[pa.Array],
        columns: Sequence[pa.Array],
        event_time_us: NDArray[np.int64],
        groups: Groups,
    ) -> list[pa.Array]:
        values = pa.concat_arrays([state[0], *self.lift(columns, event_time_us)])
        return self.combine(Groups.each(groups.count).followed_by(groups), [values])

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        column, present = state[0], valid(state[0])
        if present is not None:
            column, groups = column.filter(flags(present)), groups[present]
        order = sort_order([groups.of])
        values = column.to_pylist()
        place = order.tolist()
        result: list[Any] = [None] * groups.count
        fn = self.fn
        for number, start, end in groups[order].runs():
            reduced = values[place[start]]
            value = None
            try:
                for row in place[start + 1 : end]:
                    value = values[row]
                    reduced = fn(reduced, value)
            except Exception as error:  # noqa: BLE001 - it is raised again
                raise failed(self, "fn", (reduced, value), error, number) from cause(error)
            result[number] = unshared(reduced)
        return [typed(self, "fn", result, state[0].type)]


@attrs.frozen
class Fold(Accumulation):
    """Rows folded into an accumulator by a function, in event-time order within a bundle.

    Rows of one event time are in Spark's sort order of their values, so the result does not depend on the order of rows in a
    bundle. It does depend on which bundle a row arrives in, unless ``merge`` is given.

    Args:
        initial: the accumulator of no rows: a plain value, as in ``Accumulation``.
        fn: takes the accumulator and a row's value, and returns the next accumulator; it may mutate its argument.
        column: the column passed to fn, None for a null; default: the whole row, as a dict.
        merge: takes two accumulators and returns the merged one; then ``initial`` must be neutral. Without it the pipeline cannot
            have merging windows, and rows are not pre-aggregated.
        result_type: a Spark type, such as "bigint" or "array<string>"; default: after ``initial``, if that is
            a bool, int, float or str.

    Returns:
        ``result_type``; ``initial`` if there is no row.

    Raises:
        OptionError: an argument is not as described here.
        PipelineError: windows merge and ``merge`` is missing.
        UserFunctionError: fn or merge raised, or the accumulator is not a plain value or not of the result type.

    Example:
        >>> from beamish.accumulations import Fold
        >>> def longest(length, name):
        ...     return max(length, len(name))
        >>> Fold(0, longest, column="name", merge=max).result_type
        'bigint'
    """

    initial: Any = attrs.field(hash=False, converter=unshared)
    fn: Callable[[Any, Any], Any] = function_field()
    column: str | None = column_field(optional=True)
    merge: Callable[[Any, Any], Any] | None = function_field(optional=True)  # type: ignore[assignment]
    result_type: str = attrs.field(default="")

    @initial.validator
    def _check_initial(self, _: object, value: object) -> None:
        try:
            encode(value)
        except TypeError as error:
            raise OptionError(
                f"Fold(initial={value!r}): is or contains {error}, which cannot be stored in the checkpoint; build it of {ALLOWED}"
            ) from error

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.result_type, str):
            raise OptionError(f"Fold(result_type={self.result_type!r}): must be a Spark type, such as 'double'")
        if not self.result_type:
            inferred = _INFERRED.get(type(self.initial))
            if inferred is None:
                raise OptionError(
                    f"Fold(initial={self.initial!r}): does not determine the result type; declare it, as in "
                    "Fold(..., result_type='array<string>')"
                )
            object.__setattr__(self, "result_type", inferred)
        parsed_type("Fold(result_type)", self.result_type)

    @property
    def preaggregates(self) -> bool:
        return self.merge is not None

    def check(self, name: str, *, merging: bool) -> None:
        if merging and self.merge is None:
            raise PipelineError(
                f"accumulate({name}={self!r}): windows merge, but this Fold has no merge function; give merge=, a function of two "
                "accumulators, or use windows that do not merge"
            )

    def create(self) -> Any:
        return unshared(self.initial)

    def add(self, accumulator: Any, value: Any) -> Any:
        return self.fn(accumulator, value)

    def extract(self, accumulator: Any) -> Any:
        return accumulator

    def add_rows(
        self,
        state: Sequence[pa.Array],
        columns: Sequence[pa.Array],
        event_time_us: NDArray[np.int64],
        groups: Groups,
    ) -> list[pa.Array]:
        column = plain(columns[0])
        values = column.to_pylist()
        keys = _row_keys(column, values)
        return [add_rows(self, state[0], values, groups, [event_time_us, *keys])]

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        if self.merge is None:
            present = valid(state[0])
            entries = groups if present is None else groups[present]
            if bool((entries.sizes() > 1).any()):
                raise PipelineError(
                    f"{self!r}: accumulators cannot be merged; give merge=, a function of two accumulators"
                )
        return [merge_accumulators(self, state[0], groups)]


def _row_keys(column: pa.Array, values: Sequence[Any]) -> Keys:
    # Maps are not orderable in Spark: rows with one are ordered by their repr, to have some order.
    if is_orderable(column.type):
        return sort_keys(column)
    texts = [repr(value) for value in values]
    place = {text: i for i, text in enumerate(sorted(set(texts)))}
    return [np.fromiter((place[text] for text in texts), np.int64, len(texts))]
