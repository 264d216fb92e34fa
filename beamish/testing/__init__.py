"""Testing pipelines without Spark: scripts, strategies that draw them, and laws that hold for every pipeline.

``strategies`` and ``laws`` need Hypothesis (the extra ``hypothesis``); ``TestStream`` does not.
"""

from beamish.testing.stream import Runnable, TestStream

__all__ = ["Runnable", "TestStream"]
