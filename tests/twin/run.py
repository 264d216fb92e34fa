"""The interpreter: a script, step by step; a bundle, row by row; each key by itself; each stage after its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import attrs

import beamish as bm
from beamish import DropReason, Pane, PaneKind, PaneTiming
from beamish.flow import Flow, Panes
from beamish.kernels.column_names import has_no_event_time
from beamish.script import Event, Step, as_step
from beamish.source import Source
from beamish.windows.option import END_OF_TIME_US
from tests.declared_options import said, takes_back
from tests.kinds.deduplicate.twin_ids import Again, came_again, id_of
from tests.kinds.refine.strategy import Shown, meaning
from tests.kinds.window.twin_pairs_once import Made, Pair, let_go, once_of, pair_up, pairs_due, too_old, without_match
from tests.twin.accumulations import Row
from tests.twin.anchored import Anchors
from tests.twin.errors import check_accumulators, windows_of, without_errors
from tests.twin.fields import Fields
from tests.twin.forms import unfolded, unmatched
from tests.twin.joins import full_interval, is_dropped, is_left_out, value_of_inputs, windows_of_both
from tests.twin.ledger import told
from tests.twin.moments import moment, moment_us
from tests.twin.order import normal, same
from tests.twin.triggers import Node, Now, node
from tests.twin.windows import Bounds, groups

NO_WATERMARK = -float("inf")
"""rules/windows.md#lateness: before there is a watermark nothing is at its end."""
NO_TIME_US = END_OF_TIME_US - 1
"""The position of a pane of the global window without a timestamp: the window's last microsecond."""


def run(pipeline: bm.Pipeline, events: Sequence[Event]) -> list[Pane]:
    """The panes, retractions and dropped rows of a script, in order (rules/output.md#order-of-output)."""
    return [pane for panes in trace(pipeline, events) for pane in panes]


def trace(pipeline: bm.Pipeline, events: Sequence[Event]) -> list[list[Pane]]:
    """The same, event by event."""
    flow = pipeline.flow.completed
    twin = twin_of(flow)
    steps = (as_step(event) for event in events)
    steps = (attrs.evolve(step, rows=tuple(map(Fields, step.rows))) for step in steps)
    return [told(flow, twin.step(step)) for step in steps]


def twin_of(flow: Flow) -> Any:
    """The twin of a stage, which has ``step`` and ``watermark``: ``TWIN`` in ``tests/kinds/<kind>/twin.py``."""
    kind = type(flow.stage).__module__.split(".")[-2]
    return import_module(f"tests.kinds.{kind}.twin").TWIN(flow)


def numbering_of(flow: Flow) -> Any:
    """How rows are numbered, for count windows."""
    window = said(flow).window
    return None if window is None else window.numbering


class Signed(Fields):
    """The values of a row, and whether it is a retraction (rules/stages.md#retractions-as-rows)."""

    def __init__(self, values: Mapping[str, Any], removes: bool) -> None:
        super().__init__(values)
        self.removes = removes


@dataclass
class Live:
    """A window of a key that is neither finished nor expired."""

    bounds: Bounds
    trigger: Node
    rows: list[Row] = field(default_factory=list)
    """All rows (discarding: those not yet in a pane)."""
    new: list[Row] = field(default_factory=list)
    """The rows not yet in a pane."""
    ids: list[Any] = field(default_factory=list)
    """Ids of all its rows, if rows are deduplicated per window (rules/output.md#duplicates)."""
    put_in: int = 0
    """Number of rows added to it."""
    kept: list[Row] = field(default_factory=list)
    """The stored rows of a join that emits each pair once (rules/stages.md#each-pair-once)."""
    due: list[Pair] = field(default_factory=list)
    """Pairs of such a join in no pane yet."""
    let_go: int = 0
    """Unmatched rows dropped since the last pane, as the watermark moved."""
    new_since: float | None = None
    """The watermark at the arrival of the first new row (rules/panes.md#pane-timing)."""
    waits_for_end: bool = False
    """Before the end a row was shown to an AfterWatermark or a Default (rules/triggers.md#when-a-window-is-asked)."""
    panes: int = 0
    panes_not_early: int = 0
    last: Pane | None = None
    """The last pane of this window; in retracting mode the live one."""
    inherited: list[Pane] = field(default_factory=list)
    """Live panes of merged windows, to be retracted with the next pane (WITH_NEXT_PANE).

    See rules/windows.md#retractions-of-merged-windows.
    """

    @property
    def start(self) -> int:
        return self.bounds[0]

    @property
    def end(self) -> int:
        return self.bounds[1]

    def add(self, rows: Iterable[Row], watermark: float) -> None:
        for row in rows:
            # rules/panes.md#pane-timestamps: it matters where the watermark was when the row landed in its window (after
            # merging).
            landed = row._replace(before_end=watermark < self.end)
            self.new.append(landed)
            self.put_in += 1
            self.kept.append(landed)
            if self.new_since is None:
                self.new_since = watermark
            if removes(row):
                self.remove(row)  # rules/stages.md#retractions-as-rows: R counts as a row, and removes an equal one
            else:
                self.rows.append(landed)

    def remove(self, row: Row) -> None:
        for i, one in enumerate(self.rows):
            # A pane from before an accumulation was added has null for it.
            equal = all(same(one.values.get(name), value) for name, value in row.values.items())
            if one.time_us == row.time_us and one.input == row.input and equal:
                del self.rows[i]
                return


