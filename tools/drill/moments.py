"""The moments at which a query is killed, and their detection."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import attrs

from tools.drill.halting import is_halted, say_halt
from tools.drill.how import CLUSTER, How
from tools.drill.pipelines import DRILLED
from tools.drill.query import Query

HALTS = {
    "plan": "a batch is being planned: its source is asked",
    "read": "its rows are being read",
    "function": "a user's function runs",
    "before the sink": "its rows have reached the sink",
    "after the sink": "the sink has written, Spark has not noted it",
}
FILES = {
    "planning": ("sources/0/{n}", "Spark's source of files has noted a batch's files, the query has not"),
    "offsets": ("offsets/{n}", "the batch is planned and noted"),
    "state": ("state/*/*/{after}.*", "a partition's state is written"),
    "state of a later partition": ("state/*/1/{after}.*", "the second partition's state is written"),
    "file sink": ("../out/_spark_metadata/{n}", "the sink of files has noted its files, the query has not"),
    "commit": ("commits/{n}", "the batch is done"),
}
"""Files of a checkpoint; ``n`` is the batch, ``after`` the version of its state."""
DRAWN = {
    "any time": "some time after a batch was noted",
    "start": "while the process starts, or its queries do",
}
PARTS = {
    "workers": "Python's workers alone, in a batch",
    "source's process": "the process that runs a source's Python",
    "executor": "an executor of a cluster",
}
"""The part of a query to kill while the rest lives."""
MOMENTS = {**HALTS, **{moment: what for moment, (_, what) in FILES.items()}, **DRAWN, **PARTS}


@attrs.frozen
class Aim:
    """A planned kill.

    Attributes:
        query: at whose moment.
        moment: in one of the tables above.
        batch: its number.
        seconds: how long to wait after that, where the moment is drawn.
    """

    query: Query
    moment: str
    batch: int
    seconds: float

    def prepare(self) -> None:
        """Before the process starts."""
        if self.moment in HALTS and self.moment != "function":
            say_halt(self.query.name, self.moment, self.batch)

    def is_past(self) -> bool:
        """Whether the moment can no longer occur."""
        return self.query.is_done or self.query.last("commits") > self.batch

    def waiting(self) -> Callable[[], bool]:
        """Whether the moment has occurred; polled."""
        since = self._since()
        noted = False

        def come() -> bool:
            nonlocal noted
            if self.moment == "function" and not noted and since():
                noted = True
                say_halt(self.query.name, self.moment, self.batch)
            if self.moment in HALTS:
                return is_halted()
            if not since():
                return False
            if self.moment not in FILES:
                time.sleep(self.seconds)
            return True

        return come

    def _since(self) -> Callable[[], bool]:
        if self.moment == "start":
            return lambda: True
        pattern, _ = FILES.get(self.moment, FILES["offsets"])
        pattern = pattern.format(n=self.batch, after=self.batch + 1)
        folder = self.query.checkpoint
        if pattern.startswith("../"):
            folder, pattern = folder.parent, pattern[3:]
        if "*" not in pattern:
            return (folder / pattern).exists
        return lambda: folder.exists() and any(folder.glob(pattern))


def aim(chance: random.Random, queries: Sequence[Query], how: How) -> Aim | None:
    """Draw a moment, in the current batch of a query or the next; None: none of the moments applies."""
    query = chance.choice(queries)
    possible = moments(query, how)
    if not possible:
        return None
    moment = chance.choice(possible)
    longest = 12.0 if moment == "start" else 1.5
    return Aim(query, moment, query.last("commits") + chance.choice([1, 1, 2]), chance.uniform(0, longest))


def moments(query: Query, how: How) -> list[str]:
    """The moments of a query."""
    never = {
        "plan": query.source == "files",
        "read": query.source == "files",
        "function": not DRILLED[query.name].has_function,
        "before the sink": query.sink == "files",
        "after the sink": query.sink == "files",
        "planning": query.source == "chunks",
        "file sink": query.sink == "batches",
        "source's process": query.source == "files",
        "executor": how.master != CLUSTER,
    }
    return [moment for moment in how.moments if not never.get(moment)]
