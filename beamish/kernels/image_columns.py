"""Columns of table rows besides the data: the last change of each row."""

from __future__ import annotations

SEQUENCE, DELETED = "_sequence", "_deleted"
"""Sequence number of a row's last change (bigint); whether the row is deleted (boolean)."""
