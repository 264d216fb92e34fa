"""How the queries of a round are run."""

from __future__ import annotations

import attrs

LOCAL = "local[2,4]"
"""A task whose Python was killed is tried again."""
CLUSTER = "local-cluster[2,1,2048]"


@attrs.frozen
class How:
    """How the queries of a round are run, and where they may be killed.

    Attributes:
        master: Spark's.
        changelog: whether state is kept as changelogs between snapshots.
        chunks: of rows; a batch takes one of them.
        verifies: whether Spark refuses a checkpoint that is not empty and has no batch.
        java: more options for the JVM.
        warm: the id of the server that forks Python processes, if there is one.
        moments: at which they may be killed.
        sources: of which one is drawn for each query.
        sinks: alike.
    """

    master: str
    changelog: bool
    chunks: int
    verifies: bool
    java: str
    warm: int | None
    moments: tuple[str, ...]
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
