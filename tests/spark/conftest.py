"""Fixtures of the tests on Spark: rows as files, queries that run to their end, panes by key."""

import os
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beamish.script import panes_from_table
from beamish.spark import bind

ROOT = str(Path(__file__).parents[2])
# Spark's Python workers import beamish from where this process does.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))


class Files:
    """A folder of parquet files as a stream: one file a micro-batch, in the order in which they were added."""

    def __init__(self, spark, folder, schema):
        self.spark, self.folder, self.schema, self.count = spark, folder, schema, 0
        folder.mkdir()

    def add(self, *rows):
        path = self.folder / f"{self.count}.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), schema=self.schema), path)
        os.utime(path, (1_700_000_000 + self.count,) * 2)
        self.count += 1
        return self

    def stream(self):
        # Spark's schema of the file, read as a batch
        schema = self.spark.read.parquet(str(self.folder)).schema
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder))


@pytest.fixture
def files(spark, tmp_path):
    def make(**columns):
        return Files(spark, tmp_path / "input", pa.schema(columns))

    return make


@pytest.fixture
def run_query(tmp_path):
    """Run a streaming query over all available rows and stop; later calls continue from its checkpoint."""

    def run(pipeline, df, **options):
        out = pipeline.apply(df, **options)
        gives = bind(pipeline.flow, df, {}, **options).operator.gives
        batches = []
        query = (
            out.writeStream.foreachBatch(lambda batch, _: batches.append(batch.toArrow().cast(gives.schema)))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [panes_from_table(batch, gives) for batch in batches]

    return run


@pytest.fixture
def by_key():
    """Panes key by key, in order: what on_spark promises (rules/output.md#order-of-output)."""

    def group(panes):
        groups = defaultdict(list)
        for pane in panes:
            groups[tuple(pane.key.items())].append(pane)
        return dict(groups)

    return group
