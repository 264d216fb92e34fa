"""Counts of what a check has drawn; a check that drew nothing of interest fails as vacuous."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import numpy as np

from beamish.flow import Flow
from beamish.instants import instant_us
from beamish.kernels.field_paths import value_of
from beamish.pane import Pane, PaneKind, PaneTiming
from beamish.script import Row, as_step, watermark_of
from beamish.source import Source
from beamish.testing.stream import Runnable, TestStream
from beamish.windows.option import Bounds, WindowOption


class VacuousError(AssertionError):
    """A check drew too little of interest to show anything."""


@attrs.define
class Seen:
    """Counts of what the examples of a check had in them, such as late rows, and of the examples that had it."""

    examples: int = 0
    counts: Counter[str] = attrs.Factory(Counter)
    in_examples: Counter[str] = attrs.Factory(Counter)

    def add(self, counts: Mapping[str, int]) -> None:
        """Count another example."""
        self.examples += 1
        self.counts.update(counts)
        self.in_examples.update(name for name, count in counts.items() if count)

    def check(self, *wanted: str, floor: float = 0.02) -> Seen:
        """Require that at least this share of the examples had each of these in them; returns itself.

        Raises:
            VacuousError: fewer had.
        """
        rare = [name for name in wanted if self.in_examples[name] < max(floor * self.examples, floor > 0)]
        if rare:
            raise VacuousError(
                f"the check shows nothing: fewer than {floor:.0%} of its examples had {', '.join(rare)} ({self}); "
                "draw other rows, or more examples"
            )
        return self

    def __str__(self) -> str:
        counted = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"{self.examples} examples: {counted}" if counted else f"{self.examples} examples"


def facts(pipeline: Runnable, script: TestStream, panes: Iterable[Pane]) -> dict[str, int]:
    """Numbers of rows, late ones, duplicates, merged windows and panes of a run (``with_dropped``), by name."""
    arrived = [one for leaf in pipeline.flow.completed.leaves for one in arrivals(*leaf, script)]
    texts = [repr((one.source.name, sorted(one.row.items(), key=repr))) for one in arrived]
    kinds = Counter(pane.timing if pane.kind is PaneKind.PANE else pane.kind for pane in panes)
    return {
        "rows": len(arrived),
        "late rows": sum(one.is_late for one in arrived),
        "duplicates": len(texts) - len(set(texts)),
        "dropped rows": kinds[PaneKind.DROPPED],
        "merged windows": _merged_windows(arrived),
        "early panes": kinds[PaneTiming.EARLY],
        "on-time panes": kinds[PaneTiming.ON_TIME],
        "late panes": kinds[PaneTiming.LATE],
        "retractions": kinds[PaneKind.RETRACTION],
    }


@attrs.frozen
class Arrival:
    """A row, its windows by one option, and the watermark of its input when it arrives."""

    source: Source
    row: Row
    option: WindowOption | None
    windows: Sequence[Bounds]
    watermark_us: int | None

    @property
    def is_late(self) -> bool:
        """Whether the watermark has passed the end of each of its windows."""
        ends = [end for _, end in self.windows]
        return self.watermark_us is not None and bool(ends) and max(ends) <= self.watermark_us


def arrivals(source: Source, flow: Flow, _: int, script: TestStream) -> Iterator[Arrival]:
    """The rows of a source, in each of its windowings."""
    window, watermark_us = flow.stage.core.declared("window"), None
    options = (None,) if window is None else (*window.windowings.values(),) or (window,)
    for step in map(as_step, script.events):
        moved_us = watermark_of(source, step)
        watermark_us = watermark_us if moved_us is None else moved_us
        for row in step.rows if step.input == source.name else ():
            for option in options:
                yield Arrival(source, row, option, _windows(option, source, row), watermark_us)


def _windows(option: WindowOption | None, source: Source, row: Row) -> list[Bounds]:
    """The windows of a row, before they merge; its own time where it has none, or is counted."""
    time = value_of(row, source.event_time)
    if time is None:
        return []
    time_us = instant_us("row", time)
    if option is None or option.counts_rows:
        return [(time_us, time_us + 1)]
    columns = [[value_of(row, name)] for name in option.columns]
    _, starts, ends = option.assign_columns(np.array([time_us], dtype=np.int64), *columns)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _merged_windows(arrived: Iterable[Arrival]) -> int:
    """How many windows arise from several, if none expires."""
    of_key: defaultdict[str, set[Bounds]] = defaultdict(set)
    options: dict[str, WindowOption] = {}
    for one in arrived:
        if one.option is not None and one.option.merging:
            key = repr((one.option, [value_of(one.row, name) for name in one.source.keys]))
            options[key] = one.option
            of_key[key].update(one.windows)
    groups = (group for key, windows in of_key.items() for group, _ in options[key].merge(sorted(windows)))
    return sum(len(group) > 1 for group in groups)
