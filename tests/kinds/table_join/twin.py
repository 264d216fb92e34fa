"""Joins of changing tables (rules/joins.md#changing-tables): two lists of rows, joined by two loops before and after each bundle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beamish import DropReason, Pane, PaneKind
from beamish.flow import Flow
from beamish.kinds.table_join.stage import TableJoinStage
from beamish.script import Step
from beamish.windows.option import END_OF_TIME_US
from tests.kinds.deduplicate.twin import dropped_first
from tests.kinds.versions.twin import Arrival, Side, name_of
from tests.twin.moments import moment
from tests.twin.order import normal, spark_order
from tests.twin.run import NO_WATERMARK


@dataclass(frozen=True)
class Row:
    """A row of an input.

    Attributes:
        key: the joined columns, under the left input's names.
        values: all its columns.
        others: those that are not joined.
    """

    key: Mapping[str, Any]
    time_us: int | None
    values: Mapping[str, Any]
    others: Sequence[Any]

    @property
    def name(self) -> Any:
        return name_of(list(self.key.values()))

    @property
    def order(self) -> Any:
        """Equal rows have equal ones."""
        time_us = END_OF_TIME_US if self.time_us is None else self.time_us
        return time_us, [spark_order(value) for value in self.others]

    @property
    def pairs(self) -> bool:
        return all(value is not None for value in self.key.values())

    def equals(self, other: Row) -> bool:
        return self.name == other.name and self.order == other.order


Joined = tuple[Row | None, Row | None]


class TableJoinTwin:
    """Such a stage."""

    def __init__(self, flow: Flow) -> None:
        assert isinstance(flow.stage, TableJoinStage)
        self.options = flow.stage.options
        self.sides = [Side(*pair) for pair in zip(flow.inputs, flow.takes, strict=True)]
        self.takes = flow.takes
        self.alone = [self.options.how in ("outer", one) for one in ("left", "right")]
        self.rows: tuple[list[Row], list[Row]] = [], []
        self.latest: dict[Any, int] = {}
        self.watermark: float = NO_WATERMARK
        self.clock = 0

    def step(self, step: Step) -> list[Pane]:
        """Panes of stages, then the watermark, then rows of sources."""
        for side in self.sides:
            side.step(step, self.clock)
        out = [*self.take([side.panes for side in self.sides])]
        self.watermark = max(self.watermark, min(side.watermark for side in self.sides))
        if step.clock_us is not None:
            self.clock = step.clock_us
        self.forget()
        out += self.take([side.rows for side in self.sides])
        self.forget()
        return dropped_first(iter(out))

    def forget(self) -> None:
        """Drop join values without a row for long."""
        span = self.options.forget_after
        if span is None:
            return
        gone = {name for name, us in self.latest.items() if min(us + span.us, END_OF_TIME_US) <= self.watermark}
        self.latest = {name: us for name, us in self.latest.items() if name not in gone}
        for rows in self.rows:
            rows[:] = [row for row in rows if row.name not in gone]

    def take(self, arrivals: Sequence[Sequence[Arrival]]) -> Iterator[Pane]:
        """A bundle of both inputs: its dropped rows, and how the join differs after it."""
        before = self.joined()
        for number, arrived in enumerate(arrivals):
            for one in sorted(arrived, key=lambda one: one.removes):
                reason = self.apply(number, one)
                if reason is not None and self.options.with_dropped:
                    yield self.dropped(number, one, reason)
        names = {row.name for rows in self.rows for row in rows}
        self.latest = {name: us for name, us in self.latest.items() if name in names}
        after = self.joined()
        count = Counter(map(identity, after))
        count.subtract(map(identity, before))
        example = {identity(one): one for one in (*before, *after)}
        for kind, sign in ((PaneKind.RETRACTION, -1), (PaneKind.PANE, 1)):
            differing = [example[name] for name, more in count.items() if more * sign > 0]
            for joined in sorted(differing, key=place):
                yield from [self.pane(joined, kind)] * abs(count[identity(joined)])

    def apply(self, number: int, one: Arrival) -> DropReason | None:
        """Add or remove a row; returns why it is dropped."""
        relation = self.takes[number]
        if relation.has_timestamps and (reason := one.no_time()):
            return reason
        key = [normal(value) for value in self.sides[number].key_of(one.values)]
        if not self.alone[number] and any(value is None for value in key):
            return DropReason.NULL_KEY
        values = dict(one.values)
        values |= {name: value for name, value in zip(relation.keys, key, strict=True) if name in values}
        others = [value for column, value in values.items() if column not in relation.keys]
        row = Row(dict(zip(self.takes[0].keys, key, strict=True)), one.time_us, values, others)
        rows = self.rows[number]
        if one.removes:
            equal = [at for at, other in enumerate(rows) if other.equals(row)]
            if not equal:
                return DropReason.UNMATCHED_REMOVAL
            del rows[equal[0]]
        else:
            rows.append(row)
        self.latest[row.name] = max(self.latest.get(row.name, 0), one.time_us or 0)
        return None

    def joined(self) -> list[Joined]:
        """All pairs, then the rows of each side without one."""
        left, right = self.rows
        pairs = [(one, other) for one in left for other in right if one.pairs and one.name == other.name]
        found: list[Joined] = list(pairs)
        if self.alone[0]:
            found += [(one, None) for one in left if not any(one is met for met, _ in pairs)]
        if self.alone[1]:
            found += [(None, other) for other in right if not any(other is met for _, met in pairs)]
        return found

    def pane(self, joined: Joined, kind: PaneKind) -> Pane:
        rows = [row for row in joined if row is not None]
        times = [row.time_us for row in rows]
        later = None if None in times else max(time for time in times if time is not None)
        values = {
            str(one.name): None if row is None else dict(row.values)
            for one, row in zip(self.takes, joined, strict=True)
        }
        return Pane(
            rows[0].key, None, values, kind=kind, is_first=True, timestamp=None if later is None else moment(later)
        )

    def dropped(self, number: int, one: Arrival, reason: DropReason) -> Pane:
        key = dict(zip(self.takes[0].keys, map(normal, self.sides[number].key_of(one.values)), strict=True))
        values = {str(taken.name): dict(one.values) if taken is self.takes[number] else None for taken in self.takes}
        return Pane(key, None, values, kind=PaneKind.DROPPED, reason=reason)


def identity(joined: Joined) -> str:
    return repr([None if row is None else (row.name, row.order) for row in joined])


def place(joined: Joined) -> Any:
    """The order of the joined rows of a key: pairs, then rows of the left, then of the right."""
    left, right = joined
    alone = 2 * (left is None) + (right is None)
    return alone, [row.order for row in joined if row is not None]


TWIN = TableJoinTwin
