"""Wrong user code by somebody who had not read the laws: which law finds each, and that the right code breaks none."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from beamish.testing import laws
from tests.testing.mutants.load import WRONG, right, wrong

FOUND = {
    "acc_01": "merge_agrees_with_add",
    "acc_02": "order_of_rows_is_irrelevant",
    "acc_03": "new_accumulator_is_identity",
    "acc_04": "merge_is_associative",
    "acc_05": "arguments_are_unchanged",
    "acc_06": "retract_undoes_add",
    "acc_07": "same_rows_have_same_value",
    "acc_08": "same_rows_have_same_value",
    "acc_09": "merge_agrees_with_add",
    "acc_10": None,  # it is the highest of 0 and its values, which keeps all laws; what is expected tells them apart
    "acc_11": "same_rows_have_same_value",
    "trigger_01": "firings_are_announced",
    "trigger_02": "state_merged_alone_is_unchanged",
    "trigger_03": "firing_rearms",
    "trigger_04": "firing_rearms",
    "trigger_05": "states_merge_in_any_order",
    "trigger_06": "firing_rearms",
    "pipeline_01": "no_row_is_too_late",
    "pipeline_02": "live_panes_equal_expected",
    "pipeline_03": "live_panes_equal_expected",
    "pipeline_04": "no_row_is_too_late",
    "pipeline_05": "live_panes_equal_expected",
    "pipeline_06": "no_row_is_too_late",
    "pipeline_07": None,  # what shows nothing is refused
    "pipeline_08": None,
}
VACUOUS = {
    "pipeline_07": r"accumulate\(clicks=Sum.*counts firings: .*or pass counts_firings=True",
    "pipeline_08": r"had firings .*the trigger never fired: is it ever ready\? Give it a lower count",
}
"""Wrong code of which the laws compare nothing: the check fails, and says what to change."""
SEEDS = (20261127, *range(21))
"""A law must break at each of these."""
DEEP = ("pipeline_01", "pipeline_03", "pipeline_04", "pipeline_05", "pipeline_06")
"""Those that take seconds, for ``make test-deep``; pipeline_02 is in ``make test``."""
FEW = 10
"""Examples of right code."""


def check(name, examples=200, seed=0, code=wrong):
    module = code(name)
    if name.startswith("acc"):
        laws.check_accumulation(
            module.accumulation, values=st.sampled_from(module.values), examples=examples, seed=seed
        )
    elif name.startswith("trigger"):
        laws.check_trigger(module.trigger, examples=examples, seed=seed)
    else:
        given = {"rows": module.rows, "expected": module.expected, "disorder": module.DISORDER}
        laws.check(module.pipeline, examples=examples, seed=seed, **given)


def some(names):
    """The names, of which ``make test`` runs a part."""
    return [pytest.param(name, marks=[pytest.mark.deep] * (name in DEEP)) for name in names]


@pytest.mark.dear
@pytest.mark.parametrize("name", some(name for name, law in FOUND.items() if law))
def test_wrong_code_is_found(name):
    with pytest.raises(laws.LawError) as raised:
        check(name)
    assert raised.value.law.__name__ == FOUND[name]
    assert str(raised.value).count("'ts'") <= 5


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["trigger_04", "trigger_06"])
def test_a_window_that_stays_ready_is_found_at_each_seed(name, seed):
    with pytest.raises(laws.LawError, match="firing_rearms"):
        check(name, seed=seed)


@pytest.mark.dear
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.deep] * (seed != 3)) for seed in SEEDS])
def test_a_disorder_above_the_delay_is_found_at_each_seed(seed):
    with pytest.raises(laws.LawError, match="no_row_is_too_late"):
        check("pipeline_06", 100, seed)


@pytest.mark.dear
@pytest.mark.parametrize("name", VACUOUS)
def test_a_check_that_compares_nothing_fails(name):
    with pytest.raises(laws.VacuousError, match=VACUOUS[name]):
        check(name, FEW)


def test_shared_state_is_named_in_few_lines():
    shared = wrong("acc_11").AllValues
    with pytest.raises(laws.LawError, match="whatever was called before: no state is shared"):
        check("acc_11")
    shared.values[:] = [0.0] * 100
    with pytest.raises(laws.LawError) as raised:
        laws.accumulators_share_no_state(shared("amount"), [0.0], [0.0])
    assert "rows that are added to another one, of another window or key, do not change it" in str(raised.value)
    with pytest.raises(laws.LawError) as raised:
        laws.arguments_are_unchanged(shared("amount"), [0.0], [0.0])
    assert "more lines)" in str(raised.value)
    assert len(str(raised.value).splitlines()) < 60


@pytest.mark.dear
@pytest.mark.parametrize("name", some(FOUND))
def test_right_code_breaks_no_law(name):
    check(name, FEW, code=right)


def test_there_is_wrong_code_for_each_right_one():
    assert sorted(WRONG) == sorted(FOUND)


def test_expected_values_are_compared():
    def highest(values):
        return max((value for value in values if value is not None), default=None)

    values = st.sampled_from(right("acc_10").values)
    laws.check_accumulation(right("acc_10").accumulation, values=values, expected=highest, examples=FEW)
    with pytest.raises(laws.LawError, match="value_is_expected"):
        laws.check_accumulation(wrong("acc_10").accumulation, values=values, expected=highest)
