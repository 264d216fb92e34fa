"""Hypothesis strategies for the rows and scripts of a pipeline: ``from beamish.testing import strategies as st``."""

from beamish.packages import check_hypothesis

check_hypothesis(__name__)
