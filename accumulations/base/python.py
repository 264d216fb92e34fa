"""Accumulations in plain Python, row by row: adapters for the contract's methods on columns.

An accumulator is one Arrow binary value: the ``codec`` bytes of its dump, or null for no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from beamish.errors import UserFunctionError, cause, check_memory, describe_foreign, shown
from beamish.kernels.buffers import binary_column
from beamish.kernels.codec import ALLOWED, decode, encode, unshared
from beamish.kernels.groups import Groups
from beamish.kernels.order import Key, sort_order
from beamish.kernels.python_columns import typed_value

_LONGEST_ARGUMENT = 200


def add_rows(owner: Any, state: pa.Array, values: Sequence[Any], groups: Groups, keys: Sequence[Key]) -> pa.Array:
    """Call ``owner.add`` for each row, in the order of (group, keys).

    Args:
        owner: the accumulation.
        state: the accumulators so far, one per group.
        values: one per row.
        groups: of the rows.
        keys: sort keys of the rows within a group.
    """
    order = sort_order([groups.of, *keys])
    rows = [values[row] for row in order.tolist()]
    accumulators: list[bytes | None] = state.to_pylist()
    add = owner.add
    for number, start, end in groups[order].runs():
        before = accumulators[number]
        accumulator = _create(owner, number) if before is None else _decode(owner, before, number)
        value = None
        try:
            for value in rows[start:end]:
                accumulator = add(accumulator, value)
        except Exception as error:  # noqa: BLE001 - it is raised again
            raise failed(owner, "add", (accumulator, value), error, number) from cause(error)
        accumulators[number] = _encode(owner, accumulator, number)
    return binary_column(accumulators)


def merge_accumulators(owner: Any, state: pa.Array, groups: Groups) -> pa.Array:
    """Call ``owner.merge`` for the accumulators of each group, in order; a single one stays as it is."""
    order = sort_order([groups.of])
    encoded: list[bytes | None] = state.to_pylist()
    result: list[bytes | None] = [None] * groups.count
    place = order.tolist()
    for number, start, end in groups[order].runs():
        parts = [part for row in place[start:end] if (part := encoded[row]) is not None]
        if len(parts) < 2:
            result[number] = parts[0] if parts else None
            continue
        merged = _decode(owner, parts[0], number)
        for part in parts[1:]:
            other = _decode(owner, part, number)
            try:
                merged = owner.merge(merged, other)
            except Exception as error:  # noqa: BLE001 - it is raised again
                raise failed(owner, "merge", (merged, other), error, number) from cause(error)
        result[number] = _encode(owner, merged, number)
    return binary_column(result)


def extract(owner: Any, state: pa.Array, type_: pa.DataType) -> pa.Array:
    """Call ``owner.extract`` for each accumulator."""
    values: list[Any] = []
    for number, encoded in enumerate(state.to_pylist()):
        accumulator = _create(owner, number) if encoded is None else _decode(owner, encoded, number)
        try:
            values.append(unshared(owner.extract(accumulator)))
        except Exception as error:  # noqa: BLE001 - it is raised again
            raise failed(owner, "extract", (accumulator,), error, number) from cause(error)
    return typed(owner, "extract", values, type_)


def typed(owner: Any, method: str, values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values returned by a function, as a column of the declared type."""
    if pa.types.is_null(type_):
        return pa.nulls(len(values))
    try:
        return pa.array([typed_value(value, type_) for value in values], type_)
    except _REFUSED as error:
        check_memory(error)
        for number, value in enumerate(values):
            try:
                pa.array([typed_value(value, type_)], type_)
            except _REFUSED:
                raise _mistyped(owner, method, value, type_, number) from cause(error)
        raise


_REFUSED = (pa.ArrowException, TypeError, ValueError, OverflowError, ArithmeticError)
"""Errors of a conversion."""


def _mistyped(owner: Any, method: str, value: Any, type_: pa.DataType, number: int) -> UserFunctionError:
    raised = f"{owner!r}.{method} returned {_short(value)}, which is not of its result type, {type_}"
    error = UserFunctionError(f"{raised}; return such a value, or declare another result type")
    error.group, error.raised = number, raised
    return error


def failed(owner: Any, method: str, arguments: tuple[Any, ...], error: Exception, number: int) -> UserFunctionError:
    """The error that names the function, its arguments and the fix (MemoryError: memory ran out)."""
    check_memory(error)
    way_out = "fix it and restart from the checkpoint; no data was lost"
    if "<" in getattr(getattr(owner, method, None), "__qualname__", ""):
        # A checkpoint identifies it by its code (kernels/identity.py), so it rejects the fixed one.
        way_out = "move it to a module-level function, which a checkpoint identifies by name; a lambda or inner function is identified by its code, so begin a new checkpoint over the same rows"
    raised = f"{owner!r}.{method}({', '.join(map(_short, arguments))}) raised {describe_foreign(error)}"
    result = UserFunctionError(f"{raised}; {way_out}")
    result.group, result.raised = number, raised
    return result


def no_rows(groups: int) -> pa.Array:
    """The accumulators of no rows."""
    return pa.nulls(groups, pa.binary())


def _create(owner: Any, number: int) -> Any:
    try:
        return unshared(owner.create())
    except Exception as error:  # noqa: BLE001 - it is raised again
        raise failed(owner, "create", (), error, number) from cause(error)


def _decode(owner: Any, kept: bytes, number: int) -> Any:
    dumped = decode(kept)
    try:
        return owner.load(dumped)
    except Exception as error:  # noqa: BLE001 - it is raised again
        raise failed(owner, "load", (dumped,), error, number) from cause(error)


def _encode(owner: Any, accumulator: Any, number: int) -> bytes:
    try:
        dumped = owner.dump(accumulator)
    except Exception as error:  # noqa: BLE001 - it is raised again
        raise failed(owner, "dump", (accumulator,), error, number) from cause(error)
    try:
        return encode(dumped)
    except TypeError as error:
        result = UserFunctionError(
            f"{owner!r}: its accumulator is or contains {error}, which cannot be stored in the checkpoint; build it of {ALLOWED}, "
            "or define dump(self, accumulator), which converts it to these, and load(self, dumped), which restores it"
        )
        result.group = number
        raise result from cause(error)


def _short(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= _LONGEST_ARGUMENT else f"{text[:_LONGEST_ARGUMENT]}..."
