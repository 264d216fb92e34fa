"""A class data archive for Java: half of a query's start-up time is spent on loading classes."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import attrs

from tools.drill.how import How
from tools.drill.pipelines import write_rows
from tools.drill.processes import below, kill_all, processes
from tools.drill.query import Query, forked

_PATIENCE = 300.0
"""Seconds that the archive is waited for."""


def made(folder: Path, how: How) -> How:
    """How to run queries with an archive, which is made in a folder by a query that comes to its end; as it was where that fails."""
    write_rows(folder / "rows", random.Random(0), chunks=1)  # noqa: S311 - it is no secret
    queries = [Query("a chain", sink, "chunks", folder / "rows", folder / sink) for sink in ("files", "batches")]
    for query in queries:
        query.folder.mkdir(parents=True)
    archive, until = folder / "classes.jsa", time.monotonic() + _PATIENCE
    writes = attrs.evolve(how, java=f"{how.java} -Xlog:cds=off -Xshare:auto -XX:ArchiveClassesAtExit={archive}")
    root = forked(queries, folder / "log", writes)
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(root, 0)[1])
        while any("java" in one.command for one in below([root], processes())) and time.monotonic() < until:
            time.sleep(0.2)
    finally:
        kill_all(root, how.warm)
    if code or not archive.exists():
        return how
    return attrs.evolve(how, java=f"{how.java} -Xshare:auto -XX:SharedArchiveFile={archive}")
