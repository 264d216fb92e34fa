"""The pages are correct: their Python runs, block after block, and prints the output below it; and the site has all pages."""

import ast
import doctest
import re
from pathlib import Path

import pytest

import beamish as bm
from beamish import accumulations, triggers
from tests.pages import blocks, kind_of, run_page
from tests.servers import lake

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {str(path.relative_to(DOCS)): path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))}
EXCERPTS = {"kafka-to-table.md": "kafka_to_postgres/query.py"}
"""Their Python is from an example that needs servers."""

FRAGMENTS = {"rules/stages.md", "sinks.md"}
"""Their Python is parts of programs, which need servers or names from elsewhere: it is read, not run."""

EXERCISES = {"exercises.md"}
"""Their Python lacks what readers write: tests/docs/test_exercises.py runs it with solutions."""


def of_kind(kind):
    return [
        name
        for name, text in PAGES.items()
        if kind_of(text) == kind and name not in FRAGMENTS | EXERCISES | EXCERPTS.keys()
    ]


@pytest.mark.dear
@pytest.mark.parametrize("name", of_kind("doctest"))
def test_examples_in_docs_run(root, name):
    result = doctest.testfile(
        str(root / "docs" / name), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE, encoding="utf-8"
    )
    assert result.attempted
    assert result.failed == 0


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.dear] * (name == "testing.md")) for name in of_kind("plain")]
)
def test_python_in_a_page_prints_the_block_below(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    assert run_page(name, PAGES[name])


@pytest.mark.spark
@pytest.mark.parametrize("name", of_kind("spark"))
def test_python_in_a_page_prints_the_block_below_on_spark(spark, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spark.sql("drop view if exists panes")
    assert run_page(name, PAGES[name], without=".remote(")


@pytest.mark.parametrize("name", sorted(FRAGMENTS))
def test_program_fragments_use_existing_names(name):
    imported: set[str] = set()
    for code, _ in blocks(PAGES[name]):
        tree = ast.parse(code)
        imported |= {one.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "bm":
                assert hasattr(bm, node.attr), node.attr
            if (
                isinstance(node, ast.Name)
                and node.id[0].isupper()
                and not node.id.isupper()
                and node.id not in imported
            ):
                assert hasattr(accumulations, node.id) or hasattr(triggers, node.id), node.id


def test_the_page_of_sinks_names_the_tested_package():
    assert f"| {'.'.join(lake.PYSPARK.split('.')[:2])} | `{lake.PACKAGES['delta']}` |" in PAGES["sinks.md"]


@pytest.mark.parametrize("name", EXCERPTS)
def test_a_page_shows_its_example(root, name):
    example = _without_indents((root / "examples" / EXCERPTS[name]).read_text("utf-8"))
    parts = [part.strip() for code, _ in blocks(PAGES[name]) for part in _without_indents(code).split("\n\n")]
    assert len(parts) > 3
    assert [part for part in parts if part not in example] == []


def _without_indents(code):
    return "\n".join(map(str.strip, code.splitlines()))


def test_every_page_with_python_is_run_or_read():
    with_python = {name for name, text in PAGES.items() if "```python\n" in text}
    assert with_python == FRAGMENTS.union(EXERCISES, EXCERPTS, *map(of_kind, ("doctest", "plain", "spark")))
    assert len(of_kind("plain")) > 10


def test_the_site_lists_every_page(root):
    nav = (root / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    found = re.findall(r"^ +- (?:[\w ]+: )?([\w/-]+\.md)$", nav, re.MULTILINE)
    made = {"index.md", "contributing.md", "changelog.md", "security.md", "examples/index.md", "gallery.md"}
    assert len(set(found)) == len(found)
    assert set(found) - made == set(PAGES), set(found) ^ set(PAGES) ^ made
