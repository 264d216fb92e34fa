"""Observation of a running query (docs/sinks.md#metrics): its totals, batch by batch, its progress in a terminal, and Prometheus' metrics."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import attrs

from beamish.addresses import printable
from beamish.contract.drops import DROPPED, PANES, SKIPPED
from beamish.errors import OptionError
from beamish.pane import DropReason, PaneKind, PaneTiming


@attrs.frozen
class Behind:
    """How far a query was behind the end of its Kafka topics when a batch began.

    Attributes:
        most: records of the partition that is furthest behind.
        mean: records per partition.
        batches: batches of as many rows as this one had that are left to read; None: unknown, since it had no rows.
    """

    most: float
    mean: float
    batches: float | None


_TOPICS = re.compile(r"KafkaV2\[(?:Subscribe|SubscribePattern|Assign)\[(.*)\]\]")


def _behind(sources: Sequence[Any]) -> Iterator[tuple[str, Behind]]:
    """How far each Kafka source was behind, by its topics; Spark's name of it where that is not known."""
    for source in sources:
        if "maxOffsetsBehindLatest" in source.metrics:
            found = _TOPICS.fullmatch(source.description)
            most, mean = (float(source.metrics[f"{of}OffsetsBehindLatest"]) for of in ("max", "avg"))
            left = _records(source.latestOffset) - _records(source.endOffset)
            batches = left / source.numInputRows if source.numInputRows else None if left else 0.0
            yield found[1] if found else source.description, Behind(most, mean, batches)


def _records(offset: str) -> int:
    """The sum of Kafka's offsets."""
    try:
        return sum(of for partitions in json.loads(offset).values() for of in partitions.values())
    except (ValueError, AttributeError):  # "None", where Spark knows no offset
        return 0


@attrs.frozen
class BatchCounts:
    """Metrics of a micro-batch.

    Attributes:
        batch: its number.
        rows: rows read from the sources.
        seconds: its duration.
        began: its start.
        watermark: its watermark; None: there was none yet.
        state_bytes: memory used by the state store.
        counts: the metrics of ``bm.observe``, by name; empty: not observed, or no shard was called. None: unknown.
        shards: metrics of each called shard, by number: ``live_windows`` and ``next_due_ms``, if present.
        skipped: records of the sources that are not changes of a row, such as Debezium's tombstones.
        behind: of each Kafka input, by its name.
    """

    batch: int
    rows: int
    seconds: float
    began: datetime
    watermark: datetime | None
    state_bytes: int
    counts: Mapping[str, int | None]
    shards: Mapping[int, Mapping[str, int]] = {}
    skipped: int = 0
    behind: Mapping[str, Behind] = {}

    @classmethod
    def read(cls, progress: Any, name: str) -> BatchCounts:
        """Read Spark's ``StreamingQueryProgress``; ``name`` as given to ``bm.observe``."""
        counts = dict(_counts(progress.observedMetrics.get(name)))
        by_shard = counts.pop("by_shard", None)
        stated = progress.eventTime.get("watermark")
        watermark_ms = counts.get("watermark_ms")
        watermark = None if watermark_ms is None else _at_ms(watermark_ms)
        if watermark is None and stated and not stated.startswith("1970-01-01T00:00:00"):
            watermark = _read_time(stated)
        return cls(
            progress.batchId,
            progress.numInputRows,
            progress.durationMs.get("triggerExecution", 0) / 1000,
            _read_time(progress.timestamp),
            watermark,
            sum(operator.memoryUsedBytes for operator in progress.stateOperators),
            counts,
            {one["shard"]: one for one in json.loads(by_shard or "[]")},
            sum(
                _counts(observed).get(SKIPPED) or 0
                for name, observed in progress.observedMetrics.items()
                if name.startswith(SKIPPED)
            ),
            dict(_behind(progress.sources)),
        )


