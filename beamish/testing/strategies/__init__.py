"""Hypothesis strategies for the rows and scripts of a pipeline: ``from beamish.testing import strategies as st``."""

from beamish.packages import check_hypothesis

check_hypothesis(__name__)

from beamish.testing.strategies.rows import rows  # noqa: E402 - the check says what to install
from beamish.testing.strategies.scripts import scripts  # noqa: E402 - as above

__all__ = ["rows", "scripts"]
