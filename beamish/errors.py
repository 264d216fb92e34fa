"""The errors beamish raises. Each says the value, the rule it broke and the fix.

What is raised in a worker of Spark's reaches the driver as text within an exception of Spark's; ``of`` finds it there.

A message has the one value that is wrong, such as the arguments of a user's function that raised, and its key: never the whole row.
Where values must not stand in logs, the environment variable ``BEAMISH_HIDE_VALUES=1`` has ``(hidden)`` in their place (SECURITY.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any


class BeamishError(Exception):
    """Anything beamish raises on purpose; catch this to catch them all."""


class OptionError(BeamishError, ValueError):
    """An option was given a value that breaks its rule. The caller's fault: change the value."""


class PipelineError(BeamishError, ValueError):
    """Options that are fine one by one do not go together. The caller's fault: change one of them."""


class ColumnError(BeamishError, ValueError):
    """The data has no such column, or it has the wrong type. Rename, cast or select it first."""


class ScriptError(BeamishError, ValueError):
    """A test script steps back in time, names no input of the pipeline, or holds rows that cannot be one table. Fix it."""


class SqlError(BeamishError, ValueError):
    """The text given to ``bm.sql`` cannot be what it says. The caller's fault: the message shows the place and the way out.

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
    """The Spark session cannot run the pipeline as it is set up. The message has the line that sets it."""


class StateError(BeamishError, RuntimeError):
    """A checkpoint or a table's file is of another pipeline, shard count or format, damaged, or in use. It was not changed."""


class ClosedError(BeamishError, ValueError):
    """A call on a table that was closed. The caller's fault: open it again with the same ``path``, or close it later."""


class UserFunctionError(BeamishError, RuntimeError):
    """A user's function raised. The query stops; fix it and restart from the checkpoint; no data was lost.

    With ``on_error("drop")`` the row that it was called for is dropped instead.

    Attributes:
        group: the number of the group it was called for, where there is one; the engine adds its key and window.
        raised: what happened, without what to do.
    """

    group: int | None = None
    raised: str | None = None


class NumericOverflowError(BeamishError, OverflowError):
    """A sum does not fit its type, as Spark's ARITHMETIC_OVERFLOW. ``on_error("drop")`` drops the row that takes it over.

    Attributes:
        group: the number of the group whose sum overflowed, where it is known.
        raised: what happened, without what to do.
    """

    group: int | None = None
    raised: str | None = None


class BufferFullError(BeamishError, RuntimeError):
    """A suppress with ``when_full=bm.SHUT_DOWN`` would hold too much. Nothing is lost: restart with a larger buffer."""


class SinkError(BeamishError, RuntimeError):
    """A table does not take a batch: it does not fit, is another query's, or its database says no. Nothing of it was written."""


HIDE_VALUES = "BEAMISH_HIDE_VALUES"
"""The environment variable by which messages are without values of rows; 0 or empty: they have them."""
HIDDEN = "(hidden)"
"""What stands in a message where a value was."""


def values_are_hidden() -> bool:
    """Whether messages are without values of rows, in this process."""
    return os.environ.get(HIDE_VALUES, "") not in ("", "0")


def shown(value: Any) -> str:
    """A value of a row, as it stands in a message; only its class if its ``repr`` raises."""
    if values_are_hidden():
        return HIDDEN
    try:
        return _indented(repr(value))
    except Exception:  # noqa: BLE001 - a broken repr must not hide the error that is reported
        return f"a {type(value).__name__}"


def said(error: BaseException) -> str:
    """The class and the text of another's error, which may hold values of rows."""
    return f"{type(error).__name__}: {HIDDEN if values_are_hidden() else _indented(_text(error))}"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as raised:  # noqa: BLE001 - a broken str must not hide the error that is reported
        return f"(its str() raised {type(raised).__name__})"


def _indented(text: str) -> str:
    """A text whose further lines are indented, so that none of them reads as the line of an error in a traceback."""
    return text.replace("\n", "\n  ")


def cause(error: Exception) -> Exception | None:
    """What an error is raised from, since a trace shows its words too."""
    return None if values_are_hidden() else error


_RAISED = re.compile(r"^beamish\.errors\.(\w+): ", re.MULTILINE)
_LOST = re.compile(r"CANNOT_READ_STREAMING_STATE_FILE|FileNotFoundException")
_STATE_FILE = re.compile(r"\S*/state/(\d+)/(\d+)/[^\s,;]+")
_FRAMES = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*")
"""What stands before the line of the error that a traceback is of."""
_SPARKS = re.compile(r"(?:pyspark|py4j)\.")
_CHAINED = re.compile(
    r"\n\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n"
)
"""What stands between the tracebacks of an error and of the one that it led to."""
_ENDS = re.compile(r"\n SQLSTATE: |\n=== Streaming Query ===|\n\tat ")
"""What Spark, or a traceback, puts behind a message."""


