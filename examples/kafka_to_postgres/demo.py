"""Start a Kafka broker and PostgreSQL, run query.py over drawn clicks, kill it at drawn moments, and compare its output with a batch.

make kafka-demo [CLICKS=3000] [SEED=1]
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import pyspark

from tools.servers import topics
from tools.servers.kafka import FOLDER, Broker, own_home, packages
from tools.servers.postgresql import PostgreSql

from . import check

ROOT = Path(__file__).parents[2]
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
BATCHES = 12
"""Batches of a demo without restarts."""


def drawn(draw: random.Random, rows: int, begin: datetime = BEGIN, users: int = 50) -> Iterator[tuple[str | None, str]]:
    """Clicks of a day, mostly in order: of 100 six are up to an hour late, three are more than six hours late, one is malformed.

    Two partitions get them in turn, so that neither is ahead; else a late click may find the visit before it expired, or not.
    """
    names = [f"user {number}" for number in range(users)]
    of_partition = [[None, *(name for name in names if crc32(name.encode()) % 2 == half)] for half in range(2)]
    for row in range(rows):
        user = draw.choice(of_partition[row % 2])
        kind = draw.choices(["in order", "late", "too late", "malformed"], [90, 6, 3, 1])[0]
        minutes = draw.uniform(*{"in order": (0, 10), "late": (0, 60)}.get(kind, (360, 1440)))
        ts = begin + timedelta(days=row / rows) - timedelta(minutes=minutes)
        click = json.dumps({"user": user, "ts": ts.isoformat(), "spent": draw.randrange(100)})
        yield user, click[:20] if kind == "malformed" else click


class Run:
    """The query, its topics, a database, and a checkpoint.

    Attributes:
        broker: the broker's address.
        database: the URI.
        folder: checkpoint, metrics and log.
        options: of Spark's Kafka source.
        python: the interpreter, whose environment has PySpark.
        submit: options of spark-submit.
    """

    python = Path(sys.executable)
    submit: Sequence[str] = (
        *("--master", "local[2]", "--driver-memory", "2g"),
        *("--conf", "spark.python.daemon.module=beamish.spark.daemon"),
    )

    def __init__(self, broker: str, database: str, folder: Path, **options: object) -> None:
        """Create the topics."""
        self.broker, self.database, self.folder, self.options = broker, database, folder, options
        topics.create(broker, "clicks", cleanup="delete")
        topics.create(broker, "visits", cleanup="compact")

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the query, in a group of processes of its own."""
        given = {"broker": self.broker, "database": self.database, "checkpoint": self.folder / "checkpoint"}
        given["metrics"] = self.folder / "metrics"
        options = [f"--option={name}={value}" for name, value in self.options.items()]
        submit = [str(self.python.with_name("spark-submit")), *packages(CONNECTOR, FOLDER / "spark"), *self.submit]
        submit += ["--conf", "spark.ui.enabled=false", str(Path(__file__).with_name("query.py"))]
        told = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        environment = os.environ | own_home(FOLDER / "spark") | {"PYSPARK_PYTHON": str(self.python)}
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*submit, *told, *options, *arguments], stdout=log, stderr=log, env=environment, start_new_session=True
            )
        atexit.register(kill, process)
        return process

    @property
    def log(self) -> Path:
        """The log of all runs."""
        return self.folder / "log"

    def said(self) -> str:
        """The last warnings and errors of the log."""
        return "\n".join(line for line in self.log.read_text().splitlines() if " INFO " not in line)[-5000:]

    def batches(self) -> int:
        """How many batches the query has begun."""
        offsets = (self.folder / "checkpoint" / "offsets").glob("[0-9]*")
        return max((int(path.name) + 1 for path in offsets), default=0)

    def processed(self, *, committed: bool = False) -> dict[int, int]:
        """The end offsets of the last batch that has begun, or is committed, by partition."""
        logged = (self.folder / "checkpoint" / ("commits" if committed else "offsets")).glob("[0-9]*")
        if (batch := max((int(path.name) for path in logged), default=None)) is None:
            return {}
        lines = (self.folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()
        return {int(number): end for number, end in json.loads(lines[-1])["clicks"].items()}

    def wait(self, process: subprocess.Popen[bytes], batches: int) -> bool:
        """Wait until that many batches have begun; False: the query has ended before."""
        until = time.monotonic() + 600
        while self.batches() < batches:
            if process.poll() is not None:
                return False
            if time.monotonic() > until:
                raise TimeoutError(self.said())
            time.sleep(0.05)
        return True

    def finish(self, tries: int = 1) -> None:
        """Run the query until it has processed all clicks; restart it where it fails, at most that many times."""
        for _ in range(tries):
            if self.start("--available-now").wait(600) == 0:
                return
        raise RuntimeError(self.said())

    def clicks(self) -> list[check.Click]:
        """The clicks of the topic."""
        return [
            check.read_click(one.partition, one.offset, one.value or "") for one in topics.read(self.broker, "clicks")
        ]

    def problems(self, clicks: list[check.Click]) -> list[str]:
        """The differences between the batch computation and what the query wrote."""
        records = [(one.key or "", one.value) for one in topics.read(self.broker, "visits")]
        in_table, in_topic = check.table(self.database), check.folded(records)
        return check.problems(clicks, check.dropped(self.database), in_table, in_topic)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a query, with all its processes, unless it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main() -> int:
    """Run the demo; 1 if something differs."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--clicks", type=int, default=3000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    said = parser.parse_args()
    draw = random.Random(said.seed)
    print(f"PySpark {pyspark.__version__}, {CONNECTOR}, seed {said.seed}", flush=True)
    broker, postgresql = Broker(), PostgreSql()
    print(f"Kafka on {broker.address}, PostgreSQL on 127.0.0.1:{postgresql.port}", flush=True)
    with postgresql.database() as database, tempfile.TemporaryDirectory(prefix="beamish-demo-") as folder:
        run = Run(broker.address, database, Path(folder), maxOffsetsPerTrigger=said.clicks // BATCHES)
        topics.send(run.broker, "clicks", drawn(draw, said.clicks))
        for number in range(said.kills):
            batches, seconds = run.batches() + draw.randrange(1, BATCHES // (said.kills + 1)), draw.uniform(0, 2)
            process = run.start("--available-now")
            if not run.wait(process, batches):
                raise RuntimeError(run.said())
            time.sleep(seconds)
            kill(process)
            print(f"kill {number + 1}: {seconds:.2f} s after the start of batch {run.batches() - 1}", flush=True)
        run.finish()
        clicks = run.clicks()
        found = run.problems(clicks)
        _report(run, clicks)
    print("\n".join(found) or "table and topic equal the batch computation, row for row")
    return int(bool(found))


def _report(run: Run, clicks: list[check.Click]) -> None:
    reasons = Counter(reason for _, _, reason in check.dropped(run.database))
    records = len(list(topics.read(run.broker, "visits")))
    visits = check.table(run.database)
    counted = sum(visit.clicks for visit in visits)
    print(f"{len(clicks)} clicks: {counted} in visits, {dict(reasons)} dropped; {run.batches()} batches")
    print(f"{visits.total()} visits in the table; {records} records in the topic")
    print("metrics of the last run:")
    for line in (run.folder / "metrics").read_text().splitlines():
        if line.startswith(("beamish_panes_total", "beamish_dropped_total", "beamish_live")) and not line.endswith(
            " 0.0"
        ):
            print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
