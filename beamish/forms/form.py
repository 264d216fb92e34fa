"""The contract of an input form: what a row of a source stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

Unfolded = tuple[Mapping[str, Any], int]
"""A row of data, and 1, or -1 where it takes an equal row back."""


class InputForm(Protocol):
    """A frozen value. On Spark the same is said in columns (``spark/rows/forms.py``)."""

    def call(self) -> str:
        """The call on a pipeline that declares it."""
        ...

    def describe(self) -> str:
        """What its rows mean, for explain."""
        ...

    def unfold(self, row: Mapping[str, Any]) -> Iterator[Unfolded]:
        """The rows of data that a row stands for.

        Raises:
            ColumnError: a column is missing that must be there.
            ScriptError: it holds something that cannot be.
        """
        ...
