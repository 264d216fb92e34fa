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
from peers.neutral import answer_of, case_of
from peers.translated import to_beam_python


def answer(case: Case) -> Mapping[str, Any]:
    """The answer of Beam Python, or that it has no such pipeline."""
    peer, given = case_of(case["pipeline"], case["script"])
    asked = to_beam_python(given) if peer == "beam" else None
    if asked is None:
        return {"unsupported": "no such pipeline"}
    found = program.answer(asked)
    return answer_of("beam_python", asked, [{"stream": [row["key"]], "place": [], **row} for row in found["panes"]])


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    _TestStream.events_from_script = staticmethod(program.counted)
    serve(answer)
