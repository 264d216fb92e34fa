"""Errors raised by Spark's own plans, as ``bm.errors.of`` finds them."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.errors import BeamishError


def raised(error: BeamishError, type_: t.DataType | str, place: Column | None = None) -> Column:
    """Raise an error in place of a value of this type; ``place``: where, before its text."""
    name = f"\nbeamish.errors.{type(error).__name__}: "
    text = F.lit(f"{error}\n")
    return F.raise_error(F.concat(F.lit(name), *([] if place is None else [place, F.lit(": ")]), text)).cast(type_)
