"""Kill queries with SIGKILL at random moments and restart them: is the output the same as without kills?

    python -m tools.drill [--budget 600] [--seed N] [--kills N] [--together 4] [--only "sessions"] [--keep FOLDER]

In rounds: rows are drawn, a few pipelines of those in pipelines.py (all in their turn), for each a sink and a source. They run once in
a process that is left alone, and once in processes that are killed, at moments (moments.py) of one of them, until all rows came. What
is emitted is compared row by row. Every row of the table at the end is a pipeline or a moment. Ends with 1 if a query failed that was not
killed, came to a standstill, or gave anything else.

--seed repeats what is drawn; when exactly a process dies depends on the machine too.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import attrs

from tests.warm import server
from tools.drill import archive
from tools.drill.how import CLUSTER, LOCAL, How
from tools.drill.moments import MOMENTS
from tools.drill.pipelines import DRILLED
from tools.drill.report import Report
from tools.drill.rounds import Limits, Round

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Drill until the budget is used up, and print the result."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "--budget", type=float, default=600, help="seconds; a round that was begun is brought to its end"
    )
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument(
        "--kills", type=int, default=0, help="at most this number; 0: as many as the budget has room for"
    )
    parser.add_argument("--together", type=int, default=4, help="queries in a process")
    parser.add_argument("--chunks", type=int, default=6, help="of rows: a batch takes one of them")
    parser.add_argument("--only", action="append", choices=list(DRILLED), help="these pipelines")
    parser.add_argument("--moment", action="append", choices=list(MOMENTS), help="at these moments")
    parser.add_argument("--source", action="append", choices=["chunks", "files"], help="of these sources")
    parser.add_argument("--sink", action="append", choices=["files", "batches"], help="into these sinks")
    parser.add_argument("--java", default="", help="more options for the JVM")
    parser.add_argument("--cluster", type=float, default=0.15, help="how often a round runs on executors of their own")
    parser.add_argument("--keep", type=Path, help="where rounds that went wrong are kept")
    said = parser.parse_args()
    print(f"seed {said.seed}", flush=True)
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    memory = Path("/dev/shm")  # noqa: S108 - queries sync small files all the time
    where = memory if memory.is_dir() and shutil.disk_usage(memory).free > 4 * 2**30 else None
    report = Report(said.seed)
    with tempfile.TemporaryDirectory(prefix="drill", dir=where) as name:
        folder = Path(name)
        os.environ["BEAMISH_DRILL"] = str(folder)
        if not server.can_serve():  # type: ignore[no-untyped-call]
            drill(said, folder, report, None)
        else:
            with server.warm_python(folder, ROOT) as python:
                os.environ["PYSPARK_PYTHON"] = str(python)
                drill(said, folder, report, _server_of(python))
    report.print()
    return int(report.found > 0)


def drill(said: argparse.Namespace, folder: Path, report: Report, warm: int | None) -> None:
    """Round after round."""
    limits = Limits(until=time.monotonic() + said.budget, kills=said.kills or 10**9)
    chance = random.Random(said.seed)  # noqa: S311 - it is no secret
    names: list[str] = []
    plain = How(
        master=LOCAL,
        changelog=False,
        chunks=said.chunks,
        verifies=False,
        java=said.java,
        warm=warm,
        moments=tuple(said.moment or MOMENTS),
        sources=tuple(said.source or ["chunks", "chunks", "files"]),
        sinks=tuple(said.sink or ["files", "batches"]),
    )
    if not said.kills:  # many starts
        plain = archive.made(folder / "archive", plain)
    while limits.left(report.kills):
        if len(names) < said.together:
            again = list(said.only or DRILLED)
            chance.shuffle(again)
            names += [name for name in again if name not in names]
        chosen, names = names[: said.together], names[said.together :]
        one = Round(
            names=chosen,
            folder=folder / str(report.rounds),
            chance=random.Random(chance.getrandbits(32)),  # noqa: S311
            limits=limits,
            report=report,
            how=attrs.evolve(
                plain,
                master=CLUSTER if chance.random() < said.cluster else LOCAL,
                changelog=chance.random() < 0.5,
                verifies=chance.random() < 0.5,
            ),
        )
        found = report.found
        one.run()
        report.rounds += 1
        if said.keep and report.found > found:
            shutil.copytree(
                one.folder, said.keep / f"{said.seed}-{report.rounds - 1}", symlinks=True, dirs_exist_ok=True
            )
        shutil.rmtree(one.folder, ignore_errors=True)
        report.print_progress()


def _server_of(python: Path) -> int:
    """The id of the server that forks Python processes: our child."""
    from tools.drill.processes import processes

    (server,) = [
        one.id for one in processes() if one.parent == os.getpid() and str(python.parent / "socket") in one.command
    ]
    return server


if __name__ == "__main__":
    sys.exit(main())
