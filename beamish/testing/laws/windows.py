"""The laws of window options (beamish/windows/option.py), on rows, and their check.

A row is a tuple: its event time in microseconds (its number, for windows of rows), and the values of the option's ``columns``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from hypothesis import strategies as st

from beamish.costs import MOST_WINDOWS
from beamish.errors import OptionError
from beamish.testing.laws.report import Law, require, search
from beamish.testing.laws.seen import Seen
from beamish.windows.option import Bounds, WindowOption, assigned, check_window, read_window

Rows = Sequence[tuple[Any, ...]]
_SECOND = 1_000_000
_SPANS = tuple(span * _SECOND for span in (1, 5, 10, 60, 300, 600, 3_600, 86_400))


def check_windows(
    option: WindowOption,
    *,
    columns: st.SearchStrategy[tuple[Any, ...]] | None = None,
    examples: int = 200,
    seed: int = 0,
    floor: float = 0.02,
) -> Seen:
    """Check a window option on drawn rows of a key.

    The laws: an assignment depends on the row only; rows are assigned together as they are alone; a window ends after the time of
    its rows; a row is in one window at most, if ``overlaps`` is False, and in those of the start of its slice; a merge covers
    windows once, and gives the same in steps as at once.

    Args:
        option: the option.
        columns: a strategy of tuples, the values of the option's ``columns``; needed if it has any.
        examples: the number of examples.
        seed: of the examples; another seed draws others.
        floor: share of the examples in which windows must merge, if the option merges, or a row must have a window, and in which
            each law must have something to compare; 0: none.

    Returns:
        what was drawn.

    Raises:
        LawError: a law does not hold, with the smallest rows that break it.
        VacuousError: too few examples had windows, or merged ones.
        OptionError: several windowings, or ``columns`` is missing.

    Example:
        >>> import attrs, beamish as bm
        >>> @attrs.frozen
        ... class UntilMidnight(bm.WindowOption):
        ...     def assign(self, timestamp_us):
        ...         day = 86_400_000_000
        ...         yield timestamp_us, timestamp_us - timestamp_us % day + day
        >>> check_windows(UntilMidnight(), examples=20).examples
        20
    """
    if option.windowings:
        raise OptionError(f"check_windows({option!r}): several windowings; check them one by one")
    check_window("check_windows(option)", option)
    if option.columns and columns is None:
        raise OptionError(
            f"check_windows({option!r}): give a strategy of its columns {option.columns}, columns=st.tuples(...)"
        )
    seen = Seen()

    def laws_of(parts: tuple[Rows, Rows]) -> Mapping[Law, Sequence[Any]]:
        rows = [*parts[0], *parts[1]]
        laws: dict[Law, Sequence[Any]] = {
            assignment_depends_on_the_row: (option, rows),
            rows_are_assigned_alone_as_together: (option, rows),
            windows_end_after_their_rows: (option, rows),
            overlaps_as_declared: (option, rows),
        }
        if option.merging:
            return laws | {
                merge_covers_windows_once: (option, rows),
                windows_merge_in_steps_as_at_once: (option, *parts),
            }
        return laws | {slices_share_windows: (option, [row[0] for row in rows])} if option.preaggregates else laws

    def held(parts: tuple[Rows, Rows]) -> None:
        windows = sorted({window for row in chain(*parts) for window in _windows(option, row)})
        merged = sum(len(members) > 1 for members, _ in option.merge(windows)) if option.merging else 0
        seen.add({"rows": len(parts[0]) + len(parts[1]), "windows": len(windows), "merged windows": merged})

    parts = _parts(st.just(()) if columns is None else columns, numbers=option.counts_rows)
    compared = search(parts, laws_of, examples=examples, seed=seed, held=held)
    seen.note(compared)
    always = compared.keys() - {overlaps_as_declared, slices_share_windows}
    return seen.check("merged windows" if option.merging else "windows", *always, floor=floor)


def assignment_depends_on_the_row(option: WindowOption, rows: Rows) -> bool:
    """A row is in the same windows whenever it is assigned.

    It compares several rows that have windows.
    """
    expected = [_windows(option, row) for row in rows]
    given = [_windows(option, row) for row in reversed(rows)][::-1]
    require(assignment_depends_on_the_row, expected=expected, given=given)
    return len(list(filter(None, expected))) > 1


def rows_are_assigned_alone_as_together(option: WindowOption, rows: Rows) -> bool:
    """Rows of a batch are in the windows in which they are alone.

    It compares several rows that have windows.
    """
    given: list[list[Bounds]] = [[] for _ in rows]
    for row, window in _assigned(option, rows):
        given[row].append(window)
    require(rows_are_assigned_alone_as_together, expected=[_windows(option, row) for row in rows], given=given)
    return len(list(filter(None, given))) > 1


def windows_end_after_their_rows(option: WindowOption, rows: Rows) -> bool:
    """A window ends after the event time of each of its rows, which would be late otherwise.

    It compares rows that have windows.
    """
    pairs = _assigned(option, rows)
    for row, (start, end) in pairs:
        words = f"the window ({start}, {end}) of the row {rows[row]} ends"
        given = "after it" if end > rows[row][0] else "before it"
        require(windows_end_after_their_rows, expected=f"{words} after it", given=f"{words} {given}")
    return bool(pairs)


def overlaps_as_declared(option: WindowOption, rows: Rows) -> None:
    """A row is in one window at most, where ``overlaps`` is False."""
    several = [(row, windows) for row in rows if len(windows := _windows(option, row)) > 1]
    if several and not option.may_overlap:
        require(overlaps_as_declared, expected="overlaps: True", given=f"overlaps: False, {several[0]}")


def slices_share_windows(option: WindowOption, times_us: Sequence[int]) -> None:
    """A row and the start of its slice are in the same windows."""
    starts = option.slices(np.array(times_us, dtype=np.int64))
    for time, start in zip(times_us, [] if starts is None else starts.tolist(), strict=True):
        require(slices_share_windows, expected=_windows(option, (time,)), given=_windows(option, (start,)))


def merge_covers_windows_once(option: WindowOption, rows: Rows) -> bool:
    """``merge`` puts a window into one group at most, and its groups have no other windows.

    It compares windows that merge.
    """
    windows = sorted({window for row in rows for window in _windows(option, row)})
    members = [tuple(member) for group, _ in option.merge(windows) for member in group]
    require(merge_covers_windows_once, expected=[one for one in windows if one in members], given=sorted(members))
    return len(members) > 1


def windows_merge_in_steps_as_at_once(option: WindowOption, first: Rows, then: Rows) -> bool:
    """Windows that merge as their rows arrive are those that merge at once.

    It compares windows that merge when further rows arrive.
    """
    before, new = ({window for row in rows for window in _windows(option, row)} for rows in (first, then))
    expected = _merged(option, before | new)
    require(
        windows_merge_in_steps_as_at_once, expected=expected, given=_merged(option, {*_merged(option, before), *new})
    )
    return bool(before) and bool(new) and len(expected) < len(before | new)


def _merged(option: WindowOption, windows: set[Bounds]) -> list[Bounds]:
    groups = [([*map(tuple, members)], read_window(result)) for members, result in option.merge(sorted(windows))]
    left = windows.difference(*(members for members, _ in groups))
    return sorted({*left, *(result for _, result in groups)})


def _windows(option: WindowOption, row: tuple[Any, ...]) -> list[Bounds]:
    if type(option).assign is not WindowOption.assign:
        windows = list(islice(option.assign(*row), MOST_WINDOWS + 1))
        if len(windows) > MOST_WINDOWS:
            raise OptionError(f"{option!r}.assign{row}: more than {MOST_WINDOWS:,} windows of a row")
        return sorted(map(read_window, windows))
    return sorted(window for _, window in _assigned(option, [row]))


def _assigned(option: WindowOption, rows: Rows) -> list[tuple[int, Bounds]]:
    times, *columns = zip(*rows, strict=True) if rows else ((), *((),) * len(option.columns))
    row, start, end = assigned(option, np.array(times, dtype=np.int64), columns)
    bounds = zip(start.tolist(), end.tolist(), strict=True)
    return sorted(zip(row.tolist(), bounds, strict=True))


@st.composite
def _parts(draw: st.DrawFn, columns: st.SearchStrategy[tuple[Any, ...]], *, numbers: bool) -> tuple[Rows, Rows]:
    """Two lists of rows of a key, at distances of one unit and its edges, at the epoch or now."""
    about, unit = draw(st.sampled_from((0, 0, 1_767_225_600 * _SECOND))), draw(st.sampled_from(_SPANS))
    times = st.builds(
        lambda by, edge: about + by * unit + edge, st.integers(-3, 12), st.sampled_from((0, 0, -1, 1, unit // 2))
    )
    row = st.tuples(st.integers(0, 30) if numbers else times, columns).map(lambda drawn: (drawn[0], *drawn[1]))
    return draw(st.lists(row, max_size=4)), draw(st.lists(row, max_size=4))
