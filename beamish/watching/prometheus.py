"""Totals as Prometheus metrics, in a file or on a loopback port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from beamish.addresses import printable
from beamish.contract.counts import DROPPED, PANES
from beamish.errors import OptionError
from beamish.pane import PaneKind
from beamish.watching.totals import BatchCounts, Totals

_GAUGES = {
    "beamish_watermark_lag_seconds": "How far the watermark was behind the clock when the last batch began",
    "beamish_live_windows": "Stored windows",
    "beamish_state_bytes": "Memory that the state store uses",
    "beamish_next_firing_timestamp_seconds": "The watermark at which something is due next, in seconds since the epoch",
}


class PrometheusMetrics:
    """Metrics of all observed queries.

    Args:
        port: the port of the metrics server, on the loopback interface; 0: any free port; None: no server.
        path: a file rewritten after every batch, for node_exporter's textfile collector; None: no file.

    Attributes:
        port: of the metrics server.

    Raises:
        OptionError: both missing or one invalid, or prometheus_client is not installed.
    """

    def __init__(self, port: int | None, path: str | Path | None) -> None:
        if (port is None and path is None) or (port is not None and type(port) is not int):
            raise OptionError(
                f"Listener(port={printable(port)}, path={printable(path)}): give a port (0: any free one), or the path of a file, or both"
            )
        try:
            import prometheus_client as prometheus
        except ImportError:
            raise OptionError(
                "Listener(...): the package prometheus_client is not installed: pip install prometheus-client (the extra 'prometheus')"
            ) from None
        self._write, self._path = prometheus.write_to_textfile, path
        self._registry = registry = prometheus.CollectorRegistry()
        self._totals: dict[str, Totals] = {}
        self._panes = prometheus.Counter(
            "beamish_panes", "Panes and retractions", ["query", "kind", "timing"], registry=registry
        )
        self._dropped = prometheus.Counter(
            "beamish_dropped", "Rows that are in no pane", ["query", "reason"], registry=registry
        )
        self._rows = prometheus.Counter("beamish_input_rows", "Rows of the sources", ["query"], registry=registry)
        self._skipped = prometheus.Counter(
            "beamish_skipped", "Records of the sources that are not changes of a row", ["query"], registry=registry
        )
        self._gauges: dict[str, Any] = {
            name: prometheus.Gauge(name, words, ["query"], registry=registry) for name, words in _GAUGES.items()
        }
        self._server: Any = None
        self.port = port
        if port is not None:
            self._server, _ = prometheus.start_http_server(port, addr="127.0.0.1", registry=registry)
            self.port = self._server.server_port

    def add(self, query: str, seen: BatchCounts) -> None:
        """Add a batch of a query."""
        totals = self._totals.setdefault(query, Totals())
        totals.add(seen)
        self._rows.labels(query).inc(seen.rows)
        self._skipped.labels(query).inc(seen.skipped)
        for timing, name in PANES.items():
            self._panes.labels(query, PaneKind.PANE.value, timing.value).inc(seen.counts.get(name) or 0)
        self._panes.labels(query, PaneKind.RETRACTION.value, "").inc(seen.counts.get("retractions") or 0)
        for reason, name in DROPPED.items():
            self._dropped.labels(query, reason.value).inc(seen.counts.get(name) or 0)
        due = totals.next_due
        values = (totals.lag_seconds, totals.live_windows, totals.state_bytes, None if due is None else due.timestamp())
        for gauge, value in zip(self._gauges.values(), values, strict=True):
            if value is not None:
                gauge.labels(query).set(value)
        if self._path is not None:
            self._write(str(self._path), self._registry)

    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
