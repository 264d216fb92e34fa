"""The live rows of an output, read in order (rules/panes.md#ledger, #pane-sequence)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

import beamish as bm
from beamish import Pane, PaneKind
from beamish.contract.relation import SlotSemantics
from tests.agreement import key_of
from tests.declared_options import said
from tests.laws.batches import key_name
from tests.lines import line


def check_rows(pipeline: bm.Pipeline, panes: Sequence[Pane]) -> None:
    """Numbers rise by key; where the last stage retracts, each retraction strikes out a live row."""
    assert not unordered(panes)
    if pipeline.flow.completed.gives.follows is SlotSemantics.RETRACTING:
        live_rows(panes, again=begins_again(pipeline))


def begins_again(pipeline: bm.Pipeline) -> bool:
    """Whether idle keys expire, so that their next row starts another window; or rows keep the windows of panes they were."""
    options = said(pipeline)
    if options.over:
        return True
    windows = options.window.options.values() if isinstance(options.window, bm.Windowings) else [options.window]
    return options.forget_after is not None or any(getattr(one, "idle", None) for one in windows)


def live_rows(panes: Iterable[Pane], *, again: bool = False) -> Counter[Any]:
    """Strike out what is retracted, row by row, and check that a window has one live pane; what is live at the end.

    See rules/stages.md#joins; ``again``: a window may begin again (rules/windows.md#forget-after).
    """
    live: Counter[Any] = Counter()
    of_window: dict[Any, int] = {}
    for pane in panes:
        if pane.kind is PaneKind.DROPPED:
            continue
        at = key_of(pane), pane.window
        row = line(attrs.evolve(pane, kind=PaneKind.PANE))
        if pane.kind is PaneKind.RETRACTION:
            assert live[at, row] > 0, f"{line(pane)}: nothing is live"
            live[at, row] -= 1
            continue
        others = {index for (where, _), index in of_window.items() if where == at and live[where, _] > 0}
        assert again or pane.window is None or others <= {pane.index}, f"{line(pane)}: another pane is live"
        of_window[at, row] = pane.index
        live[at, row] += 1
    return +live


def live_panes(pipeline: bm.Pipeline, panes: Iterable[Pane]) -> dict[Any, Pane]:
    """The same where a window has one row: the live pane of each key and window."""
    live: dict[Any, Pane] = {}
    for pane in panes:
        at = key_name(pipeline, pane.key), pane.window
        if pane.kind is PaneKind.PANE:
            assert at not in live, f"{line(pane)}: {line(live[at])} is live"
            live[at] = pane
        elif pane.kind is PaneKind.RETRACTION:
            assert at in live, f"{line(pane)}: nothing is live"
            repeated = line(attrs.evolve(pane, kind=PaneKind.PANE))
            assert repeated == line(live[at]), f"{line(pane)} does not repeat {line(live[at])}"
            del live[at]
    return live


def unordered(panes: Iterable[Pane]) -> list[str]:
    """The rows whose number is not above that of the row of their key before them; dropped rows count too."""
    last: dict[Any, int] = {}
    found = []
    for pane in panes:
        if pane.sequence <= last.get(key_of(pane), -1):
            found.append(line(pane))
        last[key_of(pane)] = pane.sequence
    return found
