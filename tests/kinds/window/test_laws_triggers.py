"""The laws of triggers/trigger.py: a trigger alone, on the columns of the window table, without rows or panes."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from beamish import triggers as t
from beamish.kinds.window.state.window_table import TriggerMerge, TriggerNow, TriggerState, trigger_columns
from beamish.tables.working_table import new_columns
from tests.own.triggers import AtEndOnce, QuietFor
from tests.seconds import S
from tests.strategies.triggers import after_value, leaves, nested_triggers
from tests.strategies.triggers import triggers as valueless

triggers = st.one_of(valueless, nested_triggers(leaf=st.one_of(leaves, after_value)))
WINDOWS = 6
ALL = np.arange(WINDOWS)
CLOCK_COLUMNS = {
    "start_us": ("int64", 0),
    "end_us": ("int64", 0),
    "asks_at_end": ("bool", False),
    "value": ("int64", 0),
}


@attrs.define
class Table:
    """The state of a trigger in several windows, and the clocks."""

    trigger: t.Trigger
    columns: dict[str, Any]
    merging: bool
    watermark_us: int
    clock_us: int

    @property
    def state(self) -> TriggerState:
        return TriggerState(self.trigger, self.columns)

    @property
    def now(self) -> TriggerNow:
        def values_of(name: str, at: Any) -> pa.Array:
            """Arbitrary values; 0 means none."""
            return pa.array([value or None for value in self.columns["value"][at].tolist()], pa.int64())

        return TriggerNow(self.columns, self.watermark_us, self.clock_us, self.merging, values_of)

    def ready(self, at: Any) -> list[bool]:
        return self.trigger.should_fire_columns(self.state, np.asarray(at), self.now).tolist()

    def fire_what_is_ready(self) -> Any:
        """Fire the unfinished windows that are ready and return them."""
        waiting = ALL[~self.state.finished]
        fired = waiting[self.trigger.should_fire_columns(self.state, waiting, self.now)]
        self.trigger.on_fire_columns(self.state, fired, self.now)
        return fired

    def window(self, i: int) -> dict[str, Any]:
        """The stored state of a window."""
        return {name: plain(column[i]) for name, column in self.columns.items()}


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def new_table(trigger: t.Trigger, ends: list[int], *, merging: bool) -> Table:
    columns = new_columns({**dict(trigger_columns(trigger)), **CLOCK_COLUMNS}, len(ends))
    columns["end_us"][:] = np.array(ends) * S
    columns["value"][:] = np.arange(len(ends)) % 4
    return Table(trigger, columns, merging, -5 * S, 0)


counts = st.lists(st.sampled_from([0, 0, 1, 1, 2, 3]), min_size=WINDOWS, max_size=WINDOWS)
moves = st.one_of(
    st.tuples(st.just("rows"), counts),
    st.tuples(st.just("rows"), counts),
    st.tuples(st.just("watermark"), st.integers(0, 8)),
    st.tuples(st.just("clock"), st.integers(0, 3)),
)


def move(table: Table, what: str, by: Any) -> None:
    """Rows arrive for some of the unfinished windows, or a clock advances."""
    if what == "watermark":
        table.watermark_us += by * S
    elif what == "clock":
        table.clock_us += by * S
    else:
        count = np.array(by) * ~table.state.finished
        table.trigger.on_rows_columns(table.state, ALL[count > 0], count[count > 0], table.now)


@st.composite
def tables(draw: st.DrawFn, *, merging: st.SearchStrategy[bool] = st.booleans()) -> Table:  # noqa: B008
    """Windows with a history, before ``should_fire``."""
    ends = draw(st.lists(st.sampled_from([1, 5, 10]), min_size=WINDOWS, max_size=WINDOWS))
    table = new_table(draw(triggers), ends, merging=draw(merging))
    past = draw(st.lists(moves, max_size=8))
    for what, by in past:
        move(table, what, by)
        table.fire_what_is_ready()
    move(table, *draw(moves))
    return table


@given(st.data())
def test_should_fire_changes_nothing(data):
    table = data.draw(tables())
    before = copy.deepcopy(table.columns)
    table.ready(ALL)
    for name, column in table.columns.items():
        assert column.tolist() == before[name].tolist(), name


@given(st.data())
def test_should_fire_depends_only_on_state_window_values_watermark_and_clock(data):
    """Neither the number of calls, nor the other windows of a call, nor the order of windows matters."""
    table = data.draw(tables())
    ready = table.ready(ALL)
    assert table.ready(ALL) == ready
    assert [table.ready([i])[0] for i in ALL] == ready
    order = np.array(data.draw(st.permutations(range(WINDOWS))))
    assert table.ready(order) == [ready[i] for i in order]
    stored = {name: copy.deepcopy(column[order]) for name, column in table.columns.items()}
    assert attrs.evolve(table, columns=stored).ready(ALL) == [ready[i] for i in order]


@given(st.data())
def test_after_on_fire_a_trigger_is_finished_or_in_its_initial_state(data):
    """Except for documented state: see ``waits_as_new``."""
    table = data.draw(tables())
    before = attrs.evolve(table, columns=copy.deepcopy(table.columns))
    fired = table.fire_what_is_ready()
    assume(len(fired))
    for i in fired.tolist():
        assert waits_as_new(table.trigger, before.state, table.state, i, at_end=bool(table.now.at_end[i])), i


OWN_KEEPS = {QuietFor: lambda state: {**state, "fired": 0}, AtEndOnce: lambda _: False}
"""The state of a user-defined trigger without what it keeps."""


def waits_as_new(trigger: t.Trigger, before: Any, after: Any, i: int, *, at_end: bool) -> bool:
    """Whether a trigger that has just fired in window ``i`` is finished, or keeps only what its docs say."""
    if after.finished[i]:
        return True
    parts = list(zip(trigger.parts, before.parts, after.parts, strict=True))

    def again(number: int) -> bool:
        part, was, is_ = parts[number]
        return waits_as_new(part, was, is_, i, at_end=at_end)

    match trigger:
        case t.Repeatedly():  # restarts when its sub-trigger is finished; otherwise the sub-trigger continues
            part, _, is_ = parts[0]
            return is_new(part, is_, i) or (not is_.finished[i] and again(0))
        case t.AfterWatermark() if not before["passed"][i] and at_end:  # remembers that the end has passed
            return bool(after["passed"][i]) and all(is_new(part, is_, i) for part, _, is_ in parts)
        case t.AfterWatermark() if before["passed"][i]:
            return trigger.late is not None and again(len(parts) - 1)
        case t.AfterWatermark():  # the late trigger drops what merging windows passed to it
            return trigger.early is not None and again(0) and all(is_new(part, is_, i) for part, _, is_ in parts[1:])
        case t.AfterEach():  # remembers which sub-triggers are finished
            current = next(number for number, (_, was, _) in enumerate(parts) if not was.finished[i])
            return again(current) and all(is_new(part, is_, i) for part, _, is_ in parts[current + 1 :])
        case t.OrFinally():  # main fired; finally_ has seen all rows and continues
            return again(0) and not after.parts[1].finished[i]
        case t.AfterAny() | t.AfterAll() | t.AfterCount() | t.AfterValue() | t.AfterProcessingTime():  # always finished
            return False
        case t.Always() | t.Default():  # nothing to wait for
            return True
        case _:
            keeps = OWN_KEEPS.get(type(trigger), lambda state: state)
            return bool(keeps(after["state"][i][0]) == trigger.create())


def is_new(trigger: t.Trigger, state: Any, i: int) -> bool:
    """Whether a trigger, sub-triggers included, is in the state of a new window in window ``i``."""
    columns = all(plain(state[name][i]) == new for name, (_, new) in trigger.columns.items())
    parts = zip(trigger.parts, state.parts, strict=True)
    return columns and not state.finished[i] and all(is_new(part, own, i) for part, own in parts)


@st.composite
def mergers(draw: st.DrawFn) -> tuple[Table, TriggerMerge]:
    """Windows, and a merge of them; some results are one of the merged windows, some are new windows."""
    table = draw(tables(merging=st.just(True)))  # noqa: FBT003
    table.fire_what_is_ready()
    result = draw(st.lists(st.integers(0, 2), min_size=WINDOWS, max_size=WINDOWS))
    names = sorted(set(result))
    made = new_table(table.trigger, [draw(st.sampled_from([5, 12])) for _ in names], merging=True)
    into = []
    for number, name in enumerate(names):
        parts = [i for i in range(WINDOWS) if result[i] == name]
        into.append(draw(st.sampled_from([WINDOWS + number, *parts])))
    table.columns = {name: np.concatenate([column, made.columns[name]]) for name, column in table.columns.items()}
    of = np.array([names.index(name) for name in result])
    return table, TriggerMerge(ALL.copy(), of, np.array(into))


def merged(table: Table, m: TriggerMerge) -> list[dict[str, Any]]:
    """The stored state of the results."""
    after = attrs.evolve(table, columns=copy.deepcopy(table.columns))
    after.trigger.on_merge_columns(after.state, m, after.now)
    return [after.window(i) for i in m.into.tolist()]


@given(st.data())
def test_on_merge_does_not_depend_on_the_order_of_its_parts(data):
    table, m = data.draw(mergers())
    order = np.array(data.draw(st.permutations(range(WINDOWS))))
    assert merged(table, TriggerMerge(m.part[order], m.of[order], m.into)) == merged(table, m)


@given(triggers, st.booleans())
def test_on_merge_of_no_parts_gives_a_new_state(trigger, ended):
    table = new_table(trigger, [10] * 2, merging=True)
    table.watermark_us = (20 if ended else 0) * S
    none = np.array([], dtype=np.intp)
    new = [table.window(0), table.window(1)]
    assert merged(table, TriggerMerge(none, none, np.arange(2))) == new
