"""Quoted names for Spark SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Quote any name."""
    return "`" + name.replace("`", "``") + "`"
