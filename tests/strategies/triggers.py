"""Triggers: leaves, nested ones, and those that are common or wait for something."""

from __future__ import annotations

from hypothesis import strategies as st

from beamish import triggers as t
from beamish.triggers import Trigger
from beamish.triggers.after_watermark import is_at_end
from tests.own.triggers import AtEndOnce, EveryOtherBundle, QuietFor

after_count = st.builds(t.AfterCount, st.integers(1, 4))
_delays = st.sampled_from([0, 1, 2, 3, 5, 2.5])
after_processing_time = st.one_of(
    st.builds(t.AfterProcessingTime, _delays),
    st.builds(t.AfterProcessingTime, _delays, since=st.sampled_from(["first", "last"])),
    st.builds(
        t.AfterProcessingTime,
        _delays,
        since=st.sampled_from(["first", "last"]),
        aligned_to=st.sampled_from([2, 3, 5]),
        offset=st.sampled_from([0, 1, -0.5, 7]),
    ),
)
after_event_time = st.one_of(
    st.builds(t.AfterEventTime, _delays),
    st.builds(
        t.AfterEventTime, _delays, aligned_to=st.sampled_from([2, 3, 5]), offset=st.sampled_from([0, 1, -0.5, 7])
    ),
)
plain_after_watermark = st.builds(t.AfterWatermark)
always = st.builds(t.Always)
never = st.builds(t.Never)
default = st.builds(t.Default)
own_triggers = st.sampled_from([EveryOtherBundle(), QuietFor(), AtEndOnce()])
leaves = st.one_of(
    after_count,
    after_count,
    after_processing_time,
    after_event_time,
    plain_after_watermark,
    always,
    never,
    default,
    own_triggers,
)


ASKED = "asked"
"""The accumulation read by AfterValue; pipelines that draw one have it."""
after_value = st.one_of(
    st.builds(lambda bound: t.AfterValue(ASKED, at_least=bound), st.integers(1, 4)),
    st.builds(lambda bound: t.AfterValue(ASKED, at_most=bound), st.sampled_from([-1, 0, 2, 2.5])),
)


def after_watermark(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    part = st.none() | inner.filter(lambda trigger: not is_at_end(trigger))
    return st.builds(t.AfterWatermark, part, part)


@st.composite
def nested_triggers(draw: st.DrawFn, depth: int = 3, leaf: st.SearchStrategy[Trigger] = leaves) -> Trigger:
    """Any trigger, of triggers of triggers."""
    inner = nested_triggers(depth - 1, leaf) if depth > 1 else leaf
    several = st.lists(inner, min_size=1, max_size=3)
    match draw(st.integers(0, 6)):
        case 0:
            return draw(leaf)
        case 1:
            return draw(after_watermark(inner))
        case 2:
            return t.AfterAny(*draw(several))
        case 3:
            return t.AfterAll(*draw(several))
        case 4:
            return t.AfterEach(*draw(several))
        case 5:
            return t.Repeatedly(draw(inner))
        case _:
            return t.OrFinally(draw(inner), draw(inner))


usual_triggers = st.one_of(
    after_watermark(leaves),
    after_watermark(after_count),
    st.builds(t.Repeatedly, leaves),
    st.builds(t.Repeatedly, after_count),
    st.just(t.Default()),
    st.just(t.Always()),
    own_triggers,
)
triggers = st.one_of(usual_triggers, nested_triggers())
timeless_triggers = triggers.filter(lambda trigger: not trigger.needs_row_times)
"""Triggers for count windows, and for rows without event time."""
value_triggers = st.one_of(
    after_value,
    st.builds(t.Repeatedly, after_value),
    st.builds(t.AfterWatermark, after_value, after_value),
    st.builds(t.AfterEach, after_value, never),
    nested_triggers(leaf=st.one_of(leaves, after_value, after_value)),
)
"""Triggers that read a value."""
waiting_triggers = st.one_of(
    st.builds(t.Repeatedly, st.builds(t.AfterCount, st.integers(2, 5))),
    st.builds(t.Repeatedly, st.builds(t.AfterProcessingTime, st.integers(2, 6))),
    st.builds(t.AfterWatermark, st.builds(t.AfterCount, st.integers(2, 4)), st.builds(t.AfterCount, st.integers(1, 3))),
    st.builds(t.AfterWatermark, after_processing_time, after_processing_time),
    st.builds(t.Repeatedly, st.builds(t.AfterEach, plain_after_watermark, after_count, after_processing_time)),
    st.builds(t.Repeatedly, st.builds(t.AfterAll, after_count, after_processing_time)),
    st.builds(t.OrFinally, st.builds(t.Repeatedly, after_count), st.builds(t.AfterCount, st.integers(5, 9))),
    own_triggers,
    nested_triggers(),
)
"""Triggers that still wait for something when windows merge."""
