"""The examples in docstrings run and print what they say; an argument that may be None takes None."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import beamish
import beamish.accumulations
import beamish.plot
import beamish.sinks
import beamish.testing
import beamish.triggers

NEEDS_SPARK = "beamish.spark"


def modules():
    yield "beamish"
    for module in pkgutil.walk_packages(beamish.__path__, "beamish."):
        if not module.name.startswith(NEEDS_SPARK):
            yield module.name


@pytest.mark.parametrize("name", list(modules()))
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def public():
    """Each public function, class and method, with its name."""
    for of in (beamish, beamish.accumulations, beamish.plot, beamish.sinks, beamish.testing, beamish.triggers):
        names = getattr(of, "__all__", None) or [name for name in vars(of) if not name.startswith("_")]
        for name, one in ((name, getattr(of, name)) for name in names):
            if callable(one):
                yield f"{of.__name__}.{name}", one
            if inspect.isclass(one):
                own = [own for own in vars(one) if not own.startswith("_") and callable(getattr(one, own))]
                yield from ((f"{of.__name__}.{name}.{method}", getattr(one, method)) for method in own)


def arguments(call):
    """The arguments of a docstring, and their words."""
    described = re.search(r"^Args:\n((?:    .*\n?|\n)+)", inspect.getdoc(call) or "", re.MULTILINE)
    for names, words in re.findall(
        r"^    ([\w, *]+): (.*(?:\n {8}.*)*)", described[1] if described else "", re.MULTILINE
    ):
        yield from ((name.lstrip("*"), words) for name in re.split(r",\s*", names))


def test_an_argument_that_is_documented_as_none_takes_none():
    promised, taken = set(), set()
    for name, call in public():
        for argument, words in arguments(call):
            if re.search(r"\bNone\b", words):
                parameter = inspect.signature(call).parameters[argument]
                promised.add(f"{name}({argument})")
                if parameter.default is None or re.search("None|Any", str(parameter.annotation)):
                    taken.add(f"{name}({argument})")
    assert len(promised) > 50
    assert promised == taken
