"""As-of joins (rules/tables.md#as-of-joins)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import attrs

import beamish as bm
from beamish import DropReason, Pane, PaneKind, PaneTiming, Window
from beamish.flow import Flow
from beamish.kinds.versions.options import VersionsOptions
from beamish.script import Step
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
        came: the input row.
        name: its key in the table; None: it matches nothing.
        live: its emitted, not retracted output.
        match: its match in the output; None: no match.
        panes, panes_not_early: number of its panes.
        was_due: it was joined when due.
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
        """Its position among rows emitted together."""
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
        # The event time of rows is emitted as `timestamp`.
        self.hidden = {"timestamp"} if flow.takes[0].event_time == "timestamp" else set()
        self.columns: list[str] = []
        """The output columns, in order: the row's own, and the match."""
        self.waiting: list[Row] = []
        self.kept: list[Row] = []
        self.w: float = NO_WATERMARK
        self.clock = 0
        self.steps = 0
        self.dropped: list[Pane] = []

    def say(self, flow: Flow) -> VersionsOptions:
        """The options of the join; returns those of the table."""
        options = said(flow)
        assert options.as_of is not None
        assert options.versions is not None
        self.options, self.history_us = options.as_of, options.versions.history.us
        tolerance = options.as_of.tolerance
        self.ahead_us = 0 if options.as_of.direction == "backward" or tolerance is None else tolerance.us
        self.grace_us = options.as_of.grace.us
        # Rows look ahead: they are due later, and concern changes for longer (rules/joins.md#as-of-directions).
        self.waits_us = self.grace_us + self.ahead_us
        self.lateness_us = options.versions.allowed_lateness.us + self.ahead_us
        return options.versions

    def change_stage(self, flow: Flow) -> None:
        """The next run has other options (rules/tables.md#as-of-joins-restart)."""
        self.table.options = self.say(flow)

    @property
    def watermark(self) -> float:
        """The forwarded watermark: nothing due is late for the next stage. The end of time is the end of time."""
        return self.w if self.w >= END_OF_TIME_US else self.w - self.waits_us

    def step(self, step: Step) -> list[Pane]:
        """Panes of stages, the table's first; then the watermark; then rows of sources, the table's first."""
        self.steps += 1
        self.dropped = []
        for side in (self.right, self.left):
            side.step(step, self.clock)
        arrives = self.options.at_arrival  # rules/joins.md#as-of-arrival: rows come after all changes
        out = [*self.change(self.right.panes), *self.add([] if arrives else self.left.panes)]
        alone = self.options.wait_for is bm.LEFT_INPUT
        self.w = max(self.w, self.left.watermark if alone else min(self.left.watermark, self.right.watermark))
        out += self.let_go()
        if step.clock_us is not None:
            self.clock = step.clock_us
        out += [*self.change(self.right.rows), *self.add([*(self.left.panes if arrives else []), *self.left.rows])]
        return [*self.dropped, *out]

    # The table

    def change(self, arrivals: Sequence[Arrival]) -> Iterator[Pane]:
        """A bundle of changes, and their corrections."""
        taken: list[tuple[Any, Arrival]] = []
        for one in arrivals:
            key = self.right.key_of(one.values)
            if reason := self.table.refuses(one, key, self.w):
                self.drop(self.right, one, reason)
                continue
            taken.append((name_of(key), one))
            assert one.time_us is not None
            if (
                not self.options.retracts
                and not self.options.at_arrival
                and is_past(one.time_us, self.grace_us, self.w)
            ):
                self.drop(self.right, one, DropReason.JOINED_ALREADY)
        self.table.take(taken, self.steps)
        if taken:
            yield from self.correct()

    def correct(self) -> Iterator[Pane]:
        """Retract outdated matches."""
        for row in in_order(self.kept):
            match = self.found(row, self.exact(row))
            if same(match, row.match):
                continue
            yield from taken_back(row)
            late = row.was_due or self.is_due(row.time_us)
            yield from self.give(row, match, PaneTiming.LATE if late else PaneTiming.EARLY)

    # Rows

    def add(self, arrivals: Sequence[Arrival]) -> Iterator[Pane]:
        """A bundle of rows: retractions, then the others."""
        came: list[Row] = []
        removed: list[Row] = []
        for one in arrivals:
            if reason := one.no_time():
                self.drop(self.left, one, reason)
            elif self.options.how == "inner" and any(value is None for value in self.left.key_of(one.values)):
                self.drop(self.left, one, DropReason.NULL_KEY)  # rules/stages.md#null-keys
            elif one.removes and is_past(one.time_us, self.lateness_us, self.w):
                self.drop(self.left, one, DropReason.EXPIRED)
            else:
                (removed if one.removes else came).append(self.row_of(one))
        for row in in_order(removed):
            yield from self.remove(row, came)
        for row in in_order(came):
            if self.options.at_arrival:  # rules/joins.md#as-of-arrival
                latest = None if row.name is None else self.table.latest(row.name)
                yield from self.give(row, latest and latest.begins, PaneTiming.ON_TIME)
            elif self.is_due(row.time_us):
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
        """It removes an equal row of its own bundle, or else a waiting or stored one, and its output."""
        for rows in (came, [*self.waiting, *self.kept]):
            equal = [one for one in rows if one.equals(row)]
            if equal:
                gone = min(equal, key=lambda one: (one.panes, one.panes_not_early))
                yield from taken_back(gone)
                for among in (came, self.waiting, self.kept):
                    among[:] = [one for one in among if one is not gone]
                return

    def late(self, row: Row) -> Iterator[Pane]:
        """A row that is due on arrival is joined at once."""
        past = is_past(self.read_at(row), self.history_us, self.w)
        known = self.forgetful(row) if self.options.direction == "backward" else None
        match = self.found(row, known if past else self.exact(row))
        if past and match is None:
            self.drop(self.left, row.came, DropReason.EXPIRED)
            return
        yield from self.give(row, match, PaneTiming.LATE)
        self.keep(row)

    def let_go(self) -> Iterator[Pane]:
        """The watermark has moved: emit due rows, and drop old ones."""
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
        return is_past(time_us, self.waits_us, self.w)

    # Matches

    def read_at(self, row: Row) -> int:
        return row.time_us - (0 if self.options.allow_exact_matches else 1)

    def exact(self, row: Row) -> Version | None:
        """The value valid at its time; or the first that begins then or later; or the nearer of both."""
        if row.name is None:
            return None
        valid = self.table.valid_at(row.name, self.read_at(row))
        if self.options.direction == "backward":
            return valid
        first_us = row.time_us if self.options.allow_exact_matches else row.time_us + 1
        after = [one for one in self.table.versions(row.name) if first_us <= one.from_us <= row.time_us + self.ahead_us]
        if self.options.direction == "forward":
            return after[0] if after else None
        before = [valid] if valid is not None and row.time_us - valid.from_us <= self.ahead_us else []
        return min([*before, *after], key=lambda one: abs(one.from_us - row.time_us), default=None)

    def forgetful(self, row: Row) -> Version | None:
        """Past the history only the key's latest change is available; one too old for any row has expired itself."""
        latest = None if row.name is None else self.table.latest(row.name)
        if latest is None or latest.from_us > self.read_at(row):
            return None
        tolerance = self.options.tolerance
        gone = tolerance is not None and is_past(latest.from_us, self.history_us + tolerance.us, self.w)
        return None if gone else latest

    def found(self, row: Row, version: Version | None) -> dict[str, Any] | None:
        """A version in the output, if it is not too old."""
        tolerance = self.options.tolerance
        too_old = version and tolerance is not None and row.time_us - version.from_us > tolerance.us
        return None if version is None or too_old else version.begins

    # Output

    def give(self, row: Row, match: dict[str, Any] | None, timing: PaneTiming) -> Iterable[Pane]:
        """Emit a row with its match; an inner join emits nothing without a match."""
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
        """As in a merge: a row for each input, one of which is present."""
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
    """By time, then by the columns in Spark's order; among equals the one with fewer panes first."""
    return sorted(rows, key=lambda row: (row.place, row.panes, row.panes_not_early))


def taken_back(row: Row) -> Iterator[Pane]:
    """Retract its output, if any."""
    if row.live is not None:
        yield attrs.evolve(row.live, kind=PaneKind.RETRACTION)
        row.live = None


TWIN = AsOfTwin
