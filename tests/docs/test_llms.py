"""Files of the site for coding assistants: a list of its pages, and their text with the reference in it."""

import re

import pytest

from tests.pages import kind_of
from tools import llms

LISTED, FULL = llms.listed(), llms.full()
LINKS = re.findall(r"(?m)^- \[[^\]]+\]\(([^)]+)\.html\)", LISTED)


def test_the_list_has_the_form_of_llms_txt():
    head, summary, *_ = (line for line in LISTED.splitlines() if line)
    assert head == "# beamish"
    assert summary.startswith("> beamish brings")
    assert re.findall(r"(?m)^## (.*)$", LISTED)[-1] == "Optional"


def test_the_list_has_every_page_of_the_site_once(root):
    nav = (root / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    assert [page.removesuffix(".md") for page in re.findall(r"[\w/-]+\.md", nav)] == LINKS


def test_nearly_every_page_has_a_sentence():
    alone = re.findall(r"(?m)^- \[([^\]]+)\]\([^)]+\)$", LISTED)
    assert set(alone) <= {"Gallery", "Examples", "Contributing", "Security"}
    assert max(map(len, LISTED.splitlines())) < 600
    assert ":::" not in LISTED


def test_the_text_begins_with_the_skill_and_has_the_pages(root):
    assert FULL.startswith("# beamish\n\nA pipeline turns rows into *panes*")
    text = FULL.replace("\n", " ")
    for name in ("questions", "triggers", "sinks", "reference/windows", "deployment"):
        page = (root / "docs" / f"{name}.md").read_text("utf-8")
        assert page.partition("\n")[0] in FULL
        assert all(
            line.strip() in text
            for line in page.splitlines()
            if not line.startswith((":::", "<!--", "<a id", "    options", "      members"))
        )


def test_the_text_has_the_docstring_of_each_name_of_the_reference():
    assert not re.search(r"(?m)^::: ", FULL)
    named = {one["name"] for page in llms.pages() for one in llms.NAMED.finditer(page.text)} - {"beamish.errors"}
    assert len(named) > 100
    assert [one for one in named if f"### `{one.rpartition('.')[2]}" not in FULL] == []


@pytest.mark.parametrize(
    "call",
    [
        "Pipeline.window(option)",
        "StateError`",
        "Sessions(gap",
        "PaneTiming: EARLY, ON_TIME",
        "check(pipeline, *, rows",
        "timeline(what, script",
    ],
)
def test_signatures_are_short(call):
    assert f"### `{call}" in FULL


def test_the_text_fits_in_the_context_of_a_model():
    assert len(FULL) < 650_000


@pytest.mark.parametrize("path", [page.path for page in llms.pages() if kind_of(page.text) != "none"][:3])
def test_code_is_in_the_text_as_it_is(path):
    page = next(one for one in llms.pages() if one.path == path)
    assert all(body in FULL for body in re.findall(r"(?ms)^```python\n.*?^```$", page.text))
