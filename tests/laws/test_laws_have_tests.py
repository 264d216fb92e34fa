"""Every law in the head of a contract file has a test of its name.

The name is the law's first words, up to a comma, a colon, a dash or its full stop, formulas included:
"``add(a, v)`` equals ``merge(a, add(create(), v))``, but for Fold." is ``test_add_a_v_equals_merge_a_add_create_v``.
A test's name may continue after that.
"""

from __future__ import annotations

import ast
import re

import pytest


def laws_of(text):
    """The names of the laws in the docstring of a file: numbered items after a line that begins with ``Laws``."""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    head = re.search(r"^Laws\b", docstring, re.MULTILINE)
    if head is None:
        return None
    return [name_of(law) for law in re.findall(r"^\d+\. (.*(?:\n   .*)*)", docstring[head.start() :], re.MULTILINE)]


def name_of(law):
    law = " ".join(law.split())
    shielded = re.sub(r"``.*?``", lambda code: code[0].translate(str.maketrans(",.:", "   ")), law)
    return "test_" + "_".join(re.findall(r"\w+", re.split(r"[,.:]| - ", shielded)[0].lower()))


def contracts(root):
    for folder in ("beamish", "triggers", "accumulations"):
        for path in sorted((root / folder).rglob("*.py")):
            laws = laws_of(path.read_text())
            if laws is not None:
                yield path.relative_to(root).as_posix(), laws


@pytest.mark.dear  # reads all files
def test_every_law_of_a_contract_has_a_test_of_its_name(root):
    tests = "\n".join(path.read_text() for path in (root / "tests").rglob("test_*.py"))
    missing = [
        f"{path}: a law has no test; write {law} in tests/laws, or among the laws of its kind"
        for path, laws in contracts(root)
        for law in laws
        if f"def {law}" not in tests
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.dear  # reads all files
def test_the_laws_of_a_contract_are_numbered(root):
    stated = dict(contracts(root))
    assert len(stated["triggers/trigger.py"]) == 3
    assert len(stated["accumulations/base/accumulation.py"]) == 3
    assert all(stated.values()), [path for path, laws in stated.items() if not laws]


@pytest.mark.parametrize(
    ("law", "name"),
    [
        ("``should_fire`` changes nothing, and depends on the state.", "test_should_fire_changes_nothing"),
        (
            "``add(a, v)`` equals ``merge(a, add(create(), v))``, but for Fold.",
            "test_add_a_v_equals_merge_a_add_create_v",
        ),
        ("What goes in\n   comes out - but for nulls, as always.", "test_what_goes_in_comes_out"),
    ],
)
def test_a_law_is_named_by_its_first_words(law, name):
    assert name_of(law) == name
