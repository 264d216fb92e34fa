"""Accumulations in a merge: each names the input whose rows it takes.

The rows of all inputs of a merge are one table: a column that numbers the input, and columns ``input.column``, null
in the rows of the other inputs. Input names are bound to numbers and columns when a pipeline is applied to data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beamish.accumulations.base.accumulation import Accumulation, KeptRows, MergedInput
from beamish.errors import ColumnError, PipelineError
from beamish.kernels.buffers import Ints, flags, numbers, struct_column
from beamish.kernels.column_names import INPUT
from beamish.kernels.groups import Groups
from beamish.kernels.state_fields import Field


class OfInputs(Accumulation):
    """An accumulation that names the inputs it reads; ``bind`` gives one over the merged rows."""

    __slots__ = ()

    python: ClassVar[bool] = False


@attrs.frozen(repr=False)
class OfInput(OfInputs):
    """An accumulation of one input of a merge; created by ``Sum("amount").of("orders")``."""

    inner: Accumulation
    input: str

    def __repr__(self) -> str:
        return f"{self.inner!r}.of({self.input!r})"

    @property
    def names_of_inputs(self) -> tuple[str, ...]:
        return (self.input,)

    def columns_of(self, input_: str) -> Iterable[str]:
        return (self.inner.inputs or ()) if input_ == self.input else ()

    def check(self, name: str, *, merging: bool) -> None:
        if self.inner.names_of_inputs:
            raise PipelineError(
                f"accumulate({name}={self!r}): {self.inner!r} names its inputs itself; leave the last .of() out"
            )
        if self.inner.explodes:
            raise PipelineError(
                f"accumulate({name}={self!r}): {self.inner!r} emits rows of its own, not a value of one input; use it in a stage of that "
                "input, before the merge, or in one after it"
            )
        self.inner.check(name, merging=merging)

    def bind(self, name: str, inputs: Mapping[str, MergedInput]) -> Accumulation:
        own = inputs[self.input]
        whole_rows = self.inner.inputs is None
        columns = tuple(own.columns) if self.inner.inputs is None else self.inner.inputs
        for column in columns:
            if column not in own.named:
                raise ColumnError(
                    f"accumulate({name}={self!r}): {self.input} has no column {column!r}; its columns are {list(own.columns)}"
                )
        types = [own.named[column] for column in columns]
        self.inner.check_types(name, [pa.struct(list(zip(columns, types, strict=True)))] if whole_rows else types)
        return OneInput(self, own.number, tuple(map(own.merged_name, columns)), columns if whole_rows else ())


@attrs.frozen(repr=False)
class OneInput(Accumulation):
    """An accumulation that skips the rows of other inputs. Its first input column is the number of the input.

    Attributes:
        declared: the accumulation as declared in the pipeline.
        number: the input's.
        columns: the columns it reads, by their names in the merged rows.
        row: if it takes whole rows, the names of these columns in a row.
    """

    declared: OfInput
    number: int
    columns: tuple[str, ...]
    row: tuple[str, ...]

    def __repr__(self) -> str:
        return repr(self.declared)

    @property
    def python(self) -> bool:  # type: ignore[override]
        return self.declared.inner.python

    @property
    def preaggregates(self) -> bool:
        return self.declared.inner.preaggregates

    @property
    def inputs(self) -> tuple[str, ...]:
        return (INPUT, *self.columns)

    def value_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        return self.declared.inner.value_type(self._types(types))

    def fields(self, types: Sequence[pa.DataType]) -> tuple[Field, ...]:
        return self.declared.inner.fields(self._types(types))

    def reduce(self, columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups) -> list[pa.Array]:
        own, values = self._own(columns)
        return self.declared.inner.reduce(values, event_time_us[own], groups[own])

    def add_rows(
        self, state: Sequence[pa.Array], columns: Sequence[pa.Array], event_time_us: Ints, groups: Groups
    ) -> list[pa.Array]:
        own, values = self._own(columns)
        return self.declared.inner.add_rows(state, values, event_time_us[own], groups[own])

    def combine(self, groups: Groups, state: Sequence[pa.Array]) -> list[pa.Array]:
        return self.declared.inner.combine(groups, state)

    def kept(self, types: Sequence[pa.DataType]) -> Mapping[str, pa.DataType]:
        return self.declared.inner.kept(self._types(types))

    def kept_rows(self, state: Sequence[pa.Array], types: Sequence[pa.DataType], name: str) -> KeptRows:
        return self.declared.inner.kept_rows(state, self._types(types), name)

    def extract_columns(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> pa.Array:
        return self.declared.inner.extract_columns(state, self._types(types))

    def check_state(self, state: Sequence[pa.Array], types: Sequence[pa.DataType]) -> None:
        self.declared.inner.check_state(state, self._types(types))

    def _types(self, types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        own = types[1:]
        return [pa.struct(list(zip(self.row, own, strict=True)))] if self.row else own

    def _own(self, columns: Sequence[pa.Array]) -> tuple[NDArray[np.bool_], list[pa.Array]]:
        """Which rows belong to its input, and their columns."""
        which, *values = columns
        own: NDArray[np.bool_] = numbers(which) == self.number
        if not own.all():
            values = [column.filter(flags(own)) for column in values]
        return own, [struct_column(values, self.row)] if self.row else values
