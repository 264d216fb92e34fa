"""Query metrics as a Spark observation.

A shard's step emits its metrics in a row of its own, beside the bytes of its panes, so panes need no filter. The observation
aggregates these rows, a few per batch; then the column is dropped. An unobserved query has neither the column nor the
observation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from beamish.contract.drops import BY_SHARD, COUNTED, DROPPED, GREATEST, LEAST, PANES, SKIPPED
from beamish.errors import ColumnError, OptionError

_REBUILD = "_beamish_observed"
"""An attribute of a pipeline's DataFrame: a function that recreates it with an observation of a given name."""
_NAME = "_beamish_observed_as"
"""An attribute of observed panes: the name of the observation."""
_COUNTS = t.StructType(
    [
        t.StructField("path", t.StringType()),
        *(t.StructField(name, t.LongType()) for name in ("shard", *COUNTED, *GREATEST, *LEAST)),
    ]
)


def can_be_observed(panes: DataFrame, observed: Callable[[str], DataFrame]) -> DataFrame:
    """Store how to recreate a DataFrame of panes with an observation.

    Args:
        panes: a pipeline's output.
        observed: recreates it with an observation of a given name.
    """
    setattr(panes, _REBUILD, observed)
    return panes


def observe(panes: DataFrame, name: Any) -> DataFrame:
    """The panes, observed (see ``bm.observe``)."""
    if not isinstance(name, str) or not name:
        raise OptionError(f"observe(panes, name={name!r}): must be a nonempty string, such as 'beamish'")
    own = vars(panes)  # by getattr every name is a column under Spark Connect
    if own.get(_NAME) == name:
        raise OptionError(
            f"observe(panes, name={name!r}): they are observed under this name already; leave one of the two calls out, or give it another name"
        )
    rebuild: Any = own.get(_REBUILD)
    if rebuild is not None:
        return _named(rebuild(name), name)
    if "pane" not in panes.columns:
        raise ColumnError(
            "observe(df): there is no column 'pane', so these are not panes; pass the output of pipeline.apply"
        )
    kind, timing = F.col("pane.kind"), F.col("pane.timing")
    counts = {column: F.count_if((kind == "PANE") & (timing == of)) for of, column in PANES.items()}
    counts["retractions"] = F.count_if(kind == "RETRACTION")
    if "dropped" in panes.columns:
        counts |= {column: F.count_if(F.col("dropped.reason") == reason) for reason, column in DROPPED.items()}
        counts["max_late_by_ms"] = F.max(F.floor(F.col("dropped.late_by") / 1000))
    unknown, no_shards = F.max(F.lit(None).cast("bigint")), F.max(F.lit(None).cast("string")).alias("by_shard")
    columns = (counts.get(column, unknown).alias(column) for column in (*COUNTED, *GREATEST, *LEAST))
    return _named(panes.observe(name, *columns, no_shards), name)


def _named(panes: DataFrame, name: str) -> DataFrame:
    setattr(panes, _NAME, name)
    return panes


def with_observations(operated: DataFrame, name: str, paths: Iterable[str] = ()) -> DataFrame:
    """The panes' bytes, observed.

    Args:
        operated: panes and metrics.
        name: of the observation of the last stage.
        paths: of the stages that are fused with it; the names of theirs are the name with the path.
    """
    counted = operated.withColumn("counts", F.from_json("counts", _COUNTS))
    for path in ("", *paths):
        counted = _observed(counted, name + path, F.when(F.col("counts.path") == path, F.col("counts")))
    return counted.select("panes")


def _observed(df: DataFrame, name: str, counts: Column) -> DataFrame:
    added = dict.fromkeys(COUNTED, F.sum) | dict.fromkeys(GREATEST, F.max) | dict.fromkeys(LEAST, F.min)
    of_shard = F.when(counts.isNotNull(), F.struct(*(counts.getField(column).alias(column) for column in BY_SHARD)))
    return df.observe(
        name,
        *(add(counts.getField(column)).alias(column) for column, add in added.items()),
        F.to_json(F.sort_array(F.collect_list(of_shard))).alias("by_shard"),
    )


def count_skipped(df: DataFrame, condition: Column) -> DataFrame:
    """A source's records; of a stream those that satisfy a condition are counted, whether or not the query is observed.

    Each call has an observation of its own, since a query's names of observations must differ.
    """
    if not df.isStreaming:
        return df
    return df.observe(f"{SKIPPED}_{uuid4().hex}", F.count_if(condition).alias(SKIPPED))
