"""The soak searches the laws that are there, and says what it finds."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.written import written
from tools import soak

pytestmark = pytest.mark.dear


def test_every_law_is_searched():
    assert {law.partition("[")[0].replace(".", "/").replace("::", ".py::") for law in soak.laws()} == written() - {
        "tests/laws/test_search.py::law"
    }


def test_no_law_fails_for_being_slow(root):
    """Also where pytest has not set it, in a process of its own."""
    code = "from tools import soak; soak.laws(); from hypothesis import settings; print(settings().deadline)"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


def test_a_turn_counts_the_scripts_of_a_law():
    turn = soak.take(
        "tests.laws.test_steps::test_a_step_equals_its_watermark_clock_and_rows_one_after_another",
        1,
    )
    assert not turn.found
    assert turn.examples >= turn.scripts > 1  # as many as the tier draws


@settings(max_examples=50, derandomize=True, database=None)
@given(st.integers(0, 1000))
def wrong(number):
    assert number < 100


def test_findings_are_reported_once_with_seed(monkeypatch, capsys):
    monkeypatch.setattr(soak, "laws", list)
    turn = soak.take(f"{__name__}::wrong", 3)
    assert "Failing test case: wrong(\n    number=100," in turn.found
    done = soak.Soak(1)
    for _ in range(2):
        done._take_up(turn)
    said = capsys.readouterr().out
    assert said.count("FOUND: AssertionError in ") == 1
    assert f'python -m tools.soak --law "{__name__}::wrong" --seed 3' in said
