"""Sliding windows of Kafka Streams, here anchored at rows: updated, emitted when they close, suppressed.

The program, the normalisation and the facts are those of ``kafka_streams``. No window starts before 1970. A suppress emits a window at its
last instant, so most graces are not tenths of seconds under one.
"""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect
from beamish.kernels.identity import identity
from peers.kafka_streams import peer as kafka
from peers.peer import Case
from tests.strategies import pipelines, windows
from tests.strategies.scripts import scripts

_anchored = st.builds(bm.AnchoredWindows, st.sampled_from([1, 2, 4, 7.5]))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Sliding windows, and records."""
    kind = draw(st.sampled_from(["updates", "updates", "on_close", "on_close", "closes"]))
    case: Case = {
        "kind": kind,
        "grace": round(draw(pipelines.latenesses) * kafka.SECOND),
        "window": identity(draw(_anchored)),
        "max_records": draw(st.sampled_from([None, None, 1, 2, 3])) if kind == "closes" else None,
        "when_full": "shut_down",
        "wait": round(draw(windows.few_seconds) * kafka.SECOND),
    }
    if kind == "closes":
        case["grace"] += draw(st.sampled_from([0, 50, 50, 50, 50])) * kafka.MILLISECOND
    script = draw(
        scripts(kafka.base.window(bm.GlobalWindow()).accumulate(n=Collect("n")), nulls=False, bare=True, least=0)
    )
    records = draw(kafka.records_of(script, ["rows"], from_1970=False))
    if kind != "updates":
        last = max((row["ts"] for row in records), default=0) + case["grace"] + 100 * kafka.SECOND
        records = [*records, {"ts": last, "key": kafka.TICK, "n": len(records), "input": "rows"}]
    return case | {"script": [{"rows": [row]} for row in records]}


PEER = attrs.evolve(
    kafka.PEER,
    name="kafka_sliding",
    title="Kafka Streams: sliding windows",
    program="kafka_streams",
    cases=cases(),
)
