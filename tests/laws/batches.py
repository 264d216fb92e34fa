"""What a batch computation gives for the rows of a script that were not dropped (RULES 34), and who was dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from beamish import Pane, PaneKind
from beamish.instants import instant, instant_us
from beamish.options import Options
from beamish.pane import Window
from beamish.testing import Bundle, TestStream
from beamish.windows import GlobalWindow
from tests.twin.accumulations import Row, value_of
from tests.twin.order import normal
from tests.twin.run import Key, Live, Twin
from tests.twin.windows import Bounds, assign, groups

KeyAndWindow = tuple[str, Window]


def numbered(script: TestStream) -> TestStream:
    """The script with an ``id`` in each row."""
    ids = iter(range(10**6))
    events = [
        Bundle(tuple({**row, "id": next(ids)} for row in event.rows)) if isinstance(event, Bundle) else event
        for event in script.events
    ]
    return attrs.evolve(script, events=tuple(events))


def key_name(options: Options, row: Any) -> str:
    """The key of a row or a pane, to look up by."""
    return repr([normal(row.get(column)) for column in options.keys])


def window_of(options: Options, bounds: Bounds) -> Window:
    """A window as panes show it."""
    if isinstance(options.window, GlobalWindow):
        return Window(None, None)
    return Window(instant(bounds[0]), instant(bounds[1]))


def assigned(options: Options, script: TestStream) -> list[tuple[str, Bounds, Row]]:
    """All (key, the row's own window, row) of a numbered script; a row without event time has none."""
    assert options.window is not None
    return [
        (key_name(options, values), bounds, Row(number, time_us, values, before_end=True))
        for number, event in enumerate(script.events)
        if isinstance(event, Bundle)
        for values in event.rows
        if values["ts"] is not None
        for time_us in [instant_us("ts", values["ts"])]
        for bounds in assign(options.window, time_us, values)
    ]


def dropped(panes: Iterable[Pane]) -> Counter[tuple[int, Window | None]]:
    """How often each (row's id, window) is listed as dropped."""
    return Counter((pane.values["id"], pane.window) for pane in panes if pane.kind is PaneKind.DROPPED)


def batch(options: Options, script: TestStream, panes: Sequence[Pane]) -> dict[KeyAndWindow, dict[str, Any]]:
    """The values of each window over the rows that ``panes`` does not list as dropped from it."""
    assert options.window is not None
    gone = dropped(panes)
    ids = {row_id for row_id, _ in gone}
    kept: dict[str, list[tuple[Bounds, Row]]] = {}
    for key, bounds, row in assigned(options, script):
        # A session row has one window; the one listed may be the closed session it would have been in.
        is_gone = (
            row.values["id"] in ids
            if options.window.merging
            else (row.values["id"], window_of(options, bounds)) in gone
        )
        if not is_gone:
            kept.setdefault(key, []).append((bounds, row))
    result = {}
    for key, pairs in kept.items():
        own = sorted({bounds for bounds, _ in pairs})
        merged = groups(options.window, own) if options.window.merging else [([bounds], bounds) for bounds in own]
        for members, bounds in merged:
            rows = [row for own_bounds, row in pairs if own_bounds in members]
            values = {name: value_of(accumulation, rows) for name, accumulation in options.accumulations.items()}
            result[key, window_of(options, bounds)] = values
    return result


class Watched(Twin):
    """The twin, watching for an accepted row that overlaps a session of its key that has closed or expired."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
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


def meets_a_session_gone(options: Options, script: TestStream) -> bool:
    """Whether the words of RULES 34 except this script."""
    twin = Watched(options)
    for event in script.events:
        twin.step(event)
    return twin.met