_CAUSE = re.compile(r"^\s*Caused by: (?!.*(?:CANNOT_LOAD_STATE_STORE|awaitResult))(.+)$", re.MULTILINE)
_RESTORE = "restore the folder from a copy, or start from a new checkpoint"
_MOVED = (
    "was moved or copied, and Spark notes absolute paths in it, or it lost files; one that was moved is carried over by "
    "bm.migrate(spark, checkpoint, new_checkpoint, pipeline)"
)
_DAMAGE = "EOFException|ZipException|FileNotFound|does not exist|[Cc]orruption|[Cc]hecksum"
_OF_SPARK: Sequence[tuple[str, type[BeamishError], str]] = (
    (
        r"No module named '(beamish[\w.]*)'",
        SparkSetupError,
        "a Python that Spark started has no module {0!r}: install or ship beamish (docs/deployment.md), or set PYTHONPATH=beamish.zip there",
    ),
    (
        r'Cannot run program "([^"]*python[^"]*)"',
        SparkSetupError,
        "Spark cannot run {0!r}: set PYSPARK_PYTHON to a Python that the driver's machine and every executor have (docs/deployment.md)",
    ),
    (
        r"(\S+)/state/\d+/_stateSchema/\S+ does not exist",
        StateError,
        f"{{0}} has no schema of the state, so the checkpoint {_MOVED}; else {_RESTORE}",
    ),
    (
        rf"CANNOT_LOAD_STATE_STORE[\s\S]*?(?:{_DAMAGE})|STDS_FAILED_TO_READ_OPERATOR_METADATA|\.load\.\n: java\.io\.EOFException",
        StateError,
        f"Spark cannot load the state of the checkpoint, a file of it is missing or damaged ({{cause}}): {_RESTORE}",
    ),
    (
        r"(?:Failed to read log file \S+ )?Incomplete log file|MismatchedInputException(?=[\s\S]*StreamMetadata)",
        StateError,
        f"Spark cannot read the checkpoint's metadata, offsets or commits, a file of them is damaged ({{cause}}): {_RESTORE}",
    ),
)
"""Refusals of Spark's own: a pattern, the error that it becomes, and its sentence, with what the pattern found."""


def _of_spark(error: BaseException) -> BeamishError | None:
    """A refusal of Spark's own, in a sentence; None: it is not known."""
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
    r"""The error of beamish's that stopped a query, or that Spark's exception tells of.

    Args:
        error: what ``query.exception()`` gave, or what was caught; None: the query was not stopped by one.

    Returns:
        the error as it was raised in the worker, its message alone, with ``error`` as its ``__cause__``, which has Spark's words and
        the trace; of a refusal of Spark's own that concerns a checkpoint or the Python of its workers a ``StateError`` or
        ``SparkSetupError``; None: another error.

    Example:
        >>> import beamish as bm
        >>> text = "Traceback (most recent call last):\n  File ...\nbeamish.errors.StateError: the checkpoint has 2 shards\n SQLSTATE: 38000"
        >>> spark_s = RuntimeError(f"[STREAM_FAILED] ... {text}")
        >>> bm.errors.of(spark_s)
        StateError('the checkpoint has 2 shards')
    """
    if error is None or isinstance(error, BeamishError):
        return error
    for traceback in reversed(_CHAINED.split(_text(error))):  # the last of a chain is the one that went out
        found = _raised_in(traceback)
        kind = globals().get(found[1]) if found else None
        if found and isinstance(kind, type) and issubclass(kind, BeamishError):
            end = _ENDS.search(traceback, found.end())
            result: BeamishError = kind(traceback[found.end() : end.start() if end else None].rstrip())
            result.__cause__ = error
            return result
    return _of_lost_state(error) or _of_spark(error)


def _raised_in(traceback: str, start: int = 0) -> re.Match[str] | None:
    """The line of an error like ours: right after the frames, since a line further down is of a message, which only of Spark's is read on."""
    frames = _FRAMES.search(traceback, start)
    if frames is None:
        return _RAISED.search(traceback, start)
    found = _RAISED.match(traceback, frames.end())
    goes_on = found is None and _SPARKS.match(traceback, frames.end())
    return _raised_in(traceback, frames.end()) if goes_on else found


def _of_lost_state(error: BaseException) -> StateError | None:
    """The error of a query whose state lacks a file, in place of Spark's; None: it is another."""
    text = _text(error)
    lost = _STATE_FILE.search(text)
    if lost is None or not _LOST.search(text):
        return None
    result = StateError(
        f"the state of partition {lost[2]} of operator {lost[1]} lacks the file {lost[0]}: it was removed, or the folder is of an earlier batch; "
        "restore the checkpoint from a copy, or start from a new one"
    )
    result.__cause__ = error
    return result
