"""How many queries of Flink's documentation are taken as they are typed (docs/flink-sql.md)."""

import re
from pathlib import Path

import pytest

import beamish as bm
from tests.statement.flink_pages import PAGES, TABLES

PAGE = Path(__file__).parents[2] / "docs" / "flink-sql.md"
REFUSED = (" IN (SELECT", "EXISTS (SELECT")
"""Parts of the queries that are refused."""
ALL = [(page, text) for page, texts in PAGES.items() for text in texts]


@pytest.mark.parametrize(("page", "text"), ALL)
def test_a_query_is_taken_or_has_what_is_refused(page, text):
    if any(one in text for one in REFUSED):
        with pytest.raises(bm.SqlError):
            bm.sql(TABLES + text, dialect="flink")
        return
    assert bm.sql(TABLES + text, dialect="flink").pipeline.explain()


def test_the_page_has_the_count():
    taken = sum(not any(one in text for one in REFUSED) for _, text in ALL)
    assert re.search(rf"\b{taken} of {len(ALL)} queries\b", PAGE.read_text("utf-8")), (taken, len(ALL))
    assert taken / len(ALL) >= 0.8
