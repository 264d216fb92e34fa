"""The cost of a test: of a drawn one in a number, as the tier says how many examples a usual one draws (tests/conftest.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def cost(times: float) -> settings:
    """Settings of a test whose examples take this many times as long as usual: it runs that many times fewer examples."""
    return settings(max_examples=max(round(settings().max_examples / times), 1))


def deep_after(first: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of a test that needs Spark: all but the first are for ``make test-deep``."""
    found = []
    for number, case in enumerate(cases):
        param = (
            case
            if isinstance(case, type(pytest.param()))
            else pytest.param(*(case if type(case) is tuple else (case,)))
        )
        marks = [*param.marks, *([pytest.mark.deep] if number >= first else [])]
        found.append(pytest.param(*param.values, id=param.id, marks=marks))
    return found
