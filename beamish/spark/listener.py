"""A listener that forwards Spark's progress events to metrics."""

from __future__ import annotations

from collections import defaultdict
from threading import Event
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from beamish.recording import RecordedBatch, Recorder
from beamish.tracing import BatchSpans
from beamish.watching import BatchCounts, PrometheusMetrics


class MetricsListener(StreamingQueryListener):
    """See ``bm.Listener``."""

    def __init__(
        self,
        metrics: PrometheusMetrics | None,
        name: str,
        recorder: Recorder | None = None,
        spans: BatchSpans | None = None,
    ) -> None:
        self._metrics, self._name, self._recorder, self._spans = metrics, name, recorder, spans
        self._ended: defaultdict[str, Event] = defaultdict(Event)

    @property
    def port(self) -> int | None:
        """The port of the metrics server; None: no server."""
        return None if self._metrics is None else self._metrics.port

    def wait(self, query: Any, seconds: float = 30) -> None:
        """Wait until all batches of a stopped query are counted: Spark's last event is asynchronous.

        Args:
            query: the query.
            seconds: the timeout.

        Raises:
            TimeoutError: no event of its end within the timeout.
        """
        if not self._ended[str(query.runId)].wait(seconds):
            raise TimeoutError(f"wait({query.name or query.id}): no event of its end within {seconds} seconds")

    def close(self) -> None:
        """Stop the server."""
        if self._metrics is not None:
            self._metrics.close()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to count yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress
        query, seen = progress.name or str(progress.id), BatchCounts.read(progress, self._name)
        if self._metrics is not None:
            self._metrics.add(query, seen)
        if self._recorder is not None:
            self._recorder.add(RecordedBatch.read(progress))
        if self._spans is not None:
            self._spans.add(query, progress, seen)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Totals remain."""
        self._ended[str(event.runId)].set()
