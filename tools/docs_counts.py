"""Count words of each page, long sentences, wide code lines, deep headings, and phrases to avoid in docs and code.

``python tools/docs_counts.py`` prints the counts and the long sentences; ``--write`` stores them in tests/docs_counts.json, which
tests/test_docs_counts.py allows only to fall.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
STORED = ROOT / "tests" / "docs_counts.json"
LONGEST, WIDEST, DEEPEST = 35, 88, 3
"""Words of a sentence, columns of a code line, levels of headings."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PHRASES = {
    "Of ... first": r"(?:^|[.:;] )Of (?!the |all )\w+",
    "is none": r"\b(?:is|are) none\b",
    "a ... more": r"\ban? (?!little |few )[\w`]+ more\b(?! than)",
    "known again": r"\bknow\w* again\b",
    "taken back": r"\b(?:takes?|taken|taking|took) back\b",
    "come out": r"\b(?:comes?|came|coming) out\b",
    "hand on": r"\bhand(?:s|ed|ing)? on\b",
    "taken up": r"\b(?:takes?|taken|taking) up\b",
    "anew": r"\b(?:cut|laid|lay) anew\b",
    "is said": r"\b(?:is|are) said\b|\b[Ss]ay it\b|\bsays so\b|(?:^|[.:;] )Say\b",
    "who": r"(?:^|[.:;] )Who \w+|\b[Ww]hoever\b|\b[Nn]obody\b",
    "What ... first": r"^What (?!.*\?)",
    "is no ...": r"\b(?:is|are) no (?!longer\b)\w+",
    "is told": r"\b(?:is|are|was|were) told\b",
    "goes on": r"\b(?:goes|go|going|went) on\b",
    "so many": r"\bso (?:many|much)\b",
    "forgotten": r"\bforg[eo]t(?:s|ten|ting)?\b",
}
"""Patterns that read as translated, by a short name; a field term is nearly always better."""


def pages() -> dict[str, str]:
    """All pages, by path."""
    paths = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}


def prose(page: str) -> str:
    """A page without code blocks, comments, tags, and link targets."""
    page = re.sub(r"<!--.*?-->|</?[a-zA-Z][^>\n]*>", "", FENCE.sub("", page), flags=re.DOTALL)
    page = re.sub(r"(?m)^(?: {4,}[^-|\s].*|::: .*)\n", "", page)
    return re.sub(r"\]\([^)]*\)", "]", page)


def words(text: str) -> int:
    """Number of words of a text; a code span is one word."""
    return sum(bool(re.search(r"\w", word)) for word in re.sub(r"`[^`]*`", "code", text).split())


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page: those of its paragraphs, list items and cells."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-|#>]|\d+\. ))", prose(page)):
        for cell in paragraph.split("|") if paragraph.lstrip().startswith("|") else [paragraph]:
            yield from re.split(r"(?<=[.!?])[)\"']?\s+(?=[\"'(*`\[A-Z])", " ".join(cell.split()))


def long_sentences(page: str) -> list[str]:
    """Sentences with more words than the limit."""
    return [one for one in sentences(page) if words(one) > LONGEST]


def wide_lines(page: str) -> list[str]:
    """Lines of code, other than output, that the site would cut off."""
    return [
        line
        for language, body in FENCE.findall(page)
        if language != "text"
        for line in body.splitlines()
        if len(line) > WIDEST and (language != "python" or ">>> " not in body or line.startswith((">>> ", "... ")))
    ]


def code_texts(*folders: str, names: bool = False) -> Iterator[str]:
    """Docstrings, strings and comments of the files below folders; ``names``: of tests, docstrings, comments and names only."""
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        if any(parent.is_symlink() for parent in path.parents):
            continue
        text = path.read_text("utf-8")
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        yield from (token.string[1:].strip() for token in tokens if token.type == tokenize.COMMENT)
        for node in ast.walk(ast.parse(text)):
            if not names and isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield node.value
            if names and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield str(node.value.value)
            if names and isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield node.name.removeprefix("test_").replace("_", " ").capitalize()


ON_TOP = (
    "aggregates",
    "engines",
    "features",
    "flink-sql",
    "gaps",
    "joins",
    "key-sets",
    "load",
    "monitoring",
    "nexmark",
    "over",
    "peers",
    "platforms",
    "questions",
    "questions-errors",
    "reference/accumulations",
    "reference/key-sets",
    "replay",
    "reference/over",
    "rules/features",
    "rules/gaps",
    "rules/joins",
    "rules/key-sets",
    "rules/key-watermarks",
    "rules/over",
    "rules/rolling",
    "rules/stage-rows",
    "rules/upserts",
    "upserts",
    "watch",
)
"""Pages of kinds of stages, lists of names, and what peers differ in: the limit of all words does not count them."""


def total_words() -> int:
    """Number of words of docs/, without those ``ON_TOP``."""
    on_top = {f"docs/{name}.md" for name in ON_TOP}
    return sum(words(prose(page)) for name, page in pages().items() if name.startswith("docs/") and name not in on_top)


def counts() -> dict[str, int]:
    """The counts that may only fall, by name."""
    texts = pages()
    code = "\n".join(code_texts("beamish", "triggers", "accumulations"))
    tests = "\n".join(code_texts("tests", "tools", "benchmarks", "examples", names=True))
    found = {
        "long sentences": sum(len(long_sentences(page)) for page in texts.values()),
        "wide code lines": sum(len(wide_lines(page)) for page in texts.values()),
        "deep headings": sum(
            len(re.findall(rf"(?m)^#{{{DEEPEST + 1},}} ", FENCE.sub("", page))) for page in texts.values()
        ),
    }
    for name, pattern in PHRASES.items():
        found[f"docs: {name}"] = sum(len(re.findall(pattern, prose(page), re.MULTILINE)) for page in texts.values())
        found[f"code: {name}"] = len(re.findall(pattern, code, re.MULTILINE))
        found[f"tests: {name}"] = len(re.findall(pattern, tests, re.MULTILINE))
    return found


def main() -> int:
    """Print the counts, or store them."""
    found = counts()
    if "--write" in sys.argv:
        STORED.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    for name, page in pages().items():
        print(f"{words(prose(page)):6} {name}")
        for one in long_sentences(page):
            print(f"       {words(one)} words: {one}")
        for line in wide_lines(page):
            print(f"       {len(line)} columns: {line}")
    print(f"{total_words():6} in docs")
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
