"""The lessons: each prints the output in docs/lessons.md, and it contradicts the misconception.

A lesson keeps two values for this: ``came``, its answer, and ``believed``, the answer of those whom it quotes.
"""

import re
import runpy
import sys
from datetime import UTC, datetime, timedelta

import pytest

IN_PROCESS = [
    "01_event_time",
    "02_watermark",
    "03_late",
    "04_early",
    "05_modes",
    "06_retractions",
    "07_sessions",
    "08_two_streams",
]
ON_SPARK = ["09_on_spark", "10_restart"]
OF_LAWS = "11_laws"
DRAWN = pytest.param(OF_LAWS, marks=pytest.mark.dear)
BEGINS = datetime(2024, 5, 1, 12, tzinfo=UTC)
"""The game does; so before the first play the watermark is the delay before it."""


def run(path, *arguments):
    """``python path arguments`` in this process: what the program holds in the end."""
    argv, sys.argv = sys.argv, [str(path), *arguments]
    try:
        return runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = argv


@pytest.fixture
def lesson(root):
    return lambda name: root / "examples" / "lessons" / f"{name}.py"


@pytest.fixture
def page(root):
    """The output of each lesson after its question, and the change that the page proposes."""
    section = r"`python examples/lessons/(\w+)\.py`.*?```text\n(.*?)```.*?Then change `(.+?)` to `(.+?)`\."
    text = (root / "docs" / "lessons.md").read_text()
    return {name: (said, old, new) for name, said, old, new in re.findall(section, text, re.DOTALL)}


def check(lesson, page, capsys, name):
    """Check the rules of every lesson; returns the final variables of the program."""
    held = run(lesson(name))
    printed, question, said = capsys.readouterr().out, held["__doc__"], page[name][0]
    assert printed == f"{question}\n{said}"
    assert max(map(len, printed.splitlines())) <= 104, "too wide for a screen in class"
    assert re.match(rf"Lesson {int(name[:2])}: .*\?\n", question)
    assert '\nSome say: "' in question
    assert "rite down, before you run it" in question
    assert held["came"] != held["believed"]
    return held


@pytest.mark.parametrize("name", [*IN_PROCESS, DRAWN])
def test_lesson_prints_the_page_and_refutes_the_misconception(lesson, page, capsys, monkeypatch, name):
    for package in ("pyspark", "matplotlib"):  # it needs neither
        monkeypatch.setitem(sys.modules, package, None)
    check(lesson, page, capsys, name)


@pytest.mark.spark
def test_lesson_of_streams_and_batches_prints_the_page(lesson, page, capsys, tmp_path, spark):
    spark.sql("drop view if exists lesson")
    held = check(lesson, page, capsys, "09_on_spark")
    assert held["came"] == held["by_script"]
    held["picture"].save(tmp_path / "lesson.svg")
    assert "</svg>" in (tmp_path / "lesson.svg").read_text()


@pytest.mark.spark
def test_lesson_of_restarts_prints_the_page(lesson, page, capsys, spark):
    check(lesson, page, capsys, "10_restart")


@pytest.mark.dear
@pytest.mark.parametrize("name", [*IN_PROCESS, DRAWN])
def test_the_change_that_the_page_proposes_changes_the_answer(lesson, page, capsys, tmp_path, name):
    _, old, new = page[name]
    program = lesson(name).read_text()
    assert program.count(old) == 1
    changed = tmp_path / f"{name}.py"
    changed.write_text(program.replace(old, new))
    assert run(changed)["came"] != run(lesson(name))["came"]
    assert capsys.readouterr().out.count("\nYou changed the program, so this answer may not fit: ") == 1


@pytest.mark.dear
@pytest.mark.parametrize("name", IN_PROCESS)
def test_lesson_draws_its_picture(lesson, capsys, tmp_path, name):
    held = run(lesson(name), str(tmp_path / "lesson.svg"))
    assert f"\nThe picture: {tmp_path / 'lesson.svg'}\n" in capsys.readouterr().out
    assert "</svg>" in (tmp_path / "lesson.svg").read_text()
    assert held["picture"].picture.title == held["__doc__"].partition("\n")[0]


def test_every_lesson_is_run_and_listed(root, page):
    names = [path.stem for path in sorted((root / "examples" / "lessons").glob("*.py"))]
    assert names == [*IN_PROCESS, *ON_SPARK, OF_LAWS] == list(page)
    text = (root / "docs" / "lessons.md").read_text()
    for number, name in enumerate(names, 1):
        assert f"| [{number}](#{name.replace('_', '-')}) |" in text
        question = question_of(root / "examples" / "lessons" / f"{name}.py")
        assert f"\n## {number}. {question[0].upper()}{question[1:]}\n" in text


@pytest.mark.parametrize("name", ["lessons.md", "exercises.md"])
def test_links_of_the_pages_exist(root, name):
    text = (root / "docs" / name).read_text()
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([\w-]+))?\)", text):
        linked = text if not target else (root / "docs" / target).read_text()
        assert (
            not anchor or f'id="{anchor}"' in linked or f"\n## {anchor.capitalize().replace('-', ' ')}\n" in linked
        ), anchor


def question_of(path):
    """The question in the first line of a lesson, without running it."""
    return re.match(r'"""Lesson \d+: (.*)\n', path.read_text()).group(1)


@pytest.mark.parametrize(("name", "minutes"), [("03_late", 1), ("04_early", 2), ("05_modes", 2), ("07_sessions", 30)])
def test_the_watermark_of_a_story_is_its_pipelines(lesson, capsys, name, minutes):
    held = run(lesson(name))
    assert f'bm.BoundedOutOfOrderness("{minutes} minute' in lesson(name).read_text()
    latest = BEGINS
    for clock, watermark, plays in held["STORY"]:
        assert held["at"](watermark) == latest - timedelta(minutes=minutes), clock
        times = re.findall(r"\d\d:\d\d", str(plays))
        latest = max([latest, *map(held["at"], times)])


def test_each_of_two_streams_has_the_watermark_of_its_rows(lesson, capsys):
    held = run(lesson("08_two_streams"))
    latest = {"plays": BEGINS, "payments": BEGINS}
    for clock, stream, watermark, (time, _) in held["STORY"]:
        assert held["at"](watermark) == latest[stream] - timedelta(minutes=1), clock
        latest[stream] = max(latest[stream], held["at"](time))
