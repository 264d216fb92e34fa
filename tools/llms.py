"""llms.txt and llms-full.txt of the site, for coding assistants (https://llmstxt.org): a list of the pages, and their text.

The pages are those of mkdocs.yml, in its order. Semantics and Inside are listed only, so that the text fits in the context of a model. The
skill (skills/beamish/SKILL.md) comes first in the text; names of the reference are replaced by signatures and docstrings.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
SOURCES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
"""Pages whose text is not below docs/."""
MADE = {"examples/index.md": "Examples", "gallery.md": "Gallery"}
"""Pages that are made from programs, and their titles: listed, and not in the text."""
OPTIONAL, LISTED = "Inside", ("Semantics", "Inside")
"""The section that assistants may skip, and those that are not in the text."""
ENTRY = re.compile(r"^(?P<indent> +)- (?:(?P<name>[^:\n]+): ?)?(?P<page>[\w/-]+\.md)?$", re.MULTILINE)
NAMED = re.compile(r"^::: (?P<name>[\w.]+)\n(?P<options>(?:    .*\n|\n(?=    ))*)", re.MULTILINE)
SKIPPED = re.compile(r"^<!-- picture: .*? -->\n\n?|<a id=\"[\w-]+\"></a>\n?", re.MULTILINE)


class Page(NamedTuple):
    """A page of the site: its section, its path there, its title and its text."""

    section: str
    path: str
    title: str
    text: str

    @property
    def summary(self) -> str:
        """The first sentence of its first paragraph, without links."""
        found = re.match(r"# .*\n\n((?![#|<:\s]|```).+(?:\n(?![|`]).+)*)", SKIPPED.sub("", self.text))
        paragraph = found[1] if found else ""
        plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(paragraph.split()))
        return re.split(r"(?<=[.!?:]) (?=[A-Z`])", plain)[0].removesuffix(":")


def pages() -> Iterator[Page]:
    """The pages of mkdocs.yml."""
    section = ""
    for entry in ENTRY.finditer((ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]):
        if entry["page"] is None:
            section = entry["name"]
            continue
        path = entry["page"]
        if path in MADE:
            yield Page(section, path, MADE[path], "")
            continue
        text = (ROOT / SOURCES.get(path, f"docs/{path}")).read_text("utf-8")
        title = re.search(r"(?m)^# (.*)$", text)
        yield Page(section if len(entry["indent"]) > len("  ") else "Start", path, title[1] if title else path, text)


def listed() -> str:
    """llms.txt: the pages by section, each with its first sentence."""
    found = list(pages())
    start = found[0]
    lines = [f"# {start.title}", "", f"> {start.summary}", "", _advice(), ""]
    for section in dict.fromkeys(page.section for page in found):
        lines += ["## Optional" if section == OPTIONAL else f"## {section}", ""]
        for page in found:
            if page.section == section:
                link = f"- [{page.title}]({page.path.removesuffix('.md')}.html)"
                lines.append(f"{link}: {page.summary}" if page.summary else link)
        lines.append("")
    return "\n".join(lines)


def _advice() -> str:
    return (
        "Write the pipeline first and run it on a script, in process: `pipeline.run(TestStream().add(rows))`. How to, ten mistakes, and how "
        "to test: the skill at the head of [llms-full.txt](llms-full.txt), which has the text of the pages below, without the rules (Semantics) and the optional ones. "
        "What users ask is in [questions](questions.html), messages of Spark in [errors](questions-errors.html)."
    )


def full() -> str:
    """llms-full.txt: the skill, and the text of the pages."""
    skill = (ROOT / "skills" / "beamish" / "SKILL.md").read_text("utf-8")
    parts = [skill.partition("\n---\n")[2].strip()]
    for page in pages():
        if page.text and page.section not in LISTED:
            text = NAMED.sub(lambda found: described(found["name"], found["options"]), page.text)
            parts.append(f"<!-- {SOURCES.get(page.path, f'docs/{page.path}')} -->\n\n{SKIPPED.sub('', text).strip()}")
    return "\n\n".join(parts) + "\n"


def described(name: str, options: str) -> str:
    """Signatures and docstrings of a name, and of what belongs to it, as Markdown.

    Args:
        name: a module, class or function, with dots.
        options: of mkdocstrings; ``members: false`` leaves members out.
    """
    module, _, last = name.rpartition(".")
    one: Any = getattr(importlib.import_module(module), last)
    if inspect.ismodule(one):
        inside = [member for member in vars(one).values() if getattr(member, "__module__", "") == name]
        return "".join(_entry(member.__name__, member) for member in inside if _is_public(member))
    inner = ""
    if inspect.isclass(one) and "members: false" not in options:
        members = {key: inspect.unwrap(getattr(one, key)) for key in vars(one) if not key.startswith("_")}
        inner = "".join(_entry(f"{last}.{key}", member) for key, member in members.items() if callable(member))
    return _entry(last, one) + inner


def _is_public(member: Any) -> bool:
    return (inspect.isclass(member) or inspect.isfunction(member)) and not member.__name__.startswith("_")


def _entry(name: str, one: Any) -> str:
    text = inspect.getdoc(one) or ""
    return f"### `{name}{_signature(one)}`\n\n{text}\n\n" if text else ""


def _signature(one: Any) -> str:
    if inspect.isclass(one) and issubclass(one, enum.Enum):
        return f": {', '.join(one.__members__)}"
    try:
        found = inspect.signature(one)
    except (TypeError, ValueError):
        return ""
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
        if parameter.name != "self"
    ]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def write(folder: Path) -> None:
    """Write both files to a folder."""
    (folder / "llms.txt").write_text(listed(), "utf-8")
    (folder / "llms-full.txt").write_text(full(), "utf-8")
