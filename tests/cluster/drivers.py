"""Drivers on a cluster, and what their queries must have found."""

import itertools
import json
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from datetime import datetime
from pathlib import Path

from tests.servers.killing import sessions, write_files
from tools.servers.cluster import SECONDS, executor_settings, kill

JOB = Path(__file__).with_name("job.py")
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Drivers:
    """Drivers on a cluster, with a folder for rows, checkpoints and output."""

    def __init__(self, cluster, archive, folder, files):
        self.cluster, self.archive, self.folder = cluster, str(archive), folder
        self.files, self.started = files, []
        self.log, self.database = folder / "log", folder / "sessions.db"
        write_files(folder / "rows", files)
        shutil.copy(JOB, folder)

    def told(self, *parts, way, host="driver1", **more):
        settings = executor_settings(self.cluster.network, host) | more.pop("settings", {})
        settings |= {
            "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.sql.shuffle.partitions": "3",
            "spark.sql.session.timeZone": "UTC",
        }
        if "remote" in more:
            settings = {}
        else:
            settings["spark.master"] = self.cluster.url
        told = {"parts": parts, "way": way, "host": host, "archive": self.archive, "settings": settings}
        return told | {"rows": str(self.folder / "rows"), "folder": str(self.folder)} | more

    def start(self, *parts, way, submit=(), host="driver1", python=None, environment=(), **more):
        """Start a driver: by spark-submit with these options, or as a Python program."""
        told = self.told(*parts, way=way, host=host, **more)
        job = str(self.folder / "job.py")
        program = (
            [str(self.cluster.home / "bin" / "spark-submit"), *submit]
            if submit
            else [str(python or self.cluster.python)]
        )
        if submit:
            for name, value in told["settings"].items():
                program += ["--conf", f"{name}={value}"]
        process = self.cluster.start(host, [*program, job, json.dumps(told)], self.log, **dict(environment))
        self.started.append(process)
        return process

    def stop(self):
        """Kill the drivers that a failed test has left."""
        for process in self.started:
            kill(process)

    def unpack(self, environment):
        """Where spark-submit runs in client mode, the driver's Python is found by the same path as the executors'."""
        to = self.folder / "environment"
        to.mkdir()
        subprocess.run(["tar", "-xzf", environment, "-C", to], check=True)

    def run(self, *parts, **how):
        begun, process = time.monotonic(), self.start(*parts, **how)
        self.end(process, " ".join(parts))
        print(f"{' '.join(parts)}: {time.monotonic() - begun:.0f} s")
        return self.log.read_text()

    def end(self, process, what):
        """Wait for the end of a driver, and for its success."""
        assert self.code(process, what) == 0, self.said()

    def code(self, process, what):
        """Wait for the end of a driver, each batch for SECONDS; its exit code."""
        begun, until = None, 0
        try:
            while process.poll() is None:
                if begun != self.batches():
                    begun, until = self.batches(), time.monotonic() + SECONDS
                assert time.monotonic() < until, (
                    f"{what}: after batch {begun - 1} no end for {SECONDS} s\n{self.said()}"
                )
                time.sleep(0.1)
            return process.returncode
        finally:
            kill(process)

    def said(self):
        """The ends of the logs, a Connect server's first."""
        return "\n".join(log.read_text()[-6000:] for log in (self.folder / "server.log", self.log) if log.exists())

    def batches(self, part="sessions"):
        """How many batches have begun."""
        begun = (self.folder / "checkpoints" / part / "offsets").glob("[0-9]*")
        return max((int(path.name) + 1 for path in begun), default=0)

    def wait(self, process, batches):
        """Wait until this many batches have begun, or more."""
        for number in range(batches):
            self.wait_for(process, self.folder / "checkpoints" / "sessions" / "offsets" / str(number))

    def wait_for(self, process, file):
        """Wait for a file of a driver."""
        until = time.monotonic() + SECONDS
        while not file.exists():
            assert process.poll() is None, f"the driver has ended without {file}\n{self.said()}"
            assert time.monotonic() < until, f"{file} is not there after {SECONDS} s\n{self.said()}"
            time.sleep(0.05)

    def panes(self, part):
        files = sorted((self.folder / "out" / part).glob("[0-9]*.json"), key=lambda path: int(path.stem))
        return [row for file in files for row in json.loads(file.read_text())]

    def live(self, part, *columns):
        """The panes that are not retracted."""
        found = Counter()
        for row in self.panes(part):
            one = tuple(json.dumps(row.get(column)) for column in columns)
            found[one] += -1 if row["pane"]["kind"] == "RETRACTION" else 1
        return +found, -found

    def check_sessions(self, part="sessions"):
        """The live panes equal a batch computation, row for row."""
        live, retracted_twice = self.live(part, "team", "window", "total", "plays")
        assert not retracted_twice
        assert sum(live.values()) == len(live)
        found = [tuple(map(json.loads, one)) for one in live]
        assert sorted(
            (
                (team, seconds(window["start"]), seconds(window["end"]), total, plays)
                for team, window, total, plays in found
            ),
            key=repr,
        ) == sessions(self.files)

    def is_locked(self):
        """Whether a driver is within a transaction on the table's database."""
        with closing(sqlite3.connect(self.database, timeout=0)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
        return False

    def check_table(self):
        """As check_sessions, for the table."""
        with closing(sqlite3.connect(self.database)) as database:
            rows = database.execute("SELECT team, window_start, window_end, total, plays FROM sessions").fetchall()
        found = [(team, seconds(start), seconds(end), total, plays) for team, start, end, total, plays in rows]
        assert sorted(found, key=repr) == sessions(self.files)

    def check_chain(self):
        """As check_sessions, for the merge and the stage after it."""
        live, retracted_twice = self.live("chain", "high", "window", "teams", "lows")
        assert not retracted_twice
        found = [tuple(map(json.loads, one)) for one in live.elements()]
        assert sorted(
            ((seconds(window["start"]), high, sorted(teams), lows) for high, window, teams, lows in found), key=repr
        ) == sorted(chain(self.files), key=repr)


def seconds(text):
    return int(datetime.fromisoformat(text).timestamp())


def chain(files):
    """(minute, sum of high scores, teams with it, sum of their low scores), by plain Python."""
    sums = {}
    for row in itertools.chain.from_iterable(files):
        one = sums.setdefault((row["ts"] // 60 * 60, row["team"]), [None, None])
        which = 0 if row["score"] > 4 else 1
        one[which] = (one[which] or 0) + row["score"]
    groups = {}
    for (minute, team), (high, low) in sums.items():
        teams, lows = groups.setdefault((minute, high), (set(), []))
        teams |= {team} - {None}  # CollectSet skips nulls
        lows.append(low)
    for (minute, high), (teams, lows) in groups.items():
        known = [low for low in lows if low is not None]
        yield minute, high, sorted(teams), sum(known) if known else None
