"""The laws, how long ``make test-deep`` searches them, what share of it real Spark gets, and from which seed.

A seed that failed is run again with BEAMISH_DEEP_SEED.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import seed

TESTS = Path(__file__).parent
LAWS = {*TESTS.glob("laws/test_*.py"), *TESTS.glob("kinds/*/test_laws*.py")}
"""Files whose property tests are laws: of all kinds, and of one."""
SECONDS = float(os.environ.get("BEAMISH_DEEP_SECONDS", "0"))
SPARK_SECONDS = SECONDS / 4
LAW_SECONDS = SECONDS - SPARK_SECONDS
"""For all laws together."""
SEED = int(os.environ.get("BEAMISH_DEEP_SEED", "0")) or int.from_bytes(os.urandom(4), "big")


def search(law: Callable[..., None], seconds: float, **arguments: Any) -> None:
    """Run a property test on new examples, seed after seed, until the time is over; ``arguments`` are its fixtures."""
    until = time.monotonic() + seconds
    number = SEED
    while time.monotonic() < until:
        print(f"BEAMISH_DEEP_SEED={number}")  # pytest shows it if this fails
        seed(number)(law)(**arguments)
        number += 1


def searched(law: Callable[..., None], seconds: float) -> Callable[..., None]:
    """The law, run seed after seed."""

    def run(**arguments: Any) -> None:
        search(law, seconds, **arguments)

    return run
