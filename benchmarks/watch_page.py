"""``python -m beamish watch`` beside a query with many open windows: seconds to the first page and after a batch, and bytes.

``python benchmarks/watch_page.py [WINDOWS] [SHARDS]``; by default a million windows in 8 shards. The query is that of
inspect_checkpoint.py; it is continued by a second batch while the page is served.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import Request, urlopen

from inspect_checkpoint import PIPELINE, session

PART = {"X-Beamish-Part": "1"}


def write(folder: str, first: int, windows: int, shards: int) -> None:
    """Write rows from this number on and run the query over them."""
    spark = session()
    rows = spark.range(first, first + windows).selectExpr(
        "timestamp_seconds(1700000040 + id % 50 * 60) AS ts", "id AS user", "id % 7 AS v"
    )
    rows.write.mode("append").parquet(f"{folder}/rows")
    stream = spark.readStream.schema("ts timestamp, user bigint, v bigint").parquet(f"{folder}/rows")
    query = (
        PIPELINE.apply(stream, shards=shards)
        .writeStream.format("noop")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def got(address: str, path: str) -> tuple[float, int, bytes]:
    """Seconds, status and content of an answer."""
    before = time.perf_counter()
    with urlopen(Request(address + path, headers=PART if path != "" else {}), timeout=600) as answer:
        content = answer.read()
        return time.perf_counter() - before, answer.status, content


def served(folder: str, windows: int, shards: int) -> None:
    """Serve the page, and print its costs."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "beamish", "watch", f"{folder}/checkpoint", "--port", "0", "--every", "1s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            address = program.stdout.readline().split()[-1] + "q/0/"
            started = time.perf_counter() - began
            seconds, _, first = got(address, "")
            print(f"{'from the start to the address':<48} {started:6.1f} s")
            print(f"{'then the first page':<48} {seconds:6.1f} s, {len(first) / 1000:.0f} kB")
            seconds, _, listed = got(address, "rows?stage=1")
            print(f"{'the list of windows':<48} {seconds:6.1f} s, {len(listed) / 1000:.0f} kB")
            link = listed.decode().partition('href="/q/0/')[2].partition('"')[0].replace("&amp;", "&")
            print(f"{'why, for one of them':<48} {got(address, link)[0]:6.1f} s")
            print(f"{'the page again, nothing new':<48} {got(address, '')[0]:6.1f} s")
            subprocess.run([sys.executable, __file__, "write", folder, str(windows), "1000", str(shards)], check=True)
            seconds, status, facts = got(address, "facts?version=none")
            assert status == 200
            assert f"{windows + 1000:,} stored" in facts.decode()
            print(f"{'facts after another batch':<48} {seconds:6.1f} s, {len(facts) / 1000:.0f} kB")
            print(f"{'the list after another batch':<48} {got(address, 'rows?stage=1')[0]:6.1f} s")
        finally:
            program.terminate()


def main() -> None:
    """Write, then serve."""
    what, *rest = sys.argv[1:] or ["1000000"]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if what == "write":
        folder, *numbers = rest
        write(folder, *map(int, numbers))
        return
    windows, shards = int(what), int(rest[0]) if rest else 8
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, __file__, "write", folder, "0", what, str(shards)], check=True)
        size = sum(path.stat().st_size for path in Path(folder, "checkpoint").rglob("*") if path.is_file())
        print(f"{windows:,} windows in {shards} shards, checkpoint of {size / 1e6:,.0f} MB")
        served(folder, windows, shards)


if __name__ == "__main__":
    main()
