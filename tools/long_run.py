"""Run examples/kafka_to_postgres at a steady rate with a drawn fault every two minutes, and compare its output with a batch.

make test-long [MINUTES=60] [RATE=20] [SEED=1]

A day of event time passes. The query is restarted where it stops, as a supervisor would. Memory, state and lag are sampled
every five seconds into build/long/samples.csv, and drawn in build/long/picture.svg.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyspark
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from benchmarks.processes import descendants, pss_mb, pythons
from examples.kafka_to_postgres import demo
from tests.servers import poison
from tests.servers.proxy import Proxy
from tools.servers.kafka import Broker
from tools.servers.postgresql import PostgreSql

FOLDER = Path(__file__).parents[1] / "build" / "long"
EVERY, SAMPLED = 120.0, 5.0
"""Seconds from fault to fault, and from sample to sample."""
POISON, MOST = 10_000, 100_000
"""Clicks of a poison batch, and at most of a micro-batch."""
Faults = list[tuple[float, str]]
"""The second and the name of each."""
SHOWN = {
    "jvm_mb": "JVM, MB",
    "python_mb": "driver and workers in Python, MB",
    "windows": "stored windows",
    "state_mb": "memory of the state store, MB",
    "lag": "clicks that are sent and not yet in a batch",
}
METRICS = {"windows": ("beamish_live_windows", 1), "state_mb": ("beamish_state_bytes", 2**20)}


class Feed:
    """Sends clicks to the topic at a steady rate, also while the broker restarts.

    Attributes:
        sent: how many it has sent.
    """

    def __init__(self, broker: str, draw: random.Random, rate: int, minutes: float) -> None:
        """Start to send."""
        self._producer = Producer(
            {"bootstrap.servers": broker, "log_level": 0, "queue.buffering.max.messages": 2_000_000}
        )
        self._rate, self._rows, self._drawn, self.sent = rate, int(rate * 60 * minutes), 0, 0
        self._clicks = demo.drawn(draw, self._rows, users=max(50, self._rows // 60))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def now(self) -> datetime:
        """The event time of the drawn clicks that are sent now."""
        return demo.BEGIN + timedelta(days=min(1.0, self._drawn / self._rows))

    def send(self, clicks: Iterable[tuple[str | None, str]]) -> None:
        """Send more."""
        for user, click in clicks:
            self._producer.produce("clicks", key=user, value=click)
            self._producer.poll(0)
            self.sent += 1

    def stop(self) -> None:
        """Stop, once the broker has all."""
        self._ended.set()
        self._thread.join()
        if self._producer.flush(300):
            raise ConnectionError("clicks were not delivered")

    def _run(self) -> None:
        while not self._ended.wait(1):
            self.send(click for _, click in zip(range(self._rate), self._clicks, strict=False))
            self._drawn += self._rate


class Supervised:
    """The query, its servers, and what happens to them.

    Attributes:
        run: topics, checkpoint and log.
        process: the query's, now.
        restarts: how often it was started again.
        faults: by name.
    """

    def __init__(self, folder: Path, database: str, servers: tuple[Broker, PostgreSql], draw: random.Random) -> None:
        """Start the query; ``database``: the URI."""
        self._broker, self._postgresql = servers
        self._draw, self._direct = draw, database
        self._proxy = Proxy(self._postgresql.port, cut=set())
        through = database.replace(f":{self._postgresql.port}/", f":{self._proxy.port}/")
        self.run = demo.Run(self._broker.address, through, folder, maxOffsetsPerTrigger=MOST)
        self.process, self.restarts, self._partitions = self.run.start(), 0, 2
        self.faults: dict[str, Callable[[], None]] = {
            "broker restarts": self._restart_broker,
            "database restarts": self._restart_database,
            "connection cut after COMMIT": self._cut_connection,
            "driver killed": self._kill_driver,
            "Python worker killed": self._kill_worker,
            "partition added": self._add_partition,
        }

    def restart_if_ended(self) -> None:
        """Start the query again if it has stopped."""
        if self.process.poll() is not None:
            self.process, self.restarts = self.run.start(), self.restarts + 1

    def problems(self) -> list[str]:
        """Run the query to the end of the topic; the differences from a batch."""
        demo.kill(self.process)
        self.run.finish(tries=4)
        self.run.database = self._direct
        return self.run.problems(self.run.clicks())

    def sample(self) -> dict[str, float]:
        """Memory and state now, without the lag."""
        processes = [(self.process.pid, "java"), *descendants(self.process.pid)]
        python = sum(map(pss_mb, pythons(processes)))
        metrics = {name: _metric(self.run.folder / "metrics", *of) for name, of in METRICS.items()}
        return {"jvm_mb": sum(pss_mb(pid) for pid, _ in processes) - python, "python_mb": python, **metrics}

    def _restart_broker(self) -> None:
        self._broker.stop(self._draw.choice([signal.SIGTERM, signal.SIGKILL]))
        time.sleep(self._draw.uniform(0, 5))
        self._broker.start()

    def _restart_database(self) -> None:
        self._postgresql.stop(self._draw.choice([signal.SIGINT, signal.SIGQUIT]))
        time.sleep(self._draw.uniform(0, 5))
        self._postgresql.start()

    def _cut_connection(self) -> None:
        self._proxy.cut.add(self._proxy.commits + self._draw.randrange(1, 6))

    def _kill_driver(self) -> None:
        demo.kill(self.process)

    def _kill_worker(self) -> None:
        """Or the daemon that forks them."""
        workers = [pid for pid in pythons(descendants(self.process.pid)) if b"query.py" not in _command(pid)]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._draw.choice(workers), signal.SIGKILL)

    def _add_partition(self) -> None:
        self._partitions += 1
        client = AdminClient({"bootstrap.servers": self._broker.address})
        client.create_partitions([NewPartitions("clicks", self._partitions)])["clicks"].result(60)


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _metric(file: Path, name: str, unit: float) -> float:
    """The sum of a metric in a file of Prometheus; 0: not yet written."""
    lines = file.read_text().splitlines() if file.exists() else []
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{")) / unit


def poisons(feed: Feed, draw: random.Random) -> dict[str, Callable[[], None]]:
    """Batches that are hard, by name."""
    kinds = {"one key": poison.one_key, "new keys": poison.new_keys, "late clicks": poison.late}
    return {
        f"{POISON:,} {name}": lambda kind=kind: feed.send(kind(draw, feed.now, POISON)) for name, kind in kinds.items()
    }


def drawn_forever(draw: random.Random, names: Sequence[str]) -> Iterator[str]:
    """Each name once, in a drawn order, and again."""
    while True:
        yield from draw.sample(names, len(names))


def watch(query: Supervised, feed: Feed, minutes: float, draw: random.Random) -> tuple[list[dict[str, float]], Faults]:
    """Run for some minutes; the samples, and the faults with their seconds."""
    faults = query.faults | poisons(feed, draw)
    names, begun = drawn_forever(draw, list(faults)), time.monotonic()
    samples: list[dict[str, float]] = []
    happened: Faults = []
    while (seconds := time.monotonic() - begun) < minutes * 60:
        query.restart_if_ended()
        if seconds >= (len(happened) + 1) * EVERY:
            happened.append((seconds, next(names)))
            print(f"{seconds:5.0f} s  {happened[-1][1]}", flush=True)
            faults[happened[-1][1]]()
        lag = feed.sent - sum(query.run.processed().values())
        samples.append({"seconds": round(seconds), **query.sample(), "lag": lag})
        time.sleep(SAMPLED)
    return samples, happened


def picture(samples: Sequence[Mapping[str, float]], faults: Faults, file: Path) -> None:
    """Draw the samples, one panel per measure; faults are vertical lines."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(len(SHOWN), 1, figsize=(7, 7), sharex=True, layout="constrained")
    minutes = [row["seconds"] / 60 for row in samples]
    for panel, (name, words) in zip(panels, SHOWN.items(), strict=True):
        panel.plot(minutes, [row[name] for row in samples], linewidth=0.8, color="#00796b")
        for seconds, _ in faults:
            panel.axvline(seconds / 60, color="#cc0000", linewidth=0.4)
        panel.set_title(words, fontsize=8, loc="left")
        panel.set_ylim(bottom=0)
        panel.tick_params(labelsize=7)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("minutes; a line is a fault", fontsize=8)
    figure.savefig(file)
    plt.close(figure)


