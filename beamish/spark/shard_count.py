"""Into how many shards the keys are cut."""

from __future__ import annotations

from pyspark.sql import SparkSession

from beamish.errors import OptionError
from beamish.options import Options


def shard_count(spark: SparkSession, options: Options, asked: int | None) -> int:
    """The number asked for, or a shard a shuffle partition; 1 without keys.

    Raises:
        OptionError: it is not a whole number of at least 1.
    """
    if asked is not None and (type(asked) is not int or asked < 1):
        raise OptionError(
            f"apply(shards={asked!r}): must be a whole number of at least 1; leave it out for a shard a partition"
        )
    if not options.keys:
        return 1
    return asked or int(str(spark.conf.get("spark.sql.shuffle.partitions")))
