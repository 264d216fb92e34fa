"""Errors in user functions, with their key and window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beamish.errors import NumericOverflowError, UserFunctionError, cause, shown
from beamish.instants import instant
from beamish.kinds.window.window_table import WindowTable


@contextmanager
def naming_window(table: WindowTable, at: NDArray[np.int64] | None = None) -> Iterator[None]:
    """Add key and window to errors raised inside.

    Args:
        table: the window table.
        at: the windows indexed by the error's group; None: the group is the index in the table.
    """
    try:
        yield
    except (UserFunctionError, NumericOverflowError) as error:
        if error.group is None:
            raise
        window = error.group if at is None else int(at[error.group])
        bounds = ", ".join(_time(int(table[name][window])) for name in ("start_us", "end_us"))
        raise _with(error, f"{_key(table, int(table['key_at'][window]))}, window [{bounds})") from cause(error)


@contextmanager
def naming_key(table: WindowTable, key_at: NDArray[np.int64]) -> Iterator[None]:
    """Add the key to errors raised inside; ``key_at``: the positions of the keys indexed by the error's group."""
    try:
        yield
    except UserFunctionError as error:
        if error.group is None:
            raise
        raise _with(error, _key(table, int(key_at[error.group]))) from cause(error)


def _key(table: WindowTable, key_at: int) -> str:
    key: list[dict[str, Any]] = table.keys.take(np.array([key_at])).to_pylist()
    return f"key {shown(key[0])}"


def _time(us: int) -> str:
    try:
        return instant(us).isoformat()
    except OverflowError:  # the end of time, or a custom window beyond the year 9999
        return f"{us} us"


def _with(error: UserFunctionError | NumericOverflowError, where: str) -> Exception:
    named = type(error)(f"{where}: {error}")
    named.raised = error.raised and f"{where}: {error.raised}"
    return named
