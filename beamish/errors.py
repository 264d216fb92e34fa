"""The errors beamish raises. Each message has the value, the rule it broke and the fix.

An error in a Spark worker reaches the driver as text inside a Spark exception; ``of`` extracts it.

A message shows the invalid value, such as the arguments of a user function that raised, and its key, never the whole row. If
values must not appear in logs, ``BEAMISH_HIDE_VALUES=1`` replaces them by ``(hidden)`` (SECURITY.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any


class BeamishError(Exception):
    """Base class of all beamish errors."""


class OptionError(BeamishError, ValueError):
    """An option has an invalid value. Fix: change the value."""


class PipelineError(BeamishError, ValueError):
    """Options that are valid one by one do not work together. Fix: change one of them."""


class ColumnError(BeamishError, ValueError):
    """The data has no such column, or it has the wrong type. Rename, cast or select it first."""


class ScriptError(BeamishError, ValueError):
    """A test script goes back in time, names an unknown input, or has rows that do not form one table. Fix the script."""


class SqlError(BeamishError, ValueError):
    """The text given to ``bm.sql`` is invalid. The message shows the position and the fix.

    Attributes:
        line: where it is wrong, from 1.
        column: where in that line, from 1.
    """

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message, line, column)
        self.line, self.column = line, column

    def __str__(self) -> str:
        return str(self.args[0])


class SparkSetupError(BeamishError, RuntimeError):
    """The Spark session is not configured to run the pipeline. The message has the setting to add."""


class StateError(BeamishError, RuntimeError):
    """A checkpoint or a table's file belongs to another pipeline, shard count or format, is damaged, or is in use. It was not changed."""


class ClosedError(BeamishError, ValueError):
    """A closed table was used. Open it again with the same ``path``, or close it later."""


class UserFunctionError(BeamishError, RuntimeError):
    """A user function raised. The query stops; fix it and restart from the checkpoint; no data was lost.

    With ``on_error("drop")`` the row is dropped instead.

    Attributes:
        group: the index of the group it was called for, if any; the engine adds its key and window.
        raised: the cause, without the fix.
    """

    group: int | None = None
    raised: str | None = None


class NumericOverflowError(BeamishError, OverflowError):
    """A sum does not fit its type, like Spark's ARITHMETIC_OVERFLOW. ``on_error("drop")`` drops the row that overflows it.

    Attributes:
        group: the index of the group whose sum overflowed, if known.
        raised: the cause, without the fix.
    """

    group: int | None = None
    raised: str | None = None


class BufferFullError(BeamishError, RuntimeError):
    """A suppress with ``when_full=bm.SHUT_DOWN`` exceeds its buffer. No data is lost: restart with a larger buffer."""


class SinkError(BeamishError, RuntimeError):
    """A table rejects a batch: its columns differ, another query owns it, or its database fails. Nothing of the batch was written."""


HIDE_VALUES = "BEAMISH_HIDE_VALUES"
"""Environment variable that removes row values from messages; 0 or empty: they are shown."""
HIDDEN = "(hidden)"
"""Replaces a value in a message."""


def in_docs(page: str, section: str) -> str:
    """A reference to a section of the documentation, for a message: both by title, since users may not have the files."""
    return f'see "{page}", section "{section}", in the documentation'


def values_are_hidden() -> bool:
    """Whether row values are hidden in this process."""
    return os.environ.get(HIDE_VALUES, "") not in ("", "0")


def shown(value: Any) -> str:
    """A row value for a message; only its class if its ``repr`` raises."""
    if values_are_hidden():
        return HIDDEN
    try:
        return _indented(repr(value))
    except Exception:  # noqa: BLE001 - a broken repr must not hide the error that is reported
        return f"a {type(value).__name__}"