@dataclass
class Key:
    """A key, its live windows, and the finished ones, with the ids of their rows.

    Attributes:
        remembered: the ids of its rows, each with the watermark at which it expires (rules/output.md#duplicates-within).
        put_in: number of rows in finished windows.
        fallen: (end, start) of the latest evicted window (rules/windows.md#retention).
        latest_us: the latest event time of its rows since it last expired (rules/windows.md#forget-after).
        reach, next_reach: its own watermark, and that of the next step (rules/key-watermarks.md#watermark-per-key).
        reach_before: the same before this part of the step.
    """

    columns: Mapping[str, Any]
    live: dict[Bounds, Live] = field(default_factory=dict)
    closed: dict[Bounds, list[Any]] = field(default_factory=dict)
    remembered: list[tuple[Any, int]] = field(default_factory=list)
    put_in: dict[Bounds, int] = field(default_factory=dict)
    fallen: tuple[int, int] | None = None
    latest_us: int | None = None
    reach: float = NO_WATERMARK
    next_reach: float = NO_WATERMARK
    reach_before: float = NO_WATERMARK

    def has_lost(self, bounds: Bounds) -> bool:
        """Whether the window, or a later one, was evicted."""
        return self.fallen is not None and bounds[::-1] <= self.fallen

    made: Made = field(default_factory=Made)

    def in_order(self) -> list[Live]:
        """By (end, start) (rules/output.md#order-of-output)."""
        return sorted(self.live.values(), key=lambda window: (window.end, window.start))


@dataclass
class Follower:
    """The progress of a source's watermark.

    rules/time.md#steps-and-clocks: the script sets it, so Punctuated does not apply, nor does BoundedOutOfOrderness except for
    idle_timeout.
    """

    policy: Any
    name: str | None = None
    watermark: float = NO_WATERMARK
    script_watermark: float = NO_WATERMARK
    risen_at_clock: int = 0

    def next(self, step: Step, clock: int) -> float:
        """The watermark after a step; ``clock`` is that of the step before."""
        self.watermark = self._next(step, clock)
        return self.watermark

    def _next(self, step: Step, clock: int) -> float:
        to = step.watermark_us if step.input in (None, self.name) else None
        if isinstance(self.policy, bm.ProcessingTimeLag):
            if to is not None:
                raise bm.ScriptError("an explicit watermark with ProcessingTimeLag")
            return self.watermark if step.clock_us is None else max(self.watermark, step.clock_us - self.policy.lag.us)
        if to is not None:
            if to < self.script_watermark:
                raise bm.ScriptError("the watermark goes back")
            if to > self.script_watermark:
                self.script_watermark = to
                # The clock of the step in which it rose, which the step itself may move.
                self.risen_at_clock = clock if step.clock_us is None else step.clock_us
                return max(self.watermark, to)
        # rules/time.md#idle-timeout: the script's watermark did not rise.
        idle_timeout = self.policy.idle_timeout if isinstance(self.policy, bm.BoundedOutOfOrderness) else None
        idle = clock - self.risen_at_clock
        if self.script_watermark > NO_WATERMARK and idle_timeout is not None and idle >= idle_timeout.us:
            return min(max(self.watermark, self.script_watermark + idle), END_OF_TIME_US)
        return self.watermark


def out_of_range(time_us: int) -> bool:
    """Is it outside the years 1 to 9999?"""
    years = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    return not moment_us(years[0]) <= time_us <= moment_us(years[1])


def bounds_of_pane(pane: Pane) -> Bounds:
    """The bounds of a pane's window; for the global window those of all event times."""
    if pane.window is None or pane.window.start is None or pane.window.end is None:
        return 0, END_OF_TIME_US
    return moment_us(pane.window.start), moment_us(pane.window.end)


def removes(row: Row) -> bool:
    """Is it a retraction?"""
    return isinstance(row.values, Signed) and row.values.removes


