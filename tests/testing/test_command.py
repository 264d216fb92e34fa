"""``python -m beamish check``: a pipeline of a file or module by the laws, on the command line."""

from __future__ import annotations

import sys

import pytest

from beamish.__main__ import main

JOB = """
import beamish as bm
from beamish.accumulations import Count

source = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness("1 minute")).key_by("user")
visits = source.window(bm.FixedWindows("1 hour")).accumulate(n=Count())
both = bm.merge(a=source, b=source).window(bm.FixedWindows("1 hour")).accumulate(n=Count())


def per_user(rows):
    return [{"user": row["user"], "n": 1} for row in rows]
"""
ROWS = ["--rows", "user string, ts timestamp"]
QUERY = "SELECT user, time_bucket(INTERVAL '1 hour', ts, TIMESTAMPTZ '1970-01-01 00:00:00Z') AS start, count(*) AS n FROM rows GROUP BY ALL"


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    path = tmp_path / "jobs" / f"visits_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(JOB)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return f"jobs/{path.name}"


def check(pipeline, *arguments):
    return main(["check", pipeline, "--examples", "5", "--seed", "7", *arguments])


def test_a_pipeline_of_a_file_is_checked(job, capsys):
    assert check(f"{job}:visits", *ROWS, "--expected", QUERY) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("5 examples: ")
    assert "held: live_panes_equal_expected (" in printed.out
    assert not printed.err  # the bar is for a terminal


@pytest.mark.dear
def test_a_broken_law_fails(job, capsys, tmp_path):
    picture = tmp_path / "broken.html"
    assert check(f"{job}:visits", *ROWS, "--expected", f"{job}:per_user", "--picture", str(picture)) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("beamish: live_panes_equal_expected\n")
    assert "def test_live_panes_equal_expected():" in printed
    assert picture.exists()


def test_inputs_have_rows_by_name(job, capsys):
    assert check(f"{job}:both", "--rows", "a=user string, ts timestamp", "--rows", "b=user string, ts timestamp") == 0
    assert check(f"{job}:both", *ROWS, *ROWS) == 1
    assert "of several inputs name each" in capsys.readouterr().err


def test_progress_is_shown_on_a_terminal(job, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert check(f"{job}:visits", *ROWS) == 0
    assert f"\r[{'#' * 40}] 5/5\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere:visits", *ROWS], "the module 'nowhere' cannot be imported"),
        (["visits", *ROWS], "must be MODULE:NAME"),
        (["beamish:Count", *ROWS], "'beamish' has no 'Count'"),
        (["beamish:Pipeline", *ROWS], "must be a pipeline"),
    ],
)
def test_bad_names_are_refused(arguments, words, capsys):
    assert check(*arguments) == 1
    assert words in capsys.readouterr().err
