"""The file for coding assistants is true: its code runs, its calls exist, and its mistakes raise the messages that it quotes."""

import re
from pathlib import Path

import pyarrow.compute as pc
import pytest

import beamish as bm
from beamish import accumulations, triggers
from beamish.accumulations import Count
from beamish.testing import TestStream
from tests.pages import run_page
from tools import docs_counts

SKILL = Path(__file__).parents[2] / "skills" / "beamish" / "SKILL.md"
TEXT = SKILL.read_text("utf-8")
KEYED = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0)).key_by("user")
NAMES = {
    **{name: getattr(one, name) for one in (accumulations, triggers) for name in one.__all__},
    "bm": bm,
    "pc": pc,
    "keyed": KEYED,
    "minutes": KEYED.window(bm.FixedWindows("1 minute")).accumulate(n=Count()),
}
MISTAKES = re.findall(
    r"(?m)^\| `(.*)` \| (.*) \| `(.*)` \|$", TEXT.partition("## Ten mistakes")[2].partition("\n## ")[0]
)
CALLS = re.findall(r"`([^`]+)`", TEXT.partition("| wanted | call |")[2].partition("\n\n")[0])
ROWS = [{"ts": 1, "user": "ann", "x": 2}]


def declared(code):
    """A line as a pipeline that has run on a script, if it is complete."""
    pipeline = eval(code, dict(NAMES))
    first = re.search(r"(?:merge|as_of_join)\((\w+)=", code)
    if ".accumulate" in code or code.startswith("minutes") or first:
        pipeline.run(TestStream().add(ROWS, input=first[1] if first else None))


def test_the_head_names_the_folder_and_says_when_to_use_it():
    head = re.match(r"---\nname: (.*)\ndescription: (.*)\nlicense: (.*)\ncompatibility: (.*)\n---\n\n# ", TEXT)
    assert head[1] == SKILL.parent.name
    assert "Use when" in head[2]
    assert len(head[2]) <= 1024
    assert len(head[4]) <= 500


def test_it_is_short():
    assert docs_counts.words(docs_counts.prose(TEXT)) < 1200
    assert len(re.search(r"(?s)```python\n(.*?)```", TEXT)[1].splitlines()) <= 30


@pytest.mark.spark
def test_its_code_prints_what_stands_below(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page("SKILL.md", TEXT) == 3


def test_there_are_ten_mistakes():
    assert len(MISTAKES) == 10


@pytest.mark.parametrize(("wrong", "message", "right"), MISTAKES)
def test_a_mistake_raises_its_message_and_the_fix_is_accepted(wrong, message, right):
    with pytest.raises(bm.BeamishError, match=re.escape(message)):
        declared(wrong)
    declared(right)


@pytest.mark.parametrize("code", CALLS)
def test_a_call_is_accepted(code):
    refusals = []
    for base in ("minutes", "keyed") if code.startswith(".") else ("",):
        try:
            assert eval(base + code, dict(NAMES)) is not None
        except bm.BeamishError as error:
            refusals.append(error)
        else:
            return
    raise AssertionError(refusals)


def test_names_of_the_library_exist():
    for name in re.findall(r"\bbm\.(\w+)", TEXT):
        assert hasattr(bm, name), name


def test_the_pages_that_it_names_exist():
    pages = re.findall(r"`(docs/[\w/.-]+)`", TEXT)
    assert len(pages) >= 5
    assert [one for one in pages if not (SKILL.parents[2] / one).exists()] == []
