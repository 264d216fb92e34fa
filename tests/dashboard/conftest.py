"""Fixtures of tests on Spark."""

from tests.spark.conftest import files

__all__ = ["files"]
