"""The examples in docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import beamish

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
