"""The process that Spark forks its Python workers from, with beamish in it already.

    SparkSession.builder.config("spark.python.daemon.module", "beamish.spark.daemon")

A worker that is forked from Spark's own daemon imports pandas, pyarrow and beamish itself, and a query starts some five of them.
Spark ends workers that had no task for a minute, so without this a query whose batches are further apart imports them in every batch.
"""

from __future__ import annotations

import gc
import importlib

from pyspark.daemon import manager

for _name in ("pandas", "pyspark.worker", "beamish.spark.operator.processor", "beamish.spark.operator.pane_bytes"):
    importlib.import_module(_name)
gc.freeze()

if __name__ == "__main__":
    manager()
