"""Checks of a window stage: count windows, and suppress."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from beamish.contract.relation import Relation
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.kernels.column_names import has_no_event_time
from beamish.kinds.suppress.option import Suppress, UntilTimeLimit, UntilWindowCloses
from beamish.kinds.window.parts.pairs_once import joins_once
from beamish.kinds.window.plan.options import WindowOptions
from beamish.modes import TimestampCombiner
from beamish.windows.option import WindowOption
from beamish.windows.time_windows import FixedWindows, SlidingWindows


def check_numbering(options: WindowOptions, takes: Sequence[Relation]) -> None:
    """Check windows against their numbering, or that they are time windows (PipelineError: incompatible options)."""
    if options.window is None:
        _check_not_inherited(takes)
        return
    _check_lateness(options)
    if options.trigger.needs_row_times:
        _check_row_times(options, takes)
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
                f"a stage without a window of its own over {of!r}: panes have no row numbers, so it cannot inherit count windows; "
                "give it a window, such as .window(bm.CountWindows(10)); time windows need "
                ".timestamp_combiner(bm.TimestampCombiner.LATEST) in the stage before"
            )


def _check_lateness(options: WindowOptions) -> None:
    if options.counts_rows and options.allowed_lateness:
        raise PipelineError(
            f"allowed_lateness({options.allowed_lateness!r}) of count windows: they end with a row, not at a time; give a number of "
            "rows: .allowed_lateness(rows=100)"
        )
    if options.late_rows and not options.counts_rows:
        raise PipelineError(
            f"allowed_lateness(rows={options.late_rows}) of {options.window!r}: its windows end at a time; give a duration: "
            ".allowed_lateness('1 hour')"
        )


def _check_row_times(options: WindowOptions, takes: Sequence[Relation]) -> None:
    if options.counts_rows:
        raise PipelineError(
            f"trigger({options.trigger!r}) of {options.window!r}: count windows follow the number of rows, not the watermark; use "
            "AfterCount or AfterProcessingTime, or time windows"
        )
    if any(has_no_event_time(relation.event_time) for relation in takes):
        raise PipelineError(
            f"trigger({options.trigger!r}) needs the rows' event time: add .event_time(column, "
            "bm.BoundedOutOfOrderness('30 seconds')), or use AfterProcessingTime"
        )


def _check_counted(options: WindowOptions, takes: Sequence[Relation]) -> None:
    window, numbering = options.window, options.window and options.window.numbering
    assert window is not None and numbering is not None  # noqa: PT018, S101 - it is of rows
    if any(relation.retracts for relation in takes):
        raise PipelineError(
            f"window({window!r}) over rows that are retracted: a retraction would renumber all rows after it; make the stage before "
            "accumulating() or discarding(), or use time windows"
        )
    if takes[0].name is not None and numbering.columns:
        raise PipelineError(
            f"window({window!r}) of a merge: ambiguous column {numbering.columns[0]!r}: rows of all inputs are numbered together, "
            "on arrival; leave it out, or number the rows before the merge"
        )
    if window.merging and not takes[0].keys:
        raise PipelineError(
            f"window({window!r}) without keys: a count session ends with rows of other keys, which a stream without keys lacks; add .key_by(...)"
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
                f"{what} needs the rows' event time: add .event_time(column, bm.BoundedOutOfOrderness('30 seconds')), or leave it "
                "out"
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
        endless = [name for name, one in of.windowings.items() if one.is_all_of_time]
        others = [] if of.counts_rows else [name for name in of.windowings if name not in endless]
        if others and (relation.where or options.where) is not None:
            continue  # the condition may take the panes of the windowings whose windows end
        why = "count windows end at no time" if of.counts_rows else "the global window does not end"
        whose = f"the panes of {', '.join(map(repr, endless))}" if others else "their panes"
        take = f"take only those of others by .where(pc.field('windowing').isin({others})), " if others else ""
        raise PipelineError(
            f"window({options.window!r}) over the panes of {of!r}: {why}, so {whose} have no timestamp, and all of these would "
            f"be dropped; give the stage{f' {relation.name!r}' if relation.name else ' before'} "
            f".timestamp_combiner(bm.TimestampCombiner.LATEST), {take}or use bm.GlobalWindow()"
        )


def _check_sampled(window: WindowOption, takes: Sequence[Relation]) -> None:
    """Check that windows with gaps between them contain the ends of some of the panes' windows."""
    for relation in takes:
        of = relation.window
        if of is not None and relation.at_window_ends and _miss_all(window, of):
            raise PipelineError(
                f"window({window!r}) over the panes of {of!r}: a pane's timestamp is the last microsecond of its window, and none "
                "of these is in a window; choose another offset, or a period not above the size"
            )


def _miss_all(window: WindowOption, of: WindowOption) -> bool:
    """Whether the last microseconds of all windows lie in the gaps of others."""
    if not (isinstance(window, SlidingWindows) and isinstance(of, (FixedWindows, SlidingWindows))):
        return False
    if not (window.holds_its_rows and of.holds_its_rows):  # custom windows may differ
        return False
    last_us = of.offset.us + of.size.us - 1
    return (last_us - window.offset.us) % gcd(window.period.us, of.period_us) >= window.size.us


