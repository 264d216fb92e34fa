"""The classes that sessions of the tests load, in an archive that a JVM maps: half of what the start of a session computes.

    make archive

It is in the virtual environment. A JVM leaves it unread where its jars are others. It takes as long to write as a few sessions save,
so ``make test`` does not write it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(sys.prefix) / "spark.jsa"
"""Empty where this JVM can write none."""
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def reads_archive() -> str:
    """The options of a JVM that reads the archive, if there is one."""
    return f' "-XX:SharedArchiveFile={ARCHIVE}" {_SILENT}' if ARCHIVE.is_file() and ARCHIVE.stat().st_size else ""


def write() -> None:
    """Run a stream, a restart and batches, and have the JVM write what it loaded as it ends."""
    import beamish as bm
    from beamish.accumulations import Count, Sum
    from beamish.testing import TestStream
    from beamish.triggers import AfterCount, AfterWatermark
    from tests.conftest import INTERPRETED, quick_settings, start_spark

    ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        written, options = Path(folder) / "spark.jsa", "spark.driver.extraJavaOptions"
        java = f'{quick_settings()[options]} "-XX:ArchiveClassesAtExit={written}" {_SILENT}'
        spark = start_spark({**INTERPRETED, options: java, "spark.sql.warehouse.dir": folder})
        jvm = spark.sparkContext._gateway.proc
        pipeline = (
            bm.Pipeline()
            .event_time("ts", bm.BoundedOutOfOrderness(0, idle_timeout=5))
            .key_by("team")
            .window(bm.FixedWindows(10))
            .trigger(AfterWatermark(early=AfterCount(1)))
            .accumulating_and_retracting()
            .accumulate(plays=Count(), total=Sum("score"))
        )
        rows = [{"ts": 1, "team": "red", "score": 1}, {"ts": 2, "team": "blue", "score": 5}]
        script = TestStream().add(rows).add(rows).advance_watermark_to(20)
        script.on_spark(spark, pipeline, restart_after=[1], checkpoint=f"{folder}/script")
        bm.inspect(spark, f"{folder}/script/checkpoint")
        batch = spark.createDataFrame([(1, "red", 1)], "ts long, team string, score long")
        batch.selectExpr("timestamp_micros(ts) ts", "team", "score").write.parquet(f"{folder}/rows")
        stored = spark.read.parquet(f"{folder}/rows")
        stored.transform(pipeline).toPandas()
        stored.groupBy("team").count().collect()
        stream = spark.readStream.schema(stored.schema).parquet(f"{folder}/rows").transform(pipeline)
        writer = stream.writeStream.option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/stream")
        writer.trigger(availableNow=True).start().awaitTermination()
        spark.stop()
        spark.sparkContext._gateway.shutdown()
        jvm.stdin.close()
        jvm.wait()
        ARCHIVE.touch()
        if written.is_file():
            part = ARCHIVE.with_suffix(".part")  # another file system
            part.write_bytes(written.read_bytes())
            part.replace(ARCHIVE)


if __name__ == "__main__":
    write()
