"""Checks of the workers' Python, once per session before a query is built.

Otherwise a query fails with some 200 lines of Java, one of which has the cause.
"""

from __future__ import annotations

import json
import re
import shutil
import site
import sys
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from beamish.errors import SparkSetupError

NEEDED = ("attrs", "numpy", "pandas", "pyarrow", "google.protobuf")
"""Packages that a worker imports, besides beamish."""

_tried: WeakSet[SparkSession] = WeakSet()


def check_workers(spark: SparkSession) -> None:
    """Check that the workers' Python can run a pipeline, by a job with one row; once per session.

    Workers with the same interpreter, and beamish installed in it, need no job.

    Raises:
        SparkSetupError: another minor version, or a missing package; the message has the fix.
    """
    if spark in _tried:
        return
    connect = not hasattr(spark, "_jsparkSession")
    if not connect and _are_this_python(spark):
        _tried.add(spark)
        return
    try:
        row = spark.range(1, numPartitions=1).select(F.udf(_teller(NEEDED), "string", useArrow=False)()).first()
    except Exception as error:  # noqa: BLE001 - of pyspark's or py4j's, by what went wrong
        raise SparkSetupError(not_started(str(error))) from None
    wrong = what_is_wrong(json.loads(row[0]), connect=connect) if row is not None else ""
    if wrong:
        raise SparkSetupError(wrong)
    _tried.add(spark)


def _are_this_python(spark: SparkSession) -> bool:
    """Whether the workers start here, with this interpreter, and this version of beamish is installed in it."""
    python, here = shutil.which(spark.sparkContext.pythonExec), sys.modules["beamish"].__version__
    return (
        re.match(r"local(\[|$)", spark.sparkContext.master or "") is not None
        and python is not None
        and Path(python).absolute() == Path(sys.executable).absolute()
        and any(one.version == here for one in distributions(name="beamish", path=site.getsitepackages()))
    )


def _teller(needed: tuple[str, ...]) -> Callable[[], str]:
    """A function that describes the Python that it runs in.

    It is nested, so that it is pickled as code: a module's function would be imported, and beamish may be missing.
    """

    def tell() -> str:
        import importlib
        import json
        import sys

        told: dict[str, Any] = {"python": sys.executable, "version": list(sys.version_info[:2]), "missing": []}
        for name in needed:
            try:
                importlib.import_module(name)
            except ImportError:
                told["missing"].append(name)
        if not told["missing"]:
            try:
                beamish = importlib.import_module("beamish")
                files = importlib.import_module("pyspark").SparkFiles.getRootDirectory()
                told |= {"beamish": beamish.__version__, "added": str(beamish.__file__).startswith(files)}
            except ImportError as error:
                told["missing"].append("beamish" if error.name == "beamish" else str(error))
        return json.dumps(told)

    return tell


def what_is_wrong(told: dict[str, Any], *, connect: bool) -> str:
    """The problem with a workers' Python, with the fix; empty: none.

    Args:
        told: the result of ``_teller``.
        connect: whether the session is a Spark Connect one, whose streaming queries do not see added files.
    """
    of_workers = f"Spark's workers run {told['python']}"
    if told["missing"]:
        return f"{of_workers}, which has no {', '.join(told['missing'])}; {_fix()}"
    here = sys.modules["beamish"].__version__
    if told["beamish"] != here:
        return f"{of_workers}, which has beamish {told['beamish']}; here it is {here}: install one of them in both"
    if connect and told["added"]:
        return (
            f"{of_workers}, which has beamish by spark.addArtifacts only, and streaming queries of Spark Connect do not see artifacts; install "
            "beamish on the server, or start the server with PYTHONPATH=beamish.zip (docs/deployment.md)"
        )
    return ""


def not_started(error: str) -> str:
    """The problem if no Python answered: another version, or none."""
    if "PYTHON_VERSION_MISMATCH" in error or "different minor versions" in error:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"Spark's workers run another Python version than this one, {here}, which Spark rejects; {_fix()}"
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    causes = [line.partition("Caused by: ")[2] for line in lines if "Caused by: " in line]
    errors = [line for line in reversed(lines) if "Error" in line and not line.startswith("at ")]
    said = next(iter([*causes, *errors, *lines]), "no reason given")
    return f"Spark's workers cannot run Python: {said}; {_fix()}"


def _fix() -> str:
    return (
        "before the session starts, set\n"
        f'    os.environ["PYSPARK_PYTHON"] = "{sys.executable}"\n'
        "or start with PYSPARK_PYTHON set to it; on a cluster every executor needs such a Python (docs/deployment.md)"
    )
