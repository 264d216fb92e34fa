"""TAB completion and help() in a notebook: public names, and types of arguments."""

import enum
import inspect

import pytest

import beamish as bm
from beamish import accumulations, plot, sinks, triggers

PACKAGES = [bm, accumulations, plot, sinks, triggers]
CLASSES = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in PACKAGES
    for name in package.__all__
    if inspect.isclass(getattr(package, name)) and not issubclass(getattr(package, name), (enum.Enum, Exception))
}

OF_ANYTHING = {
    f"beamish.{name}" for name in ("Query", "ScriptState", "Version", "accumulations.Fold", "sinks.KafkaSink")
}
"""Classes with an argument of any type."""


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_dir_is_the_public_surface(package):
    assert set(dir(package)) <= {*package.__all__, "__version__"}
    assert set(dir(package)) >= set(package.__all__)


@pytest.mark.parametrize("name", CLASSES)
def test_help_shows_the_type_of_each_argument(name):
    untyped = (inspect.Parameter.empty,) if name in OF_ANYTHING else (inspect.Parameter.empty, "Any")
    for argument in inspect.signature(CLASSES[name]).parameters.values():
        assert argument.annotation not in untyped, f"{name}({argument.name})"


def test_help_shows_the_types_that_a_duration_accepts():
    of = inspect.signature(bm.SlidingWindows).parameters
    assert {one.annotation for one in of.values()} == {"Duration | timedelta | str | float"}
    assert inspect.signature(triggers.AfterWatermark).parameters["early"].annotation == "Trigger | None"
