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
from beamish.testing.laws.report import Law, compares
from beamish.testing.stream import Runnable, TestStream
from beamish.windows.option import Bounds, WindowOption


class VacuousError(AssertionError):
    """A check drew too little of interest to show anything."""


_FIXES = {
    "rows": "no rows arrived",
    "firings": "the trigger never fired: is it ever ready? Give it a lower count or a shorter delay",
    "early panes": "the trigger can fire before the end of its windows, and did not: is it ever ready? Give it a lower count or a "
    "shorter delay, and let the clock move",
    "rows behind the watermark": "no row arrived behind the watermark: draw more batches, or a disorder well above the delay",
    "rows out of order": "rows arrived in the order of time: draw more batches, or a greater disorder",
    "merged windows": "windows merge where rows of a key are closer than the gap",
    "removals": "no row was removed: draw more batches",
}


def _fix(wanted: str | Law) -> str:
    """The fix of a check that had too little of this."""
    return _FIXES.get(wanted, "") if isinstance(wanted, str) else f"{wanted.__name__} compares {compares(wanted)}"


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

    def note(self, compared: Mapping[Law, int]) -> None:
        """Note in how many examples each law has compared something."""
        self.in_examples.update({law.__name__: count for law, count in compared.items()})

    def check(self, *wanted: str | Law, floor: float = 0.02) -> Seen:
        """Require that at least this share of the examples had each of these, or something for a law to compare; returns itself.

        Raises:
            VacuousError: fewer had.
        """
        needed = {one if isinstance(one, str) else one.__name__: one for one in wanted}
        rare = [name for name in needed if self.in_examples[name] < max(floor * self.examples, floor > 0)]
        if rare:
            fixes = dict.fromkeys(_fix(needed[name]) for name in rare)
            raise VacuousError(
                f"the check shows nothing: fewer than {floor:.0%} of its examples had {', '.join(rare)} ({self}); "
                f"{'; '.join(filter(None, fixes))}; draw other rows, or more examples; or pass floor=0"
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
        "rows out of order": sum(one.is_out_of_order for one in arrived),
        "rows behind the watermark": sum(one.is_behind for one in arrived),
        "removals": sum(one.removals for one in arrived),
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
    """A row, its windows by one option, the watermark, its event time, and the newest one of its input before it."""

    source: Source
    row: Row
    option: WindowOption | None
    windows: Sequence[Bounds]
    watermark_us: int | None
    time_us: int | None
    newest_us: int | None

    @property
    def is_out_of_order(self) -> bool:
        """Whether a newer row of its input has arrived before."""
        return None not in (self.time_us, self.newest_us) and self.time_us < self.newest_us  # type: ignore[operator]

    @property
    def is_behind(self) -> bool:
        """Whether the watermark is past it."""
        return None not in (self.time_us, self.watermark_us) and self.time_us < self.watermark_us  # type: ignore[operator]

    @property
    def removals(self) -> int:
        """How many rows it removes, as a change of a table."""
        form = self.source.form
        return 0 if form is None else sum(sign < 0 for _, sign in form.unfold(self.row))

    @property
    def is_late(self) -> bool:
        """Whether the watermark has passed the end of each of its windows."""
        ends = [end for _, end in self.windows]
        return self.watermark_us is not None and bool(ends) and max(ends) <= self.watermark_us


def arrivals(source: Source, flow: Flow, _: int, script: TestStream) -> Iterator[Arrival]:
    """The rows of a source, in each of its windowings."""
    window, watermark_us, newest_us = flow.stage.core.declared("window"), None, None
    options = (None,) if window is None else (*window.windowings.values(),) or (window,)
    for step in map(as_step, script.events):
        moved_us = watermark_of(source, step)
        watermark_us = watermark_us if moved_us is None else moved_us
        for row in step.rows if step.input == source.name else ():
            time = value_of(row, source.event_time)
            time_us = None if time is None else instant_us("row", time)
            for option in options:
                windows = _windows(option, row, time_us)
                yield Arrival(source, row, option, windows, watermark_us, time_us, newest_us)
            if time_us is not None:
                newest_us = time_us if newest_us is None else max(newest_us, time_us)


def _windows(option: WindowOption | None, row: Row, time_us: int | None) -> list[Bounds]:
    """The windows of a row, before they merge; its own time where it has none, or is counted."""
    if time_us is None:
        return []
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
