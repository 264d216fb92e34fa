"""The errors beamish raises. Each says the value, the rule it broke and the fix."""


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

    Attributes:
        group: the number of the group it was called for, where there is one; the engine adds its key and window.
    """

    group: int | None = None


class NumericOverflowError(BeamishError, OverflowError):
    """A sum does not fit its type, as Spark's ARITHMETIC_OVERFLOW. Cast the column to a wider type first.

    Attributes:
        group: the number of the group whose sum overflowed, where it is known.
    """

    group: int | None = None


class BufferFullError(BeamishError, RuntimeError):
    """A suppress with ``when_full=bm.SHUT_DOWN`` would hold too much. Nothing is lost: restart with a larger buffer."""


class SinkError(BeamishError, RuntimeError):
    """A table does not take a batch: it does not fit, is another query's, or its database says no. Nothing of it was written."""
