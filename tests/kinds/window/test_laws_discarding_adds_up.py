"""Law: discarding panes 0 to i, added up, are accumulating pane i (rules/laws.md#law-discarding-adds-up)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beamish import AccumulationMode
from beamish.accumulations import Collect, CollectSet, Count, Max, Min, Sum, TopN
from tests.declared_options import evolve, said
from tests.laws.batches import key_name
from tests.own.windows import OfABlock
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.strategies.windows import own_windows, sessions, windows
from tests.twin.order import spark_order

ADDITIONS = {
    "count": (Count(), sum),
    "sum": (Sum("score"), lambda parts: sum(present(parts)) if present(parts) else None),
    "min": (Min("name"), lambda parts: min(present(parts), key=spark_order, default=None)),
    "max": (Max("cost"), lambda parts: max(present(parts), default=None)),
    "all": (Collect("name"), lambda parts: sorted(item for part in parts for item in part)),
    "set": (CollectSet("score"), lambda parts: sorted({item for part in parts for item in part})),
    "top": (TopN(2, "score"), lambda parts: sorted((item for part in parts for item in part), reverse=True)[:2]),
}


def present(parts):
    return [part for part in parts if part is not None]


def in_both_modes(data, **what):
    drawn = pipelines(mode=st.just(AccumulationMode.DISCARDING), with_dropped=st.just(False), **what)  # noqa: FBT003
    pipeline = data.draw(drawn.filter(lambda pipeline: not said(pipeline).trigger.asked_values))
    names = data.draw(st.lists(st.sampled_from(sorted(ADDITIONS)), min_size=1, max_size=2, unique=True))
    pipeline = evolve(pipeline, accumulations={name: ADDITIONS[name][0] for name in names})
    script = data.draw(scripts(pipeline))
    return (
        pipeline,
        pipeline.run(script),
        evolve(pipeline, mode=AccumulationMode.ACCUMULATING).run(script),
    )


def check(parts, whole):
    for name, value in whole.values.items():
        _, add = ADDITIONS[name]
        expected = sorted(value) if name == "all" else value
        assert add([part.values[name] for part in parts]) == expected, (name, parts, whole)


def of_each_key(pipeline, panes):
    """Between keys no order is promised."""
    keys = {}
    for pane in panes:
        keys.setdefault(key_name(pipeline, pane.key), []).append(pane)
    return keys


@pytest.mark.of_law("law-discarding-adds-up")
@given(st.data())
def test_discarding_panes_add_up_to_the_accumulating_pane(data):
    pipeline, discarding, accumulating = in_both_modes(data, window=windows.filter(lambda option: not option.merging))
    parts, wholes = of_each_key(pipeline, discarding), of_each_key(pipeline, accumulating)
    assert parts.keys() == wholes.keys()
    for key in wholes:
        # Firing does not depend on the mode; what a pane does to the live ones does.
        told = [
            [attrs.evolve(pane, key={}, values={}, change=None) for pane in panes]
            for panes in (parts[key], wholes[key])
        ]
        assert told[0] == told[1]
        for i, whole in enumerate(wholes[key]):
            check([pane for pane in parts[key][: i + 1] if pane.window == whole.window], whole)


@pytest.mark.of_law("law-discarding-adds-up")
@given(st.data())
def test_discarding_panes_of_a_session_and_of_all_merged_into_it_add_up(data):
    merging = st.one_of(sessions, own_windows.filter(lambda option: option.merging and option != OfABlock()))
    pipeline, discarding, accumulating = in_both_modes(data, window=merging, lateness=st.just(1000))
    # No session closes or expires before it could merge.
    assume(not said(pipeline).trigger.may_lose_rows(said(pipeline).allowed_lateness.us))
    parts = of_each_key(pipeline, discarding)
    for key, wholes in of_each_key(pipeline, accumulating).items():
        for i, whole in enumerate(wholes):
            start, end = whole.window
            inside = [pane for pane in parts[key][: i + 1] if start <= pane.window.start and pane.window.end <= end]
            check(inside, whole)
