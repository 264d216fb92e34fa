"""Write the two generated pages of the rules: ``python tools/laws.py``. tests/test_semantics.py fails while one is out of date.

- docs/rules/laws.md: tests/laws/statements.md with the tests of each law, those that are marked ``of_law`` with its anchor;
- docs/semantics.md: below its last heading each page of rules, with the anchors that lead to it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
RULES = ROOT / "docs" / "rules"
PAGES = [
    "time",
    "key-watermarks",
    "windows",
    "rolling",
    "triggers",
    "panes",
    "output",
    "key-sets",
    "stages",
    "joins",
    "stage-rows",
    "suppress",
    "gaps",
    "upserts",
    "tables",
    "over",
    "changelogs",
    "running",
    "laws",
    "corner-cases",
]
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
LIST = "<!-- tools/laws.py writes what follows -->\n"


@cache
def tests_of_laws() -> dict[str, list[str]]:
    """The tests of each law, as ``path::name``, by path and line."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                for law in _marks(node):
                    found[law].append(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def _marks(function: ast.FunctionDef) -> Iterator[str]:
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.of_law":
            yield from (ast.literal_eval(one) for one in mark.args)


def laws_page() -> str:
    """docs/rules/laws.md."""
    tests = tests_of_laws()
    paragraphs = (ROOT / "tests" / "laws" / "statements.md").read_text("utf-8").split("\n\n")
    return "\n\n".join(one for paragraph in paragraphs for one in _with_tests(paragraph, tests))


def _with_tests(paragraph: str, tests: dict[str, list[str]]) -> Iterator[str]:
    yield paragraph
    for law in ANCHOR.findall(paragraph):
        if law in tests:
            files = dict.fromkeys(test.partition("::")[0] for test in tests[law])
            yield f"Tests: {', '.join(f'`{file}`' for file in files)}."


def index_page() -> str:
    """docs/semantics.md."""
    text = (ROOT / "docs" / "semantics.md").read_text("utf-8")
    return text.partition(LIST)[0] + LIST + "".join(map(_places, PAGES))


def _places(page: str) -> str:
    """A link to a page, behind the anchors that the page has."""
    text = laws_page() if page == "laws" else (RULES / f"{page}.md").read_text("utf-8")
    title = text.partition("\n")[0].removeprefix("# ")
    anchors = "".join(f'<a id="{one}"></a>' for one in ANCHOR.findall(text))
    return f"\n{anchors}[{title}](rules/{page}.md)\n"


def main() -> int:
    """Write both pages."""
    (RULES / "laws.md").write_text(laws_page(), "utf-8")
    (ROOT / "docs" / "semantics.md").write_text(index_page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