class Twin:
    """A stage, and the twins of its upstream stages."""

    def __init__(self, flow: Flow) -> None:
        options = said(flow)
        self.options = options
        self.inherits = options.window is None
        self.window: bm.WindowOption = options.window or inherited(flow)
        self.merging = self.window.merging and not self.inherits
        self.by_session = self.merging and getattr(self.window, "late_rows", "") == "session"
        self.meets = None if self.inherits else self.window
        self.full = full_interval(self.meets, options.accumulations)
        self.anchors = Anchors(options.window) if isinstance(options.window, bm.AnchoredWindows) else None
        self.lateness = options.allowed_lateness.us
        self.signed = any(takes_back(one) for one in flow.inputs)
        self.watermark: float = NO_WATERMARK
        """That of the next stage too: with a watermark per key the least that a key may have."""
        self.clock = 0
        self.keys: dict[Any, Key] = {}
        self.bundles = 0
        self.added: dict[str, int] = {}
        """Accumulations added by a later run, with the number of bundles before them (rules/running.md#restart)."""
        self.is_changed = False
        """The first step of a run with another pipeline."""
        self.forgets_anew = False
        """Keys expire from now on."""
        self.out: list[Pane] = []
        self.takes = flow.takes
        self.names = [one.name if options.merges else None for one in flow.inputs]
        self.followers = {
            name: Follower(one.watermark, one.name)
            for name, one in zip(self.names, flow.inputs, strict=True)
            if isinstance(one, Source)
        }
        self.before = {
            name: twin_of(one.flow) for name, one in zip(self.names, flow.inputs, strict=True) if isinstance(one, Panes)
        }
        self.sources: dict[str | None, tuple[str | None, Source]] = {
            one.name: (name, one) for name, one in zip(self.names, flow.inputs, strict=True) if isinstance(one, Source)
        }

    def change(self, flow: Flow) -> None:
        """The next run has other options (rules/running.md#restart)."""
        then, self.options = self.options, said(flow)
        self.lateness = self.options.allowed_lateness.us
        self.is_changed = True
        more = self.options.accumulations.keys() - then.accumulations.keys()
        self.added |= dict.fromkeys(more, self.bundles)
        self.forgets_anew = then.forget_after is None
        counted = then.retention is not None and then.retention.rows is not None
        for key in self.keys.values():
            if not counted:
                key.put_in = dict.fromkeys(key.put_in, 0)
            for window in key.in_order():
                window.put_in = window.put_in if counted else 0
                known = then.only_updated or then.retracts  # otherwise the old values are not stored
                window.last = with_nulls(more, window.last) if window.last and known else None
                window.inherited = [with_nulls(more, pane) for pane in window.inherited]
                if self.options.trigger != then.trigger:
                    window.trigger, window.waits_for_end = node(self.options.trigger), True
                    unseen = len(window.new) + window.let_go
                    if unseen:
                        window.trigger.show(unseen, self.now(key, window.bounds))

    # Steps (rules/time.md#steps-and-clocks, #idle-timeout, #processing-time-lag, rules/stages.md#steps-of-later-stages): panes of the
    # stages before in one bundle, watermark, clock, rows of sources; each by itself.

    @property
    def full_window(self) -> bm.Within:
        """The interval of a full interval join."""
        assert isinstance(self.window, bm.Within)
        return self.window

    def step(self, step: Step) -> list[Pane]:
        """The output of a step."""
        seen = len(self.out)
        self.take_up_changes()
        panes = [
            (name, pane)
            for name, twin in self.before.items()
            for pane in twin.step(step)
            if pane.kind is not PaneKind.DROPPED
        ]
        self.begin_part()
        if self.before:
            self.add_panes(panes)
            self.begin_part()
        # The merged watermark is the least of the inputs', or the greatest; a stage forwards its own (rules/stages.md#merged-watermark).
        own = [follower.next(step, self.clock) for follower in self.followers.values()]
        each = [*own, *(twin.watermark for twin in self.before.values())]
        self.move_watermark(max(each) if self.options.wait_for is bm.FASTEST_INPUT else min(each))
        # rules/panes.md#pane-timing, rules/output.md#order-of-output: the clock and the rows are steps of their own, after the
        # watermark's.
        self.begin_part()
        if step.clock_us is not None:
            if step.clock_us < self.clock:
                raise bm.ScriptError("the clock goes back")
            self.move_clock(step.clock_us)
        if step.rows and step.input in self.sources:
            self.add(step.rows, *self.sources[step.input])
        return Shown(self.options.having, self.options.derived, self.options.explode).of(self.out[seen:])

    def take_up_changes(self) -> None:
        """The effects of a change before any input."""

    def begin_part(self) -> None:
        """The state so far precedes everything that follows."""
        self.watermark_before_step = self.watermark
        for key in self.keys.values():
            key.reach_before = key.reach

    def progress(self, key: Key) -> float:
        """The progress that the windows of a key depend on."""
        return max(self.watermark, key.reach)

    def progress_before(self, key: Key) -> float:
        """The same before this part of the step."""
        return max(self.watermark_before_step, key.reach_before)

    def move_watermark(self, to: float) -> None:
        by_key = self.options.key_watermark
        if by_key is not None:  # rules/key-watermarks.md#watermark-per-key
            to = to if to == END_OF_TIME_US else to - by_key.at_most.us
            for key in self.keys.values() if max(to, self.watermark) > NO_WATERMARK else ():
                key.reach = key.next_reach
        if to > self.watermark or self.is_changed or by_key is not None:
            self.watermark = max(self.watermark, to)
            if self.forgets_anew and self.watermark > NO_WATERMARK:
                for key in self.keys.values():
                    key.latest_us = int(self.watermark)
            self.pass_ends([])
        self.is_changed = self.forgets_anew = False

    def pass_ends(self, came: Sequence[Live]) -> None:
        """Progress of windows; those with a row that were not yet evaluated are included."""
        for key in self.keys.values():
            before, now = self.progress_before(key), self.progress(key)
            for window in key.in_order():
                waits = before < window.end <= now and window.waits_for_end
                if self.expired(key, window.bounds) or self.is_forgotten(key):
                    # The last pane, whatever its trigger; a jump over end and expiry emits one.
                    del key.live[window.bounds]
                    self.emit(key, window, is_last=True)
                    continue
                due = any(target <= now for target in window.trigger.due())
                if self.lets_go(key, window) or waits or due or any(window is one for one in came):
                    # rules/triggers.md#when-a-window-is-asked
                    self.ask(key, window)
            key.closed = {bounds: ids for bounds, ids in key.closed.items() if not self.expired(key, bounds)}
            if self.is_forgotten(key):
                self.forget(key)

    def is_forgotten(self, key: Key) -> bool:
        """Whether the watermark is far enough past the latest row of a key (rules/windows.md#forget-after)."""
        return self.progress(key) >= self.end_of(key)

    def end_of(self, key: Key) -> float:
        """The end of its window without further rows."""
        span = self.options.forget_after if self.window.is_all_of_time else None
        return float("inf") if span is None or key.latest_us is None else min(key.latest_us + span.us, END_OF_TIME_US)

    def forget(self, key: Key) -> None:
        key.latest_us = None
        key.closed.clear()

    def time_of(self, row: Row) -> int | None:
        """A row's event time."""
        return row.time_us

    def lets_go(self, key: Key, window: Live) -> bool:
        """Whether unmatched rows are past retention: they become due (rules/stages.md#each-pair-once)."""
        alone = let_go(self, key, window)
        if alone:
            window.let_go += alone
            window.new_since = self.progress(key) if window.new_since is None else window.new_since
            shown = window.trigger.show(alone, self.now(key, window.bounds))
            window.waits_for_end |= shown and self.progress(key) < window.end
        return alone > 0

    def move_clock(self, to: int) -> None:
        if to <= self.clock:
            return
        self.clock = to
        for key in self.keys.values():
            for window in key.in_order():
                if any(target <= to for target in window.trigger.targets()):  # rules/triggers.md#when-a-window-is-asked
                    self.ask(key, window)

    def expired(self, key: Key, bounds: Bounds) -> bool:
        # rules/time.md#end-of-time: at the end of time everything expires.
        return self.progress(key) >= min(bounds[1] + self.lateness, END_OF_TIME_US)

    def kept(self) -> list[tuple[Key, Bounds, Live | None]]:
        """The stored windows, by key, end and start; None: finished (rules/running.md#kept-windows)."""
        found: list[tuple[Key, Bounds, Live | None]] = []
        for key in self.keys.values():
            found += [(key, bounds, live) for bounds, live in key.live.items()]
            found += [(key, bounds, None) for bounds in key.closed if bounds not in key.live]
        return sorted(found, key=lambda one: one[1][::-1])

    def values_of(self, window: Live) -> dict[str, Any]:
        """The value of a pane now."""
        once = once_of(self)
        return {
            name: pairs_due(self, once, window) if once else self.value_of(name, window.rows, window.start)
            for name in self.options.accumulations
        }

    def value_of(self, name: str, rows: Sequence[Row], start_us: int = 0) -> Any:
        """An accumulation of the rows of a window; an added one has only later rows."""
        seen = [row for row in rows if row.bundle > self.added.get(name, 0)]
        return value_of_inputs(self.options.accumulations[name], seen, self.takes, self.meets, start_us)

    # A bundle

    def add(self, rows: Sequence[Mapping[str, Any]], input_: str | None, source: Source) -> None:
        self.bundles += 1
        arrived: dict[Any, list[tuple[Bounds, Row]]] = {}
        for row_values, removal in unfolded(source, rows):
            if not self.wanted(row_values, source.where):
                continue
            values = Signed(row_values, removal) if source.form else Fields(row_values)
            key, name = self.key_of(values, source.keys)
            # rules/windows.md#untimed: in all of time rows need none
            time = 0 if has_no_event_time(source.event_time) else values.get(source.event_time)
            if time is None:
                self.drop(key, None, DropReason.NULL_EVENT_TIME, Row(self.bundles, 0, values, False, input_))  # noqa: FBT003
                continue
            row = Row(self.bundles, moment_us(time), values, False, input_)  # noqa: FBT003
            self.put(key, name, row, arrived)
        for name, pairs in arrived.items():
            self.add_to_key(self.keys[name], sorted(pairs, key=lambda pair: removes(pair[1])))

    def wanted(self, row: Mapping[str, Any], of_input: Any) -> bool:
        """Does it satisfy the stage's and the input's conditions? (rules/stages.md#conditions)."""
        return all(where is None or meaning(where)(row) for where in (self.options.where, of_input))

    def add_panes(self, panes: Sequence[tuple[str | None, Pane]]) -> None:
        """The panes of a step are one bundle, and their timestamps are their event times.

        See rules/stages.md#steps-of-later-stages.
        """
        self.bundles += 1
        arrived: dict[Any, list[tuple[Bounds, Row]]] = {}
        for input_, pane in panes:
            relation = self.takes[self.names.index(input_)]
            values = Signed({**pane.key, **pane.values}, pane.kind is PaneKind.RETRACTION)
            if not self.wanted({**values, "timing": str(pane.timing), "is_last": pane.is_last}, relation.where):
                continue
            key, name = self.key_of(values, relation.keys)
            time = None if pane.timestamp is None else moment_us(pane.timestamp)
            if time is None and (self.inherits or self.window.is_all_of_time):  # rules/stages.md#stages
                time = NO_TIME_US
            row = Row(self.bundles, time or 0, values, False, input_)  # noqa: FBT003
            if time is None:
                self.drop(key, None, DropReason.NULL_EVENT_TIME, row)
                continue
            self.put(key, name, row, arrived, [bounds_of_pane(pane)] if self.inherits else None)
        for name, pairs in arrived.items():
            # The order of rows in a bundle is undefined: retractions follow their rows.
            self.add_to_key(self.keys[name], sorted(pairs, key=lambda pair: removes(pair[1])))

    def key_of(self, values: Mapping[str, Any], keys: Sequence[str]) -> tuple[Key, Any]:
        """The key of a row, and its name; the output has the column names of the first input."""
        own = [normal(values.get(column)) for column in keys]
        columns = dict(zip(self.options.keys, own, strict=True))
        name = tuple(map(repr, columns.values()))
        return self.keys.setdefault(name, Key(columns)), name

    def put(
        self,
        key: Key,
        name: Any,
        row: Row,
        arrived: dict[Any, list[tuple[Bounds, Row]]],
        own: Sequence[Bounds] | None = None,
    ) -> None:
        """Assign a row to windows; ``own``: already known."""
        if own is None and row.time_us != NO_TIME_US and out_of_range(row.time_us):
            self.drop(key, None, DropReason.EVENT_TIME_OUT_OF_RANGE, row)
            return
        self.move_key(key, row)
        if is_left_out(self.options.accumulations, row):
            return
        if is_dropped(self.options.accumulations, row, self.takes):
            self.drop(key, None, DropReason.NULL_KEY, row)
            return
        try:
            windows = windows_of(self.window, row) if own is None else own
            if self.full is not None:
                windows = windows_of_both(self.full, self.full_window, row, self.takes, windows)
        except Exception:
            if self.options.on_error == "fail":
                raise
            self.drop(key, None, DropReason.ERROR, row)  # rules/output.md#errors: before it has windows
            return
        if self.anchors and self.expired(key, windows[0]) and not self.expired(key, self.anchors.last_of(row)):
            # rules/windows.md#anchored-windows: other windows may have it, though its own has expired.
            arrived.setdefault(name, []).append((windows[0], row))
        whole = self.full is not None and any(self.expired(key, bounds) for bounds in windows)
        for bounds in windows:
            if self.by_session:
                arrived.setdefault(name, []).append((bounds, row))
            elif whole or self.expired(
                key, bounds
            ):  # rules/output.md#dropped-rows: judged first; sessions: on the row's own window
                self.drop(key, bounds, DropReason.EXPIRED, row)
            elif key.has_lost(bounds) or too_old(self, row):
                self.drop(key, bounds, DropReason.OUT_OF_RETENTION, row)
            else:
                arrived.setdefault(name, []).append((bounds, row))

    def move_key(self, key: Key, row: Row) -> None:
        """A row moves the watermark of its key, as of the next step (rules/key-watermarks.md#watermark-per-key)."""
        by_key = self.options.key_watermark
        if by_key is None:
            return
        (follower,) = self.followers.values()
        future = getattr(follower.policy, "max_future", None)
        if future is None or row.time_us <= self.clock + future.us:
            key.next_reach = max(key.next_reach, row.time_us - by_key.delay.us)

    def add_to_key(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> None:
        if self.anchors:
            spread = self.anchors.spread(key, [row for _, row in pairs])
            pairs = [(bounds, row) for bounds, row in spread if not self.expired(key, bounds)]
        if self.by_session:
            pairs = self.in_time(key, pairs)
        came = self.land(key, pairs)
        if came and self.is_forgotten(key):  # its rows are so late that it closes at once
            for window in list(came):
                del key.live[window.bounds]
                self.emit(key, window, is_last=True)
            self.forget(key)
            return
        for window in key.in_order():
            if any(window is one for one in came):  # rules/triggers.md#when-a-window-is-asked
                self.ask(key, window)
        if came:
            self.let_fall(key)

    def in_time(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> list[tuple[Bounds, Row]]:
        """Without rows of expired sessions, or past retention (rules/windows.md#late-rows-of-sessions)."""
        kept = []
        for bounds, row in self.of_live_sessions(key, pairs):
            lost = key.has_lost(bounds) and not self.expired(key, bounds)
            if lost or too_old(self, row):
                self.drop(key, bounds, DropReason.OUT_OF_RETENTION, row)
            else:
                kept.append((bounds, row))
        return kept

    def of_live_sessions(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> list[tuple[Bounds, Row]]:
        """Without rows whose session, merged with those of the bundle and the open ones, is expired."""
        into: dict[Bounds, Bounds] = {}
        for members, result in groups(self.window, sorted({own for own, _ in pairs} | set(key.live))):
            into.update(dict.fromkeys(members, result))
        for own, row in pairs:
            if self.expired(key, into[own]):
                self.drop(key, own, DropReason.EXPIRED, row)
        return [(own, row) for own, row in pairs if not self.expired(key, into[own])]

    def let_fall(self, key: Key) -> None:
        """Apply retention to a key with new rows: its latest windows, within the budgets (rules/windows.md#retention)."""
        budget = self.options.retention
        if budget is None:
            return
        put_in = {bounds: key.put_in[bounds] for bounds in key.closed} | {
            at: one.put_in for at, one in key.live.items()
        }
        windows = rows = 0
        gone: list[Bounds] = []
        for bounds in sorted(put_in, key=lambda bounds: bounds[::-1], reverse=True):
            windows, rows = windows + 1, rows + put_in[bounds]
            over = windows > (budget.windows or windows) or rows > (budget.rows or rows)
            if gone or (over and windows > 1):
                gone.append(bounds)
        for bounds in reversed(gone):
            key.closed.pop(bounds, None)
            window = key.live.pop(bounds, None)
            if window is not None:
                self.emit(key, window, is_last=True)
        if gone:
            key.fallen = max([gone[0][::-1], *([key.fallen] if key.fallen else [])])

    def land(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> list[Live]:
        """Assign rows to windows and show them to triggers; returns those windows."""
        once = self.options.deduplication
        if (
            once is not None and once.within is not None
        ):  # rules/output.md#duplicates-within: before windows are looked for
            pairs = self.not_again(key, pairs)
        return self.put_into_windows(key, without_errors(self, key, pairs))

    def not_again(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> Sequence[tuple[Bounds, Row]]:
        """Without duplicates, which are dropped."""
        for own, row, bounds, reason in self.came_again(key, pairs):
            self.drop(key, bounds, reason, row)
            pairs = [(other, one) for other, one in pairs if (other, one) != (own, row) or one is not row]
        return pairs

    def put_into_windows(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> list[Live]:
        """Without rows that cause errors."""
        once = self.options.deduplication
        if once is not None and once.within is None:
            pairs = self.not_again(key, pairs)
        if self.by_session:
            pairs = self.of_live_sessions(key, pairs)
        into, gone, vanished = self.merge(key, {bounds for bounds, _ in pairs}) if self.merging else ({}, [], [])
        landed: dict[Bounds, list[Row]] = {}
        for own, row in pairs:
            bounds = into.get(own, own)
            whole = self.full is not None and any(one is row and at in key.closed for at, one in pairs)
            if whole or bounds in key.closed:  # rules/windows.md#meeting-a-closed-session, rules/output.md#dropped-rows
                self.drop(key, bounds, DropReason.WINDOW_FINISHED, row)
            else:
                landed.setdefault(bounds, []).append(row)
        self.retract(vanished)
        for bounds in sorted(gone, key=lambda bounds: bounds[::-1]):
            self.became(key, bounds, into[bounds])
        for bounds in list(landed):
            landed[bounds] = self.matched(key, bounds, landed[bounds])
            if not landed[bounds]:
                del landed[bounds]
        for bounds, rows in landed.items():
            window = key.live.setdefault(bounds, Live(bounds, node(self.options.trigger)))
            window.add(rows, self.progress(key))
            times = [row.time_us for row in rows if row.time_us != NO_TIME_US]
            key.latest_us = max([*times, *([] if key.latest_us is None else [key.latest_us])], default=None)
            if self.options.deduplication is not None:
                window.ids += [id_of(self.options.deduplication.columns, row.values) for row in rows]
            now = replace(self.now(key, bounds), earliest=min(row.time_us for row in rows))
            shown = window.trigger.show(len(rows), now)
            window.waits_for_end |= shown and self.progress(key) < window.end
        pair_up(self, key, [window for window in key.in_order() if window.bounds in landed])
        return [key.live[bounds] for bounds in landed]

    def came_again(self, key: Key, pairs: Sequence[tuple[Bounds, Row]]) -> list[Again]:
        """The duplicates, per window."""
        return came_again(self, key, pairs)

    def matched(self, key: Key, bounds: Bounds, rows: Sequence[Row]) -> list[Row]:
        """Without retractions of missing rows (rules/changelogs.md#unmatched-removals)."""
        if not self.signed:
            return list(rows)
        held = key.live[bounds].rows if bounds in key.live else []
        removals = [row for row in rows if removes(row)]
        lost = unmatched(self.options, held, [row for row in rows if not removes(row)], removals)
        for row in lost:
            self.drop(key, bounds, DropReason.UNMATCHED_REMOVAL, row)
        return [row for row in rows if not any(row is one for one in lost)]

    def merge(self, key: Key, arrived: set[Bounds]) -> tuple[dict[Bounds, Bounds], list[Bounds], list[Pane]]:
        """Merge the windows of a bundle and the live ones, all at once (rules/windows.md#windows-that-merge).

        Gives where each has gone, the live ones that became another, and the panes to retract at once.
        """
        into: dict[Bounds, Bounds] = {}
        gone: list[Bounds] = []
        vanished: list[Pane] = []
        for members, result in groups(self.window, sorted(arrived | set(key.live))):
            into.update(dict.fromkeys(members, result))
            parts = [key.live[bounds] for bounds in members if bounds in key.live]
            if result in key.closed or not parts or (len(parts) == 1 and parts[0].bounds == result):
                continue  # rules/windows.md#meeting-a-closed-session: the live ones stay; or nothing changes
            for part in parts:
                del key.live[part.bounds]
            gone += [part.bounds for part in parts if part.bounds != result]
            equal = [part for part in parts if part.bounds == result]
            pending = sum(len(part.inherited) for part in parts)  # gathered by an earlier run: they stay pending
            merged = self.merged(key, parts, result, equal[0] if equal else None)
            key.live[result] = merged
            if self.options.retracts_at_merge:
                vanished += merged.inherited[pending:]
                del merged.inherited[pending:]
        return into, gone, vanished

    def merged(self, key: Key, parts: Sequence[Live], result: Bounds, equal: Live | None) -> Live:
        window = Live(result, deepcopy(equal.trigger) if equal else node(self.options.trigger))
        window.trigger.merge([part.trigger for part in parts], self.now(key, result))
        window.rows = [row for part in parts for row in part.rows]
        window.ids = [one for part in parts for one in part.ids]
        window.put_in = sum(part.put_in for part in parts)
        window.kept = [row for part in parts for row in part.kept]
        window.due = [pair for part in parts for pair in part.due]
        window.let_go = sum(part.let_go for part in parts)
        window.new = [row for part in parts for row in part.new]
        window.new_since = min((part.new_since for part in parts if part.new_since is not None), default=None)
        window.waits_for_end = any(part.waits_for_end for part in parts)
        if equal:  # rules/triggers.md#merging-triggers: it keeps that part's pane numbers
            window.panes, window.panes_not_early, window.last = equal.panes, equal.panes_not_early, equal.last
        check_accumulators(self, window)
        if self.options.retracts:
            gone = [part.last for part in parts if part is not equal and part.last]
            window.inherited = [pane for part in parts for pane in part.inherited] + gone
        return window

    # Firing

    def now(self, key: Key, bounds: Bounds, rows: Sequence[Row] = ()) -> Now:
        return Now(*bounds, self.progress(key), self.clock, self.merging, lambda name: self.value_of(name, rows))

    def ask(self, key: Key, window: Live) -> None:
        """One evaluation gives at most one firing (rules/triggers.md#when-a-window-is-asked)."""
        now = self.now(key, window.bounds, window.rows)
        if not window.trigger.ready(now):
            return
        window.trigger.fire(now)
        if window.trigger.finished:
            del key.live[window.bounds]
            key.closed[window.bounds], key.put_in[window.bounds] = window.ids, window.put_in
        self.emit(key, window, is_last=window.trigger.finished)  # rules/panes.md#last-panes

    def emit(self, key: Key, window: Live, *, is_last: bool) -> None:
        """A window has fired, or expired (rules/panes.md#what-a-firing-gives)."""
        options = self.options
        timing = self.timing(key, window)
        once = once_of(self)
        if once and is_last:
            window.due += without_match(self, once, key, window, window.kept)
        gives_pane = (
            bool(window.new)
            or window.let_go > 0
            or bool(once and is_last and window.due)
            or (timing is PaneTiming.ON_TIME and options.on_time is bm.OnTimeBehavior.FIRE_ALWAYS)
            or (is_last and options.closing is bm.ClosingBehavior.FIRE_ALWAYS)
        )
        if gives_pane and self.signed and not window.rows:
            # rules/stages.md#retractions-as-rows: a pane of an empty window is not emitted, but its live pane is
            # retracted.
            if options.retracts and window.last:
                self.retract([window.last])
            window.last = None
        elif gives_pane:
            pane = Pane(
                key=key.columns,
                window=self.bounds_of(window.bounds),
                values=self.values_of(window),
                timing=timing,
                index=window.panes,
                on_time_index=-1 if timing is PaneTiming.EARLY else window.panes_not_early,
                is_first=window.panes == 0,
                is_last=is_last,
                timestamp=self.timestamp(window),
            )
            # rules/panes.md#only-updated-panes: skipped, with its number and its retraction, but not the retractions of
            # merged windows.
            left_out = options.only_updated and window.last is not None and same(window.last.values, pane.values)
            replaced = [window.last] if options.retracts and window.last and not left_out else []
            # rules/windows.md#retractions-of-merged-windows: those of merged windows first, then its own
            self.retract(window.inherited)
            self.retract(replaced)
            window.inherited = []
            if not left_out:
                self.give(pane, window.rows)
                window.last = pane
                window.panes += 1
                window.panes_not_early += timing is not PaneTiming.EARLY
        window.new, window.due, window.let_go = [], [], 0
        window.new_since = None
        if options.discards:
            window.rows = []

    def timing(self, key: Key, window: Live) -> PaneTiming:
        """rules/panes.md#pane-timing."""
        since = self.progress_before(key) if window.new_since is None else window.new_since
        end = min(window.end, self.end_of(key))
        if window.panes_not_early or since >= end:
            return PaneTiming.LATE
        return PaneTiming.EARLY if self.progress(key) < end else PaneTiming.ON_TIME

    def timestamp(self, window: Live) -> Any:
        """rules/panes.md#pane-timestamps."""
        combine: Callable[..., int] | None = {
            bm.TimestampCombiner.EARLIEST: min,
            bm.TimestampCombiner.LATEST: max,
        }.get(self.options.combiner)
        times = [row.time_us for row in window.new if row.before_end and row.time_us != NO_TIME_US]
        last_us = window.end - 1
        found = min(combine(times), last_us) if combine and times else last_us
        return self.replaced_time(window) if found == NO_TIME_US else moment(found)

    def replaced_time(self, window: Live) -> Any:
        """Without a last microsecond: with a combiner the timestamp of the replaced pane."""
        combines = self.options.combiner is not bm.TimestampCombiner.END_OF_WINDOW
        return window.last.timestamp if combines and self.options.retracts and window.last else None

    def retract(self, panes: Iterable[Pane]) -> None:
        """rules/windows.md#retractions-of-merged-windows, rules/output.md#order-of-output: by (end, start), each repeating its pane."""
        # (Panes of the global window have no bounds, and come one by one.)
        for pane in sorted(panes, key=lambda pane: (pane.window or ())[::-1]):
            self.give(attrs.evolve(pane, kind=PaneKind.RETRACTION))

    def give(self, pane: Pane, rows: Sequence[Row] = ()) -> None:
        """Emit a pane of these rows, or the retraction of one."""
        self.out.extend(self.rows_of(pane))

    def became(self, key: Key, bounds: Bounds, into: Bounds) -> None:
        """A window was merged away; retract its pane, if so configured."""

    def rows_of(self, pane: Pane) -> list[Pane]:
        """A pane of a join, or of first rows, is a row for each, in any number; every other pane is one row (rules/stages.md#joins)."""
        for name, accumulation in self.options.accumulations.items():
            if accumulation.explodes:
                return [attrs.evolve(pane, values={name: pair}) for pair in pane.values[name]]
        return [pane]

    def drop(self, key: Key, bounds: Bounds | None, reason: DropReason, row: Row) -> None:
        """rules/output.md#dropped-rows."""
        if not self.options.with_dropped:
            return
        watermark = self.progress(key)
        known = bounds is not None and row.time_us != NO_TIME_US and watermark > NO_WATERMARK
        pane = Pane(
            key=key.columns,
            window=bounds and self.bounds_of(bounds),
            values=self.as_dropped(row),
            kind=PaneKind.DROPPED,
            reason=reason,
            late_by_us=min(int(watermark) - row.time_us, END_OF_TIME_US) if known else None,
        )
        self.out.append(pane)

    def as_dropped(self, row: Row) -> dict[str, Any]:
        """In a merge: a row for each input, one of which is present."""
        if not self.options.merges:
            return dict(row.values)
        return {str(name): dict(row.values) if name == row.input else None for name in self.names}

    def bounds_of(self, bounds: Bounds) -> bm.Window | bm.RowWindow:
        if bounds[1] == END_OF_TIME_US:
            return bm.Window(None, None)
        return bm.Window(moment(bounds[0]), moment(bounds[1]))


def with_nulls(names: Iterable[str], pane: Pane) -> Pane:
    """A pane from before these accumulations were added, as seen by later ones."""
    return attrs.evolve(pane, values=pane.values | dict.fromkeys(names))


def inherited(flow: Flow) -> bm.WindowOption:
    """The windows of the input panes."""
    one = flow.inputs[0]
    assert isinstance(one, Panes)
    return said(one.flow).window or inherited(one.flow)
