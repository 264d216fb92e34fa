"""The rules (docs/rules): each reference finds its anchor, each law has its tests, each rule a transcript or a test."""

import ast
import re
from pathlib import Path

import pytest

from tools import laws

ROOT = Path(__file__).parent.parent
FOLDERS = ("accumulations", "beamish", "benchmarks", "docs", "examples", "tests", "tools", "triggers")
SUFFIXES = {".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
# Several anchors in a row, the file named once; in a comment they may go on in the next line.
REFERENCE = re.compile(r"\b(rules/[\w-]+|semantics|spark-notes)\.md(#[\w-]+(?:,\s+(?:# )?#[\w-]+)*)")
PAPERS = re.compile(r"\b(?:RULES|DESIGN|BEAM|SPARK)\.md|\bRULES\s+\d|\bDESIGN\s+section|\bSPARK\s+S\d|\bBEAM\s+\d")
RULES = {f"rules/{path.stem}": path.read_text("utf-8") for path in sorted((ROOT / "docs" / "rules").glob("*.md"))}
PAGES = RULES | {name: (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("semantics", "spark-notes")}


def texts():
    """All files with words in them, but this one, by their path from the root."""
    found = [*ROOT.iterdir(), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    files = [path for path in found if path.suffix in SUFFIXES and path.is_file() and path != Path(__file__)]
    assert len(files) > 200
    return {str(path.relative_to(ROOT)): path.read_text() for path in files}


def anchors(name):
    return ANCHOR.findall(PAGES[name])


def law_anchors():
    return [anchor for anchor in anchors("rules/laws") if anchor.startswith("law-")]


def test_an_anchor_stands_for_one_thing():
    for names in (RULES, ["spark-notes"]):
        found = [anchor for name in names for anchor in anchors(name)]
        assert found
        assert len(set(found)) == len(found), sorted(anchor for anchor in set(found) if found.count(anchor) > 1)


def test_every_reference_to_a_rule_has_its_anchor():
    missing = [
        f"{path}: {name}.md#{anchor}"
        for path, text in texts().items()
        for name, several in REFERENCE.findall(text)
        for anchor in re.findall(r"#([\w-]+)", several)
        if anchor not in anchors(name)
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("name", PAGES)
def test_every_link_within_a_page_and_between_rules_has_its_anchor(name):
    links = re.findall(r"\]\(([\w-]*)(?:\.md)?#([\w-]+)\)", PAGES[name])
    pages = [(f"rules/{page}" if page else name, anchor) for page, anchor in links]
    missing = [(page, anchor) for page, anchor in pages if page in PAGES and anchor not in anchors(page)]
    assert not missing


@pytest.mark.dear  # reads all files
def test_every_section_that_a_message_names_exists():
    calls = [
        [argument.value for argument in node.args]
        for path in (ROOT / "beamish").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "in_docs"
    ]
    assert len(calls) >= 4
    pages = [re.findall(r"(?m)^#+ (.*)$", path.read_text()) for path in (ROOT / "docs").rglob("*.md")]
    missing = [call for call in calls if not any(page[0] == call[0] and call[1] in page[1:] for page in pages if page)]
    assert not missing


@pytest.mark.dear
def test_the_index_has_every_anchor_and_its_place():
    assert PAGES["semantics"] == laws.index_page(), "python tools/laws.py"
    assert set(anchors("semantics")) == {anchor for name in RULES for anchor in anchors(name)}


def test_no_file_refers_to_papers_outside_the_repository():
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if PAPERS.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_page_of_laws_is_written_from_the_tests():
    assert RULES["rules/laws"] == laws.laws_page(), "python tools/laws.py"


def test_every_law_has_tests_and_every_mark_names_a_law():
    # Two anchors of one law stand side by side; the second has its tests.
    assert set(law_anchors()) - set(laws.tests_of_laws()) == {"law-restart"}
    assert set(laws.tests_of_laws()) <= set(law_anchors())


ELSEWHERE = {
    "as-of-joins-batch": "tests/kinds/as_of/test_on_spark.py",
    "as-of-joins-restart": "tests/kinds/versions/test_on_spark.py",
    "changing-tables-restart": "tests/kinds/table_join/test_on_spark.py",
    "batch-plan": "tests/spark/test_native.py",
    "changelogs": "tests/spark/test_changelog.py",
    "conditions": "tests/kinds/refine/test_laws.py",
    "fused-stages": "tests/laws/test_fused.py",
    "endless-windows": "tests/kinds/window/test_on_spark_endless.py",
    "from-panes": "tests/spark/test_from_changelog.py",
    "input-forms": "tests/spark/test_from_changelog.py",
    "inspect": "tests/at_rest/test_inspect.py",
    "kept-windows": "tests/kinds/window/test_laws_kept_windows.py",
    "live-panes": "tests/forms/test_changelogs.py",
    "over-batch": "tests/kinds/over/test_on_spark.py",
    "over-restart": "tests/kinds/over/test_over.py",
    "over-state": "tests/kinds/over/test_over.py",
    "own-windows": "tests/laws/test_twin.py",
    "pane-change": "tests/laws/test_change_and_sequence.py",
    "pane-sequence": "tests/laws/test_change_and_sequence.py",
    "pane-watermark": "tests/forms/test_changelogs.py",
    "pre-aggregation": "tests/laws/test_engine_and_twin.py",
    "restart": "tests/spark/test_checkpoint.py",
    "rolling-batch": "tests/kinds/rolling/test_laws.py",
    "several-windowings": "tests/kinds/window/test_laws_windowings.py",
    "spark-watermark": "tests/spark/test_stream.py",
    "state-format": "tests/at_rest/test_kept_checkpoints.py",
    "suppress-restart": "tests/kinds/suppress/test_laws_changed_between_runs.py",
    "versions-initial": "tests/kinds/versions/test_on_spark.py",
    "versions-state": "tests/kinds/versions/test_on_spark.py",
    "versions-table": "tests/versioned_table/test_versioned_table.py",
}
"""Rules of what a transcript cannot show, such as Spark, restarts and DataFrames: each with a file that tests it."""
NO_RULES = {
    "as-of-joins-when",
    "as-of-joins-sources",
    "over-differences",
    "laws",
    "corner-cases",
    "differences-from-beam",
}


def test_every_rule_stands_beside_a_transcript_or_has_tests_elsewhere():
    """The site shows the transcripts of a rule below it (tools/site.py): those whose title or comments name it."""
    named = {
        anchor
        for path in (ROOT / "tests" / "transcripts").glob("*.txt")
        for case in re.split(r"^## ", path.read_text(), flags=re.MULTILINE)[1:]
        for several in REFERENCE.findall(case)
        for anchor in re.findall(r"#([\w-]+)", several[1])
    }
    sections = [one for page in RULES.values() for one in re.split(r'(?m)^(?=<a id="[\w-]+"></a>\n#{2,3} )', page)[1:]]
    rules = [ANCHOR.findall(section) for section in sections if len(section.splitlines()) > 3]
    bare = {anchors[0] for anchors in rules if not named & set(anchors)} - NO_RULES
    assert bare == set(ELSEWHERE), bare ^ set(ELSEWHERE)
    assert all((ROOT / path).exists() for path in ELSEWHERE.values())
