"""The site's pages: what tools/site.py makes of those of the repository."""

import html
import re
import runpy

import pytest


@pytest.fixture(scope="module")
def site(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "tools"))
        return runpy.run_path(str(root / "tools" / "site.py"))


def codes(site, row):
    """The code in a row, in order."""
    row = re.sub(r"<code>(.*?)</code>", lambda found: f"`` {html.unescape(found[1])} ``", row.replace("<wbr>", ""))
    return [found[1].strip().replace("\\|", "|") for found in site["CODE"].findall(row)]


def test_long_code_in_tables_breaks_between_words(site):
    row = "| `spark.sql.streaming.noDataMicroBatches.enabled` | `a_b` | `F.col('a_name') \\| F.col('b')` |"
    made = site["in_tables"](row)
    assert "<code>spark&#46;<wbr>sql&#46;<wbr>streaming&#46;<wbr>no<wbr>Data<wbr>Micro<wbr>Batches&#46;<wbr>en" in made
    assert "`a_b`" in made
    assert codes(site, made) == [
        "spark.sql.streaming.noDataMicroBatches.enabled",
        "a_b",
        "F.col('a_name') | F.col('b')",
    ]
    outside = "Set `spark.sql.streaming.noDataMicroBatches.enabled`."
    assert site["in_tables"](outside) == outside


def test_code_in_tables_keeps_its_words(site, root):
    """Also where it has signs of Markdown."""
    seen = 0
    for path in (root / "docs").rglob("*.md"):
        for row in re.findall(r"(?m)^\|.*$", path.read_text("utf-8")):
            made = site["in_tables"](row)
            assert codes(site, made) == codes(site, row)
            assert re.sub(r"<code>.*?</code>", "", made) == site["CODE"].sub(
                lambda found: "" if re.search(r"\S{16}", found[2]) else found[0], row
            )
            seen += made != row
    assert seen > 50