def describe_foreign(error: BaseException) -> str:
    """Class and text of a foreign error, which may contain row values."""
    return f"{type(error).__name__}: {HIDDEN if values_are_hidden() else _indented(_text(error))}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as raised:  # noqa: BLE001 - a broken str must not hide the error that is reported
        return f"(its str() raised {type(raised).__name__})"


def _indented(text: str) -> str:
    """Indent all lines but the first, so that none looks like the error line of a traceback."""
    return text.replace("\n", "\n  ")


def cause(error: Exception) -> Exception | None:
    """The ``__cause__`` of an error, unless values are hidden, since a trace shows its message too."""
    return None if values_are_hidden() else error


_OUT_OF_MEMORY = re.compile(
    r"allocation_failed|bad_alloc|Cannot allocate memory|failed to map segment|can't start new thread"
)
"""In the text of errors of other classes than MemoryError, from Arrow's codecs, C++ and the operating system."""


def check_memory(error: BaseException) -> None:
    """Check that memory did not run out, which neither the raising function nor the read value has caused.

    Raises:
        MemoryError: it is.
    """
    if isinstance(error, MemoryError):
        raise error
    if isinstance(error, OSError | RuntimeError | ImportError) and _OUT_OF_MEMORY.search(_text(error)):
        raise MemoryError(describe_foreign(error)) from error


_RAISED = re.compile(r"^beamish\.errors\.(\w+): ", re.MULTILINE)
_LOST = re.compile(r"CANNOT_READ_STREAMING_STATE_FILE|FileNotFoundException")
_STATE_FILE = re.compile(r"\S*/state/(\d+)/(\d+)/[^\s,;]+")
_FRAMES = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*")
"""Precedes the line of the error in a traceback."""
_SPARKS = re.compile(r"(?:pyspark|py4j)\.")
_CHAINED = re.compile(
    r"\n\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n"
)
"""Separates the tracebacks of an error and of the one it caused."""
_ENDS = re.compile(r"\n SQLSTATE: |\n=== Streaming Query ===|\n\tat ")
"""Follows a message in Spark's text or in a traceback."""


