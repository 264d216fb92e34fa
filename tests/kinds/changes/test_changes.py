"""changes(): rows that set and delete what is held, in words, in state, and as a table that retracts."""

from __future__ import annotations

import beamish as bm
from beamish.accumulations import Last
from beamish.testing import TestStream
from beamish.triggers import Always
from tests.kinds.suppress.totals import CLOCK, SOURCE, at, row


def test_state_of_changes_shows_the_newest_row_of_each_slot_once_though_many_came():
    limited = SOURCE.changes(sequence_by="seq").suppress(bm.UntilTimeLimit(1000, clock="event"))
    script = TestStream().add([row(str(i), i, i % 60, seq=i) for i in range(1500)])
    script = script.add([row("7", 99, 30, seq=5), row("8", 99, 30, seq=99)])
    held = {one.key["k"]: one for one in limited.state(script).held()}
    assert len(held) == 1500
    assert (held["7"].values["v"], held["8"].values["v"]) == (7, 99)
    assert held["8"].since == at(8)


def test_a_table_that_retracts_is_made_of_changes_by_the_global_window_and_last():
    table = (
        SOURCE.window(bm.GlobalWindow())
        .trigger(Always())
        .accumulating_and_retracting()
        .accumulate(v=Last("v"))
        .suppress(CLOCK)
    )
    script = TestStream().step([row("a", 1, 1)], clock=100).step([row("a", 2, 2)], clock=110)
    script = script.step([row("a", 3, 3)], clock=120).step(clock=130)
    assert [(pane.kind, pane.values["v"]) for pane in table.run(script)] == [
        (bm.PaneKind.PANE, 2),
        (bm.PaneKind.RETRACTION, 2),
        (bm.PaneKind.PANE, 3),
    ]
