"""What the README, and the page for those who come from Spark, say is so: their Python runs, block after block, and prints what
stands below it."""

import contextlib
import io
import re

import pytest

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(readme):
    """Each Python block with the text block that follows it, if one does before the next Python block."""
    found = []
    for language, body in FENCE.findall(readme):
        if language == "python":
            found.append([body, ""])
        elif language == "text" and found:
            found[-1][1] = body
    return found


@pytest.mark.spark
@pytest.mark.parametrize("name", ["README.md", "docs/from-spark.md"])
def test_python_in_a_page_prints_what_stands_below_it(root, spark, name):
    spark.sql("drop view if exists panes")
    names = {"__name__": "page"}
    for code, expected in blocks((root / name).read_text()):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), names)
        assert printed.getvalue().rstrip() == expected.rstrip(), code


def test_readme_links_to_files_that_are_there(root):
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (root / name).read_text()):
            assert (root / target).exists(), f"{name} links to {target}"


def test_readme_commands_are_make_targets(root):
    makefile = (root / "Makefile").read_text()
    for target in re.findall(r"^    make (\S+)", (root / "README.md").read_text(), re.MULTILINE):
        assert f"\n{target}:" in makefile, target
