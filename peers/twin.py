"""Scripts on the slow twin of beamish, which answers a case in a tenth of the engine's time: a case has few rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from beamish.testing import TestStream
from peers.peer import Case, Peer, Row
from tests.twin.run import trace


def by_twin(peer: Peer, case: Case) -> list[Row]:
    """The answer of the twin."""
    with on_twin():
        return peer.here(case)


@contextmanager
def on_twin() -> Iterator[None]:
    """Scripts run on the twin."""

    def traced(script: TestStream, flow: Any) -> Any:
        return [*zip(script.events, trace(flow, script.events), strict=True)]

    with mock.patch.object(TestStream, "trace", traced):
        yield
