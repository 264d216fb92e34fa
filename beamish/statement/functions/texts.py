"""String functions; a character is a Unicode code point, as in Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from beamish.statement.functions.casts import cast
from beamish.statement.functions.types import RefusedError, each

_WHOLE = 2**31 - 1


def _texts(name: str, columns: Sequence[pa.Array]) -> list[pa.Array]:
    for column in columns:
        if not pa.types.is_string(column.type) and not pa.types.is_null(column.type):
            raise RefusedError(f"{name} of {column.type}: in a script of strings only; CAST it to STRING")
    return [column.cast(pa.string()) for column in columns]


def _of_texts(
    name: str, function: Callable[..., Any], type_: pa.DataType
) -> Callable[[Sequence[pa.Array], Any], pa.Array]:
    return lambda columns, _: each(function, type_, *_texts(name, columns))


def _trim(columns: Sequence[pa.Array], side: Any) -> pa.Array:
    text, *characters = _texts("TRIM", columns)
    if not characters:
        kernel = {"BOTH": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}[side]
        return kernel(text, characters=" ")
    strip = {"BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}[side]
    return each(strip, pa.string(), text, *characters)


def _length(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    return pc.utf8_length(*_texts("LENGTH", columns)).cast(pa.int32())


def _concat(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    texts = [column if pa.types.is_string(column.type) else cast(column, "string") for column in columns]
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _substring(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    text, *bounds = columns
    (text,) = _texts("SUBSTRING", [text])
    for bound in bounds:
        if not pa.types.is_integer(bound.type) and not pa.types.is_null(bound.type):
            raise RefusedError(f"SUBSTRING: position and length must be integers, not {bound.type}")

    def substring(text: str, position: int, length: int = _WHOLE) -> str:
        start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
        end = start + length
        return text[max(0, start) : max(0, end)]

    return each(substring, pa.string(), text, *bounds)


def _like(columns: Sequence[pa.Array], _: Any) -> pa.Array:
    def like(text: str, pattern: str) -> bool:
        return re.fullmatch(_regex(pattern), text, re.DOTALL) is not None

    return each(like, pa.bool_(), *_texts("LIKE", columns))


def _regex(pattern: str) -> str:
    said, at = "", 0
    while at < len(pattern):
        one = pattern[at]
        if one == "\\":
            at += 1
            if at == len(pattern) or pattern[at] not in "_%\\":
                raise RefusedError(f"LIKE {pattern!r}: after '\\' comes '_', '%' or '\\'")
            said += re.escape(pattern[at])
        else:
            said += ".*" if one == "%" else "." if one == "_" else re.escape(one)
        at += 1
    return said


FUNCTIONS: Mapping[str, Callable[[Sequence[pa.Array], Any], pa.Array]] = {
    "UPPER": _of_texts("UPPER", str.upper, pa.string()),
    "LOWER": _of_texts("LOWER", str.lower, pa.string()),
    "TRIM": _trim,
    "LENGTH": _length,
    "CONCAT": _concat,
    "SUBSTRING": _substring,
    "REPLACE": _of_texts("REPLACE", lambda text, old, new="": text.replace(old, new) if old else text, pa.string()),
    "STARTSWITH": _of_texts("STARTSWITH", str.startswith, pa.bool_()),
    "ENDSWITH": _of_texts("ENDSWITH", str.endswith, pa.bool_()),
    "CONTAINS": _of_texts("CONTAINS", lambda text, part: part in text, pa.bool_()),
    "LIKE": _like,
}
