"""Limits of legal options: a warning above the size at which they are costly, an error where nothing would be emitted."""

from __future__ import annotations

import inspect
import warnings

from beamish.durations import Duration
from beamish.errors import OptionError

MANY_WINDOWS, MOST_WINDOWS = 10_000, 1_000_000
"""Windows per row: a warning above the first, an error above the second."""
MANY_SHARDS, MOST_SHARDS = 10_000, 100_000
"""Shards of a stage, likewise."""
YEAR = Duration(366 * 24 * 3_600_000_000)


def warn(message: str) -> None:
    """Warn at the caller's line outside of beamish."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and _is_own(frame.f_code.co_filename, str(frame.f_globals.get("__name__"))):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, stacklevel=depth + 1)


def _is_own(file: str, module: str) -> bool:
    return module.partition(".")[0] == "beamish" or file.startswith("<attrs generated")


def check_windows_per_row(where: str, size: int, period: int) -> None:
    """Check the number of windows per row.

    Args:
        where: the option, for the message.
        size: the length of a window.
        period: from one start to the next.

    Raises:
        OptionError: more than ``MOST_WINDOWS``.
    """
    windows = -(-size // period)
    if windows > MOST_WINDOWS:
        raise OptionError(
            f"{where}: each row would be in {windows:,} windows, the maximum is {MOST_WINDOWS:,}; give a longer period"
        )
    if windows > MANY_WINDOWS:
        warn(f"{where}: each row is in {windows:,} windows, and every window has state and panes; give a longer period")


def check_shards(where: str, shards: int) -> None:
    """Check the number of shards (OptionError: more than ``MOST_SHARDS``)."""
    fix = "give the number of cores that the query will grow to, such as 8"
    if shards > MOST_SHARDS:
        raise OptionError(f"{where}: the maximum is {MOST_SHARDS:,} shards; {fix}")
    if shards > MANY_SHARDS:
        warn(f"{where}: every batch visits {shards:,} shards, however few rows it has; {fix}")


def check_span(where: str, span: Duration, effect: str, most: Duration = YEAR) -> None:
    """Warn about a duration that is probably in the wrong unit.

    Args:
        where: the argument, for the message.
        span: its value.
        effect: its effect.
        most: the longest without a warning.
    """
    if span > most:
        warn(f"{where}={span!r}: {effect}; a duration given as a number is in seconds")
