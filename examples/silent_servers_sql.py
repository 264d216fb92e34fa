"""An alert for servers with too few heartbeats, or none at all, in five minutes.

A silent server has no rows, so no group counts it. So a roster adds each server once per window, as a row without a beat.
``COUNT(beat)`` counts only beats, and 0 is fewer than 3. ``EMIT FINAL`` waits until the window closes, since before that every
server has too few; ``EMIT CHANGES`` would emit and retract such early results.

    python examples/silent_servers_sql.py
"""

import beamish as bm
from beamish.testing import TestStream

ALERT = """
    SELECT server, COUNT(beat) AS beats
    FROM checks WINDOW TUMBLING (SIZE 5 MINUTES)
    GROUP BY server
    HAVING COUNT(beat) < 3
    EMIT {}
"""


def check(server: str, ts: int, beat: int | None) -> dict[str, object]:
    """An input row: a beat, or (None) a roster entry."""
    return {"server": server, "ts": ts, "beat": beat}


script = (
    TestStream()
    .add([check(server, 0, None) for server in ("ada", "bob", "eve")])
    .add([check("ada", 60, 1), check("bob", 70, 1)])
    .add([check("ada", 120, 1)])
    .add([check("ada", 180, 1)])
    .advance_watermark_to(300)
)

for refinement in ("FINAL", "CHANGES"):
    alert = bm.sql(ALERT.format(refinement), event_time="ts", watermark=bm.BoundedOutOfOrderness("10 seconds"))
    print(f"EMIT {refinement}")
    for pane in alert.run(script):
        print(f"  {pane.kind:10} {pane.key['server']} sent {pane.values['beats']}")
