"""Checks of a suppressed window stage, and consequences for the next stage."""

from __future__ import annotations

from beamish.contract.relation import Relation
from beamish.durations import Duration
from beamish.errors import PipelineError
from beamish.kinds.suppress.option import Suppress, UntilTimeLimit, UntilWindowCloses
from beamish.kinds.window.options import WindowOptions
from beamish.modes import TimestampCombiner


def check_suppress(options: WindowOptions, suppress: Suppress) -> None:
    """Check a window stage's options with the suppress that follows it.

    Raises:
        PipelineError: incompatible options.
    """
    until = suppress.until
    if options.counts_rows:
        raise PipelineError(
            f"suppress({until!r}) of {options.window!r}: a window of rows closes with a row, not at a time; without early and late "
            "panes it has one pane, the final one"
        )
    if options.retention is not None:
        raise PipelineError(
            f"suppress({until!r}) of a stage with {options.retention.call}: a window that falls out does not close at a time; leave the "
            "suppress out, or retain(), and limit what is held by buffer=bm.Buffer(max_records=..., when_full=bm.SPILL)"
        )
    if options.forget_after is not None:
        raise PipelineError(
            f"suppress({until!r}) of a stage with forget_after({str(options.forget_after)!r}): a key that comes again would replace what is "
            "held of its forgotten window; leave the suppress out: without early panes, such as by .trigger(Never()).discarding(), each key "
            "has one pane, the final one"
        )
    if isinstance(until, UntilWindowCloses) and until.grace is not None:
        raise PipelineError(
            f"suppress({until!r}): grace is for changes(); a pipeline's windows close after their allowed lateness: say "
            f".allowed_lateness({until.grace!r}) and leave grace out"
        )
    if isinstance(until, UntilTimeLimit) and until.holds and not until.by_clock and _lacks_timestamps(options):
        raise PipelineError(
            f"suppress({until!r}) over windows that are all of time: their panes have no timestamp to wait from; say "
            ".timestamp_combiner(bm.TimestampCombiner.LATEST), or clock='processing'"
        )
    if options.discards and suppress.holds:
        for name, accumulation in options.accumulations.items():
            accumulation.check(name, merging=True)


def _lacks_timestamps(options: WindowOptions) -> bool:
    return options.combiner is TimestampCombiner.END_OF_WINDOW and options.never_ends


def check_closes(options: WindowOptions, suppress: Suppress) -> None:
    """Check that buffered updates are emitted on an unbounded stream.

    Raises:
        PipelineError: global windows never close.
    """
    if isinstance(suppress.until, UntilWindowCloses) and options.never_ends:
        raise PipelineError(
            f"suppress({suppress.until!r}) over {options.window!r}: all of time never closes on a stream, so nothing would come "
            "out; say bm.UntilTimeLimit('1 minute', clock='processing'), or use windows that end"
        )


def check_in_time(options: WindowOptions, relation: Relation) -> None:
    """Check that the output of a suppressed stage is not too late for the next stage.

    Raises:
        PipelineError: all of it would be; or it is a changelog, not panes.
    """
    if relation.is_changelog:
        raise PipelineError(
            "then(...) after changes(): its rows set and delete what a table holds, and what they replace is not known, so no "
            "sum over them would be right; bm.Pipeline().window(bm.GlobalWindow()).accumulate(...=Last(...)) makes a table "
            "that retracts"
        )
    lateness = options.allowed_lateness.us
    if relation.behind_us > lateness and options.window is not None and not options.never_ends:
        least = Duration(relation.behind_us)
        raise PipelineError(
            f"a stage with allowed_lateness({options.allowed_lateness!r}): what a suppress holds, or a window gives when it expires, comes "
            f"when the watermark is {least} past its time, so all of it would be too late; say .allowed_lateness({least!r}) or more in "
            "this stage"
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
