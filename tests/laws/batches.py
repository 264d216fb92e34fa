"""The batch result for the rows that were not dropped, and the dropped ones.

See rules/laws.md#law-live-panes-equal-batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from beamish import Pane, PaneKind, Pipeline
from beamish.flow import Flow, Panes
from beamish.instants import instant, instant_us
from beamish.pane import RowWindow, Window
from beamish.script import Bundle, Step, as_step
from beamish.testing import TestStream
from beamish.windows import GlobalWindow
from tests.agreement import differences
from tests.declared_options import evolve, said
from tests.twin.accumulations import Row, value_of
from tests.twin.order import normal, same
from tests.twin.run import NO_TIME_US, Key, Live, Signed, Twin
from tests.twin.windows import Bounds, assign, groups

KeyAndWindow = tuple[str, Window]


def numbered(script: TestStream) -> TestStream:
    """The script with an ``id`` in each row."""
    ids = iter(range(10**6))
    events = [
        attrs.evolve(event, rows=tuple({**row, "id": next(ids)} for row in event.rows))
        if isinstance(event, Bundle | Step)
        else event
        for event in script.events
    ]
    return attrs.evolve(script, events=tuple(events))


def key_name(pipeline: Pipeline, row: Any) -> str:
    """The key of a row or a pane, to look up by."""
    return repr([normal(row.get(column)) for column in said(pipeline).keys])


def window_of(pipeline: Pipeline, bounds: Bounds) -> Window:
    """A window as panes show it."""
    if isinstance(said(pipeline).window, GlobalWindow):
        return Window(None, None)
    return Window(instant(bounds[0]), instant(bounds[1]))


def assigned(pipeline: Pipeline, script: TestStream) -> list[tuple[str, Bounds, Row]]:
    """All (key, the row's own window, row) of a numbered script; a row without event time has none."""
    window = said(pipeline).window
    assert window is not None
    return [
        (key_name(pipeline, values), bounds, Row(number, time_us, values, before_end=True))
        for number, event in enumerate(script.events)
        for values in as_step(event).rows
        if values["ts"] is not None
        for time_us in [instant_us("ts", values["ts"])]
        for bounds in assign(window, time_us, values)
    ]


def dropped(panes: Iterable[Pane]) -> Counter[tuple[int, Window | RowWindow | None]]:
    """How often each (row's id, window) is listed as dropped."""
    return Counter((pane.values["id"], pane.window) for pane in panes if pane.kind is PaneKind.DROPPED)


def batch(pipeline: Pipeline, script: TestStream, panes: Sequence[Pane]) -> dict[KeyAndWindow, dict[str, Any]]:
    """The values of each window over the rows that ``panes`` does not list as dropped from it."""
    window, accumulations = said(pipeline).window, said(pipeline).accumulations
    assert window is not None
    gone = dropped(panes)
    ids = {row_id for row_id, _ in gone}
    kept: dict[str, list[tuple[Bounds, Row]]] = {}
    for key, bounds, row in assigned(pipeline, script):
        # A session row has one window; the one listed may be the closed session it would have been in.
        is_gone = row.values["id"] in ids if window.merging else (row.values["id"], window_of(pipeline, bounds)) in gone
        if not is_gone:
            kept.setdefault(key, []).append((bounds, row))
    result = {}
    for key, pairs in kept.items():
        own = sorted({bounds for bounds, _ in pairs})
        merged = groups(window, own) if window.merging else [([bounds], bounds) for bounds in own]
        for members, bounds in merged:
            rows = [row for own_bounds, row in pairs if own_bounds in members]
            values = {name: value_of(accumulation, rows) for name, accumulation in accumulations.items()}
            result[key, window_of(pipeline, bounds)] = values
    return result


class Watched(Twin):
    """The twin, watching for an accepted row that overlaps a session of its key that has closed or expired."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.gone: dict[int, list[Bounds]] = {}
        self.met = False

    def emit(self, key: Key, window: Live, *, is_last: bool) -> None:
        if is_last:
            self.gone.setdefault(id(key), []).append(window.bounds)
        super().emit(key, window, is_last=is_last)

    def add_to_key(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> None:
        for (start, end), _ in pairs:
            self.met |= any(
                start < gone_end and gone_start < end for gone_start, gone_end in self.gone.get(id(key), [])
            )
        super().add_to_key(key, pairs)


def meets_a_session_gone(pipeline: Pipeline, script: TestStream) -> bool:
    """Whether rules/panes.md#ledger excepts this script."""
    twin = Watched(pipeline.flow)
    for event in script.events:
        twin.step(as_step(event))
    return twin.met


class KeepsDropped(Twin):
    """A twin that keeps what it dropped: a removal that was dropped has removed nothing.

    See rules/stages.md#retractions-as-rows.
    """

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.dropped: list[tuple[Window | RowWindow | None, Row]] = []

    def drop(self, key: Key, bounds: Bounds | None, reason: Any, row: Row) -> None:
        self.dropped.append((bounds and self.bounds_of(bounds), row))
        super().drop(key, bounds, reason, row)


def batch_of_chain(chain: Pipeline, script: TestStream, panes: Sequence[Pane]) -> dict[KeyAndWindow, dict[str, Any]]:
    """The values of each window of the second of two stages that retract, computed from a batch of the first.

    Panes of the first must be at the last microsecond of their windows. ``panes`` are those of the chain; that the
    second stage lists as dropped what the twin drops is checked.
    """
    (only,) = chain.flow.inputs
    assert isinstance(only, Panes)
    first = evolve(Pipeline(only.flow), with_dropped=True)
    twin = KeepsDropped(chain.flow)
    for event in script.events:
        twin.step(as_step(event))
    ours, theirs = ([pane for pane in some if pane.kind is PaneKind.DROPPED] for some in (panes, twin.out))
    assert not differences(ours, theirs, chain)
    keys = {
        key_name(first, row): {column: normal(row.get(column)) for column in said(first).keys}
        for event in script.events
        for row in as_step(event).rows
    }
    kept: dict[KeyAndWindow, list[Row]] = {}
    for (key, window), values in batch(first, script, first.run(script)).items():
        assert isinstance(window, Window)
        time_us = None if window.end is None else instant_us("end", window.end) - 1
        row = Row(0, time_us or 0, {**keys[key], **values}, before_end=True)
        for own in _windows_of_pane(chain, window, row):
            kept.setdefault((key_name(chain, row.values), own), []).append(row)
    gone = [(at, row) for at, row in twin.dropped if isinstance(at, Window)]
    for window, row in sorted(gone, key=lambda one: not _removes(one[1])):
        rows = kept.setdefault((key_name(chain, row.values), window), [])
        if _removes(row):
            rows.append(row._replace(time_us=0 if row.time_us == NO_TIME_US else row.time_us))
        else:
            del rows[next(i for i, one in enumerate(rows) if same(dict(one.values), dict(row.values)))]
    return {
        at: {name: value_of(accumulation, rows) for name, accumulation in said(chain).accumulations.items()}
        for at, rows in kept.items()
        if rows
    }


def _removes(row: Row) -> bool:
    assert isinstance(row.values, Signed)
    return row.values.removes


def _windows_of_pane(chain: Pipeline, window: Window, row: Row) -> list[Window]:
    option = said(chain).window
    if option is None:
        return [window]
    return [window_of(chain, bounds) for bounds in assign(option, row.time_us, row.values)]
