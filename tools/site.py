"""Gather the pages of the site in build/pages: `make docs` builds them.

The site has no text of its own. Its pages are docs/, with

- README.md as the start page, CONTRIBUTING.md and CHANGELOG.md;
- a page per example, with its program;
- the gallery of examples/gallery.py, with a page that lists its figures;
- under each rule of docs/rules the transcripts that name it, which the tests run;
- the pictures that pages ask for, drawn from a run of the very blocks that stand above them;
- llms.txt and llms-full.txt, for coding assistants (tools/llms.py).

Links are written for a reader of the repository and changed here for a reader of the site.
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections import defaultdict
from pathlib import Path

import llms
from site_pictures import WIDE, draw, with_pictures

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "build" / "pages"
TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
LINKED = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)#\s]+)(#[\w-]+)?\)")
RULE = re.compile(r"rules/[\w-]+\.md#")
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
BREAKS = re.compile(r"(?<=[._/=,(\[])(?=\w)|(?<=[a-z])(?=[A-Z])")
"""Places in code where a line may break: after a sign, and within camelCase."""
LONG = re.compile(r"\S{16}")
PROSE = re.compile(r"^```(text|python)\n(?=(?:(?!```).*\n)*?.{89})", re.MULTILINE)
"""A block with a line that is wider than the column: the site wraps it."""


def main() -> int:
    """Gather all pages, or with --readme draw the README's picture anew; 0 when that is done."""
    if sys.argv[1:] == ["--readme"]:
        for name, figure in draw((ROOT / "README.md").read_text("utf-8")).items():
            figure.save(ROOT / "docs" / "pictures" / f"{name}.svg", width=WIDE)
        return 0
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for path in PAGES.rglob("*.md"):
        _write(path, ROOT / "docs" / path.relative_to(PAGES))
    for name, page in TOP.items():
        _write(PAGES / page, ROOT / name)
    write_examples(PAGES / "examples")
    write_gallery(PAGES)
    for page in (PAGES / "rules").glob("*.md"):
        page.write_text(with_transcripts(page.read_text("utf-8")), "utf-8")
    llms.write(PAGES)
    return 0


def _write(page: Path, of: Path) -> None:
    """A page of the site, of a file of the repository."""
    text = for_the_site(of.read_text("utf-8"), of)
    page.write_text(
        with_pictures(text, PAGES / "pictures", up="../" * len(page.relative_to(PAGES).parents[1:])), "utf-8"
    )


def place(path: Path) -> str | None:
    """Where a file of the repository is in the site; None where it is not."""
    name = str(path.relative_to(ROOT))
    if name in TOP:
        return TOP[name]
    if name == "examples":
        return "examples/index.md"
    if path.is_relative_to(ROOT / "examples") and path.suffix == ".py":
        return str(path.relative_to(ROOT).with_suffix(".md"))
    return str(path.relative_to(ROOT / "docs")) if path.is_relative_to(ROOT / "docs") else None


def for_the_site(text: str, of: Path) -> str:
    """A page with its links changed and its prose wrapped; what the site does not have keeps its words and loses its link."""
    depth = (place(of) or "").count("/")

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], (of.parent / found[2]).resolve(), found[3] or ""
        there = place(target) if target.is_relative_to(ROOT) else None
        return f"[{words}]({'../' * depth}{there}{anchor})" if there else words

    parts = re.split(r"(?ms)(^```.*?^```$)", text)  # every second one is code, which has no links
    parts[::2] = [in_tables(LINKED.sub(link, part)) for part in parts[::2]]
    return PROSE.sub(r"``` { .\1 .wrap }\n", "".join(parts))


def in_tables(text: str) -> str:
    """A text whose long code in tables may break between words."""

    def code(found: re.Match[str]) -> str:
        inside = found[2].strip().replace("\\|", "|")
        if not LONG.search(inside):
            return found[0]
        parts = BREAKS.split(inside)
        return f"<code>{'<wbr>'.join(re.sub(r'[^A-Za-z0-9 ]', lambda sign: f'&#{ord(sign[0])};', part) for part in parts)}</code>"

    return re.sub(r"(?m)^\|.*$", lambda row: CODE.sub(code, row[0]), text)


def write_examples(folder: Path) -> None:
    """A page per example, and one that lists them."""
    lines = ["# Examples", "", "Whole programs, each run by the tests.", "", "| program | |", "|---|---|"]
    for path in sorted((ROOT / "examples").rglob("*.py"), key=lambda path: (len(path.parts), path)):
        program = path.read_text("utf-8")
        first = (ast.get_docstring(ast.parse(program)) or path.name).partition("\n")[0]
        name = path.relative_to(ROOT / "examples").with_suffix(".md")
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"# {path.name}\n\n```python\n{program}```\n", "utf-8")
        lines.append(f"| [{name.with_suffix('.py')}]({name}) | {first} |")
    (folder / "index.md").write_text("\n".join(lines) + "\n", "utf-8")


def write_gallery(pages: Path) -> None:
    """The figures on a page of their own, as it is, and a list of them."""
    sys.path.insert(0, str(ROOT / "examples"))
    import gallery

    gallery.main(pages / "gallery")
    lines = [
        "# Gallery",
        "",
        "The figures of the book *Streaming Systems* (Akidau, Chernyak, Lax), drawn from runs of",
        "[examples/gallery.py](examples/gallery.md), all of them [on one page](gallery/index.html). Each plays.",
        "",
        "| figure | |",
        "|---|---|",
        *(f"| [{shown.title}](gallery/index.html#{name}) | {shown.words} |" for name, shown in gallery.FIGURES.items()),
    ]
    (pages / "gallery.md").write_text("\n".join(lines) + "\n", "utf-8")


def transcripts() -> dict[str, list[tuple[str, str]]]:
    """The cases of tests/transcripts by the rules that their titles and comments name: title and text."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted((ROOT / "tests" / "transcripts").glob("*.txt")):
        for case in re.split(r"^## ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            title, _, body = case.partition("\n")
            named = [one for line in case.splitlines() if RULE.search(line) for one in re.findall(r"#([\w-]+)", line)]
            title = re.sub(r" \(rules/[\w-]+\.md#.*\)$", "", title)
            text = "\n".join(line for line in body.splitlines() if not re.match(f"# {RULE.pattern}", line)).strip()
            for rule in dict.fromkeys(named):
                found[rule].append((title, text))
    return found


def with_transcripts(text: str) -> str:
    """A page of rules with the transcripts of each at the end of its section."""
    cases = transcripts()
    parts = re.split(r'(?m)^(?=<a id="[\w-]+"></a>\n#{2,3} )', text)
    return "".join(part + _cases(part, cases) for part in parts)


def _cases(part: str, cases: dict[str, list[tuple[str, str]]]) -> str:
    told: dict[str, str] = {}
    for anchor in ANCHOR.findall(part):
        told.update(cases.get(anchor, []))
    blocks = []
    for title, body in told.items():
        lines = "\n".join(f"    {line}".rstrip() for line in ["```text", *body.splitlines(), "```"])
        blocks.append(f'??? example "{title.replace(chr(34), chr(39))}"\n\n{lines}\n\n')
    return "\nTranscripts, which the tests run:\n\n" + "".join(blocks) if blocks else ""


if __name__ == "__main__":
    sys.exit(main())
