"""The Beam windowing model for Spark Structured Streaming: windows, triggers, accumulation modes, retractions."""

import sys
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036 - pip refuses it too, but a zip that travels with a job has no pip
    raise ImportError(
        f"beamish needs Python 3.11 or later, this is {sys.version.split()[0]}: run the driver and the workers (PYSPARK_PYTHON) with another"
    )

from beamish.exports import exported

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from beamish import accumulations, beam, errors, plot, sinks, testing, triggers
    from beamish.checkpoint.comparison import Change
    from beamish.checkpoint.inspection import Inspection, inspect
    from beamish.checkpoint.questions import (
        CheckpointState,
        Held,
        KeptRow,
        KeptWindow,
        ScriptState,
        StoredKey,
        StoredVersion,
    )
    from beamish.checkpoint.upgrade import Upgrade, check_upgrade, migrate
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
    from beamish.joining import as_of_join, merge, table_join
    from beamish.kernels.key_sets import Cube, GroupingSets, Rollup
    from beamish.kinds.over.options import (
        DenseRank,
        FirstValue,
        Lag,
        LastValue,
        Lead,
        Preceding,
        PrecedingRows,
        Rank,
        RowNumber,
        Unbounded,
    )
    from beamish.kinds.suppress.option import Buffer, Suppress, UntilTimeLimit, UntilWindowCloses
    from beamish.ledger import changelog, live
    from beamish.modes import (
        AT_MERGE,
        BOTH_INPUTS,
        EMIT_EARLY,
        FASTEST_INPUT,
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
    from beamish.pane import DropReason, Pane, PaneChange, PaneKind, PaneTiming, RowWindow, Window
    from beamish.pipeline import Pipeline
    from beamish.replays.replay import Replay, replay
    from beamish.spark.listener import MetricsListener
    from beamish.statement import Query, sql
    from beamish.versioned_table.table import Validity, Version, VersionedTable
    from beamish.watching import progress
    from beamish.watermarks import BoundedOutOfOrderness, ProcessingTimeLag, Punctuated, Watermark
    from beamish.windows import (
        AnchoredWindows,
        CalendarWindows,
        CountSessions,
        CountWindows,
        CumulativeWindows,
        FixedWindows,
        GlobalWindow,
        Lifetime,
        Rolling,
        Sessions,
        SlidingWindows,
        Span,
        Windowings,
        WindowOption,
        Within,
    )
else:
    __getattr__ = exported(
        __name__,
        {
            "beamish.accumulations": "accumulations",
            "beamish.beam": "beam",
            "beamish.errors": "errors BeamishError BufferFullError ClosedError ColumnError NumericOverflowError OptionError PipelineError ScriptError SinkError SparkSetupError SqlError StateError UserFunctionError",
            "beamish.plot": "plot",
            "beamish.sinks": "sinks",
            "beamish.testing": "testing",
            "beamish.triggers": "triggers",
            "beamish.checkpoint.comparison": "Change",
            "beamish.checkpoint.inspection": "Inspection inspect",
            "beamish.checkpoint.questions": "CheckpointState Held KeptRow KeptWindow ScriptState StoredKey StoredVersion",
            "beamish.checkpoint.upgrade": "Upgrade check_upgrade migrate",
            "beamish.joining": "as_of_join merge table_join",
            "beamish.kernels.key_sets": "Cube GroupingSets Rollup",
            "beamish.kinds.over.options": "DenseRank FirstValue Lag LastValue Lead Preceding PrecedingRows Rank RowNumber Unbounded",
            "beamish.kinds.suppress.option": "Buffer Suppress UntilTimeLimit UntilWindowCloses",
            "beamish.ledger": "changelog live",
            "beamish.modes": "AT_MERGE BOTH_INPUTS EMIT_EARLY FASTEST_INPUT LEFT_INPUT SHUT_DOWN SPILL WITH_NEXT_PANE AccumulationMode ClosingBehavior OnTimeBehavior RetractMerged TimestampCombiner WaitFor WhenFull",
            "beamish.pane": "DropReason Pane PaneChange PaneKind PaneTiming RowWindow Window",
            "beamish.pipeline": "Pipeline",
            "beamish.replays.replay": "Replay replay",
            "beamish.statement": "Query sql",
            "beamish.versioned_table.table": "Validity Version VersionedTable",
            "beamish.watching": "progress",
            "beamish.watermarks": "BoundedOutOfOrderness ProcessingTimeLag Punctuated Watermark",
            "beamish.windows": "AnchoredWindows CalendarWindows CountSessions CountWindows CumulativeWindows FixedWindows GlobalWindow Lifetime Rolling Sessions SlidingWindows Span Windowings WindowOption Within",
        },
    )

__version__ = "0.2.0.dev0"

__all__ = [
    "AT_MERGE",
    "BOTH_INPUTS",
    "EMIT_EARLY",
    "FASTEST_INPUT",
    "LEFT_INPUT",
    "SHUT_DOWN",
    "SPILL",
    "WITH_NEXT_PANE",
    "AccumulationMode",
    "AnchoredWindows",
    "BeamishError",
    "BoundedOutOfOrderness",
    "Buffer",
    "BufferFullError",
    "CalendarWindows",
    "Change",
    "CheckpointState",
    "ClosedError",
    "ClosingBehavior",
    "ColumnError",
    "CountSessions",
    "CountWindows",
    "Cube",
    "CumulativeWindows",
    "DenseRank",
    "DropReason",
    "FirstValue",
    "FixedWindows",
    "GlobalWindow",
    "GroupingSets",
    "Held",
    "Inspection",
    "KeptRow",
    "KeptWindow",
    "Lag",
    "LastValue",
    "Lead",
    "Lifetime",
    "Listener",
    "NumericOverflowError",
    "OnTimeBehavior",
    "OptionError",
    "Pane",
    "PaneChange",
    "PaneKind",
    "PaneTiming",
    "Pipeline",
    "PipelineError",
    "Preceding",
    "PrecedingRows",
    "ProcessingTimeLag",
    "Punctuated",
    "Query",
    "Rank",
    "Replay",
    "RetractMerged",
    "Rolling",
    "Rollup",
    "RowNumber",
    "RowWindow",
    "ScriptError",
    "ScriptState",
    "Sessions",
    "SinkError",
    "SlidingWindows",
    "Span",
    "SparkSetupError",
    "SqlError",
    "StateError",
    "StoredKey",
    "StoredVersion",
    "Suppress",
    "TimestampCombiner",
    "Unbounded",
    "UntilTimeLimit",
    "UntilWindowCloses",
    "Upgrade",
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
    "Within",
    "accumulations",
    "as_of_join",
    "beam",
    "changelog",
    "check_upgrade",
    "dropped",
    "errors",
    "inspect",
    "live",
    "merge",
    "migrate",
    "observe",
    "panes",
    "plot",
    "progress",
    "register",
    "replay",
    "sinks",
    "sql",
    "table_join",
    "testing",
    "triggers",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def panes(df: "DataFrame") -> "DataFrame":
    """The panes and retractions of a pipeline's output, without its dropped rows and their column.

    Args:
        df: the output of ``pipeline.apply``.

    Returns:
        the columns of ``df`` without ``dropped``.

    Raises:
        ColumnError: not the output of a pipeline.
    """
    from beamish.spark.split import panes as split

    return split(df)


def dropped(df: "DataFrame") -> "DataFrame":
    """The dropped rows of a pipeline ``with_dropped()``.

    Args:
        df: the output of ``pipeline.apply``.

    Returns:
        ``reason``, ``late_by`` (the watermark less the event time, in microseconds), ``window``, and the rows' own columns.

    Raises:
        ColumnError: not the output of a pipeline ``with_dropped()``.
    """
    from beamish.spark.split import dropped as split

    return split(df)


def register(spark: "SparkSession") -> None:
    """Prepare a session for pipelines that are applied without Spark calls: ``apply(..., schema=...)``.

    In a project of declarative pipelines call it once, at the top of the file, outside of query functions. Elsewhere a pipeline
    does it itself.

    Args:
        spark: the session.
    """
    from beamish.spark import register as tell

    tell(spark)


def observe(panes: "DataFrame", name: str = "beamish") -> "DataFrame":
    """The panes, with metrics in each batch's ``observedMetrics``: a Spark observation.

    The numbers are bigint, per batch: ``rows`` (put into windows, once per window), ``panes_early``, ``panes_on_time``,
    ``panes_late``, ``retractions``, ``dropped_due_to_lateness``, ``dropped_due_to_closed_window``, ``dropped_no_event_time``,
    ``dropped_event_time_out_of_range`` and those of the other reasons; over the shards called in the batch (``shards``) the sum of
    ``live_windows``, the greatest ``watermark_ms``, ``clock_ms`` and ``max_late_by_ms`` (maximum lateness of rows dropped from
    windows), the least ``next_due_ms``; ``by_shard``, a text, has ``live_windows`` and ``next_due_ms`` of each as JSON. With
    fixed windows, ``rows`` and the dropped ones add up to the input rows of each batch.

    Args:
        panes: the output of ``pipeline.apply``, unchanged. In a chain each upstream stage is observed as well, as ``name.0`` and
            so on. For other panes, such as stored ones, only metrics of their rows are counted; the rest is null.
        name: of the observation; unique in a query.

    Returns:
        the same panes.

    Raises:
        OptionError: the name is empty, or they are observed under it already.
        ColumnError: they are not panes.

    Example:
        ``bm.observe(events.transform(pipeline)).writeStream...``
    """
    from beamish.spark.runtime.observation import observe as observed

    return observed(panes, name)


def Listener(  # noqa: N802 - its class needs pyspark, which is imported here
    *,
    port: int | None = None,
    path: "str | Path | None" = None,
    name: str = "beamish",
    record: "str | Path | None" = None,
    spans: bool = False,
) -> "MetricsListener":
    """A listener that exports the progress of observed queries: as Prometheus metrics, as a record for ``bm.replay``, as OpenTelemetry spans.

    ``beamish_panes_total{query,kind,timing}``, ``beamish_dropped_total{query,reason}``, ``beamish_input_rows_total{query}``,
    ``beamish_watermark_lag_seconds{query}``, ``beamish_live_windows{query}``, ``beamish_state_bytes{query}``,
    ``beamish_next_firing_timestamp_seconds{query}``, ``beamish_watermark_timestamp_seconds{query}``, ``beamish_batches_total{query}``,
    ``beamish_batch_seconds_total{query}``; for Kafka, also without ``bm.observe``, ``beamish_kafka_max_offsets_behind{query,input}``,
    ``beamish_kafka_avg_offsets_behind{query,input}``, ``beamish_batches_behind{query,input}``. ``query`` is the query's name, or its id;
    ``input`` the topics.

    Args:
        port: the port of the metrics server, on the loopback interface; 0: any free port (see the listener's ``port``).
        path: a file rewritten after every batch, for node_exporter's textfile collector.
        name: as given to ``bm.observe``.
        record: a file to which the clock, the watermark and the offsets of each batch are appended. Spark's checkpoint keeps them for
            100 batches; ``bm.replay(record=...)`` goes further back with it.
        spans: report each batch as a span with its phases and stages, by the OpenTelemetry SDK of the application.

    Returns:
        for ``spark.streams.addListener``; ``close()`` stops the server.

    Raises:
        OptionError: none of port, path, record and spans, or a package is not installed: prometheus_client, opentelemetry-api.
    """
    from beamish.recording import Recorder
    from beamish.spark.listener import MetricsListener
    from beamish.tracing import BatchSpans
    from beamish.watching import PrometheusMetrics

    recorder = None if record is None else Recorder(record)
    needs_metrics = port is not None or path is not None or (recorder is None and not spans)
    metrics = PrometheusMetrics(port, path) if needs_metrics else None
    return MetricsListener(metrics, name, recorder, BatchSpans() if spans else None)
