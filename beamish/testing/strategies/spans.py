"""The time of a pipeline: its durations, its windows and deadlines, and the rows that must be equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import attrs
import numpy as np

from beamish.durations import LONGEST_US, Duration
from beamish.flow import Flow
from beamish.instants import END_OF_TIME_US
from beamish.kernels.column_names import has_no_event_time
from beamish.kinds.changes.options import ChangesOptions
from beamish.kinds.deduplicate.option import Deduplication
from beamish.kinds.upserts.options import UpsertsOptions
from beamish.kinds.versions.options import VersionsOptions
from beamish.source import Source
from beamish.windows.option import WindowOption

_SECOND_US, _MILLISECOND_US = 1_000_000, 1_000
_NO_END = np.iinfo(np.int64).min
_DEFAULT = (10 * _SECOND_US,)
"""The durations of a pipeline that has none."""


def parts(thing: Any) -> Iterator[Any]:
    """The values in a pipeline: its options, and the values in these."""
    yield thing
    if isinstance(thing, Mapping):
        inner = list(thing.values())
    elif isinstance(thing, list | tuple):
        inner = list(thing)
    else:
        fields = attrs.fields(type(thing)) if attrs.has(type(thing)) else ()
        inner = [getattr(thing, field.name) for field in fields]
    for one in inner:
        yield from parts(one)


@attrs.frozen
class Leaf:
    """A source, and what its stage says about its rows.

    Attributes:
        source: the source.
        windows: the window options that its rows are assigned by.
        lateness_us: how far past the end of its window a row may be.
        identity: the columns by which its stage takes rows for the same one; empty: none.
        is_table: whether these are the key and time of a change.
    """

    source: Source
    windows: tuple[WindowOption, ...]
    lateness_us: int
    identity: tuple[str, ...] = ()
    is_table: bool = False

    @classmethod
    def of(cls, source: Source, flow: Flow, number: int) -> Leaf:
        """Input ``number`` of a flow's last stage."""
        stage = flow.stage.core
        window = stage.declared("window")
        options = () if window is None else tuple(window.windowings.values()) or (window,)
        lateness = stage.declared("allowed_lateness")
        latest_us = lateness.us if lateness is not None else max(durations(stage), default=0)
        timed = tuple(one for one in options if one.numbering is None and not one.columns)
        return cls(source, timed, latest_us, *_identity(source, flow, number))

    @property
    def is_timed(self) -> bool:
        """Whether its rows have event times."""
        return not has_no_event_time(self.source.event_time)

    def bounds_us(self, time_us: int) -> list[tuple[int, int]]:
        """The windows of a time; without windows the time itself."""
        times = np.array([time_us], dtype=np.int64)
        found: list[tuple[int, int]] = []
        for option in self.windows:
            _, starts, ends = option.assign_columns(times)
            found += [pair for pair in zip(starts.tolist(), ends.tolist(), strict=True) if pair[1] < END_OF_TIME_US]
        return found or [(time_us, time_us + 1)]

    def ends_us(self, times_us: Sequence[int]) -> list[int]:
        """The end of the last window of each time; without windows the time itself."""
        times = np.array(times_us, dtype=np.int64)
        last = times + 1 if not self.windows else np.full(len(times), _NO_END)
        for option in self.windows:
            row, _, ends = option.assign_columns(times)
            np.maximum.at(last, row, np.where(ends < END_OF_TIME_US, ends, _NO_END))
        found: list[int] = np.where(last == _NO_END, times + 1, last).tolist()
        return found

    def deadlines_us(self, time_us: int) -> list[int]:
        """The watermarks at which something happens to a row of this time: its windows end, and expire."""
        ends = [end for _, end in self.bounds_us(time_us)]
        return [*ends, *(end + self.lateness_us for end in ends)]


def _identity(source: Source, flow: Flow, number: int) -> tuple[tuple[str, ...], bool]:
    """The identity of an input's rows, and whether they are changes of a table."""
    for part in parts(flow.stage):
        if isinstance(part, Deduplication):
            return (*source.keys, *part.columns), False
        is_table = isinstance(part, VersionsOptions) and flow.stage.may_begin_with(number)
        if isinstance(part, UpsertsOptions):
            return (*source.keys, part.sequence_by or source.event_time), True
        if is_table or isinstance(part, ChangesOptions):
            return (*source.keys, source.event_time, *filter(None, [part.sequence_by])), True
    return (), False


def durations(thing: Any) -> list[int]:
    """The durations in a pipeline, above 0, in microseconds, in ascending order."""
    found = {part.us for part in parts(thing) if isinstance(part, Duration)}
    found |= {part.period_us or 0 for part in parts(thing) if isinstance(part, WindowOption) and part.numbering is None}
    return sorted(us for us in found if 0 < us < LONGEST_US)


@attrs.frozen(slots=False)
class Spans:
    """The times of a pipeline.

    Attributes:
        flow: its flow.
    """

    flow: Flow

    @cached_property
    def leaves(self) -> Sequence[Leaf]:
        """Its sources."""
        return [Leaf.of(*leaf) for leaf in self.flow.leaves]

    @cached_property
    def durations_us(self) -> Sequence[int]:
        """The durations of its options, and the lengths of windows that have none."""
        found = {*durations([(flow.stage, flow.inputs) for flow in self.flow.flows])}
        found |= {end - start for leaf in self.leaves for start, end in leaf.bounds_us(0) if end - start > 1}
        return sorted(found) or _DEFAULT

    @property
    def tick_us(self) -> int:
        """The distance of two times that are next to each other: a second, a millisecond or a microsecond."""
        units = (_SECOND_US, _MILLISECOND_US, 1)
        return next(unit for unit in units if all(us % unit == 0 for us in self.durations_us))

    @cached_property
    def distances_us(self) -> Sequence[int]:
        """Distances of two times, from 0: at, just before and just after each duration, half of it, and beyond all."""
        tick = self.tick_us
        near = ((us, us - tick, us + tick, us // 2 // tick * tick) for us in self.durations_us)
        return sorted({0, tick, 2 * tick, *chain.from_iterable(near), sum(self.durations_us) + tick} - {-tick})