_CAUSE = re.compile(r"^\s*Caused by: (?!.*(?:CANNOT_LOAD_STATE_STORE|awaitResult))(.+)$", re.MULTILINE)
_DOCS = in_docs("Deployment", "On a cluster")
_RESTORE = "restore the folder from a copy, or start from a new checkpoint"
_MOVED = "was moved or copied, but Spark stores absolute paths in it, or it lost files; migrate a moved one with bm.migrate(spark, checkpoint, new_checkpoint, pipeline)"
_DAMAGE = "EOFException|ZipException|FileNotFound|does not exist|[Cc]orruption|[Cc]hecksum"
_MEMORY = (
    "each core of an executor has its share of spark.executor.pyspark.memory, or where that is not set what the machine or the container "
    "has beside the JVM (spark.executor.memoryOverhead). Raise it, or let a worker hold less: smaller batches (maxFilesPerTrigger, "
    "maxOffsetsPerTrigger), more shards (bm.migrate); then restart the query from its checkpoint, nothing was lost"
)
_OF_SPARK: Sequence[tuple[str, type[BeamishError], str]] = (
    (
        r"(?:java\.lang\.|spark\.memory\.Spark)(OutOfMemoryError\b(?:: [^\n]+)?)",
        SparkSetupError,
        (
            "a JVM of Spark ran out of memory ({0}): raise spark.executor.memory, or on one machine spark.driver.memory, before the session "
            "starts, and restart the query from its checkpoint; nothing was lost"
        ),
    ),
    (
        rf"(?m)^\s*((?:\w+\.)*\w*MemoryError\b.*|.*(?:{_OUT_OF_MEMORY.pattern}).*)$",
        SparkSetupError,
        f"a Python process of the query ran out of memory ({{0}}): {_MEMORY}",
    ),
    (
        (
            r"(Python worker exited unexpectedly \(crashed\)|[Ee]xit (?:code|status):?(?: is)? 137\b|OOMKilled"
            r"|exceeding (?:physical |virtual )?memory limits)"
        ),
        SparkSetupError,
        (
            f"a Python worker or its executor was killed, or crashed ({{0}}), most often because memory ran out: {_MEMORY}. Where it "
            "happens again with more, spark.python.worker.faulthandler.enabled=true shows the function"
        ),
    ),
    (
        r"No module named '(beamish[\w.]*)'",
        SparkSetupError,
        f"a Python that Spark started has no module {{0!r}}: install or ship beamish, or set PYTHONPATH=beamish.zip there ({_DOCS})",
    ),
    (
        r'Cannot run program "([^"]*python[^"]*)"',
        SparkSetupError,
        f"Spark cannot run {{0!r}}: set PYSPARK_PYTHON to a Python (under Spark Connect its absolute path) that the driver's machine and every executor have ({_DOCS})",
    ),
    (
        r"Python worker (?:failed )?to connect back",
        SparkSetupError,
        (
            "a Python that Spark started did not answer within 10 seconds, which Spark fixes: the machine is overloaded, or its Python "
            "starts slowly (packages on a network disk); restart the query from its checkpoint, nothing was lost. Leave the query a free "
            f"core, and set spark.python.daemon.module=beamish.spark.daemon ({in_docs('Deployment', 'Fast worker start')})"
        ),
    ),
    (
        r"(\w+Sink)\.__call__\(\) missing 1 required positional argument: 'batch_id'",
        SinkError,
        "{0}: foreach gives it rows, and a sink takes batches: writeStream.foreachBatch(sink); nothing was written",
    ),
    (
        "DUPLICATED_METRICS_NAME",
        OptionError,
        (
            "bm.observe: the query has two observations of one name: observe its panes once, or give the other a name of its own: "
            "bm.observe(panes, name=...)"
        ),
    ),
    (
        "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
        SinkError,
        (
            "Delta's table has its files, but this session's catalog does not know the table, as an in-memory catalog does when its session "
            "ends: register it, CREATE TABLE name USING delta LOCATION '...', or configure a catalog that lasts (a Hive metastore: "
            ".enableHiveSupport()), and restart the query from its checkpoint; nothing of the batch was written"
        ),
    ),
    (
        (
            r"(DELTA_CONCURRENT_\w+|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|(?<=iceberg\.exceptions\.ValidationException: )"
            r"(?:Found (?:new )?conflicting (?:deleted |delete )?files|Cannot commit, (?:found new|missing)[\w ]*|Missing required files)"
            r"|(?<=iceberg\.exceptions\.)CommitFailedException)"
        ),
        SinkError,
        (
            "another writer, such as a compaction, committed to the table while the batch was merged ({0}); nothing of the batch was "
            "written: restart the query from its checkpoint, which merges it again"
        ),
    ),
    (
        r"(\S+)/state/\d+/_stateSchema/\S+ does not exist",
        StateError,
        f"{{0}} lacks the state schema, so the checkpoint {_MOVED}; else {_RESTORE}",
    ),
    (
        rf"CANNOT_LOAD_STATE_STORE[\s\S]*?(?:{_DAMAGE})|STDS_FAILED_TO_READ_OPERATOR_METADATA|\.load\.\n: java\.io\.EOFException",
        StateError,
        f"Spark cannot load the state of the checkpoint: a file is missing or damaged ({{cause}}): {_RESTORE}",
    ),
    (
        r"STREAMING_CHECKPOINT_MISSING_METADATA_FILE\] Checkpoint location (\S+)",
        StateError,
        (
            "{0} has offsets or commits, and no metadata: a bm.migrate that was interrupted left it (delete it, and migrate again), "
            f"or it lost a file: {_RESTORE}"
        ),
    ),
    (
        "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
        StateError,
        (
            "the checkpoint has offsets and no state: a bm.migrate that was interrupted left it (delete it, and migrate again), or it lost "
            f"the folder state: {_RESTORE}"
        ),
    ),
    (
        (
            r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
            r"|There are \[\d+\] sources in the checkpoint offsets and now there are \[\d+\]"
        ),
        StateError,
        (
            "the checkpoint has other operators or sources than the query: stages or inputs were added or removed, or others run together; "
            "nothing was written. apply(df, checkpoint=...) keeps what runs together in the checkpoint, apply(df, fuse=False) runs each stage apart, "
            "as versions before 0.2 did, and bm.migrate(spark, checkpoint, new_checkpoint, pipeline) carries the state over"
        ),
    ),
    (
        r"(?:Failed to read log file \S+ )?Incomplete log file|MismatchedInputException(?=[\s\S]*StreamMetadata)",
        StateError,
        f"Spark cannot read the checkpoint's metadata, offsets or commits: a file is damaged ({{cause}}): {_RESTORE}",
    ),
)
"""Known Spark errors: a pattern, the error it becomes, and its sentence, formatted with the matches."""