def check_suppress(options: WindowOptions, suppress: Suppress) -> None:
    """Check a window stage's options with the suppress that follows it (PipelineError: incompatible options)."""
    until = suppress.until
    if options.counts_rows:
        raise PipelineError(
            f"suppress({until!r}) of {options.window!r}: a count window closes with a row, not at a time; without early and late "
            "panes it has one pane, the final one"
        )
    if options.retention is not None:
        raise PipelineError(
            f"suppress({until!r}) of a stage with {options.retention.call}: an evicted window does not close at a time; remove the "
            "suppress, or replace retain() by a limit on the buffer: buffer=bm.Buffer(max_records=..., when_full=bm.SPILL)"
        )
    if options.forget_after is not None:
        raise PipelineError(
            f"suppress({until!r}) of a stage with forget_after({str(options.forget_after)!r}): a returning key would replace the "
            "buffered pane of its expired window; remove the suppress: without early panes, as under "
            ".trigger(Never()).discarding(), each key has one pane, the final one"
        )
    if options.key_watermark is not None:
        raise PipelineError(
            f"suppress({until!r}) of a stage with {options.key_watermark.call}: a buffer waits for the watermark of all keys; remove the "
            "suppress: under .trigger(Never()).discarding() each window has one pane, the final one, when its key's watermark has passed it"
        )
    if isinstance(until, UntilWindowCloses) and until.grace is not None:
        raise PipelineError(
            f"suppress({until!r}): grace is for changes(); a pipeline's windows close after their allowed lateness: use "
            f".allowed_lateness({until.grace!r}) and leave grace out"
        )
    if isinstance(until, UntilTimeLimit) and until.holds and not until.by_clock and _lacks_timestamps(options):
        raise PipelineError(
            f"suppress({until!r}) over global windows: their panes have no timestamp to wait from; add "
            ".timestamp_combiner(bm.TimestampCombiner.LATEST), or use clock='processing'"
        )
    if options.discards and suppress.holds:
        for name, accumulation in options.accumulations.items():
            accumulation.check(name, merging=True)


def _lacks_timestamps(options: WindowOptions) -> bool:
    return options.combiner is TimestampCombiner.END_OF_WINDOW and options.never_ends


def check_closes(options: WindowOptions, suppress: Suppress) -> None:
    """Check that buffered updates are emitted on an unbounded stream (PipelineError: global windows never end)."""
    if isinstance(suppress.until, UntilWindowCloses) and options.never_ends:
        raise PipelineError(
            f"suppress({suppress.until!r}) over {options.window!r}: the global window never ends on a stream, so nothing would be "
            "emitted; use bm.UntilTimeLimit('1 minute', clock='processing'), or windows that end"
        )


def check_in_time(options: WindowOptions, relation: Relation) -> None:
    """Check that the output of a suppressed stage is not too late for the next stage.

    Raises:
        PipelineError: all of it would be; or it is a changelog, not panes.
    """
    if relation.is_changelog:
        raise PipelineError(
            "then(...) after changes(): its rows are upserts and deletes, and the rows they replace are unknown, so no sum over "
            "them would be right; use bm.Pipeline().window(bm.GlobalWindow()).accumulate(...=Last(...)), a table that retracts"
        )
    lateness = options.allowed_lateness.us
    if relation.behind_us > lateness and options.window is not None and not options.never_ends:
        least = Duration(relation.behind_us)
        raise PipelineError(
            f"a stage with allowed_lateness({options.allowed_lateness!r}): panes of a suppress, or of an expiring window, are "
            f"emitted when the watermark is {least} past their time, so all would be too late where it moves in small steps; use "
            f".allowed_lateness({least!r}) or more in this stage"
        )


def behind_us(options: WindowOptions, suppress: Suppress) -> int:
    """How far past its time a pane is emitted, if determined by the watermark, microseconds."""
    if isinstance(suppress.until, UntilWindowCloses):
        return options.allowed_lateness.us
    return 0 if suppress.until.by_clock else suppress.until.wait.us


def measured(options: WindowOptions, suppress: Suppress) -> str:
    """The start of a wait, for explain."""
    until = suppress.until
    if isinstance(until, UntilWindowCloses):
        lateness = options.allowed_lateness
        after = f"{lateness} past its end" if lateness else "at its end"
        return f": the watermark is {after}, or its trigger has finished; one pane per key and window"
    if until.by_clock or not until.holds:
        return "; one net change per key and window at a time" * until.holds
    return {
        TimestampCombiner.END_OF_WINDOW: ": it is the window's last microsecond, so the wait runs from the window's end",
        TimestampCombiner.EARLIEST: ": it is the earliest event time of its rows",
        TimestampCombiner.LATEST: ": it is the latest event time of its rows",
    }[options.combiner] + "; one net change per key and window at a time"
