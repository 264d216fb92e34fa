"""Laws of suppress: it emits panes of its stage, with the same final result (rules/laws.md#law-suppress-nothing-is-lost)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import AccumulationMode, Pane, PaneKind
from beamish.accumulations import Collect
from beamish.flow import Flow
from beamish.script import as_step
from tests.agreement import close
from tests.cost import cost
from tests.declared_options import evolve, said
from tests.kinds.suppress.strategy import any_buffer, suppressed
from tests.laws.batches import key_name, numbered
from tests.laws.ledger import live_panes, live_rows
from tests.lines import line
from tests.strategies.accumulations import exact
from tests.strategies.flows import ANYTHING, flows, tree_scripts
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import scripts
from tests.strategies.triggers import triggers
from tests.strategies.watermarks import bounded_out_of_orderness
from tests.twin.run import Key, Twin
from tests.twin.windows import Bounds


def without(pipeline):
    """The pipeline without the suppress of its last stage."""
    return bm.Pipeline(attrs.evolve(pipeline.flow, stage=pipeline.flow.stage.of))


ENDING = {"watermark": bounded_out_of_orderness}


@pytest.mark.of_law("law-suppress-nothing-is-lost")
@given(st.data())
def test_nothing_is_lost_at_the_end_of_time_the_same_panes_are_live(data):
    pipeline = data.draw(suppressed(pipelines(mode=st.just(retracting), accumulation=exact, **ENDING)))
    script = data.draw(scripts(pipeline, ends=True))
    held, plain = (live_panes(one, one.run(script)) for one in (pipeline, without(pipeline)))
    words = f"{pipeline!r}\n{script!r}"
    assert held.keys() == plain.keys(), words
    for at, pane in held.items():
        assert line(pane) == line(plain[at]), words


@pytest.mark.of_law("law-suppress-nothing-is-lost")
@given(st.data())
def test_nothing_is_lost_at_the_end_of_time_the_same_rows_of_a_tree_are_live(data):
    rooted = attrs.evolve(ANYTHING, mode=st.just(retracting))
    pipeline = data.draw(suppressed(flows(root=rooted)))
    script = data.draw(tree_scripts(pipeline, ends=True))
    if any(isinstance(source.watermark, bm.ProcessingTimeLag) for source in pipeline.flow.sources):
        return  # it does not come to the end of time
    plain = without(pipeline)
    assert live_rows(pipeline.run(script)) == live_rows(plain.run(script)), f"{pipeline!r}\n{script!r}"


class Vanishing(Twin):
    """The twin, watching which windows were merged away and did not come again."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.vanished: set[tuple[str, bm.Window]] = set()

    def place(self, key, window):
        return repr(list(key.values())), window

    def give(self, pane: Pane, rows: Sequence = ()) -> None:
        self.vanished.discard(self.place(pane.key, pane.window))
        super().give(pane, rows)

    def became(self, key: Key, bounds: Bounds, into: Bounds) -> None:
        self.vanished.add(self.place(key.columns, self.bounds_of(bounds)))


@pytest.mark.of_law("law-suppress-nothing-is-lost")
@given(st.data())
def test_nothing_is_lost_accumulating_the_last_pane_of_every_window_that_is_not_merged_away(data):
    mode = st.just(AccumulationMode.ACCUMULATING)
    pipeline = data.draw(suppressed(pipelines(mode=mode, accumulation=exact, with_dropped=st.just(False), **ENDING)))  # noqa: FBT003
    script = data.draw(scripts(pipeline, ends=True))
    plain = without(pipeline)
    twin = Vanishing(plain.flow)
    for event in script.events:
        twin.step(as_step(event))
    last, expected = (
        {(repr(list(pane.key.values())), pane.window): line(pane) for pane in one.run(script)}
        for one in (pipeline, plain)
    )
    kept = {at: pane for at, pane in expected.items() if at not in twin.vanished}
    assert {at: pane for at, pane in last.items() if at in kept} == kept, f"{pipeline!r}\n{script!r}"


@pytest.mark.of_law("law-suppress-nothing-is-lost")
@given(st.data())
def test_nothing_is_lost_discarding_the_parts_of_a_window_add_up(data):
    mode, all_ids = st.just(AccumulationMode.DISCARDING), st.just(Collect("id"))
    pipeline = data.draw(suppressed(pipelines(mode=mode, accumulation=all_ids, with_dropped=st.just(False), **ENDING)))  # noqa: FBT003
    script = numbered(data.draw(scripts(pipeline, ends=True)))
    merging = said(pipeline).window.merging  # a part may have passed to another window
    held, plain = (
        Counter(
            (key_name(one, pane.key), None if merging else pane.window, i)
            for pane in one.run(script)
            for i in pane.values["v0"]
        )
        for one in (pipeline, without(pipeline))
    )
    assert held == plain, f"{pipeline!r}\n{script!r}"


@pytest.mark.of_law("law-suppress-nothing-is-lost")
@cost(2)
@given(st.data())
def test_nothing_is_lost_each_pane_is_one_of_the_stages_in_order(data):
    """And each that does not was superseded, or is held; what parts add up to are their own values."""
    pipeline = data.draw(suppressed(pipelines(with_dropped=st.just(False), accumulation=exact)))  # noqa: FBT003
    script = data.draw(scripts(pipeline))
    came, given_ = (of_each_window(one, one.run(script)) for one in (pipeline, without(pipeline)))
    for at, panes in came.items():
        rest = iter(given_.get(at, []))
        assert all(any(as_told(pipeline, pane, one) for one in rest) for pane in panes), (
            f"{pipeline!r}\n{script!r}\n{at}"
        )


def of_each_window(pipeline, panes):
    found = {}
    for pane in panes:
        if pane.kind is PaneKind.PANE:
            found.setdefault((key_name(pipeline, pane.key), pane.window), []).append(pane)
    return found


def as_told(pipeline, one, other):
    # Final panes differ: nothing of their window is live before them.
    same = attrs.evolve(one, values={}, key={}, change=None) == attrs.evolve(other, values={}, key={}, change=None)
    return same and (said(pipeline).discards or line(one) == line(other))


@pytest.mark.of_law("law-suppress-final-is-never")
@cost(2)
@given(st.data())
def test_final_until_windows_close_equals_the_trigger_never(data):
    plain = data.draw(
        pipelines(
            trigger=triggers.filter(lambda trigger: not trigger.may_lose_rows(1)),
            accumulation=exact,
            with_dropped=st.just(False),  # noqa: FBT003
        )
    )
    script = data.draw(scripts(plain))
    final = plain.suppress(bm.UntilWindowCloses(), buffer=data.draw(any_buffer.filter(lambda buffer: buffer.strict)))
    never = evolve(plain, trigger=bm.triggers.Never())
    for (event, held), (_, expected) in zip(script.trace(final), script.trace(never), strict=True):
        words = f"{final!r}\n{script!r}\n{event}"
        assert [pane.kind for pane in held] == [PaneKind.PANE] * len(expected), words
        of_keys = [
            sorted(((key_name(plain, pane.key), pane.window, dict(pane.values)) for pane in panes), key=repr_of_place)
            for panes in (held, expected)
        ]
        for (*at, values), (*where, others) in zip(*of_keys, strict=True):
            assert at == where, words
            assert close(values, others), words


def repr_of_place(row):
    return repr(row[:2])
