"""Options come back from their spec; what cannot come back is known to be unknown."""

import json
import subprocess
import sys

import attrs
import pytest
from hypothesis import given

import beamish as bm
from beamish.accumulations import Accumulation, CountDistinct, Reduce, Sum
from beamish.kernels.identity import identity
from beamish.kernels.spec import UnreadableError, read_spec
from beamish.triggers import AfterAny, AfterCount, AfterWatermark, Trigger
from beamish.windows.option import WindowOption
from tests.strategies.accumulations import accumulations
from tests.strategies.triggers import triggers
from tests.strategies.windows import row_windows, windows


def option_of(spec, kind):
    """The part of a spec that is read; None: nothing."""
    try:
        return read_spec(json.loads(json.dumps(spec)), kind)
    except UnreadableError:
        return None


@given(triggers)
def test_a_trigger_is_restored_exactly_or_not_at_all(trigger):
    back = option_of(identity(trigger), Trigger)
    assert back in (trigger, None)
    if all(type(part).__module__.startswith("beamish.") for part in parts(trigger)):
        assert back == trigger


def parts(trigger):
    yield trigger
    for part in trigger.parts:
        yield from parts(part)


@given(windows | row_windows)
def test_a_built_in_window_option_is_restored(window):
    if type(window).__module__.startswith("beamish."):
        assert option_of(identity(window), WindowOption) == window


@given(accumulations)
def test_an_accumulation_is_restored_exactly_or_not_at_all(accumulation):
    back = option_of(identity(accumulation), Accumulation)
    assert back in (accumulation, None)
    if back is None:
        assert "fn" in repr(identity(accumulation)) or type(accumulation).__module__.startswith("tests.")


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        (CountDistinct("a", "b"), Accumulation),
        (Sum("score").of("plays"), Accumulation),
        (bm.Windowings({"ten": bm.FixedWindows(10), "visit": bm.Sessions(5)}), WindowOption),
        (bm.CalendarWindows(months=1, timezone="Europe/Berlin"), WindowOption),
        (AfterWatermark(early=AfterAny(AfterCount(3), AfterCount(4)), late=AfterCount(1)), Trigger),
    ],
)
def test_built_in_options_are_restored(option, kind):
    assert option_of(identity(option), kind) == option


@attrs.frozen
class Sums(Accumulation):
    column: str


def test_user_functions_and_classes_are_not_restored():
    assert option_of(identity(Reduce(max, "v")), Accumulation) is None
    assert option_of(identity(Sums("v")), Accumulation) is None
    assert option_of({"is": "os.system", "command": "true"}, Trigger) is None
    assert option_of({"is": "Sum", "column": "v"}, Trigger) is None


def test_specs_are_read_before_the_first_garbage_collection():
    """Until then two classes have the name of an option with slots."""
    code = """
import gc
gc.disable()
from beamish import triggers as t
from beamish.kernels.identity import identity
from beamish.kernels.spec import read_spec
assert read_spec(identity(t.AfterCount(2)), t.Trigger) == t.AfterCount(2)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
