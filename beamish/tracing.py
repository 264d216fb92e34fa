"""Micro-batches as OpenTelemetry spans: one for each batch, and below it one for each of its phases and stateful operators.

Needs opentelemetry-api (the extra ``otel``); where spans are sent, the application's own OpenTelemetry SDK determines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from beamish.errors import OptionError
from beamish.watching import BatchCounts

_PHASES = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets")
"""The phases of a batch in the order in which Spark runs them; ``addBatch`` runs the stages."""
_MS = 1_000_000
"""Nanoseconds of a millisecond."""


class BatchSpans:
    """Reports batches as spans of the tracer ``beamish``.

    Raises:
        OptionError: opentelemetry-api is not installed.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import trace
        except ImportError:
            raise OptionError(
                "Listener(spans=True): the package opentelemetry-api is not installed: pip install opentelemetry-api (the extra 'otel')"
            ) from None
        self._trace = trace
        self._tracer = trace.get_tracer("beamish")

    def add(self, query: str, progress: Any, seen: BatchCounts) -> None:
        """Report a batch, after its end.

        Args:
            query: its name.
            progress: Spark's.
            seen: its counts.
        """
        start_ns = _ns(progress.timestamp)
        durations: Mapping[str, int] = progress.durationMs
        attributes: dict[str, Any] = {
            "beamish.query": query,
            "beamish.query.id": str(progress.id),
            "beamish.batch": seen.batch,
            "beamish.rows": seen.rows,
            "beamish.state.bytes": seen.state_bytes,
        }
        if seen.watermark is not None:
            attributes["beamish.watermark"] = seen.watermark.isoformat()
        attributes |= {f"beamish.{name}": count for name, count in seen.counts.items() if isinstance(count, int)}
        span = self._tracer.start_span(f"batch {query}", start_time=start_ns, attributes=attributes)
        within = self._trace.set_span_in_context(span)
        for name, first_ns, last_ns in _phases(start_ns, durations):
            phase = self._tracer.start_span(name, within, start_time=first_ns)
            if name == "addBatch":
                below = self._trace.set_span_in_context(phase)
                for operator, took_ms, counted in _operators(progress):
                    stage = self._tracer.start_span(operator, below, start_time=first_ns, attributes=counted)
                    stage.end(min(first_ns + took_ms * _MS, last_ns))
            phase.end(last_ns)
        span.end(start_ns + max(durations.get("triggerExecution", 0), sum(map(durations.get, _known(durations)))) * _MS)  # type: ignore[arg-type]


def _known(durations: Mapping[str, int]) -> list[str]:
    return [name for name in _PHASES if name in durations]


def _phases(start_ns: int, durations: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """The name, start and end of each phase: Spark reports durations, and runs them one after another."""
    for name in _known(durations):
        end_ns = start_ns + durations[name] * _MS
        yield name, start_ns, end_ns
        start_ns = end_ns


def _operators(progress: Any) -> Iterator[tuple[str, int, Mapping[str, int]]]:
    """The name, the milliseconds of its tasks together, and the counts of each stateful operator, the stages of a pipeline."""
    for number, one in enumerate(progress.stateOperators):
        took_ms = one.allUpdatesTimeMs + one.allRemovalsTimeMs + one.commitTimeMs
        counted = {
            "beamish.state.rows": one.numRowsTotal,
            "beamish.state.rows.updated": one.numRowsUpdated,
            "beamish.state.bytes": one.memoryUsedBytes,
            "beamish.tasks.ms": took_ms,
        }
        yield f"operator {number} {one.operatorName}", took_ms, counted


def _ns(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000) * _MS
