"""Runs a pickled operator in a process that has imported nothing else, as a worker of Spark's does."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import Any

S = 1_000_000


def run(operator: Any, bundles: Sequence[Any]) -> tuple[list[Any], list[dict[str, bytes]]]:
    """The rows of all steps, and what the shards have stored after them; each step reopens its shards."""
    from beamish.contract.stored import DictStore

    stores, came = [DictStore() for _ in range(operator.shards)], []
    for at, rows in enumerate(bundles):
        payloads: dict[int, list[bytes]] = {}
        for number, _ in enumerate(operator.takes):
            for shard, payload in operator.pack(number, rows):
                payloads.setdefault(shard, []).append(payload)
        for number, store in enumerate(stores):
            sources_us = [at * 5 * S] * len(operator.takes)
            came.append(operator.open(store).step(sources_us, at * S, payloads.get(number, [])).to_pylist())
    return came, list(map(dict, stores))


def refused(operator: Any, store: Mapping[str, bytes]) -> str:
    """Why a shard does not open a store; empty: it opens it."""
    from beamish.contract.stored import DictStore
    from beamish.errors import StateError

    try:
        operator.open(DictStore(store))
    except StateError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    operator, bundles, others = pickle.loads(sys.stdin.buffer.read())
    why = {name: refused(operator, store) for name, store in others.items()}
    sys.stdout.buffer.write(pickle.dumps((run(operator, bundles), why, sorted(sys.modules))))
