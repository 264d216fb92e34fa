"""Laws of conditions of inputs (rules/stages.md#conditions): a row that one leaves out is as if it had not come."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from beamish.script import Bundle, Step
from beamish.testing import TestStream
from tests.agreement import differences
from tests.cost import cost
from tests.kinds.refine.strategy import SHOWN, TAKEN, conditioned, meaning
from tests.kinds.versions import strategy as versions
from tests.strategies import merges
from tests.strategies.windows import merged_row_windows

KINDS = {
    "merge": (merges.merges(), merges.scripts),
    "merge in windows of rows": (merges.merges(window=merged_row_windows), merges.scripts),
    "pairs once": (merges.merges(once=True), merges.scripts),
    "as-of join": (versions.as_of_joins(lefts=("rows",), tables=("rows",)), versions.scripts),
    "versions": (versions.versions(kinds=("rows",)), versions.scripts),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def drawn(data, kind):
    some, scripts = KINDS[kind]
    pipeline = data.draw(some.flatmap(conditioned))
    return pipeline, data.draw(scripts(pipeline))


def filtered(pipeline, script):
    """The script without the rows that the inputs' conditions leave out."""
    wheres = {source.name: source.where for source in pipeline.flow.sources}

    def without(event):
        if not isinstance(event, (Bundle, Step)) or not event.rows or wheres[event.input] is None:
            return event
        kept = meaning(wheres[event.input])
        return attrs.evolve(event, rows=tuple(row for row in event.rows if kept(row)))

    return TestStream(tuple(map(without, script.events)))


def rows_by_source(script):
    return {event.input: event.rows for event in script.events if getattr(event, "rows", ())}


def unconditioned(pipeline):
    inputs = tuple(attrs.evolve(taken, where=None) for taken in pipeline.flow.inputs)
    return attrs.evolve(pipeline, flow=attrs.evolve(pipeline.flow, inputs=inputs))


@pytest.mark.of_law("law-input-conditions")
@every_kind
@cost(3)
@given(data=st.data())
def test_a_filtered_row_of_an_input_has_no_effect(kind, data):
    pipeline, script = drawn(data, kind)
    assume(
        rows_by_source(filtered(pipeline, script)).keys() == rows_by_source(script).keys()
    )  # else columns are not known
    found = differences(pipeline.run(script), unconditioned(pipeline).run(filtered(pipeline, script)), pipeline)
    assert not found, "\n".join([repr(pipeline), repr(script), "- with conditions, + without rows", *found])


def test_the_strategy_covers_all_conditions_over_rows_and_panes():
    assert all(
        isinstance(meaning({"score": 3, "n": 2, "timing": "LATE", "is_last": True}), (bool, int))
        for _, meaning in TAKEN + SHOWN
    )
