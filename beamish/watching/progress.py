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
    """Show what a query does until it ends: rows, watermark, panes, retractions, dropped rows, live windows, state.

    In a terminal and in a notebook it is one view that changes (by ``rich``, the extra ``progress``), elsewhere lines.
    Panes and dropped rows are counted where the panes are observed: ``bm.observe(panes)``. Spark's own
    ``numRowsDroppedByWatermark`` counts none of beamish's.

    Args:
        query: the started query.
        name: as it was given to ``bm.observe``.
        every: of lines: one for so many batches, and one for the last.

    Returns:
        the totals. What the query raised, ``query.awaitTermination()`` raises.

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
    """A line for every so many batches."""

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
    """One view that changes: ``shown`` has a method ``update``."""

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
        display: Any = import_module("IPython.display").display  # what rich would do by itself needs ipywidgets
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
    """A console that can show a live view; None: there is none."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console()
    return console if console.is_terminal or console.is_jupyter else None
