"""What a drawn test costs, in one number; the tier says how many examples a usual one draws (tests/conftest.py)."""

from __future__ import annotations

from hypothesis import settings


def cost(times: float) -> settings:
    """Settings of a test whose examples take so many times as long as usual ones: it draws as many times fewer."""
    return settings(max_examples=max(round(settings().max_examples / times), 1))
