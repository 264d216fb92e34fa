"""Names as Spark's SQL reads them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
