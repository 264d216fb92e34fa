"""Packages that Spark and ``beamish.testing`` need; imports none of them, so that missing ones can be reported."""

from __future__ import annotations

import importlib.util

from beamish.errors import SparkSetupError

OLDEST = (4, 0)
"""The first version of Spark with ``transformWithState`` in Python."""


def check_packages() -> None:
    """Check the packages that ``beamish.spark`` requires (SparkSetupError: a package is missing, or pyspark is older than 4.0)."""
    if not installed("pyspark"):
        raise SparkSetupError(
            "pyspark is not installed: pip install 'pyspark[sql,connect]>=4.0,<5' 'pandas>=2.2,<3' 'protobuf>=5' (the extra 'spark')"
        )
    if pyspark_version() < OLDEST:
        version = ".".join(map(str, pyspark_version()))
        raise SparkSetupError(f"pyspark {version}: beamish needs 4.0 or later: pip install 'pyspark>=4.0,<5'")
    for module, requirement in (("pandas", "'pandas>=2.2,<3'"), ("google.protobuf", "'protobuf>=5'")):
        if not installed(module):
            raise SparkSetupError(
                f"the package {module} is not installed; Spark's transformWithStateInPandas needs it, here and on every "
                f"executor: pip install {requirement}"
            )


def check_hypothesis(module: str) -> None:
    """Check that Hypothesis is installed, which ``module`` requires (ModuleNotFoundError: it is not)."""
    if not installed("hypothesis"):
        raise ModuleNotFoundError(
            f'{module}: the package hypothesis is not installed: pip install "beamish[hypothesis]"', name="hypothesis"
        )


def installed(module: str) -> bool:
    """Whether a package is installed."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent package
        return False


def pyspark_version() -> tuple[int, int]:
    """The major and minor version of pyspark."""
    import pyspark

    return as_version(pyspark.__version__)


def as_version(text: str) -> tuple[int, int]:
    """The major and minor version in a text such as ``4.2.1``."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)
