"""Entries of the offset log of a query."""

from __future__ import annotations

import hashlib

from pyspark.sql import SparkSession


def entry_digest(spark: SparkSession, checkpoint: str, batch: int) -> str:
    """A digest of a batch's entry in the offset log."""
    lines = spark.read.text(f"{checkpoint.rstrip('/')}/offsets/{batch}", wholetext=True).collect()
    return f"offsets {hashlib.sha256(lines[0].value.encode()).hexdigest()[:32]}"
