"""Spark's progress events, handed on to metrics."""

from __future__ import annotations

from collections import defaultdict
from threading import Event
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from beamish.watching.prometheus import PrometheusMetrics
from beamish.watching.totals import BatchCounts


class MetricsListener(StreamingQueryListener):
    """See ``bm.Listener``."""

    def __init__(self, metrics: PrometheusMetrics, name: str) -> None:
        self._metrics, self._name = metrics, name
        self._ended: defaultdict[str, Event] = defaultdict(Event)

    @property
    def port(self) -> int | None:
        """Where the metrics are served; None: nowhere."""
        return self._metrics.port

    def wait(self, query: Any, seconds: float = 30) -> None:
        """Wait until all batches of a query that has ended are counted: Spark tells of them a moment later.

        Args:
            query: the query.
            seconds: how long at most.

        Raises:
            TimeoutError: Spark has not told of its end.
        """
        if not self._ended[str(query.runId)].wait(seconds):
            raise TimeoutError(f"wait({query.name or query.id}): Spark has not told of its end in {seconds} seconds")

    def close(self) -> None:
        """Serve no longer."""
        self._metrics.close()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing is counted yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress
        self._metrics.add(progress.name or str(progress.id), BatchCounts.read(progress, self._name))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing has changed."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """What was counted stays."""
        self._ended[str(event.runId)].set()
