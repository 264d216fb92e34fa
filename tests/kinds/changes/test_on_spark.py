"""changes() as real micro-batches, with a restart while something is held."""

from __future__ import annotations

from datetime import UTC, datetime

import beamish as bm
from beamish.testing import TestStream
from tests.kinds.suppress.test_on_spark import SOURCE, check


def window(start, end):
    return {name: datetime.fromtimestamp(time, UTC) for name, time in (("start", start), ("end", end))}


def test_changes_with_windows_and_deletes_are_emitted_when_their_window_closes(spark, by_key):
    changes = SOURCE.changes(deleted="gone", sequence_by="seq", window="window").with_dropped()
    script = (
        TestStream()
        .add(
            [
                {"k": "a", "ts": 1, "seq": 2, "gone": False, "v": 5, "window": window(0, 10)},
                {"k": "a", "ts": 3, "seq": 1, "gone": True, "v": 6, "window": window(0, 10)},
                {"k": "b", "ts": 2, "seq": 1, "gone": None, "v": 7, "window": window(0, 20)},
                {"k": "b", "ts": None, "seq": 1, "gone": None, "v": 7, "window": window(0, 20)},
            ]
        )
        .add([{"k": "b", "ts": 4, "seq": 3, "gone": True, "v": 8, "window": window(0, 20)}])
        .advance_watermark_to(12)
        .add([{"k": "c", "ts": 4, "seq": 3, "gone": False, "v": 8, "window": window(0, 10)}])
        .advance_watermark_to(30)
    )
    panes = check(spark, by_key, changes.suppress(bm.UntilWindowCloses(grace=1)), script, shards=2, restart_after=(1,))
    assert [pane.values["v"] for pane in panes if pane.kind is bm.PaneKind.PANE] == [5]
    assert sorted(str(pane.reason) for pane in panes if pane.kind is bm.PaneKind.DROPPED) == [
        "expired",
        "null_event_time",
    ]
    limited = changes.suppress(bm.UntilTimeLimit(5, clock="event"))
    kinds = [pane.kind for pane in check(spark, by_key, limited, script, restart_after=(1,)) if pane.key["k"] == "b"]
    assert bm.PaneKind.RETRACTION in kinds
