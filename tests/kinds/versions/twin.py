"""A table and its versions (rules/tables.md#versions): a list of all changes of each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import attrs

from beamish import DropReason, Pane, PaneKind, PaneTiming, Window
from beamish.contract.relation import Relation
from beamish.flow import Flow, Input, Panes
from beamish.kinds.versions.options import VALID_FROM, VALID_TO, VersionsOptions
from beamish.script import Step
from beamish.windows.option import END_OF_TIME_US
from tests.declared_options import said
from tests.kinds.refine.strategy import meaning
from tests.twin.fields import Fields
from tests.twin.moments import moment, moment_us
from tests.twin.order import normal, same, spark_order
from tests.twin.run import NO_WATERMARK, Follower, out_of_range, twin_of

# Input


@dataclass
class Arrival:
    """A row of a source, or a pane of a stage.

    Attributes:
        time_us: its event time, or its timestamp.
        window: the window of a pane.
        removes: it is a retraction.
    """

    values: Mapping[str, Any]
    time_us: int | None
    window: Window | None = None
    removes: bool = False

    def no_time(self) -> DropReason | None:
        """The drop reason by its time."""
        if self.time_us is None:
            return DropReason.NULL_EVENT_TIME
        return DropReason.EVENT_TIME_OUT_OF_RANGE if out_of_range(self.time_us) else None


class Side:
    """An input: panes of a stage, processed before the watermark moves, or rows of a source, after it.

    See rules/stages.md#steps-of-later-stages.
    """

    def __init__(self, taken: Input, relation: Relation) -> None:
        self.relation = relation
        self.source = None if isinstance(taken, Panes) else taken
        self.twin = twin_of(taken.flow) if isinstance(taken, Panes) else Follower(taken.watermark, taken.name)
        self.panes: list[Arrival] = []
        self.rows: list[Arrival] = []

    @property
    def watermark(self) -> float:
        return self.twin.watermark

    def step(self, step: Step, clock: int) -> None:
        """The input of a step; ``clock`` is that of the step before."""
        self.panes, self.rows = [], []
        if self.source is None:
            panes = [pane for pane in self.twin.step(step) if pane.kind is not PaneKind.DROPPED]
            arrived = [arrival(pane, getattr(self.twin, "columns", ())) for pane in panes]
            self.panes = [one for one in arrived if self.wanted(one.values)]
            return
        self.twin.next(step, clock)
        if step.input == self.source.name:
            rows = [row for row in step.rows if self.wanted(row)]
            self.rows = [Arrival(row, time_of(row.get(self.source.event_time))) for row in rows]

    def wanted(self, row: Mapping[str, Any]) -> bool:
        """Does it satisfy the conditions? (rules/stages.md#conditions)."""
        return self.relation.where is None or bool(meaning(self.relation.where)(row))

    def key_of(self, values: Mapping[str, Any]) -> list[Any]:
        """The values of its key columns."""
        return [values.get(column) for column in self.relation.keys]


def arrival(pane: Pane, columns: Sequence[str]) -> Arrival:
    """A pane as a row; its key columns come first, unless its stage has the columns in another order."""
    values = {**pane.key, **pane.values}
    values = Fields({name: values[name] for name in columns or values})
    return Arrival(values, time_of(pane.timestamp), pane.window, pane.kind is PaneKind.RETRACTION)


def time_of(value: Any) -> int | None:
    return None if value is None else moment_us(value)


def name_of(key: Sequence[Any]) -> Any:
    """A lookup key: as in groups, all NaN are one, and so are -0.0 and 0.0 (rules/output.md#keys)."""
    return tuple(repr(normal(value)) for value in key)


def is_past(time_us: int, by_us: int, watermark: float) -> bool:
    """Is the watermark past a time by a span? Never before there is a watermark."""
    return watermark > NO_WATERMARK and time_us + by_us < watermark


def late_by(time_us: int | None, reason: DropReason, watermark: float) -> int | None:
    """How far the watermark is past a dropped row, if that is the reason."""
    by_time = reason in (DropReason.EXPIRED, DropReason.JOINED_ALREADY)
    if not by_time or time_us is None or watermark == NO_WATERMARK:
        return None
    return min(int(watermark) - time_us, END_OF_TIME_US)


# The table


@dataclass
class Change:
    """The value of a key from a time on, or its deletion.

    Attributes:
        step: the number of its step.
        sequence: orders changes of the same time.
    """

    time_us: int
    step: int
    deletes: bool
    sequence: Any
    values: Mapping[str, Any]

    @property
    def weight(self) -> Any:
        """Among changes of the same key and time the greatest is effective."""
        in_order = [spark_order(value) for value in self.values.values()]
        return spark_order(self.sequence), self.step, not self.deletes, in_order

    def equals(self, other: Change) -> bool:
        ours, theirs = ((one.time_us, one.deletes, one.sequence, one.values) for one in (self, other))
        return all(map(same, ours, theirs))


@dataclass
class Version:
    """The value of a key in an interval; open-ended if still valid."""

    from_us: int
    to_us: int | None
    values: Mapping[str, Any]

    @property
    def begins(self) -> dict[str, Any]:
        """Its values, and since when they are valid."""
        return {**self.values, VALID_FROM: moment(self.from_us)}

    @property
    def spans(self) -> dict[str, Any]:
        """Its values, and its validity."""
        return {**self.begins, VALID_TO: None if self.to_us is None else moment(self.to_us)}


class Table:
    """The accepted changes, by key, in order of arrival."""

    def __init__(self, options: VersionsOptions, takes: Relation) -> None:
        self.options = options
        self.hidden = {*takes.keys, takes.event_time, options.deleted, options.sequence_by}
        self.changes: dict[Any, list[Change]] = {}

    def refuses(self, change: Arrival, key: Sequence[Any], watermark: float) -> DropReason | None:
        """The drop reason of a change, if any."""
        if reason := change.no_time():
            return reason
        if any(value is None for value in key):
            return DropReason.NULL_KEY
        assert change.time_us is not None
        expired = is_past(change.time_us, self.options.allowed_lateness.us, watermark)
        return DropReason.EXPIRED if expired else None

    def take(self, arrivals: Sequence[tuple[Any, Arrival]], step: int) -> None:
        """Changes of one bundle, each with its key; retractions come last, and remove the newest equal one."""
        for name, change in sorted(arrivals, key=lambda pair: pair[1].removes):
            of_key = self.changes.setdefault(name, [])
            one = self.change_of(change, step)
            if not change.removes:
                of_key.append(one)
                continue
            equal = [i for i, other in enumerate(of_key) if other.equals(one)]
            if equal:
                del of_key[equal[-1]]

    def change_of(self, change: Arrival, step: int) -> Change:
        row, options = change.values, self.options
        assert change.time_us is not None
        return Change(
            change.time_us,
            step,
            options.deleted is not None and row.get(options.deleted) is True,
            None if options.sequence_by is None else row.get(options.sequence_by),
            {name: row.get(name) for name in self.columns_of(row)},
        )

    def columns_of(self, row: Mapping[str, Any]) -> Sequence[str]:
        """The columns of a version."""
        return [name for name in row if name not in self.hidden] if self.options.values is None else self.options.values

    def versions(self, name: Any) -> list[Version]:
        """All of a key, by time: each is valid until the next change."""
        counting: dict[int, Change] = {}
        for change in self.changes.get(name, []):
            counting[change.time_us] = max(counting.get(change.time_us, change), change, key=lambda one: one.weight)
        ordered = [counting[time_us] for time_us in sorted(counting)]
        found: list[Version] = []
        for change, after in zip_longest(ordered, ordered[1:]):
            if change.deletes:
                continue
            to_us = after.time_us if after else None
            last = found[-1] if found else None
            if (
                self.options.only_updated
                and last is not None
                and last.to_us == change.time_us
                and same(dict(last.values), dict(change.values))
            ):
                last.to_us = to_us
            else:
                found.append(Version(change.time_us, to_us, change.values))
        return found

    def valid_at(self, name: Any, time_us: int) -> Version | None:
        """The version with valid_from <= time < valid_to."""
        for one in self.versions(name):
            if one.from_us <= time_us and (one.to_us is None or time_us < one.to_us):
                return one
        return None

    def latest(self, name: Any) -> Version | None:
        """The version started by the key's latest change, unless it is a delete."""
        versions = self.versions(name)
        return versions[-1] if versions and versions[-1].to_us is None else None


# The stage


@dataclass
class Shown:
    """An emitted version."""

    version: Version
    pane: Pane


@dataclass
class Key:
    """The output of a key.

    Attributes:
        shown: the versions that are live.
        panes: how many panes came of the version that begins at a time, for those that there are.
    """

    columns: Mapping[str, Any]
    shown: list[Shown] = field(default_factory=list)
    panes: dict[int, int] = field(default_factory=dict)


class VersionsTwin:
    """A stage of versions."""

    def __init__(self, flow: Flow) -> None:
        options = said(flow)
        assert options.versions is not None
        self.options = options.versions
        self.side = Side(flow.inputs[0], flow.takes[0])
        self.table = Table(self.options, flow.takes[0])
        self.keys: dict[Any, Key] = {}
        self.watermark: float = NO_WATERMARK
        self.clock = 0
        self.steps = 0
        self.dropped: list[Pane] = []

    def change_stage(self, flow: Flow) -> None:
        """The next run has other options (rules/tables.md#as-of-joins-restart)."""
        options = said(flow).versions
        assert options is not None
        self.options = self.table.options = options

    def step(self, step: Step) -> list[Pane]:
        """Panes of the stage before, then the watermark, then rows of a source."""
        self.steps += 1
        self.dropped = []
        self.side.step(step, self.clock)
        out = list(self.change(self.side.panes))
        self.watermark = max(self.watermark, self.side.watermark)
        if step.clock_us is not None:
            self.clock = step.clock_us
        out += self.change(self.side.rows)
        return [*self.dropped, *out]

    def change(self, arrivals: Sequence[Arrival]) -> Iterator[Pane]:
        """A bundle of changes."""
        taken: list[tuple[Any, Arrival]] = []
        for one in arrivals:
            key = self.side.key_of(one.values)
            if reason := self.table.refuses(one, key, self.watermark):
                self.drop(one, key, reason)
                continue
            name = name_of(key)
            self.keys.setdefault(name, Key(self.named(map(normal, key))))
            taken.append((name, one))
        self.table.take(taken, self.steps)
        for name in dict.fromkeys(name for name, _ in taken):
            late = any(is_past(one.time_us, 0, self.watermark) for other, one in taken if other == name)
            yield from self.rows_of(name, PaneTiming.LATE if late else PaneTiming.ON_TIME)

    def rows_of(self, name: Any, timing: PaneTiming) -> Iterator[Pane]:
        """The changed versions of a key."""
        key, versions = self.keys[name], self.table.versions(name)
        key.panes = {one.from_us: key.panes.get(one.from_us, 0) for one in versions}
        showing = [one for one in versions if one.to_us is None or not self.options.latest_only]
        still = [one for one in key.shown if any(is_so(one.version, other) for other in showing)]
        gone = [one for one in key.shown if one not in still]
        yield from (attrs.evolve(one.pane, kind=PaneKind.RETRACTION) for one in gone)
        new = [one for one in showing if not any(is_so(one, other.version) for other in still)]
        came = [Shown(version, self.pane(key, version, timing)) for version in new]
        yield from (one.pane for one in came)
        key.shown = sorted([*still, *came], key=lambda one: one.version.from_us)

    def pane(self, key: Key, version: Version, timing: PaneTiming) -> Pane:
        index = key.panes[version.from_us]
        key.panes[version.from_us] += 1
        return Pane(
            key=key.columns,
            window=None,
            values=version.spans,
            timing=timing,
            index=index,
            on_time_index=index,
            is_first=index == 0,
            timestamp=moment(version.from_us),
        )

    def named(self, key: Iterable[Any]) -> dict[str, Any]:
        return dict(zip(self.side.relation.keys, key, strict=True))

    def drop(self, one: Arrival, key: Sequence[Any], reason: DropReason) -> None:
        if self.options.with_dropped:
            late_by_us = late_by(one.time_us, reason, self.watermark)
            row = dict(one.values)
            self.dropped.append(
                Pane(self.named(key), None, row, kind=PaneKind.DROPPED, reason=reason, late_by_us=late_by_us)
            )


def is_so(one: Version, other: Version) -> bool:
    """Are they the same?"""
    return (one.from_us, one.to_us) == (other.from_us, other.to_us) and same(dict(one.values), dict(other.values))


TWIN = VersionsTwin
