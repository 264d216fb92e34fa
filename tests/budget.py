"""How long ``make test-deep`` searches, what share of it real Spark gets, and from which seed.

A seed that failed is run again with BEAMISH_DEEP_SEED.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import given, seed, settings
from hypothesis import strategies as st

SECONDS = float(os.environ.get("BEAMISH_DEEP_SECONDS", "0"))
SPARK_SECONDS = SECONDS / 4
SEED = int(os.environ.get("BEAMISH_DEEP_SEED", "0")) or int.from_bytes(os.urandom(4), "big")


def search(law: Callable[[Any], None], seconds: float, *, examples: int = 100, **said: Any) -> None:
    """Run a law on drawn data, seed after seed, until the time is over."""
    until = time.monotonic() + seconds
    number = SEED
    while time.monotonic() < until:
        print(f"BEAMISH_DEEP_SEED={number}")  # pytest shows it if this fails
        drawn = settings(settings.default, max_examples=examples, derandomize=False, **said)(given(st.data())(law))
        seed(number)(drawn)()
        number += 1
