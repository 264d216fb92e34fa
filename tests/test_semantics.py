"""docs/semantics.md: who refers to a rule finds it, and each law has its tests."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("accumulations", "beamish", "benchmarks", "docs", "examples", "tests", "tools", "triggers")
SUFFIXES = {".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
# Several anchors in a row, the file named once; in a comment they may go on in the next line.
REFERENCE = re.compile(r"\b(semantics|spark-notes)\.md(#[\w-]+(?:,\s+(?:# )?#[\w-]+)*)")
PAPERS = re.compile(r"\b(?:RULES|DESIGN|BEAM|SPARK)\.md|\bRULES\s+\d|\bDESIGN\s+section|\bSPARK\s+S\d|\bBEAM\s+\d")


def texts():
    """All files with words in them, but this one, by their path from the root."""
    found = [*ROOT.iterdir(), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    files = [path for path in found if path.suffix in SUFFIXES and path.is_file() and path != Path(__file__)]
    assert len(files) > 200
    return {str(path.relative_to(ROOT)): path.read_text() for path in files}


def anchors(name):
    return ANCHOR.findall((ROOT / "docs" / f"{name}.md").read_text())


def laws():
    """The laws by their anchors, each with the tests it names."""
    text = (ROOT / "docs" / "semantics.md").read_text()
    ids = list(re.finditer(r'<a id="(law-[\w-]+)"></a>', text))
    ends = [*(law.start() for law in ids[1:]), text.index('<a id="corner-cases">')]
    found = {
        law[1]: re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text[law.end() : end])
        for law, end in zip(ids, ends, strict=True)
    }
    return {law: tests for law, tests in found.items() if tests}


@cache
def functions(name):
    """The functions that a file defines."""
    tree = ast.parse((ROOT / name).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", ["semantics", "spark-notes"])
def test_an_anchor_stands_for_one_thing(name):
    found = anchors(name)
    assert found
    assert len(set(found)) == len(found), sorted(anchor for anchor in set(found) if found.count(anchor) > 1)


def test_every_reference_to_a_rule_has_its_anchor():
    known = {name: set(anchors(name)) for name in ("semantics", "spark-notes")}
    missing = [
        f"{path}: {name}.md#{anchor}"
        for path, text in texts().items()
        for name, several in REFERENCE.findall(text)
        for anchor in re.findall(r"#([\w-]+)", several)
        if anchor not in known[name]
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("name", ["semantics", "spark-notes"])
def test_every_link_within_the_page_has_its_anchor(name):
    links = re.findall(r"\]\(#([\w-]+)\)", (ROOT / "docs" / f"{name}.md").read_text())
    assert links
    assert set(links) <= set(anchors(name)), sorted(set(links) - set(anchors(name)))


def test_nobody_refers_to_papers_that_are_not_in_the_repository():
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if PAPERS.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("law", laws())
def test_every_law_names_tests_that_exist(law):
    missing = [f"{path}::{test}" for path, test in laws()[law] if test not in functions(path)]
    assert not missing, "\n".join(missing)


def test_every_law_names_a_test():
    named = {anchor for anchor in anchors("semantics") if anchor.startswith("law-")}
    # Two anchors of one law stand side by side; the second has its tests.
    assert named - laws().keys() == {"law-restart"}
