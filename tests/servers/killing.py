"""Queries in processes of their own, killed and started again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
GAP = 10


def rows_of_files(files=6, rows=40, seed=5):
    """Rows of some files: sessions grow and merge from file to file; one key is null."""
    random_ = random.Random(seed)
    teams = ["red", "blue", None]
    return [
        [
            {"ts": random_.randrange(0, 900), "team": random_.choice(teams), "score": random_.randrange(10)}
            for _ in range(rows)
        ]
        for _ in range(files)
    ]


def write_files(folder, files):
    folder.mkdir()
    for number, rows in enumerate(files):
        path = folder / f"{number}.json"
        lines = [json.dumps(row | {"ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row["ts"]))}) for row in rows]
        path.write_text("\n".join(lines))
        os.utime(path, (1_700_000_000 + number,) * 2)


def sessions(files):
    """(team, start, end, total, plays) of each session of all rows, by plain Python."""
    found = []
    rows = [row for file in files for row in file]
    for team in {row["team"] for row in rows}:
        open_ = None
        for row in sorted((row for row in rows if row["team"] == team), key=lambda row: row["ts"]):
            if open_ is None or row["ts"] >= open_[2]:
                open_ = [team, row["ts"], 0, 0, 0]
                found.append(open_)
            open_[2] = row["ts"] + GAP
            open_[3] += row["score"]
            open_[4] += 1
    return sorted(map(tuple, found), key=repr)


def run(module="tests.servers.query", *, killed=False, python=sys.executable, timeout=300, **told):
    """Run a query to its end, or until it has come to a halt and is killed."""
    halted = Path(told["halted"])
    halted.unlink(missing_ok=True)
    log = Path(f"{halted}.log")
    with log.open("ab") as out:
        process = subprocess.Popen(
            [python, "-m", module, json.dumps(told)], cwd=ROOT, stdout=out, stderr=out, start_new_session=True
        )
    try:
        if not killed:
            assert process.wait(timeout) == 0, log.read_text()[-3000:]
            return
        until = time.monotonic() + timeout
        while not halted.exists():
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
