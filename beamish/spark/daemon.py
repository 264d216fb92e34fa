"""A daemon for Spark's Python workers with beamish preloaded.

    SparkSession.builder.config("spark.python.daemon.module", "beamish.spark.daemon")

A worker forked from Spark's own daemon imports pandas, pyarrow and beamish itself, and a query starts some five of them. Spark
stops workers that are idle for a minute, so without this daemon a query with less frequent batches imports them in every batch.
"""

from __future__ import annotations

import gc
import importlib

from pyspark.daemon import manager

from beamish.exports import import_all

for _name in ("pandas", "pyspark.worker", "beamish.spark.operator.processor"):
    importlib.import_module(_name)
import_all()  # whatever a stage may need
gc.freeze()

if __name__ == "__main__":
    manager()