@attrs.define
class Totals:
    """Totals of a query: counts are summed over batches, others are the last reported values.

    Attributes:
        batches: number of batches.
        rows: rows read from the sources.
        seconds: total duration of the batches.
        panes: panes by their timing.
        retractions: retractions.
        dropped: dropped rows by the reason.
        skipped: records of the sources that are not changes of a row, such as Debezium's tombstones; counted without ``bm.observe`` too.
        taken: rows put into windows, once per window.
        watermark: the current watermark; None at first.
        began: start of the last batch.
        state_bytes: memory used by the state store.
        max_late_by_ms: maximum lateness of dropped rows; None: there was none.
        is_observed: whether a batch was observed so far.
    """

    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    panes: dict[PaneTiming, int] = attrs.Factory(lambda: dict.fromkeys(PANES, 0))
    retractions: int = 0
    dropped: dict[DropReason, int] = attrs.Factory(lambda: dict.fromkeys(DROPPED, 0))
    skipped: int = 0
    taken: int = 0
    watermark: datetime | None = None
    began: datetime | None = None
    state_bytes: int = 0
    max_late_by_ms: int | None = None
    is_observed: bool = False
    _shards: dict[int, Mapping[str, int]] = attrs.Factory(dict)

    def add(self, seen: BatchCounts) -> None:
        """Add a batch."""
        counts = seen.counts
        self.batches += 1
        self.is_observed |= bool(counts)
        self.rows += seen.rows
        self.skipped += seen.skipped
        self.seconds += seen.seconds
        self.began, self.state_bytes = seen.began, seen.state_bytes
        self.watermark = seen.watermark or self.watermark
        for timing, name in PANES.items():
            self.panes[timing] += counts.get(name) or 0
        for reason, name in DROPPED.items():
            self.dropped[reason] += counts.get(name) or 0
        self.retractions += counts.get("retractions") or 0
        self.taken += counts.get("rows") or 0
        late_by_ms = counts.get("max_late_by_ms")
        if late_by_ms is not None:
            self.max_late_by_ms = max(late_by_ms, self.max_late_by_ms or late_by_ms)
        if seen.batch == 0:  # another checkpoint with the same name
            self._shards.clear()
        self._shards.update(seen.shards)  # a shard that was not called is unchanged

    @property
    def live_windows(self) -> int | None:
        """Stored windows in the shards called so far; None: none called, or not counted."""
        kept = [shard["live_windows"] for shard in self._shards.values() if "live_windows" in shard]
        return sum(kept) if kept else None

    @property
    def next_due(self) -> datetime | None:
        """The next due watermark in these shards; None: nothing is due, or unknown."""
        due = [shard["next_due_ms"] for shard in self._shards.values() if "next_due_ms" in shard]
        return _at_ms(min(due)) if due else None

    @property
    def lag_seconds(self) -> float | None:
        """How far the watermark was behind the clock when the last batch began."""
        if self.watermark is None or self.began is None:
            return None
        return (self.began - self.watermark).total_seconds()

    @property
    def all_dropped(self) -> int:
        """Dropped rows for all reasons."""
        return sum(self.dropped.values())

    def words(self) -> Iterator[tuple[str, str]]:
        """Lines of subject and text."""
        speed = f" ({self.rows / self.seconds:,.0f} per second)" if self.seconds else ""
        yield "rows", f"{self.rows:,}{speed}"
        if self.skipped:
            yield "skipped", f"{self.skipped:,} without a change"
        lag = self.lag_seconds
        # Meaningless when replaying last year's rows.
        off = f", {_span(lag)} behind the clock" if lag is not None and 0 <= lag < 30 * 86_400 else ""
        off = f", {_span(-lag)} ahead of the clock" if lag is not None and lag <= -1 else off
        yield "watermark", "none yet" if self.watermark is None else f"{self.watermark:%Y-%m-%d %H:%M:%S}{off}"
        if not self.is_observed:
            yield "panes", "not observed: bm.observe(panes) counts them"
            yield "state", f"{self.state_bytes / 2**20:,.1f} MiB"
            return
        by_timing = ", ".join(f"{count:,} {timing.lower().replace('_', ' ')}" for timing, count in self.panes.items())
        yield "panes", by_timing
        yield "retractions", f"{self.retractions:,}"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items() if count)
        yield "dropped", reasons or "0"
        if self.live_windows is not None:
            yield "live windows", f"{self.live_windows:,}"
        yield "state", f"{self.state_bytes / 2**20:,.1f} MiB"


def _counts(observed: Any) -> Mapping[str, Any]:
    """Spark's observation as a dict: a row; on Spark Connect (seen in 4.3) values and a schema."""
    if observed is None:
        return {}
    row: Mapping[str, Any] = observed.asDict()
    if set(row) == {"values", "schema"}:
        return dict(zip((field["name"] for field in row["schema"]["fields"]), row["values"], strict=True))
    return row


def _span(seconds: float) -> str:
    """A rough duration."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _at_ms(ms: int) -> datetime | None:
    """The instant; None: beyond the range of datetimes, such as the end of time."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


_POLL_SECONDS = 0.2


class View(Protocol):
    """Shows totals after a batch."""

    def show(self, batch: int, totals: Totals) -> None: ...


