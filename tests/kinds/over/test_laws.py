"""Laws of over stages (rules/over.md): in the end all is as in a batch."""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish import PaneKind
from beamish.accumulations import Collect, Count, Sum
from beamish.kinds.over.ranges import Ranges
from tests.agreement import close, key_of
from tests.cost import cost
from tests.kinds.over.strategy import Over, overs
from tests.kinds.versions.batch import in_a_batch, is_final, live, numbered
from tests.kinds.versions.strategy import Drawing, no, scripts, simple
from tests.strategies.pipelines import retracting

ROWS = ("rows",)
PATIENT = Over(
    of=Drawing(policy=simple, mode=st.just(retracting), with_dropped=no),
    kinds=ROWS,
    lateness=st.just(10**6),
    refined=no,
    drops_keys=False,
)


def by_id(panes):
    """The values of rows by their number; the order of bundles must not decide between equal rows."""
    return {pane.values["id"]: (key_of(pane), pane.values) for pane in panes if pane.kind is PaneKind.PANE}


def ordered(pipeline):
    """Rows of equal times ordered by their number."""
    options = attrs.evolve(pipeline.flow.stage.options, order_by="id")
    stage = attrs.evolve(pipeline.flow.stage, options=options)
    return bm.Pipeline(attrs.evolve(pipeline.flow, stage=stage))


@pytest.mark.of_law("law-over")
@cost(1.5)
@given(st.data())
def test_finally_the_live_rows_are_those_of_a_batch(data):
    pipeline = ordered(data.draw(overs(PATIENT)))
    script = numbered(data.draw(scripts(pipeline, ends=True)), 0)
    ours, batch = by_id(live(pipeline.run(script))), by_id(in_a_batch(pipeline, script, 1))
    assert close(dict(sorted(ours.items())), dict(sorted(batch.items()))), f"{pipeline!r}\n{script!r}"


@pytest.mark.of_law("law-over")
@given(st.data())
def test_a_batch_emits_each_row_once_final(data):
    of = Drawing(policy=simple, with_dropped=no)
    pipeline = data.draw(overs(Over(of=of, kinds=ROWS, refined=no, drops_keys=False)))
    script = numbered(data.draw(scripts(pipeline)), 0)
    panes = in_a_batch(pipeline, script, data.draw(st.integers(1, 3)))
    assert all(map(is_final, panes))
    assert len(by_id(panes)) == len(panes)


@pytest.mark.of_law("law-over")
@given(st.data())
def test_a_discarding_stage_emits_the_first_pane_of_a_retracting_one(data):
    how = attrs.evolve(PATIENT, lateness=st.sampled_from([0, 5, 1000]), lead=False)
    pipeline = data.draw(overs(how))
    script = numbered(data.draw(scripts(pipeline)), 0)
    first = [pane for pane in pipeline.run(script) if pane.is_first and pane.kind is PaneKind.PANE]
    once = by_id(pipeline.discarding().run(script))
    assert close(dict(sorted(by_id(first).items())), dict(sorted(once.items()))), f"{pipeline!r}\n{script!r}"


@pytest.mark.of_law("law-over")
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_ranges_have_the_accumulators_of_their_rows(values, data):
    bounds = st.tuples(st.integers(0, len(values) - 1), st.integers(1, 40)).map(
        lambda one: (one[0], min(one[0] + one[1], len(values)))
    )
    ranges = data.draw(st.lists(bounds, min_size=1, max_size=10))
    first, last = (np.array(side, np.int64) for side in zip(*ranges, strict=True))
    column, times = pa.array(values, pa.int64()), np.arange(len(values))
    for of, expected in ((Sum("x"), sum), (Collect("x"), list)):
        state = Ranges.of(first, last).combine(
            of, lambda at, of=of: of.lift([column.take(pa.array(at))], times[at]), None, first
        )
        found = of.extract_columns(state, [pa.int64()]).to_pylist()
        assert found == [expected(values[begin:end]) for begin, end in ranges]


@pytest.mark.of_law("law-over")
def test_the_work_of_a_range_grows_with_the_logarithm_of_its_rows():
    def work(rows, ranges=64):
        made = 0
        of = Count()

        class Counting(Count):
            def combine(self, groups, state):
                nonlocal made
                made += len(groups)
                return of.combine(groups, state)

        first = np.arange(ranges, dtype=np.int64)
        lift = lambda at: of.lift([], at)  # noqa: E731
        Ranges.of(first, first + rows).combine(Counting(), lift, None, first)
        return made / (ranges + rows)

    assert work(4096) <= work(64) + 4
