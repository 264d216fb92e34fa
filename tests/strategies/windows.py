"""Window options: the built-in ones and users' own."""

from __future__ import annotations

from hypothesis import strategies as st

import beamish as bm
from tests.own.windows import OfABlock, OwnGap, UntilMinute

few_seconds = st.one_of(st.integers(1, 12), st.sampled_from([0.5, 2.5, 7.5]))
offsets = st.sampled_from([0, 0, 0, 1, -3, 0.5, 25])
fixed_windows = st.builds(bm.FixedWindows, few_seconds, offsets)
sliding_windows = st.builds(bm.SlidingWindows, few_seconds, st.integers(1, 8), offsets)
sessions = st.builds(bm.Sessions, few_seconds)
global_windows = st.builds(bm.GlobalWindow)
calendar_windows = st.builds(
    lambda unit, timezone, starting: bm.CalendarWindows(**unit, timezone=timezone, starting=starting),
    st.sampled_from([{"days": 1}, {"days": 3}, {"weeks": 1}, {"months": 1}, {"months": 5}, {"years": 1}]),
    st.sampled_from(["UTC", "Europe/Paris", "America/Sao_Paulo", "Asia/Kathmandu"]),
    st.sampled_from([None, None, "1970-01-31", "1971-03-02"]),
)
own_windows = st.sampled_from([UntilMinute(), OwnGap(), OfABlock()])
windows = st.one_of(fixed_windows, sliding_windows, sessions, sessions, global_windows, calendar_windows, own_windows)


def windowings(first: bm.WindowOption) -> st.SearchStrategy[bm.Windowings]:
    """Several windowings: this one and one or two others."""
    others = st.lists(windows, min_size=1, max_size=2)
    return others.map(lambda some: bm.Windowings({f"w{i}": option for i, option in enumerate([first, *some])}))


def unit(option: bm.WindowOption | None) -> int:
    """What a second of the script stands for: calendar windows are longer than seconds."""
    return 40_000 if isinstance(option, bm.CalendarWindows) else 1
