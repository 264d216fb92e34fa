"""``python -m beamish``: what it prints, and what it says of what cannot be done."""

import pytest

from beamish.__main__ import main

MODULE = """
import beamish as bm
from beamish.accumulations import Count

plays = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).window(bm.FixedWindows(60)).accumulate(n=Count())
other = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "jobs_of_test_main.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "jobs_of_test_main"


def test_explain_describes_a_pipeline(module, capsys):
    assert main(["explain", f"{module}:plays"]) == 0
    assert "fixed, 1 minute long" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("plays", "must be MODULE:NAME"),
        ("no_such_module_here:plays", "the module 'no_such_module_here' cannot be imported from here"),
        ("jobs_of_test_main:nothing", "'jobs_of_test_main' has no 'nothing'"),
        ("jobs_of_test_main:other", "3 must be a pipeline"),
    ],
)
def test_a_missing_pipeline_is_reported(module, capsys, where, words):
    assert main(["explain", where]) == 1
    assert words in capsys.readouterr().err


def test_an_unknown_command_is_reported(capsys):
    with pytest.raises(SystemExit):
        main(["look"])
    assert "invalid choice: 'look'" in capsys.readouterr().err
