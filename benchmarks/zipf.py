"""Keys of benchmarks: uniform, or by Zipf's law with a bound."""

from __future__ import annotations

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

EXPONENT = 1.1


def keys_in_window(keys: int, rows: float, distribution: str) -> float:
    """The expected number of keys with rows in a window of this many rows."""
    edges = np.unique(np.geomspace(1, keys + 1, 20_000).astype(np.int64))
    ranks = np.diff(edges)
    if distribution == "uniform":
        chance = np.full(len(ranks), 1 / keys)
    else:
        mass = edges.astype(float) ** (1 - EXPONENT)
        chance = (mass[:-1] - mass[1:]) / (mass[0] - mass[-1]) / ranks
    return float((ranks * -np.expm1(-rows * chance)).sum())


def key(number: Column, keys: int, distribution: str) -> Column:
    """The key of a row, from its number."""
    if distribution == "uniform":
        return F.pmod(F.xxhash64(number), F.lit(keys))
    unit = F.pmod(F.xxhash64(number), F.lit(2**53)).cast("double") / F.lit(float(2**53))
    least = float(keys + 1) ** (1 - EXPONENT)
    return F.floor(F.pow(1 - unit * (1 - least), F.lit(1 / (1 - EXPONENT)))).cast("bigint") - 1
