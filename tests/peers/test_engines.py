"""docs/engines.md shows the smallest case of each decided difference, as recorded."""

import re

import pytest

from peers import engines
from peers.compare import DECIDED
from peers.page import PART


def test_the_page_has_each_decided_difference():
    text = engines.PAGE.read_text("utf-8")
    assert PART.search(text)[0] == engines.part(), "python -m peers.engines"
    assert len(re.findall(r"pictures/engines/", text)) == DECIDED.read_text("utf-8").count('"peer":')


@pytest.mark.dear
def test_pictures_are_of_the_recorded_answers():
    drawn = engines.pictures()
    assert {path.stem for path in engines.PICTURES.iterdir()} == set(drawn)
    for name, svg in drawn.items():
        assert (engines.PICTURES / f"{name}.svg").read_text("utf-8") == svg + "\n", "python -m peers.engines"
