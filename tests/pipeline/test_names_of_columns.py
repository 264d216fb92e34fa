"""Which names of columns are the user's: all but those that begin with ``__beamish_`` (kernels/column_names.py)."""

from __future__ import annotations

import pytest

import beamish as bm
from beamish.accumulations import Count, Fold, Sum
from beamish.local import stages_after
from beamish.testing import TestStream

ROWS = [{"ts": 1, "__sign": 1, "__op": "u", "v": 5}, {"ts": 2, "__sign": -1, "__op": "d", "v": 7}]
PIPELINE = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(10))


def names_of(seen, row):
    return sorted({*seen, *row})


def test_a_user_column_named_sign_is_data():
    (pane,) = PIPELINE.accumulate(n=Count(), s=Sum("v")).run(TestStream().add(ROWS).advance_watermark_to(10))
    assert pane.values == {"n": 2, "s": 12}


def test_columns_that_begin_with_two_underscores_are_kept_in_whole_rows_and_in_dropped_ones():
    pipeline = PIPELINE.with_dropped().accumulate(
        names=Fold([], names_of, merge=lambda a, b: sorted({*a, *b}), result_type="array<string>")
    )
    script = TestStream().add(ROWS).advance_watermark_to(10).add(ROWS[:1])
    pane, dropped = pipeline.run(script)
    assert pane.values == {"names": ["__op", "__sign", "ts", "v"]}
    assert dropped.values == ROWS[0]


def test_names_are_case_insensitive_and_returned_as_requested():
    pipeline = (
        PIPELINE.key_by("__OP").event_time("TS", bm.BoundedOutOfOrderness(0)).with_dropped().accumulate(s=Sum("V"))
    )
    script = TestStream().add(ROWS[:1]).advance_watermark_to(10).add(ROWS[:1])
    pane, dropped = pipeline.run(script)
    assert (pane.key, pane.values) == ({"__OP": "u"}, {"s": 5})
    assert dropped.values == {"TS": 1, "__sign": 1, "__OP": "u", "V": 5}
    with pytest.raises(bm.ColumnError, match="no column 'V'"):  # it cannot be called both
        PIPELINE.accumulate(s=Sum("V"), t=Sum("v")).run(script)


def test_the_error_about_a_name_with_a_dot_explains_fields():
    script = TestStream().add([{"ts": 1, "user": {"id": 3}}])
    with pytest.raises(bm.ColumnError, match=r"no column 'user\.name'.*the fields of 'user' are \['id'\]"):
        PIPELINE.key_by("user.name").accumulate(n=Count()).run(script)


def test_a_chain_may_be_keyed_by_one():
    totals = PIPELINE.key_by("__op").accumulate(s=Sum("v")).then(bm.Pipeline().key_by("__op").accumulate(n=Count()))
    panes = totals.run(TestStream().add(ROWS).advance_watermark_to(10))
    assert sorted(pane.key["__op"] for pane in panes) == ["d", "u"]


def test_names_of_beamishs_own_are_refused_as_columns_keys_and_results():
    script = TestStream().add([{"ts": 1, "__beamish_x": 1}])
    with pytest.raises(bm.ColumnError, match="'__beamish_x': names that begin with '__beamish_' are reserved; rename"):
        PIPELINE.accumulate(n=Count()).run(script)
    with pytest.raises(bm.PipelineError, match="are reserved; choose another"):
        PIPELINE.key_by("__Beamish_x").accumulate(n=Count()).explain()
    with pytest.raises(bm.PipelineError, match="are reserved; choose another"):
        PIPELINE.accumulate(__beamish_n=Count()).explain()


@pytest.mark.parametrize(
    "pipeline",
    [
        PIPELINE.key_by("team").accumulate(Team=Count()),
        PIPELINE.accumulate(n=Count(), N=Sum("v")),
        PIPELINE.key_by("team", "TEAM").accumulate(n=Count()),
        PIPELINE.accumulate(Window=Count()),
    ],
)
def test_names_of_the_output_that_differ_in_case_only_are_refused(pipeline):
    with pytest.raises(bm.PipelineError, match="Spark ignores case; choose another"):
        pipeline.explain()


@pytest.mark.parametrize("name", ["row", "rows"])
def test_a_dropped_duplicate_may_have_columns_of_any_name(name):
    pipeline = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).deduplicate("id", within=60).with_dropped()
    first, again = {"ts": 1, "id": 1, name: 7}, {"ts": 2, "id": 1, name: 9}
    script = TestStream().add([first, again])
    dropped, pane = pipeline.run(script)
    assert (dropped.values, pane.values) == (again, {"ts": 1, name: 7})
    ((bound, (store,)),) = stages_after(pipeline.flow, script.events)
    assert bound.operator.open(store).dropped == {"duplicate": 1}
