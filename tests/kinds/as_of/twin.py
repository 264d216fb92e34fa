"""Rows joined with what a table held at their time (rules/tables.md#as-of-joins)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import attrs

import beamish as bm
from beamish import DropReason, Pane, PaneKind, PaneTiming, Window
from beamish.flow import Flow
from beamish.kinds.versions.options import VersionsOptions
from beamish.script.events import Step
from beamish.windows.option import END_OF_TIME_US
from tests.declared_options import said
from tests.kinds.versions.twin import Arrival, Side, Table, Version, is_past, late_by, name_of
from tests.twin.moments import moment
from tests.twin.order import same, spark_order
from tests.twin.run import NO_WATERMARK


@dataclass
class Row:
    """A row of the left input.

    Attributes:
        came: as it came.
        name: its key in the table; None: it matches nothing.
        live: what came out of it and was not taken back.
        match: what it met, as the join shows it; None: nothing.
        panes, panes_not_early: how many came out of it.
        was_due: it was joined when it was due.
    """

    came: Arrival
    time_us: int
    key: Mapping[str, Any]
    name: Any
    values: Mapping[str, Any]
    live: Pane | None = None
    match: dict[str, Any] | None = None
    panes: int = 0
    panes_not_early: int = 0
    was_due: bool = False

    @property
    def window(self) -> Window | None:
        return self.came.window

    @property
    def place(self) -> Any:
        """Its place among those that come out together."""
        bounds = () if self.window is None or self.window.start is None else self.window[::-1]
        return self.time_us, [spark_order(value) for value in self.values.values()], bounds

    def equals(self, other: Row) -> bool:
        ours, theirs = ((row.time_us, row.values, row.window) for row in (self, other))
        return all(map(same, ours, theirs))


class AsOfTwin:
    """A stage that joins rows with a table."""

    def __init__(self, flow: Flow) -> None:
        table = self.say(flow)
        self.left, self.right = (Side(*pair) for pair in zip(flow.inputs, flow.takes, strict=True))
        self.table = Table(table, flow.takes[1])
        self.names = [relation.name for relation in flow.takes]
        # The event time of rows comes out as `timestamp`.
        self.hidden = {"timestamp"} if flow.takes[0].event_time == "timestamp" else set()
        self.columns: list[str] = []
        """Those that come out, in their order: a row's own, and what it met."""
        self.waiting: list[Row] = []
        self.kept: list[Row] = []
        self.w: float = NO_WATERMARK
        self.clock = 0
        self.steps = 0
        self.dropped: list[Pane] = []

    def say(self, flow: Flow) -> VersionsOptions:
        """What is said of the join; gives what is of its table."""
        options = said(flow)
        assert options.as_of is not None
        assert options.versions is not None
        self.options, self.history_us = options.as_of, options.versions.history.us
        self.lateness_us, self.grace_us = options.versions.allowed_lateness.us, options.as_of.grace.us
        return options.versions

    def change_stage(self, flow: Flow) -> None:
        """The next run says other things (rules/tables.md#as-of-joins-restart)."""
        self.table.options = self.say(flow)

    @property
    def watermark(self) -> float:
        """The one it hands on: nothing that is due is late for the stage after it. The end of time is the end of time."""
        return self.w if self.w >= END_OF_TIME_US else self.w - self.grace_us

    def step(self, step: Step) -> list[Pane]:
        """Panes of stages, the table's first; then the watermark; then rows of sources, the table's first."""
        self.steps += 1
        self.dropped = []
        for side in (self.right, self.left):
            side.step(step, self.clock)
        out = [*self.change(self.right.panes), *self.add(self.left.panes)]
        alone = self.options.wait_for is bm.LEFT_INPUT
        self.w = max(self.w, self.left.watermark if alone else min(self.left.watermark, self.right.watermark))
        out += self.let_go()
        if step.clock_us is not None:
            self.clock = step.clock_us
        out += [*self.change(self.right.rows), *self.add(self.left.rows)]
        return [*self.dropped, *out]

    # The table

    def change(self, arrivals: Sequence[Arrival]) -> Iterator[Pane]:
        """A bundle of changes, and what they correct."""
        taken: list[tuple[Any, Arrival]] = []
        for one in arrivals:
            key = self.right.key_of(one.values)
            if reason := self.table.refuses(one, key, self.w):
                self.drop(self.right, one, reason)
                continue
            taken.append((name_of(key), one))
            if not self.options.retracts and self.is_due(one.time_us):
                self.drop(self.right, one, DropReason.JOINED_ALREADY)
        self.table.take(taken, self.steps)
        if taken:
            yield from self.correct()

    def correct(self) -> Iterator[Pane]:
        """What rows met that is no longer so is taken back."""
        for row in in_order(self.kept):
            match = self.found(row, self.exact(row))
            if same(match, row.match):
                continue
            yield from taken_back(row)
            late = row.was_due or self.is_due(row.time_us)
            yield from self.give(row, match, PaneTiming.LATE if late else PaneTiming.EARLY)

    # Rows

    def add(self, arrivals: Sequence[Arrival]) -> Iterator[Pane]:
        """A bundle of rows: those that take one back, then the others."""
        came: list[Row] = []
        removed: list[Row] = []
        for one in arrivals:
            if reason := one.no_time():
                self.drop(self.left, one, reason)
            elif one.removes and is_past(one.time_us, self.lateness_us, self.w):
                self.drop(self.left, one, DropReason.EXPIRED)
            else:
                (removed if one.removes else came).append(self.row_of(one))
        for row in in_order(removed):
            yield from self.remove(row, came)
        for row in in_order(came):
            if self.is_due(row.time_us):
                yield from self.late(row)
            elif self.options.early:
                yield from self.give(row, self.found(row, self.exact(row)), PaneTiming.EARLY)
                self.keep(row)
            else:
                self.waiting.append(row)

    def row_of(self, one: Arrival) -> Row:
        key = self.left.key_of(one.values)
        name = None if any(value is None for value in key) else name_of(key)
        values = {column: value for column, value in one.values.items() if column not in self.hidden}
        self.columns = [*values, str(self.names[1])]
        assert one.time_us is not None
        return Row(one, one.time_us, dict(zip(self.left.relation.keys, key, strict=True)), name, values)

    def remove(self, row: Row, came: list[Row]) -> Iterator[Pane]:
        """It takes away an equal one of its own bundle, or else one that waits or is kept, and what came of that."""
        for rows in (came, [*self.waiting, *self.kept]):
            equal = [one for one in rows if one.equals(row)]
            if equal:
                gone = min(equal, key=lambda one: (one.panes, one.panes_not_early))
                yield from taken_back(gone)
                for among in (came, self.waiting, self.kept):
                    among[:] = [one for one in among if one is not gone]
                return

    def late(self, row: Row) -> Iterator[Pane]:
        """A row that is due as it comes is joined at once."""
        past = is_past(self.read_at(row), self.history_us, self.w)
        match = self.found(row, self.forgetful(row) if past else self.exact(row))
        if past and match is None:
            self.drop(self.left, row.came, DropReason.EXPIRED)
            return
        yield from self.give(row, match, PaneTiming.LATE)
        self.keep(row)

    def let_go(self) -> Iterator[Pane]:
        """The watermark has moved: what is due comes out, and is forgotten in time."""
        due = [row for row in self.waiting if self.is_due(row.time_us)]
        self.waiting = [row for row in self.waiting if not self.is_due(row.time_us)]
        for row in in_order(due):
            yield from self.give(row, self.found(row, self.exact(row)), PaneTiming.ON_TIME)
            self.keep(row)
        self.kept = [row for row in self.kept if not is_past(row.time_us, self.lateness_us, self.w)]

    def keep(self, row: Row) -> None:
        """It may be corrected until the watermark is the lateness past it."""
        if self.options.retracts and not is_past(row.time_us, self.lateness_us, self.w):
            self.kept.append(row)

    def is_due(self, time_us: int | None) -> bool:
        assert time_us is not None
        return is_past(time_us, self.grace_us, self.w)

    # Matches

    def read_at(self, row: Row) -> int:
        return row.time_us - (0 if self.options.allow_exact_matches else 1)

    def exact(self, row: Row) -> Version | None:
        """What was valid at its time."""
        return None if row.name is None else self.table.valid_at(row.name, self.read_at(row))

    def forgetful(self, row: Row) -> Version | None:
        """Past the history only the key's latest change answers; one that is too old for any row is gone itself."""
        latest = None if row.name is None else self.table.latest(row.name)
        if latest is None or latest.from_us > self.read_at(row):
            return None
        tolerance = self.options.tolerance
        gone = tolerance is not None and is_past(latest.from_us, self.history_us + tolerance.us, self.w)
        return None if gone else latest

    def found(self, row: Row, version: Version | None) -> dict[str, Any] | None:
        """A version as the join shows it, if it is not too old."""
        tolerance = self.options.tolerance
        too_old = version and tolerance is not None and row.time_us - version.from_us > tolerance.us
        return None if version is None or too_old else version.begins

    # What comes out

    def give(self, row: Row, match: dict[str, Any] | None, timing: PaneTiming) -> Iterable[Pane]:
        """What a row meets, now; an inner join has nothing for one that meets nothing."""
        row.match = match
        row.was_due |= timing is not PaneTiming.EARLY
        if match is None and self.options.how == "inner":
            return []
        early = timing is PaneTiming.EARLY
        values = {column: value for column, value in row.values.items() if column not in row.key}
        row.live = Pane(
            key=row.key,
            window=row.window,
            values={**values, str(self.names[1]): match},
            timing=timing,
            index=row.panes,
            on_time_index=-1 if early else row.panes_not_early,
            is_first=row.panes == 0,
            is_last=not self.options.retracts or is_past(row.time_us, self.lateness_us, self.w),
            timestamp=moment(row.time_us),
        )
        row.panes += 1
        row.panes_not_early += not early
        return [row.live]

    def drop(self, side: Side, one: Arrival, reason: DropReason) -> None:
        """As a merge does: a row for each input, of which one is there."""
        if not self.options.with_dropped:
            return
        pane = Pane(
            key=dict(zip(self.left.relation.keys, side.key_of(one.values), strict=True)),
            window=None,
            values={str(name): dict(one.values) if name == side.relation.name else None for name in self.names},
            kind=PaneKind.DROPPED,
            reason=reason,
            late_by_us=late_by(one.time_us, reason, self.w),
        )
        self.dropped.append(pane)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """By time, then by the columns in Spark's order; of equal ones that first of which fewer panes came."""
    return sorted(rows, key=lambda row: (row.place, row.panes, row.panes_not_early))


def taken_back(row: Row) -> Iterator[Pane]:
    """What came out of it is retracted, if anything had."""
    if row.live is not None:
        yield attrs.evolve(row.live, kind=PaneKind.RETRACTION)
        row.live = None


TWIN = AsOfTwin
