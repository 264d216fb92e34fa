"""Queries that continue from the checkpoints of another version of Spark or Python: ``python -m tests.versions.go_on FOLDER PART``.

tools/versions.py runs one part per version, all in one folder, and all parts by one version in another; the outputs must be equal.
"""

import json
import os
import sys
from pathlib import Path

import beamish as bm
from beamish.accumulations import Collect, Count, Max, Sum
from beamish.triggers import AfterCount, AfterWatermark, Always, Never
from tests.conftest import start_spark

ROWS = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(5)).key_by("team")
MINUTES = (
    ROWS.window(bm.FixedWindows(20))
    .trigger(AfterWatermark(early=AfterCount(2), late=Always()))
    .allowed_lateness(60)
    .accumulating_and_retracting()
    .accumulate(n=Count(), s=Sum("score"), all=Collect("score", sorted_by="score"))
)
PIPELINES = {
    "windows": MINUTES,
    "sessions": MINUTES.window(bm.Sessions(15)),
    "chain": MINUTES.then(bm.Pipeline().key_by("n").accumulating_and_retracting().accumulate(most=Max("s"))),
    "once": ROWS.deduplicate("score", within=100),
    "forgotten": ROWS.key_by("team", "score")
    .window(bm.GlobalWindow())
    .trigger(Never())
    .forget_after(10)
    .discarding()
    .accumulate(n=Count()),
}


def rows(part):
    """The rows of a part: two files, each a batch; each part begins before the one before it has ended."""
    for file in (2 * part, 2 * part + 1):
        times = [file * 12 + (i * 7) % 25 for i in range(9)]
        yield file, [{"ts": t, "team": "abc"[t % 3], "score": (t * 5 + i) % 8} for i, t in enumerate(times)]


def main(folder, part):
    spark = start_spark()
    source = folder / "rows"
    source.mkdir(parents=True, exist_ok=True)
    for file, records in rows(part):
        path = source / f"{file:04}.json"
        path.write_text("\n".join(map(json.dumps, records)))
        os.utime(path, (1_700_000_000 + file,) * 2)
    for name, pipeline in PIPELINES.items():
        df = (
            spark.readStream.schema("ts long, team string, score long")
            .option("maxFilesPerTrigger", 1)
            .json(str(source))
        )
        out = df.selectExpr("timestamp_seconds(ts) ts", "team", "score").transform(pipeline)
        given = folder / name / f"{part:02}"
        given.mkdir(parents=True, exist_ok=True)

        def write(batch, number, given=given):
            lines = sorted(batch.selectExpr("to_json(struct(*))").toPandas().iloc[:, 0])
            if lines:
                (given / f"{number:04}").write_text("\n".join(lines))

        query = out.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / name / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
