"""beamish, in this process: python -m conformance.adapters.beamish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.adapter import serve
from conformance.suite import Case
from peers.compare import peer_of
from peers.neutral import case_of
from peers.queries import own


def answer(case: Case) -> Mapping[str, Any]:
    """The answer of beamish."""
    peer, given = case_of(case["pipeline"], case["script"])
    return own(peer, given).answer(peer_of(peer).here(given))


if __name__ == "__main__":
    serve(answer)
