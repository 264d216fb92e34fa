"""What the README and other pages say is so: their Python runs, block after block, and prints what stands below it."""

import re

import pytest

from tests.pages import run_page


@pytest.mark.spark
@pytest.mark.parametrize("name", ["README.md", "docs/from-spark.md", "docs/notebooks.md", "docs/why.md"])
def test_python_in_a_page_prints_what_stands_below_it(root, spark, name):
    spark.sql("drop view if exists panes")
    assert run_page(name, (root / name).read_text(), without=".remote(")


def test_readme_links_to_files_that_are_there(root):
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (root / name).read_text()):
            assert (root / target).exists(), f"{name} links to {target}"


def test_readme_commands_are_make_targets(root):
    makefile = (root / "Makefile").read_text()
    for target in re.findall(r"^    make (\S+)", (root / "README.md").read_text(), re.MULTILINE):
        assert f"\n{target}:" in makefile, target
