"""Work of a step: entries of the store and calls, counted."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar
from unittest import mock

import beamish as bm
from beamish import local
from beamish.contract.stored import DictStore
from beamish.script import Event


class Counting(DictStore):
    """A store that counts the entries read and written, over all shards and stages."""

    entries = 0
    reads: ClassVar = Counter[tuple[int, str]]()
    """By store and entry."""

    def get(self, name: str, default: Any = None) -> Any:
        Counting.entries += 1
        Counting.reads[id(self), name] += 1
        return super().get(name, default)

    def put(self, name: str, value: bytes) -> None:
        Counting.entries += 1
        super().put(name, value)

    def remove(self, name: str) -> None:
        Counting.entries += 1
        super().remove(name)


def work_of_last_step(pipeline: bm.Pipeline, events: Sequence[Event]) -> tuple[int, int]:
    """Entries and calls of the last step of a script, opened from its stored bytes."""
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    with mock.patch.object(local, "DictStore", Counting):
        given = local._rows_of(pipeline.flow, events, None)
        bound = pipeline.flow.bind(given.schemas, shards=1)
        outputs = local._run(local._Node(bound, local.Variation(round_trip=True)), events, given)
        for _ in events[1:]:
            next(outputs)
        Counting.entries = 0
        Counting.reads.clear()
        sys.setprofile(count)
        try:
            next(outputs)
        finally:
            sys.setprofile(None)
    return Counting.entries, calls
