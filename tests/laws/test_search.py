"""Every law is searched for counterexamples by ``make test-deep``.

The searches on Spark are in tests/spark/test_laws_on_spark.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import search
from tests.laws.written import written

pytestmark = pytest.mark.dear


def collected(root, *arguments, seconds=0):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments],
        cwd=root,
        env={**os.environ, "HYPOTHESIS_PROFILE": "few", "BEAMISH_DEEP_SECONDS": str(seconds), "BEAMISH_DEEP_SEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def command(root):
    """The tests that ``make test-deep`` runs."""
    return re.search(r'-m "(deep.*)"', (root / "Makefile").read_text())[1]


def test_every_law_is_searched(root, command):
    listed = collected(root, "--collect-only", "-m", f"({command}) and not spark", "tests/laws", "tests/kinds")
    searched = {re.sub(r"\[.*\]$", "", line) for line in listed.splitlines() if "::" in line}
    assert searched == written()


def test_a_law_is_searched_for_its_share_of_the_time_as_often_as_it_is_parametrized(root):
    law = "tests/kinds/suppress/test_laws.py::test_shut_down_gives_the_output_of_spill_or_an_error"
    said = collected(root, "-rP", "-s", law, seconds=2)
    assert "3 passed" in said
    assert said.count("BEAMISH_DEEP_SEED=1\n") == 3
    (took,) = re.findall(r"3 passed in ([\d.]+)s", said)
    assert float(took) >= 1.5  # a quarter of the two seconds is for Spark


def test_a_search_finds_counterexamples_that_the_fixed_sample_misses():
    seen = set()

    @settings(max_examples=5, derandomize=True, database=None)
    @given(st.integers(0, 10**9))
    def law(number):
        seen.add(number)

    law()
    sample = len(seen)
    law()
    assert len(seen) == sample
    search(law, 0.2)
    assert len(seen) > 2 * sample
