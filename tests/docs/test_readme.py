"""The README is correct: its Python runs, block after block, and prints the output below it."""

import importlib.util
import re

import pytest

from tests.pages import run_page


@pytest.mark.spark
def test_python_in_the_readme_prints_the_block_below(root, spark):
    spark.sql("drop view if exists panes")
    assert run_page("README.md", (root / "README.md").read_text())


def test_readme_links_to_files_that_are_there(root):
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (root / name).read_text()):
            assert (root / target).exists(), f"{name} links to {target}"


def test_readme_commands_are_make_targets(root):
    makefile = (root / "Makefile").read_text()
    for target in re.findall(r"^    make (\S+)", (root / "README.md").read_text(), re.MULTILINE):
        assert f"\n{target}:" in makefile, target


def test_the_picture_in_the_readme_is_up_to_date(root, tmp_path):
    spec = importlib.util.spec_from_file_location("site_pictures", root / "tools" / "site_pictures.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    ((name, figure),) = tool.draw((root / "README.md").read_text()).items()
    assert f"docs/pictures/{name}.svg" in (root / "README.md").read_text()

    def words(path):
        return re.findall(r"<text [^>]*>([^<]*)</text>", path.read_text())

    drawn = words(figure.save(tmp_path / "drawn.svg"))
    assert drawn == words(root / "docs" / "pictures" / f"{name}.svg"), "python tools/site.py --readme draws it anew"
