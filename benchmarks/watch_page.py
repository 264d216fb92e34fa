"""``python -m beamish watch`` beside a query with many open windows: seconds, CPU seconds and bytes of its answers.

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

import attrs
from inspect_checkpoint import write
from processes import cpu_seconds, descendants

PART = {"X-Beamish-Part": "1"}


@attrs.frozen
class Served:
    """A program that serves the page; what is asked of it is timed.

    Attributes:
        pid: of the program.
        address: of the page.
    """

    pid: int
    address: str

    def got(self, what: str, path: str, *, is_whole: bool = False) -> str:
        """An answer; prints its seconds, the CPU seconds of the program and of Spark, and its size."""
        cpu, before = self.cpu_seconds, time.perf_counter()
        with urlopen(Request(self.address + path, headers={} if is_whole else PART), timeout=600) as answer:
            content: bytes = answer.read()
        seconds = time.perf_counter() - before
        print(
            f"{what:<34} {seconds:6.2f} s {self.cpu_seconds - cpu:6.2f} s CPU {len(content) / 1000:5.0f} kB", flush=True
        )
        return content.decode()

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of the program and those that it started."""
        return cpu_seconds([self.pid, *(pid for pid, _ in descendants(self.pid))])


def serve(folder: str, windows: int, shards: int) -> None:
    """Serve the page, and print its costs."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "beamish", "watch", f"{folder}/checkpoint", "--port", "0", "--every", "1s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            page = Served(program.pid, program.stdout.readline().split()[-1] + "q/0/")
            print(f"{'the start':<34} {time.perf_counter() - began:6.2f} s {page.cpu_seconds:6.2f} s CPU")
            page.got("the first page", "", is_whole=True)
            listed = page.got("the list of windows", "rows?stage=1")
            link = listed.partition('href="/q/0/')[2].partition('"')[0].replace("&amp;", "&")
            page.got("why, for one of them", link)
            page.got("the page again, no new batch", "", is_whole=True)
            write_apart(folder, windows, 1000, shards)
            facts = page.got("facts after another batch", "facts?version=none")
            assert f"{windows + 1000:,} stored" in facts
            page.got("the list after another batch", "rows?stage=1")
        finally:
            program.terminate()


def write_apart(folder: str, first: int, windows: int, shards: int) -> None:
    """Write in a process of its own."""
    numbers = map(str, (windows, shards, first))
    subprocess.run([sys.executable, __file__, "write", folder, *numbers], check=True, stderr=subprocess.DEVNULL)


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
        write_apart(folder, 0, windows, shards)
        size = sum(path.stat().st_size for path in Path(folder, "checkpoint").rglob("*") if path.is_file())
        print(f"{windows:,} windows in {shards} shards, checkpoint of {size / 1e6:,.0f} MB")
        serve(folder, windows, shards)


if __name__ == "__main__":
    main()
