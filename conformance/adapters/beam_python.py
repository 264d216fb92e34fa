"""Apache Beam Python on its in-process runner, which needs no server.

    build/peers/beam_python/bin/python -m conformance.adapters.beam_python

It is run by an environment that has Beam (make build/peers/beam_python/built).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from apache_beam.runners.direct.test_stream_impl import _TestStream

from conformance.adapter import serve
from conformance.suite import Case
from peers.beam_python import program
from peers.neutral import case_of
from peers.queries import REASONS, put


def answer(case: Case) -> Mapping[str, Any]:
    """The answer of Beam Python, or that it has no such pipeline."""
    asked = put("beam_python", *case_of(case["pipeline"], case["script"]))
    if isinstance(asked, str):
        return {"unsupported": asked, "reason": REASONS[asked]}
    found = program.answer(asked.case)
    return asked.answer([{"stream": [row["key"]], "place": [], **row} for row in found["panes"]])


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    _TestStream.events_from_script = staticmethod(program.counted)
    serve(answer)
