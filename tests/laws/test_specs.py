"""Law: an option is what its spec says, and two pipelines differ where their specs do (docs/architecture.md#state)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Accumulation, InnerJoin
from beamish.checkpoint.comparison import OPTIONS
from beamish.contract.stand_ins import STAND_INS
from beamish.flow import Description, descriptions
from beamish.kernels.identity import identity, same_identity
from beamish.kernels.spec import UnreadableError, read_spec
from beamish.kinds.window.plan.options import WindowOptions
from beamish.script import script_rows
from tests.checkpoints.cases import CASES
from tests.declared_options import said, stage_of
from tests.kinds.hold_back.stage import HoldBack
from tests.kinds.window.strategy_of_rows import counted
from tests.strategies import flows
from tests.strategies.changed import changed
from tests.strategies.pipelines import pipelines
from tests.strategies.scripts import scripts
from tests.upgrades.carried import differences_after

OF_FUNCTIONS = ("fn", "initial", "where", "having", "derived", "match_if")
"""Fields that hold what no spec can be read as."""
UNREPORTED = {"accumulations", "allow_data_loss"}


def through_json(value):
    return json.loads(json.dumps(value))


def holds_functions(spec):
    if isinstance(spec, dict):
        return any(name in OF_FUNCTIONS or holds_functions(own) for name, own in spec.items())
    return isinstance(spec, list) and any(map(holds_functions, spec))


def options_of(pipeline):
    return stage_of(pipeline.flow).options


def is_of_tests(value):
    """Whether a class of the tests is in it."""
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    if attrs.has(type(value)):
        parts = [getattr(value, field.name) for field in attrs.fields(type(value))]
    own = type(value).__module__.startswith("tests.")
    return own or any(map(is_of_tests, [*parts, *getattr(value, "parts", ())]))


def comes_back(value, kind):
    spec = identity(value)
    back = through_json(spec)
    assert json.dumps(back) == json.dumps(spec)
    try:
        assert read_spec(back, kind) == value
    except UnreadableError:
        assert is_of_tests(value) or holds_functions(spec)


@given(st.data())
def test_options_are_equal_to_what_is_read_from_their_spec(data):
    once = data.draw(st.booleans())
    comes_back(options_of(data.draw(st.one_of(pipelines(asks=True, once=once), counted()))), WindowOptions)


@given(st.data())
def test_every_stage_of_a_flow_has_the_lines_that_it_was_described_by(data):
    pipeline = data.draw(flows.flows())
    script = data.draw(flows.tree_scripts(pipeline))
    assume(script_rows(pipeline.flow, script.events).any)
    are_described_in_the_same_lines(pipeline, script)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_stages_of_each_kind_have_the_lines_that_they_were_described_by(case):
    are_described_in_the_same_lines(case.pipeline, case.script)


def are_described_in_the_same_lines(pipeline, script):
    bound = pipeline.flow.completed.bind(script_rows(pipeline.flow, script.events).schemas, shards=2)
    for about, one in zip(descriptions(bound), bound.flows, strict=True):
        read = Description.read(through_json(about))
        if not is_of_tests(one.stage) and not holds_functions(about["spec"]):
            assert read.lines == dict(one.stage.describe(one.operator.takes, None))
        assert [of.name for of in read.inputs] == [relation.name for relation in one.operator.takes]
        moves = [None if of.stage else relation.policy.describe() for of, relation in zip(read.inputs, one.operator.takes, strict=True)]  # fmt: skip
        assert [of.moves for of in read.inputs] == moves


@given(st.data())
def test_pipelines_of_equal_specs_have_no_difference(data):
    pipeline = data.draw(pipelines(once=data.draw(st.booleans())))
    options = options_of(pipeline)
    assume(not is_of_tests(options) and not holds_functions(identity(options)))
    stage = attrs.evolve(stage_of(pipeline.flow), options=read_spec(through_json(identity(options)), WindowOptions))
    again = attrs.evolve(pipeline, flow=attrs.evolve(pipeline.flow, stage=stage))
    script = data.draw(scripts(pipeline))
    assume(script_rows(pipeline.flow, script.events).any)
    assert differences_after(pipeline, again, script, len(script.events)) == []


@given(st.data())
def test_a_changed_option_is_named_in_a_difference(data):
    then = data.draw(pipelines())
    now = data.draw(changed(then, ids=st.just(("score",))))
    script = data.draw(scripts(then))
    assume(script_rows(then.flow, script.events).any)
    found = differences_after(then, now, script, len(script.events))
    both = [options_of(one) for one in (then, now)]
    fields = [
        field.name
        for field in attrs.fields(WindowOptions)
        if not same_identity(*(identity(getattr(options, field.name)) for options in both))
    ]
    named = {one.what for one in found}
    assert {OPTIONS[name][0] for name in fields if name not in UNREPORTED} <= named
    assert bool(named) is bool({*fields} - {"allow_data_loss"} or said(then).inputs != said(now).inputs)


@attrs.frozen
class Sessions(bm.WindowOption):
    """Called as one of beamish's."""

    gap: int

    def assign(self, timestamp_us):
        yield timestamp_us, timestamp_us + self.gap


def test_a_class_that_is_called_as_one_of_beamishs_is_not_read_as_that():
    spec = identity(Sessions(5))
    assert spec == {"is": "tests.laws.test_specs.Sessions", "gap": 5}
    with pytest.raises(UnreadableError):
        read_spec(spec, bm.WindowOption)
    assert read_spec(identity(bm.Sessions(5)), bm.WindowOption) == bm.Sessions(5)


def test_of_a_description_of_a_later_version_the_number_is_known():
    inputs = [{"stage": None, "spec": {"is": "Relation", "keys": ["k"], "coloured": True}}]
    about = {"version": 3, "stage": 2, "stages": 2, "spec": {"is": "WindowStage"}, "inputs": inputs}
    assert Description.read(about) == Description(2)


def test_a_stage_of_a_users_own_is_shown_by_its_spec():
    spec = identity(HoldBack("5 seconds"))
    about = {"version": 2, "stage": 1, "stages": 1, "spec": spec, "inputs": []}
    assert Description.read(about).lines == {"stage": "HoldBack(span=5000000)"}
    assert read_spec({"is": "WindowOptions", "window": {"is": "Mine"}}, WindowOptions, STAND_INS).window.words.startswith("Mine()")  # fmt: skip


def test_a_join_is_read_without_its_conditions():
    join = InnerJoin("a", "b", match_if={"a": pc.field("v") > 1})
    read = read_spec(identity(join), Accumulation, STAND_INS)
    assert repr(read) == "InnerJoin(left='a', right='b', match_if={'a': (v > 1)})"
    assert same_identity(identity(read), identity(join))
