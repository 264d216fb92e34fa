"""A stage with count windows (rules/windows.md#windows-of-rows)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import beamish as bm
from beamish import DropReason, Pane, PaneKind
from beamish.accumulations.base.one_input import OfInput
from beamish.flow import Flow
from beamish.source import Source
from beamish.windows.option import END_OF_TIME_US, Numbering
from tests.kinds.deduplicate.twin_ids import Again, FirstCome, columns_read, id_of, remember
from tests.kinds.window.twin_pairs_once import too_old
from tests.twin.accumulations import Row
from tests.twin.joins import is_dropped
from tests.twin.moments import moment, moment_us
from tests.twin.order import same, spark_order
from tests.twin.run import NO_WATERMARK, Key, Live, Twin, out_of_range
from tests.twin.windows import Bounds, assign

Arrived = tuple[Key, Row, int | None]
"""A row not numbered yet, its key, and its event time."""


@dataclass
class Group:
    """Rows counted together: their reach, and their latest event time."""

    reach: float = NO_WATERMARK
    latest_us: int | None = None


class CountedTwin(Twin):
    """Such a stage: the reach of the key's group takes the place of the watermark."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        assert self.window.numbering is not None
        self.numbering: Numbering = self.window.numbering
        self.lateness = self.options.late_rows
        self.together = self.numbering.over_stream or not self.options.keys
        self.groups: dict[Any, Group] = {}
        self.before_part: dict[Any, float] = {}
        self.event_times: dict[int, int | None] = {}
        """By the identity of a row: its event time, where its place is its number."""
        self.held: list[Row] = []
        self.ended = self.ended_before_part = False

    def change(self, flow: Flow) -> None:
        super().change(flow)
        self.lateness = self.options.late_rows

    def take_up_changes(self) -> None:
        """Shorter lateness expires windows at once: rows may not arrive for their keys again."""
        if self.is_changed:
            self.begin_part()
            self.pass_ends([])
        self.is_changed = False

    def name_of(self, key: Key) -> Any:
        return None if self.together else tuple(map(repr, key.columns.values()))

    def progress(self, key: Key) -> float:
        group = self.groups.get(self.name_of(key))
        return END_OF_TIME_US if self.ended else NO_WATERMARK if group is None else group.reach

    def progress_before(self, key: Key) -> float:
        return END_OF_TIME_US if self.ended_before_part else self.before_part.get(self.name_of(key), NO_WATERMARK)

    def begin_part(self) -> None:
        super().begin_part()
        self.before_part = {name: group.reach for name, group in self.groups.items()}
        self.ended_before_part = self.ended

    def move_watermark(self, to: float) -> None:
        if to <= self.watermark:
            return
        self.watermark = to
        self.ended = to >= END_OF_TIME_US
        idle = self.numbering.idle
        gone = [
            name
            for name, group in self.groups.items()
            if not self.ended
            and idle is not None
            and group.latest_us is not None
            and to >= min(group.latest_us + idle.us, END_OF_TIME_US)
        ]
        for name in gone:
            self.groups[name].reach = END_OF_TIME_US
        self.pass_ends([])
        for name in gone:
            del self.groups[name]
        for key in self.keys.values():
            if self.name_of(key) in gone:
                key.fallen = None

    # A bundle

    def add(self, rows: Sequence[Mapping[str, Any]], input_: str | None, source: Source) -> None:
        self.bundles += 1
        arrived = []
        for values in rows:
            if self.wanted(values, source.where):
                key, _ = self.key_of(values, source.keys)
                time = values.get(source.event_time)
                arrived.append(self.arrival(key, values, input_, None if time is None else moment_us(time)))
        self.count(arrived)

    def add_panes(self, panes: Sequence[tuple[str | None, Pane]]) -> None:
        self.bundles += 1
        arrived = []
        for input_, pane in panes:
            relation = self.takes[self.names.index(input_)]
            values = {**pane.key, **pane.values}
            if self.wanted({**values, "timing": str(pane.timing), "is_last": pane.is_last}, relation.where):
                key, _ = self.key_of(values, relation.keys)
                time_us = None if pane.timestamp is None else moment_us(pane.timestamp)
                arrived.append(self.arrival(key, values, input_, time_us))
        self.count(arrived)

    def arrival(self, key: Key, values: Mapping[str, Any], input_: str | None, time_us: int | None) -> Arrived:
        known = None if time_us is None or out_of_range(time_us) else time_us
        return key, Row(self.bundles, 0, values, False, input_), known  # noqa: FBT003

    def count(self, arrived: Sequence[Arrived]) -> None:
        """Rows are numbered, checked for lateness and assigned to windows; then the reach moves, and windows are evaluated once."""
        self.begin_part()
        numbered = self.brought(arrived) if self.numbering.numbered_by is not None else self.given(arrived)
        pairs: dict[int, list[tuple[Bounds, Row]]] = {}
        counted: list[tuple[Key, Row]] = []
        for key, row in numbered:
            fits = []
            for bounds in assign(self.window, row.time_us, row.values, row.input):
                if self.expired(key, bounds):
                    self.drop(key, bounds, DropReason.EXPIRED, row)
                elif key.has_lost(bounds) or too_old(self, row):
                    self.drop(key, bounds, DropReason.OUT_OF_RETENTION, row)
                else:
                    fits.append((bounds, row))
            pairs.setdefault(id(key), []).extend(fits)
            counted.append((key, row))
        if self.numbering.numbered_by is not None:
            again = self.again(
                [(key, row, self.time_of(row)) for key, row in counted if any(row is one for _, one in pairs[id(key)])]
            )
            counted = [(key, row) for key, row in counted if not any(row is one for one in again)]
            pairs = {
                of: [pair for pair in own if not any(pair[1] is one for one in again)] for of, own in pairs.items()
            }
        landed = [(key, self.land(key, pairs.get(id(key), []))) for key in self.keys.values()]
        for key, row in counted:
            group = self.groups.setdefault(self.name_of(key), Group())
            if self.numbering.numbered_by is None:
                group.reach = max(group.reach, 0) + 1
            else:
                group.reach = max(group.reach, row.time_us + 1 - self.numbering.delay)
            time_us = self.time_of(row)
            if time_us is not None:
                group.latest_us = time_us if group.latest_us is None else max(group.latest_us, time_us)
        self.pass_ends([window for _, came in landed for window in came])
        for key, came in landed:
            if came:
                self.let_fall(key)

    def brought(self, arrived: Sequence[Arrived]) -> list[tuple[Key, Row]]:
        """The rows with their own numbers."""
        numbered = []
        for key, row, time_us in arrived:
            number = row.values.get(str(self.numbering.numbered_by))
            if number is None:
                self.drop(key, None, DropReason.NULL_NUMBER, row)
            elif not self.dropped_for_key(key, row):
                numbered.append((key, self.numbered(row, number, time_us)))
        return numbered

    def given(self, arrived: Sequence[Arrived]) -> list[tuple[Key, Row]]:
        """The rows with the next numbers, in order."""
        arrived = [one for one in arrived if not self.dropped_for_key(*one[:2])]
        again = self.again(arrived)
        fresh = [one for one in arrived if not any(one[1] is row for row in again)]
        counts: dict[Any, int] = {}
        numbered = []
        for key, row, time_us in sorted(fresh, key=self.place(fresh)):
            name = self.name_of(key)
            group = self.groups.get(name)
            number = counts.setdefault(name, 0 if group is None else int(max(group.reach, 0)))
            counts[name] += 1
            numbered.append((key, self.numbered(row, number, time_us)))
        return numbered

    def dropped_for_key(self, key: Key, row: Row) -> bool:
        """Whether a row has a null in its key and can have no match in a join; it is dropped."""
        gone = is_dropped(self.options.accumulations, row, self.takes)
        if gone:
            self.drop(key, None, DropReason.NULL_KEY, row)
        return gone

    def place(self, arrived: Sequence[Arrived]) -> Any:
        """The order in which rows are counted."""
        first = self.first_come([row for _, row, _ in arrived])

        def place(one: Arrived) -> Any:
            key, row, time_us = one
            columns = [spark_order(row.values.get(name)) for name in self.numbering.order_by]
            of_key = [spark_order(value) for value in key.columns.values()] if self.numbering.over_stream else []
            return columns, spark_order(time_us), of_key, first.place(0, row.values)

        return place

    def first_come(self, rows: Sequence[Row]) -> FirstCome:
        once = self.options.deduplication
        read: list[str | None] = [] if once is None else list(once.columns)
        of_merge = {row.input for row in rows if row.input is not None}
        for name, one in self.options.accumulations.items():
            if isinstance(one, OfInput):
                read += columns_read({name: one.inner}) if one.input in of_merge else []
            else:
                read += [None] if one.names_of_inputs else columns_read({name: one})
        return FirstCome(read, [row.values for row in rows])

    def numbered(self, row: Row, number: int, time_us: int | None) -> Row:
        numbered = row._replace(time_us=number)
        self.held.append(numbered)  # so that its identity stays its own
        self.event_times[id(numbered.values)] = time_us
        return numbered

    def time_of(self, row: Row) -> int | None:
        return self.event_times[id(row.values)]

    # Duplicates

    def came_again(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> list[Again]:
        return []  # before rows are in windows

    def again(self, arrived: Sequence[Arrived]) -> list[Row]:
        """Drop duplicates: rows of a key that is stored in any window; returns them."""
        once = self.options.deduplication
        if once is None:
            return []
        first, dropped = self.first_come([row for _, row, _ in arrived]), []
        by_number = self.numbering.numbered_by is not None
        seen: dict[int, list[Any]] = {}
        for key, row, time_us in sorted(
            arrived,
            key=lambda one: (one[1].time_us if by_number else 0, spark_order(one[2]), first.place(0, one[1].values)),
        ):
            id_ = id_of(once.columns, row.values)
            if once.within is None:
                kept = [one for window in key.live.values() for one in window.ids] + [
                    one for ids in key.closed.values() for one in ids
                ]
                ids = seen.setdefault(id(key), kept)
                reason = DropReason.DUPLICATE if any(same(id_, one) for one in ids) else None
                if reason is None:
                    ids.append(id_)
            elif time_us is None:
                reason = DropReason.NULL_EVENT_TIME
            else:
                reason = remember(key.remembered, id_, time_us, once.within.us, self.watermark)
            if reason is not None:
                dropped.append(row)
                self.drop(key, None, reason, row)
        return dropped

    # Output

    def timestamp(self, window: Live) -> Any:
        """As for the global window: null, or combined from all new rows with an event time."""
        combine = {bm.TimestampCombiner.EARLIEST: min, bm.TimestampCombiner.LATEST: max}.get(self.options.combiner)
        times = [time_us for row in window.new if (time_us := self.time_of(row)) is not None]
        return moment(combine(times)) if combine and times else self.replaced_time(window)

    def bounds_of(self, bounds: Bounds) -> bm.RowWindow:
        return bm.RowWindow(*bounds)

    def drop(self, key: Key, bounds: Bounds | None, reason: DropReason, row: Row) -> None:
        if not self.options.with_dropped:
            return
        reach = self.progress(key)
        known = bounds is not None and reach > NO_WATERMARK
        self.out.append(
            Pane(
                key=key.columns,
                window=bounds and self.bounds_of(bounds),
                values=self.as_dropped(row),
                kind=PaneKind.DROPPED,
                reason=reason,
                late_by_rows=min(int(reach) - row.time_us, END_OF_TIME_US) if known else None,
            )
        )
