"""A table of users, and its changes."""

import beamish as bm
from beamish.testing import TestStream

WATERMARK = bm.BoundedOutOfOrderness(0)
CHANGES = bm.Pipeline().event_time("ts", WATERMARK).key_by("id")
USERS = CHANGES.versions("1 day", deleted="gone")
UPSERTS = CHANGES.upserts(deleted="gone")


def changes(*rows):
    """A bundle for each change, ``(id, name, points)``; without a name: a delete. Its time is its place."""
    script = TestStream()
    for ts, (id_, name, *points) in enumerate(rows):
        row = {"ts": ts, "id": id_, "name": name, "points": points[0] if points else None, "gone": name is None}
        script = script.add([row])
    return script
