"""The relation of a window stage's panes, before there is data."""

from __future__ import annotations

from collections.abc import Sequence

from beamish.contract.relation import Follows, Relation
from beamish.kinds.window.options import WindowOptions
from beamish.modes import AccumulationMode, TimestampCombiner
from beamish.triggers.never import Never
from beamish.windows.inherited import InheritedWindows

_FOLLOWS = {
    None: Follows.ONCE,  # it need not be said where a window has one pane
    AccumulationMode.DISCARDING: Follows.ADDING,
    AccumulationMode.ACCUMULATING: Follows.REPLACING,
    AccumulationMode.ACCUMULATING_AND_RETRACTING: Follows.RETRACTING,
}


def gives(options: WindowOptions, takes: Sequence[Relation]) -> Relation:
    """What is known of a window stage's panes before there is data."""
    keys = takes[0].keys
    combines = options.combiner is not TimestampCombiner.END_OF_WINDOW
    return Relation(
        keys=keys,
        window=options.window and options.window.origin,
        retracts=options.retracts,
        watermarks=tuple(policy for relation in takes for policy in relation.watermarks),
        slot=None if any(one.explodes for one in options.accumulations.values()) else keys,
        # a key that comes again after it was forgotten has another pane
        follows=Follows.ADDING if options.mode is None and options.forget_after else _FOLLOWS[options.mode],
        behind_us=_behind_us(options, takes),
        has_timestamps=not _never_ends(options) or (combines and all(relation.has_timestamps for relation in takes)),
        at_window_ends=not (combines or _never_ends(options)),
    )


def _behind_us(options: WindowOptions, takes: Sequence[Relation]) -> int:
    """How far past their time the watermark is at least when its panes come out: of windows of panes that come so late, and at expiry."""
    behind_us = 0
    if isinstance(options.window, InheritedWindows):
        behind_us = min(relation.behind_us for relation in takes)
    waits_for_expiry = isinstance(options.trigger, Never) and options.retention is None and not _never_ends(options)
    return max(behind_us, options.allowed_lateness.us) if waits_for_expiry else behind_us


def _never_ends(options: WindowOptions) -> bool:
    """Whether a window of these ends at the end of time, or is of rows, so that its panes have no time of their own."""
    return options.never_ends or options.counts_rows
