"""Columns that rows of a table have beside the data: what the last change of each was."""

from __future__ import annotations

SEQUENCE, DELETED = "_sequence", "_deleted"
"""Which change of its key a row is (bigint); whether the row is deleted (boolean)."""
