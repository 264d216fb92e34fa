"""Spark's Python workers: the Python that they run, tried once per session, and what each of their tasks begins with.

Otherwise a query fails with some 200 lines of Java, one of which has the cause.

Memory settings of Spark's workers: garbage collection, and Arrow's allocator.

After each task Spark's daemon runs ``gc.collect()`` in a worker (``pyspark/daemon.py``), which visits every object: with pandas,
pyarrow and beamish imported some 90,000, at 30 to 40 ms of CPU. A small batch has three tasks.

Arrow's own allocator retains freed memory: a step with 9 MB in use takes 40 MB more from the system than the system's allocator
does, and is no faster.

Immediate TCP acknowledgements in workers, which avoid a delay of 40 ms per task. Over TCP Spark sends a task's function, then its rows. Its
kernel delays a small segment until the one before is acknowledged (Nagle's algorithm); the worker's kernel delays the acknowledgement by up
to 40 ms, to send it with an answer. So each task began with 40 idle ms (docs/spark-notes.md#acknowledged). A function is unpickled when it
is complete, and before any row is read: then the worker requests an immediate acknowledgement.

Over Unix sockets (``spark.python.unix.domain.socket.enabled``), and on systems without such an option, this does nothing.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import site
import socket
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from beamish.errors import SparkSetupError, in_docs, of

_DOCS = in_docs("Deployment", "On a cluster")
_MANY = 5_000
"""Number of objects whose collection costs some 2 ms."""
_TIMES = 4
"""How often a worker freezes its objects: once per kind of task is enough; always would keep user objects for ever."""

_times = iter(range(_TIMES))


def spare_memory() -> None:
    """Reduce a worker's memory overhead; called when a task begins."""
    _leave_out_what_stays()
    _give_back_what_is_freed()


@cache
def _give_back_what_is_freed() -> None:
    """Use the system allocator for Arrow, unless another one was chosen; once, so that a later choice is kept."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())


def _leave_out_what_stays() -> None:
    """Freeze objects that survived the collection after the previous task, if there are many.

    These are imports and long-lived objects; the current task has created few yet. A frozen object is still freed when its
    reference count drops to 0; only cycles among such objects are no longer found.
    """
    if len(gc.get_objects(generation=2)) > _MANY and next(_times, None) is not None:
        gc.freeze()


_FILES = Path("/proc/self/fd")
_ACKNOWLEDGE: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux


class Acknowledged:
    """An object that acknowledges received data when it is unpickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        acknowledge()
        self.__dict__.update(state)


class AcknowledgedFunction(Acknowledged):
    """A function wrapped in this way; for ``mapInArrow``."""

    def __init__(self, function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> None:
        self._function = function

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._function(batches)


def acknowledge() -> None:
    """Acknowledge data received over this process's TCP connections."""
    if _ACKNOWLEDGE is None or not _FILES.is_dir():
        return
    for number in [int(file.name) for file in _FILES.iterdir()]:
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                _acknowledge(number, _ACKNOWLEDGE)
        except OSError:  # another family, or already closed
            continue


def _acknowledge(number: int, option: int) -> None:
    connection = socket.socket(fileno=number)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    finally:
        connection.detach()  # do not close it: it is Spark's


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
        found = of(error)
        raise SparkSetupError(not_started(str(error)) if found is None else str(found)) from None
    wrong = what_is_wrong(json.loads(row[0]), connect=connect) if row is not None else ""
    if wrong:
        raise SparkSetupError(wrong)
    _tried.add(spark)


def _are_this_python(spark: SparkSession) -> bool:
    """Whether the workers start here, with this interpreter, and this version of beamish is installed in it."""
    from importlib.metadata import distributions

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

        found: dict[str, Any] = {"python": sys.executable, "version": list(sys.version_info[:2]), "missing": []}
        for name in needed:
            try:
                importlib.import_module(name)
            except ImportError as error:
                found["missing"].append(name if isinstance(error, ModuleNotFoundError) else f"usable {name} ({error})")
        if not found["missing"]:
            try:
                beamish = importlib.import_module("beamish")
                files = importlib.import_module("pyspark").SparkFiles.getRootDirectory()
                found |= {"beamish": beamish.__version__, "added": str(beamish.__file__).startswith(files)}
            except ImportError as error:
                found["missing"].append("beamish" if error.name == "beamish" else str(error))
        return json.dumps(found)

    return tell


def what_is_wrong(found: dict[str, Any], *, connect: bool) -> str:
    """The problem with a workers' Python, with the fix; empty: none.

    Args:
        found: the result of ``_teller``.
        connect: whether the session is a Spark Connect one, whose streaming queries do not see added files.
    """
    of_workers = f"Spark's workers run {found['python']}"
    if found["missing"]:
        return f"{of_workers}, which has no {', '.join(found['missing'])}; {_fix()}"
    here = sys.modules["beamish"].__version__
    if found["beamish"] != here:
        return f"{of_workers}, which has beamish {found['beamish']}; here it is {here}: install one of them in both"
    if connect and found["added"]:
        return (
            f"{of_workers}, which has beamish by spark.addArtifacts only, and streaming queries of Spark Connect do not see artifacts; install "
            f"beamish on the server, or start the server with PYTHONPATH=beamish.zip ({_DOCS})"
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
        f"or start with PYSPARK_PYTHON set to it; on a cluster every executor needs such a Python ({_DOCS})"
    )
