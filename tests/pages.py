"""Pages of the docs as programs: their Python blocks, run one after the other, print what stands below them."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from unittest.mock import patch

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> Iterator[list[str]]:
    """Each Python block with the text block that follows it, if one does before the next Python block."""
    found: list[list[str]] = []
    for language, body in FENCE.findall(page):
        if language == "python":
            found.append([body, ""])
        elif language == "text" and found:
            found[-1][1] = body
    return iter(found)


def kind_of(page: str) -> str:
    """How its Python runs: "doctest", on "spark", "plain", or "none" if it has none."""
    code = "".join(code for code, _ in blocks(page))
    if ">>> " in code:
        return "doctest"
    return "spark" if re.search(r"\bspark\b", code) else "plain" if code else "none"


def run_page(name: str, page: str, without: str = "") -> int:
    """Run a page; ``...`` in what it says is printed is anything.

    Args:
        name: the page's, for tracebacks.
        page: its text.
        without: blocks in which this stands are left out.

    Returns:
        how many blocks ran.
    """
    names, ran = {"__name__": "page"}, 0
    with patch.dict(os.environ):
        for code, expected in blocks(page):
            if without and without in code:
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, name, "exec"), names)
            said = re.escape(expected.rstrip()).replace(r"\.\.\.", ".*")
            assert re.fullmatch(said, printed.getvalue().rstrip()), f"{code}\nprinted\n{printed.getvalue()}"
            ran += 1
    return ran
