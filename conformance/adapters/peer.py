"""An engine of the comparison with other implementations, by its program: python -m conformance.adapters.peer flink.

Engines: beam, beam_python, kafka_streams, flink, spark. Their programs are built by make build/peers/ENGINE/built.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from conformance.adapter import serve
from conformance.suite import Case
from peers.compare import peer_of
from peers.neutral import case_of
from peers.peer import Program
from peers.queries import REASONS, put


def main(engine: str) -> None:
    """Answer cases."""
    with Program.start(peer_of(engine)) as program:

        def answer(case: Case) -> Mapping[str, Any]:
            asked = put(engine, *case_of(case["pipeline"], case["script"]))
            if isinstance(asked, str):
                return {"unsupported": asked, "reason": REASONS[asked]}
            return asked.answer(next(program.answers([asked.case])))

        serve(answer)


if __name__ == "__main__":
    main(sys.argv[1])
