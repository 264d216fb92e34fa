"""The log of a Delta table in memory."""

import json
from typing import Any, cast

from beamish.spark.replay.delta import DeltaTable
from beamish.spark.replay.delta_log import DeltaLog, Position

META = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"id": "t"}}]


def add(path, time=0, *, changes=True, **more):
    return {"add": {"path": path, "modificationTime": time, "dataChange": changes, **more}}


def remove(path, *, changes=True, **more):
    return {"remove": {"path": path, "dataChange": changes, **more}}


def commit(version):
    return f"{version:020}.json"


class Stored:
    """A log in memory: its commits and checkpoints, by version."""

    def __init__(self, commits, checkpoints=None):
        self.texts = {commit(version): "\n".join(map(json.dumps, of)) for version, of in commits.items()}
        self.checkpoints = {f"{version:020}.checkpoint.parquet": of for version, of in (checkpoints or {}).items()}
        self.read: list[str] = []

    def names(self):
        return [*self.texts, *self.checkpoints]

    def commits(self, names):
        self.read += names
        return {name: self.texts[name] for name in names}

    def written(self, version):
        return version

    def checkpoint(self, names, *, files):
        (name,) = names
        return [one for one in self.checkpoints[name] if files or "add" not in one]


COMMITS = {
    0: [*META, add("c", 3), add("b", 1), add("a", 3)],
    1: [remove("a", changes=False), remove("b", changes=False), add("ab", 9, changes=False)],  # OPTIMIZE
    2: [add("d", 10), add("e", 5)],
    3: [{"commitInfo": {"operation": "UPDATE"}}, remove("d"), add("d2", 11), add("d3", 11)],
    4: [remove("e"), {"commitInfo": {"operation": "DELETE"}}],
    5: [add("f", 12)],
}


def at(version, index=-1, *, snapshot=False):
    return Position(version, index, is_snapshot=snapshot, table="t")


TABLE = DeltaTable(cast("Any", None), "/lake/plays", DeltaLog(Stored(COMMITS)))
