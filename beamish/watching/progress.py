"""A query's progress in a terminal, in a notebook, or as lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

from beamish.errors import OptionError
from beamish.watching.totals import BatchCounts, Totals

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
        OptionError: ``every`` is below 1.
    """
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
