"""Batches of clicks that a query of visits finds hard (examples/kafka_to_postgres)."""

import json
from datetime import timedelta


def one_key(draw, begin, clicks=100_000):
    """One key that grows with every click."""
    for number in range(clicks):
        yield click("ann", begin + timedelta(milliseconds=number), draw.randrange(100))


def new_keys(draw, begin, clicks=1_000_000):
    """A key per click, none seen before."""
    for number in range(clicks):
        yield click(f"new {begin:%H%M%S} {number}", begin + timedelta(milliseconds=number), draw.randrange(100))


def late(draw, begin, clicks=10_000):
    """Clicks of windows closed four days before ``begin``."""
    for number in range(clicks):
        yield click(f"user {number % 50}", begin - timedelta(days=4, minutes=draw.uniform(0, 1440)), 1)


def huge(draw, begin, megabytes=50):
    """A click that is a very long record."""
    yield click("ann", begin, draw.randrange(100), notes=["x" * 1_000_000] * megabytes)  # a string may have 20 MB


def click(user, ts, spent, **more):
    return user, json.dumps({"user": user, "ts": ts.isoformat(), "spent": spent} | more)
