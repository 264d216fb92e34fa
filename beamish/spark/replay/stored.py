"""The windows of a key that a checkpoint keeps, as they were after a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from beamish.contract.at_rest import EVER, Asked, Keeps
from beamish.errors import StateError
from beamish.spark.checkpoint.entries import state_errors
from beamish.spark.checkpoint.inspected import batch_meant, read_batches, read_stages


@state_errors()
def stored_windows(spark: SparkSession, checkpoint: str, batch: int, key: Mapping[str, Any]) -> Any:
    """The windows of the last stage, as an Arrow table.

    Args:
        spark: the session.
        checkpoint: the folder.
        batch: after which batch.
        key: the values of its key columns.

    Raises:
        StateError: that stage has no windows, or the state after this batch is no longer there.
    """
    stage = read_stages(spark, checkpoint, batch_meant(read_batches(spark, checkpoint), batch))[-1]
    if Keeps.WINDOWS not in stage.keeps:
        raise StateError("the last stage has no windows")
    asked = stage.facts.asked(Asked(Keeps.WINDOWS, dict(key), EVER))
    return stage.answered(asked).toArrow().cast(asked.schema)