def report(samples: Sequence[Mapping[str, float]]) -> None:
    """Print each measure's median in the second and the last quarter, and its maximum."""
    quarter = max(1, len(samples) // 4)
    for name, words in SHOWN.items():
        values = [row[name] for row in samples]
        second, last = statistics.median(values[quarter : 2 * quarter] or values), statistics.median(values[-quarter:])
        print(f"{words}: {second:,.0f} in the second quarter, {last:,.0f} in the last, {max(values):,.0f} at most")


def main() -> int:
    """Run, draw, report; 1 if something differs from the batch."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=20, help="clicks per second")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    said = parser.parse_args()
    draw = random.Random(said.seed)
    print(
        f"PySpark {pyspark.__version__}, {said.minutes:g} minutes, {said.rate} clicks per second, seed {said.seed}",
        flush=True,
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    broker, postgresql = Broker(), PostgreSql()
    with postgresql.database() as database, tempfile.TemporaryDirectory(prefix="beamish-long-") as folder:
        query = Supervised(Path(folder), database, (broker, postgresql), draw)
        feed = Feed(broker.address, random.Random(said.seed), said.rate, said.minutes)
        samples, faults = watch(query, feed, said.minutes, draw)
        feed.stop()
        found = query.problems()
        print(f"{feed.sent:,} clicks, {query.run.batches()} batches, {len(faults)} faults, {query.restarts} restarts")
    with (FOLDER / "samples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, samples[0])
        writer.writeheader()
        writer.writerows(samples)
    picture(samples, faults, FOLDER / "picture.svg")
    report(samples)
    print("\n".join(found) or "table and topic equal the batch computation, row for row")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
