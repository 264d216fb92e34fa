"""Fixtures of a kind's tests on Spark."""

from tests.spark.conftest import by_key, files, run_query

__all__ = ["by_key", "files", "run_query"]
