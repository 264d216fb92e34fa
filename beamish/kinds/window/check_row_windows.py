"""Checks of a window stage with count windows (docs/rules/windows.md#windows-of-rows)."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from beamish.contract.relation import Relation
from beamish.errors import PipelineError
from beamish.kernels.reserved import has_no_event_time
from beamish.kinds.window.options import WindowOptions
from beamish.kinds.window.pairs_once import joins_once
from beamish.modes import TimestampCombiner
from beamish.windows.fixed import FixedWindows
from beamish.windows.option import WindowOption
from beamish.windows.sliding import SlidingWindows


def check_numbering(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check windows against their numbering, or that they are time windows.

    Raises:
        PipelineError: incompatible options.
    """
    if options.window is None:
        _check_not_inherited(takes)
        return
    _check_lateness(options)
    if options.window.numbering is not None:
        _check_counted(options, takes)
    elif not options.windowings:  # each is checked by itself
        _check_have_time(options, takes)
        _check_sampled(options.window, takes)


def _check_not_inherited(takes: Sequence[Relation]) -> None:
    for relation in takes:
        of = relation.window
        if of is not None and of.counts_rows:
            raise PipelineError(
                f"a stage that keeps the windows {of!r}: they are over the numbers of the rows before, which panes do not have; give it "
                "a window of its own, such as .window(bm.CountWindows(10)); one of time needs .timestamp_combiner(bm.TimestampCombiner.LATEST) before"
            )


def _check_lateness(options: WindowOptions) -> None:
    if options.counts_rows and options.allowed_lateness:
        raise PipelineError(
            f"allowed_lateness({options.allowed_lateness!r}) of windows of rows: they end with a row, not at a time; say how many "
            "rows: .allowed_lateness(rows=100)"
        )
    if options.late_rows and not options.counts_rows:
        raise PipelineError(
            f"allowed_lateness(rows={options.late_rows}) of {options.window!r}: its windows end at a time; say a duration: "
            ".allowed_lateness('1 hour')"
        )


def _check_counted(options: WindowOptions, takes: Sequence[Relation]) -> None:
    window, numbering = options.window, options.window and options.window.numbering
    assert window is not None and numbering is not None  # noqa: PT018, S101 - it is of rows
    if any(relation.retracts for relation in takes):
        raise PipelineError(
            f"window({window!r}) over rows that are taken back: a row that goes would give all after it other numbers; let the stage "
            "before be accumulating() or discarding(), or use windows of time"
        )
    if takes[0].name is not None and numbering.columns:
        raise PipelineError(
            f"window({window!r}) of a merge: whose column is {numbering.columns[0]!r}? Its inputs count together, as they come; leave it "
            "out, or number the rows before"
        )
    if window.merging and not takes[0].keys:
        raise PipelineError(
            f"window({window!r}) without keys: rows of other keys end a session, and there are none; say .key_by(...)"
        )
    _check_needs_time(options, takes, has=not any(has_no_event_time(relation.event_time) for relation in takes))


def _check_needs_time(options: WindowOptions, takes: Sequence[Relation], *, has: bool) -> None:
    """Check that options which need an event time have one."""
    assert options.window is not None  # noqa: S101 - it is of rows
    numbering = options.window.numbering
    needs = [
        (numbering is not None and numbering.idle is not None, f"window({options.window!r}): idle"),
        (options.deduplication is not None and options.deduplication.within is not None, "deduplicate(within=...)"),
        (any(join.keep_for for _, join in joins_once(options.accumulations)), "keep_for of a join"),
        (options.combiner is not TimestampCombiner.END_OF_WINDOW, f"timestamp_combiner({options.combiner!r})"),
    ]
    for is_said, what in needs:
        if is_said and not has:
            raise PipelineError(
                f"{what} needs the rows' event time: say .event_time(column, bm.BoundedOutOfOrderness('30 seconds')), or leave it out"
            )
        if is_said and any(relation.is_panes and not relation.has_timestamps for relation in takes):
            raise PipelineError(
                f"{what} over panes without timestamp: give the stage before a timestamp_combiner, such as "
                ".timestamp_combiner(bm.TimestampCombiner.LATEST)"
            )


def _check_have_time(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check that panes have a time for time windows; the global window accepts all."""
    if options.window is None or options.window.is_all_of_time:
        return
    for relation in takes:
        of = relation.window
        if of is None or relation.has_timestamps:
            continue
        never_ends = all(one.is_all_of_time for one in of.windowings.values() or (of,))
        if options.where is not None and not (of.counts_rows or never_ends):
            continue  # the condition may take the panes of the windowings whose windows end
        why = "windows of rows end at no time" if of.counts_rows else "all of time does not end"
        raise PipelineError(
            f"window({options.window!r}) over the panes of {of!r}: {why}, so their panes have no timestamp, and all of them would be "
            f"dropped; give the stage{f' {relation.name!r}' if relation.name else ' before'} "
            ".timestamp_combiner(bm.TimestampCombiner.LATEST), or take them in bm.GlobalWindow()"
        )


def _check_sampled(window: WindowOption, takes: Sequence[Relation]) -> None:
    """Check that windows with gaps between them contain the ends of some of the panes' windows."""
    for relation in takes:
        of = relation.window
        if of is not None and relation.at_window_ends and _miss_all(window, of):
            raise PipelineError(
                f"window({window!r}) over the panes of {of!r}: a pane is at the last microsecond of its window, and none of these is in "
                "a window; give another offset, or a period that is not above the size"
            )


def _miss_all(window: WindowOption, of: WindowOption) -> bool:
    """Whether the last microseconds of all windows lie in the gaps of others."""
    if not (isinstance(window, SlidingWindows) and isinstance(of, (FixedWindows, SlidingWindows))):
        return False
    if not (window.holds_its_rows and of.holds_its_rows):  # custom windows may differ
        return False
    last_us = of.offset.us + of.size.us - 1
    return (last_us - window.offset.us) % gcd(window.period.us, of.period_us) >= window.size.us
