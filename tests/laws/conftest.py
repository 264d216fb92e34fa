"""How laws are searched for counterexamples.

Every property test in this folder is a law, and is marked ``law``. It runs a fixed sample, the same at every run; with
BEAMISH_DEEP_SECONDS it goes on with other samples for its share of that time (``make test-deep``).
"""

import pytest
from hypothesis import is_hypothesis_test

from tests.budget import LAW_SECONDS, search


def pytest_itemcollected(item):
    """Mark the laws: pytest asks this only for what is in this folder."""
    if is_hypothesis_test(getattr(item, "obj", None)):
        item.add_marker(pytest.mark.law)


def pytest_collection_finish(session):
    """Have the laws that were selected searched, each for the same time."""
    laws = [item for item in session.items if item.get_closest_marker("law")]
    if LAW_SECONDS:
        for law in laws:
            law.obj = searched(law.obj, LAW_SECONDS / len(laws))


def searched(law, seconds):
    """The law, run seed after seed."""

    def run(**arguments):
        search(law, seconds, **arguments)

    return run
