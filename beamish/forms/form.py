"""The contract of an input form: how the rows of a source are interpreted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

Unfolded = tuple[Mapping[str, Any], int]
"""A data row, and 1 for an insert or -1 for a retraction of an equal row."""


class InputForm(Protocol):
    """A frozen value. On Spark it is implemented on columns (``spark/rows/forms.py``)."""

    def call(self) -> str:
        """The call on a pipeline that declares it."""
        ...

    def describe(self) -> str:
        """The meaning of its rows, for explain."""
        ...

    def unfold(self, row: Mapping[str, Any]) -> Iterator[Unfolded]:
        """The signed data rows that a row stands for.

        Raises:
            ColumnError: a required column is missing.
            ScriptError: a value is invalid.
        """
        ...
