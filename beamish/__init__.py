"""The Beam windowing model for Spark Structured Streaming: windows, triggers, accumulation modes, retractions."""

from typing import TYPE_CHECKING

from beamish import accumulations, sinks, testing, triggers
from beamish.errors import (
    BeamishError,
    BufferFullError,
    ClosedError,
    ColumnError,
    NumericOverflowError,
    OptionError,
    PipelineError,
    ScriptError,
    SinkError,
    SparkSetupError,
    SqlError,
    StateError,
    UserFunctionError,
)
from beamish.joining import as_of_join, merge
from beamish.modes import (
    AT_MERGE,
    BOTH_INPUTS,
    EMIT_EARLY,
    LEFT_INPUT,
    SHUT_DOWN,
    SPILL,
    WITH_NEXT_PANE,
    AccumulationMode,
    ClosingBehavior,
    OnTimeBehavior,
    RetractMerged,
    TimestampCombiner,
    WaitFor,
    WhenFull,
)
from beamish.pane import DropReason, Pane, PaneKind, PaneTiming, Window
from beamish.pipeline import Pipeline
from beamish.state import CheckpointState, Held, ScriptState, StoredVersion
from beamish.statement import Query, sql
from beamish.suppress import Buffer, Suppress, UntilTimeLimit, UntilWindowCloses
from beamish.versioned_table import Validity, Version, VersionedTable
from beamish.watermarks import BoundedOutOfOrderness, ProcessingTimeLag, Punctuated, Watermark
from beamish.windows import (
    CalendarWindows,
    FixedWindows,
    GlobalWindow,
    Sessions,
    SlidingWindows,
    Windowings,
    WindowOption,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__version__ = "0.1.0"

__all__ = [
    "AT_MERGE",
    "BOTH_INPUTS",
    "EMIT_EARLY",
    "LEFT_INPUT",
    "SHUT_DOWN",
    "SPILL",
    "WITH_NEXT_PANE",
    "AccumulationMode",
    "BeamishError",
    "BoundedOutOfOrderness",
    "Buffer",
    "BufferFullError",
    "CalendarWindows",
    "CheckpointState",
    "ClosedError",
    "ClosingBehavior",
    "ColumnError",
    "DropReason",
    "FixedWindows",
    "GlobalWindow",
    "Held",
    "NumericOverflowError",
    "OnTimeBehavior",
    "OptionError",
    "Pane",
    "PaneKind",
    "PaneTiming",
    "Pipeline",
    "PipelineError",
    "ProcessingTimeLag",
    "Punctuated",
    "Query",
    "RetractMerged",
    "ScriptError",
    "ScriptState",
    "Sessions",
    "SinkError",
    "SlidingWindows",
    "SparkSetupError",
    "SqlError",
    "StateError",
    "StoredVersion",
    "Suppress",
    "TimestampCombiner",
    "UntilTimeLimit",
    "UntilWindowCloses",
    "UserFunctionError",
    "Validity",
    "Version",
    "VersionedTable",
    "WaitFor",
    "Watermark",
    "WhenFull",
    "Window",
    "WindowOption",
    "Windowings",
    "accumulations",
    "as_of_join",
    "dropped",
    "merge",
    "panes",
    "sinks",
    "sql",
    "testing",
    "triggers",
]


def panes(df: "DataFrame") -> "DataFrame":
    """The panes and retractions of a pipeline's output, without its dropped rows and their column.

    Args:
        df: what ``pipeline.apply`` gave.

    Returns:
        the columns of ``df`` but for ``dropped``.

    Raises:
        ColumnError: it is not what a pipeline gave.
    """
    from beamish.spark import panes as split

    return split(df)


def dropped(df: "DataFrame") -> "DataFrame":
    """The dropped rows of a pipeline ``with_dropped()``.

    Args:
        df: what ``pipeline.apply`` gave.

    Returns:
        ``reason``, ``late_by`` (the watermark less the event time, in microseconds), ``window``, and the rows' own columns.

    Raises:
        ColumnError: it is not what a pipeline ``with_dropped()`` gave.
    """
    from beamish.spark import dropped as split

    return split(df)