def progress(query: Any, *, name: str = "beamish", every: int = 1) -> Totals:
    """Show a query's progress until it ends: rows, watermark, panes, retractions, dropped rows, live windows, state.

    In a terminal and in a notebook it is a live view (with ``rich``, the extra ``progress``), elsewhere lines. Panes and dropped
    rows are counted if the panes are observed: ``bm.observe(panes)``. Spark's own ``numRowsDroppedByWatermark`` does not count
    rows dropped by beamish.

    Args:
        query: the started query.
        name: as given to ``bm.observe``.
        every: print a line for every n batches, and for the last one.

    Returns:
        the totals. Errors of the query are raised by ``query.awaitTermination()``.

    Raises:
        OptionError: not a query, or ``every`` is below 1.
    """
    if not (hasattr(query, "recentProgress") and hasattr(query, "isActive")):
        raise OptionError(
            f"progress({type(query).__name__}): must be a started query: query = df.transform(pipeline).writeStream...start(), then bm.progress(query)"
        )
    if type(every) is not int or every < 1:
        raise OptionError(f"progress(every={every!r}): must be a whole number of at least 1")
    totals, shown = Totals(), -1
    with _view(query, every) as view:
        while True:
            active = query.isActive
            for batch in query.recentProgress:
                if batch.batchId > shown:
                    shown = batch.batchId
                    totals.add(BatchCounts.read(batch, name))
                    view.show(shown, totals)
            if not active:
                return totals
            time.sleep(_POLL_SECONDS)


class _Lines:
    """Prints a line for every n batches."""

    def __init__(self, every: int) -> None:
        self._every, self._last, self._printed = every, "", ""

    def show(self, batch: int, totals: Totals) -> None:
        words = "; ".join(f"{subject} {words}" for subject, words in totals.words())
        self._last = f"batch {batch}: {words}"
        if totals.batches % self._every == 1 % self._every:
            self.end()

    def end(self) -> None:
        if self._last != self._printed:
            print(self._last, flush=True)  # noqa: T201 - that is what it is for
            self._printed = self._last


class _Live:
    """A live view: ``shown`` has a method ``update``."""

    def __init__(self, shown: Any, title: str) -> None:
        self._shown, self._title = shown, title

    def show(self, batch: int, totals: Totals) -> None:
        from rich.table import Table

        table = Table(title=f"{self._title}: batch {batch}", show_header=False, title_justify="left")
        for subject, words in totals.words():
            table.add_row(subject, words)
        self._shown.update(table)


@contextmanager
def _view(query: Any, every: int) -> Iterator[View]:
    console, title = _console(), str(query.name or "query")
    if console is not None and console.is_jupyter:
        display: Any = import_module("IPython.display").display  # rich's own display needs ipywidgets
        yield _Live(display("no batch yet", display_id=True), title)
        return
    if console is not None:
        from rich.live import Live

        with Live(console=console, refresh_per_second=4) as live:
            yield _Live(live, title)
        return
    lines = _Lines(every)
    yield lines
    lines.end()


def _console() -> Any:
    """A console that supports a live view, or None."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console()
    return console if console.is_terminal or console.is_jupyter else None


_BEHIND = {
    "beamish_kafka_max_offsets_behind": "Records that the partition furthest behind has after the last batch's",
    "beamish_kafka_avg_offsets_behind": "Records that a partition has after the last batch's, on average",
    "beamish_batches_behind": "Batches of the last one's size that are left to read",
}
_GAUGES = {
    "beamish_watermark_timestamp_seconds": "The watermark, in seconds since the epoch",
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
                f"Listener(port={printable(port)}, path={printable(path)}): give a port (0: any free one), or the path of a file, or both; or record=, or spans=True"
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
        self._batches = prometheus.Counter("beamish_batches", "Batches", ["query"], registry=registry)
        self._seconds = prometheus.Counter(
            "beamish_batch_seconds", "Duration of the batches", ["query"], registry=registry
        )
        self._behind: list[Any] = [
            prometheus.Gauge(name, words, ["query", "input"], registry=registry) for name, words in _BEHIND.items()
        ]
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
        self._batches.labels(query).inc()
        self._seconds.labels(query).inc(seen.seconds)
        for name, behind in seen.behind.items():
            for gauge, value in zip(self._behind, attrs.astuple(behind), strict=True):
                if value is not None:
                    gauge.labels(query, name).set(value)
        for timing, name in PANES.items():
            self._panes.labels(query, PaneKind.PANE.value, timing.value).inc(seen.counts.get(name) or 0)
        self._panes.labels(query, PaneKind.RETRACTION.value, "").inc(seen.counts.get("retractions") or 0)
        for reason, name in DROPPED.items():
            self._dropped.labels(query, reason.value).inc(seen.counts.get(name) or 0)
        due = totals.next_due
        stood = None if totals.watermark is None else totals.watermark.timestamp()
        values = (
            stood,
            totals.lag_seconds,
            totals.live_windows,
            totals.state_bytes,
            None if due is None else due.timestamp(),
        )
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