def _of_spark(error: BaseException) -> BeamishError | None:
    """The sentence for a known Spark error; None: not known."""
    text = _text(error)
    causes = _CAUSE.findall(text)
    for pattern, kind, sentence in _OF_SPARK:
        if found := re.search(pattern, text):
            cause = causes[-1] if causes else found[0].splitlines()[-1].lstrip(": ")
            result = kind(sentence.format(*found.groups(), cause=cause))
            result.__cause__ = error
            return result
    return None


def of(error: BaseException | None) -> BeamishError | None:
    r"""Extract the beamish error from Spark's exception.

    Args:
        error: the result of ``query.exception()``, or a caught exception; None: the query did not fail.

    Returns:
        the error raised in the worker, with its message only and ``error`` as its ``__cause__``, which has Spark's message and
        the trace; a ``StateError`` or ``SparkSetupError`` for a Spark error about a checkpoint or the workers' Python; None:
        another error.

    Example:
        >>> import beamish as bm
        >>> text = "Traceback (most recent call last):\n  File ...\nbeamish.errors.StateError: the checkpoint has 2 shards\n SQLSTATE: 38000"
        >>> spark_s = RuntimeError(f"[STREAM_FAILED] ... {text}")
        >>> bm.errors.of(spark_s)
        StateError('the checkpoint has 2 shards')
    """
    if error is None or isinstance(error, BeamishError):
        return error
    for traceback in reversed(_CHAINED.split(_text(error))):  # the last error of a chain is the one that was raised
        found = _raised_in(traceback)
        kind = globals().get(found[1]) if found else None
        if found and isinstance(kind, type) and issubclass(kind, BeamishError):
            end = _ENDS.search(traceback, found.end())
            result: BeamishError = kind(traceback[found.end() : end.start() if end else None].rstrip())
            result.__cause__ = error
            return result
    return _of_lost_state(error) or _of_spark(error)


def _raised_in(traceback: str, start: int = 0) -> re.Match[str] | None:
    """The error line of a traceback: right after the frames, since lines further down belong to a message; only Spark's messages are searched."""
    frames = _FRAMES.search(traceback, start)
    if frames is None:
        return _RAISED.search(traceback, start)
    found = _RAISED.match(traceback, frames.end())
    goes_on = found is None and _SPARKS.match(traceback, frames.end())
    return _raised_in(traceback, frames.end()) if goes_on else found


def _of_lost_state(error: BaseException) -> StateError | None:
    """The error of a query whose state lacks a file, in place of Spark's; None: another error."""
    text = _text(error)
    lost = _STATE_FILE.search(text)
    if lost is None or not _LOST.search(text):
        return None
    result = StateError(
        f"the state of partition {lost[2]} of operator {lost[1]} lacks the file {lost[0]}: it was removed, or the folder is from an "
        "earlier batch; restore the checkpoint from a copy, or start from a new one"
    )
    result.__cause__ = error
    return result
