"""The docs stay short and plain: what tools/docs_counts.py counts never rises."""

import json
import re
from pathlib import Path

import pytest

from tools import docs_counts

ROOT = Path(__file__).parent.parent
PAGES = docs_counts.pages()
LIMITS = {"README.md": 900, "docs/scale.md": 1200, "docs/reliability.md": 1200, "docs/mutation.md": 1200}
"""Most words of a page; of rules 3,000."""


@pytest.fixture(scope="module")
def counted():
    return docs_counts.counts()


@pytest.mark.dear  # reads all files
@pytest.mark.parametrize("name", json.loads(docs_counts.STORED.read_text()))
def test_a_count_does_not_rise(name, counted):
    most = json.loads(docs_counts.STORED.read_text())[name]
    assert counted[name] <= most, "python tools/docs_counts.py shows where; --write stores counts that fell"


@pytest.mark.dear  # reads all files
def test_every_count_is_stored(counted):
    assert set(json.loads(docs_counts.STORED.read_text())) == set(counted)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_no_longer_than_its_readers_read(name):
    limit = LIMITS.get(name, 3000)
    assert docs_counts.words(docs_counts.prose(PAGES[name])) <= limit


def test_the_docs_of_all_but_new_kinds_are_at_most_50_100_words():
    assert docs_counts.total_words() <= 50_100


def test_the_unreleased_changes_fit_in_120_lines():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    unreleased = re.search(r"(?ms)^## \[Unreleased\]\n(.*?)^## ", changelog)[1]
    assert unreleased.count("\n") < 120


@pytest.mark.parametrize("name", PAGES)
def test_a_table_begins_a_paragraph(name):
    text = docs_counts.FENCE.sub("", PAGES[name])
    assert not re.findall(r"(?m)^[^|\n].*\n\|.*\n\|-", text), (
        "without an empty line before it, a table is shown as text"
    )


def test_sentences_cells_and_code_are_counted_apart():
    page = (
        "# A head\n\nOne `f(x, y)` two. Three [four](five.md).\n\n| six | < 7 |\n|---|---|\n\n```python\nx = 1\n```\n"
    )
    found = [one for one in docs_counts.sentences(page) if docs_counts.words(one)]
    assert found == ["# A head", "One `f(x, y)` two.", "Three [four].", "six", "< 7"]
    assert docs_counts.words(docs_counts.prose(page)) == 9
    assert [len(docs_counts.long_sentences("word " * words + "end.")) for words in (34, 35)] == [0, 1]
    wide = "x" * 89
    assert [len(docs_counts.wide_lines(f"```{language}\n{wide}\n```\n")) for language in ("python", "text")] == [1, 0]
