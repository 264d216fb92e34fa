"""How laws are searched for counterexamples.

Every property test in this folder is a law, and is marked ``law``. It runs a fixed sample, the same at every run; with
BEAMISH_DEEP_SECONDS it goes on with other samples for its share of that time (``make test-deep``).
"""

import os

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.budget import LAW_SECONDS, search

settings.register_profile(
    "default",
    max_examples=45,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.register_profile("deep", settings.get_profile("default"), max_examples=500)
settings.register_profile("few", settings.get_profile("default"), max_examples=3)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


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
