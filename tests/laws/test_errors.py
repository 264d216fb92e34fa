"""Laws of rows with which something raises: they are dropped, and all else is as if they had not come (rules/output.md#errors)."""

from __future__ import annotations

import operator
from typing import Any

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish import DropReason, NumericOverflowError, UserFunctionError
from beamish import accumulations as a
from beamish.local import Variation
from beamish.local import run as run_varied
from tests.agreement import close, differences
from tests.cost import cost
from tests.laws.batches import batch, meets_a_session_gone, numbered
from tests.laws.test_ledger import live_panes, windows_by_overlap
from tests.said import evolve, said
from tests.strategies.chains import chains
from tests.strategies.pipelines import pipelines, retracting
from tests.strategies.scripts import scripts
from tests.strategies.suppress import suppressed
from tests.strategies.watermarks import bounded_out_of_orderness
from tests.strategies.windows import windows
from tests.twin import run

POISON = 4
HUGE = {5: 2**62, -3: -(2**62), 3: 2**61}


@attrs.frozen
class Picky(a.Accumulation):
    """A user's own sum, which raises for a score."""

    column: str = "score"
    result_type = "bigint"

    def create(self):
        return 0

    def add(self, accumulator, value):
        if value == POISON:
            raise ValueError(f"{value}!")
        return accumulator + ((value or 0) % 7)

    def merge(self, a, b):
        return a + b

    def extract(self, accumulator):
        return accumulator


def picky(accumulator: int, value: Any) -> int:
    return Picky().add(accumulator, value)


def narrow(accumulator: int, value: Any) -> int:
    """What raises for a row beside others."""
    if accumulator + abs(value or 0) % 1000 > 6:
        raise OverflowError("too much")
    return accumulator + abs(value or 0) % 1000


poisonable = st.one_of(
    st.just(a.Sum("score")),
    st.just(a.Sum("score")),
    st.sampled_from([Picky(), a.Count(), a.Mean("score"), a.Collect("score"), a.Fold(0, picky, "score", operator.add)]),
)
in_order = st.one_of(poisonable, st.sampled_from([a.Fold(0, picky, "score"), a.Fold(0, narrow, "score")]))


def dropping(pipeline: bm.Pipeline) -> bm.Pipeline:
    return evolve(pipeline, on_error="drop", with_dropped=True)


def drawn(data, accumulation=in_order, **what):
    """A pipeline and a numbered script with scores that take sums over."""
    what.setdefault("window", windows)
    window = data.draw(what.pop("window"))
    accumulation = poisonable if window.merging else accumulation
    pipeline = dropping(data.draw(pipelines(window=st.just(window), accumulation=accumulation, **what)))
    return pipeline, huge(numbered(data.draw(scripts(pipeline, ends=data.draw(st.booleans())))))


def huge(script):
    """The script with some scores as great as can be."""
    return changed(script, lambda row: {**row, "score": HUGE.get(row["score"], row["score"])})


def changed(script, change):
    """The script with other rows; None: without the row."""
    events = [
        attrs.evolve(event, rows=tuple(row for row in map(change, event.rows) if row is not None))
        if hasattr(event, "rows")
        else event
        for event in script.events
    ]
    return attrs.evolve(script, events=tuple(events))


def silent(panes):
    """Panes without what was said of an error, of which only the engine knows the words."""
    return [attrs.evolve(pane, message=None) for pane in panes]


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_engine_and_twin_drop_the_same_rows_for_errors(data):
    pipeline, script = drawn(data)
    found = differences(silent(pipeline.run(script)), run(pipeline, script.events), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_engine_and_twin_drop_the_same_rows_for_errors_in_a_chain(data):
    chain = dropping(data.draw(chains()))
    (only,) = chain.flow.inputs
    first = evolve(bm.Pipeline(only.flow), on_error="drop")
    chain = bm.Pipeline(attrs.evolve(chain.flow, inputs=(attrs.evolve(only, flow=first.flow),)))
    script = huge(data.draw(scripts(chain)))
    found = differences(silent(chain.run(script)), run(chain, script.events), chain)
    assert not found, "\n".join([repr(chain), repr(script), "- engine, + twin", *found])


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_engine_and_twin_drop_the_same_rows_for_errors_in_a_suppressed_stage(data):
    accumulated = st.sampled_from([a.Sum("score"), Picky(), a.Fold(0, picky, "score", operator.add)])
    pipeline = data.draw(suppressed(pipelines(accumulation=accumulated).map(dropping)))
    script = huge(data.draw(scripts(pipeline)))
    try:
        panes = silent(pipeline.run(script))
    except (NumericOverflowError, bm.BufferFullError):  # of no row: panes that add up (rules/output.md#errors-of-panes)
        assume(False)  # noqa: FBT003
    found = differences(panes, run(pipeline, script.events), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- engine, + twin", *found])


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_shards_packing_and_stored_bytes_change_nothing_of_errors(data):
    pipeline, script = drawn(data)
    how = Variation(shards=data.draw(st.integers(1, 3)), packs=2, round_trip=True)
    otherwise = run_varied(pipeline.flow, script.events, how)
    found = differences(pipeline.run(script), otherwise, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_a_row_that_was_dropped_for_an_error_might_as_well_not_have_come(data):
    pipeline, script = drawn(data, window=windows.filter(lambda option: not option.may_overlap))
    panes = pipeline.run(script)
    errors = {pane.values["id"] for pane in panes if pane.reason is DropReason.ERROR}
    without = pipeline.run(changed(script, lambda row: None if row["id"] in errors else row))
    found = differences([pane for pane in panes if pane.reason is not DropReason.ERROR], without, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_rows_are_dropped_for_errors_where_the_query_would_stop_and_only_there(data):
    pipeline, script = drawn(data)
    strict = evolve(pipeline, on_error="fail")
    panes = pipeline.run(script)
    try:
        stops, expected = False, strict.run(script)
    except (UserFunctionError, NumericOverflowError):
        stops, expected = True, []
    assert stops == any(pane.reason is DropReason.ERROR for pane in panes), f"{pipeline!r}\n{script!r}"
    found = [] if stops else differences(panes, expected, pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), *found])


@pytest.mark.of_law("law-errors")
@cost(2)
@given(st.data())
def test_live_panes_are_a_batch_of_the_rows_that_were_not_dropped_for_errors(data):
    pipeline, script = drawn(
        data,
        accumulation=poisonable,
        mode=st.just(retracting),
        watermark=bounded_out_of_orderness,
        window=windows_by_overlap,
    )
    script = script.advance_watermark_to_infinity()
    if said(pipeline).window.merging:
        assume(not meets_a_session_gone(pipeline, script))
    panes = pipeline.run(script)
    live, expected = live_panes(pipeline, panes), batch(pipeline, script, panes)
    assert live.keys() == expected.keys(), f"{pipeline!r}\n{script!r}"
    for at, pane in live.items():
        assert close(dict(pane.values), expected[at]), f"{pipeline!r}\n{script!r}\n{pane}\n{expected[at]}"
