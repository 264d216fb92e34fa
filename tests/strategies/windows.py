"""Window options: built-in and custom ones."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish.flow import Flow
from beamish.kinds.window.checks import _miss_all
from tests.own.windows import OfABlock, OwnGap, UntilMinute

few_seconds = st.one_of(st.integers(1, 12), st.sampled_from([0.5, 2.5, 7.5]))
offsets = st.sampled_from([0, 0, 0, 1, -3, 0.5, 25])
fixed_windows = st.builds(bm.FixedWindows, few_seconds, offsets)
sliding_windows = st.builds(bm.SlidingWindows, few_seconds, st.integers(1, 8), offsets)
cumulative_windows = st.builds(
    lambda step, steps, offset: bm.CumulativeWindows(step * steps, step, offset),
    st.one_of(st.integers(1, 4), st.sampled_from([0.5, 2.5])),
    st.integers(1, 4),
    offsets,
)
sessions = st.builds(
    lambda gap, late_rows: bm.Sessions(gap, late_rows=late_rows),
    few_seconds,
    st.sampled_from(["own_window", "session"]),
)
own_sessions = st.builds(bm.Sessions, few_seconds)
"""Sessions that judge a late row by its own window."""
global_windows = st.builds(bm.GlobalWindow)
calendar_windows = st.builds(
    lambda unit, timezone, starting: bm.CalendarWindows(**unit, timezone=timezone, starting=starting),
    st.sampled_from([{"days": 1}, {"days": 3}, {"weeks": 1}, {"months": 1}, {"months": 5}, {"years": 1}]),
    st.sampled_from(["UTC", "Europe/Paris", "America/Sao_Paulo", "Asia/Kathmandu"]),
    st.sampled_from([None, None, "1970-01-31", "1971-03-02"]),
)
own_windows = st.sampled_from([UntilMinute(), OwnGap(), OfABlock()])
windows = st.one_of(
    fixed_windows,
    sliding_windows,
    cumulative_windows,
    sessions,
    sessions,
    global_windows,
    calendar_windows,
    own_windows,
)


row_columns = st.sampled_from([{}, {}, {}, {"order_by": "score"}, {"order_by": ("name", "score")}])
brought_columns = st.sampled_from(
    [{"numbered_by": "score"}, {"numbered_by": "score", "delay": 1}, {"numbered_by": "score", "delay": 3}]
)
"""Rows of all scripts have a score, -3 to 5 or null: numbers in any order, with gaps and repeats."""
count_windows = st.builds(
    lambda size, period, offset, over, columns, idle: bm.CountWindows(
        size, period, offset=offset, over=over, idle=None if over == "stream" else idle, **columns
    ),
    st.integers(1, 5),
    st.none() | st.integers(1, 6),
    st.sampled_from([0, 0, 1, -2]),
    st.sampled_from(["key", "key", "stream"]),
    st.one_of(row_columns, brought_columns),
    st.sampled_from([None, None, None, 3, 10]),
)
count_sessions = st.builds(
    lambda others, columns: bm.CountSessions(others, **columns),
    st.integers(0, 3),
    st.one_of(row_columns, brought_columns),
)
row_windows = st.one_of(count_windows, count_windows, count_sessions)


merged_row_windows = row_windows.map(lambda option: attrs.evolve(option, order_by=None, numbered_by=None, delay=0))
"""Those of a merge, whose inputs have no column in common."""


def taking(window: bm.WindowOption | None, *flows: Flow) -> bm.WindowOption | None:
    """The window option, or the global window if panes of these stages are in none of its windows; None: inherited windows."""
    if window is None or window.numbering or window.is_all_of_time or all(flow.gives.has_timestamps for flow in flows):
        gaps = window is not None and any(
            flow.gives.at_window_ends and _miss_all(window, flow.gives.window)
            for flow in flows
            if flow.gives.window is not None
        )
        return bm.GlobalWindow() if gaps else window
    return bm.GlobalWindow()


def windowings(first: bm.WindowOption) -> st.SearchStrategy[bm.Windowings]:
    """Several windowings: this one and one or two others."""
    others = st.lists(windows, min_size=1, max_size=2)
    return others.map(lambda some: bm.Windowings({f"w{i}": option for i, option in enumerate([first, *some])}))


def unit(option: bm.WindowOption | None) -> int:
    """The length of a second of the script: calendar windows are longer than seconds."""
    return 40_000 if isinstance(option, bm.CalendarWindows) else 1


windows_by_overlap = st.one_of(
    fixed_windows,
    sliding_windows,
    sessions,
    sessions,
    calendar_windows,
    global_windows,
    st.sampled_from([UntilMinute(), OwnGap()]),
)
