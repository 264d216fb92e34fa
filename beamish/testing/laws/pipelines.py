"""The laws of pipelines, on scripts (docs/rules/laws.md).

Those that compare live panes run the script to the end of time.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs
import numpy as np

from beamish.contract.relation import Relation
from beamish.instants import instant
from beamish.kernels.field_paths import value_of
from beamish.local import run
from beamish.pane import Pane, PaneChange, PaneKind, PaneTiming, Window
from beamish.script import as_step
from beamish.testing.laws.adders import adders_of
from beamish.testing.laws.expected import as_rows, check_types, comparable_rows, given_rows, row_in_words, rows_of
from beamish.testing.laws.report import TOLERANCE, Law, LawError, require_each, value_of_function
from beamish.testing.laws.runs import Outcome, outcome, shown, words
from beamish.testing.laws.seen import arrivals
from beamish.testing.laws.variants import (
    ROWS,
    as_arrived,
    ended,
    in_one_batch,
    in_order_of_time,
    in_parts,
    listing,
    may_begin_again,
    may_replace,
    merges,
    with_final_panes,
)
from beamish.testing.stream import Runnable, TestStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRESENT = frozenset({"duplicate", "window_finished", "unmatched_removal", "superseded"})
"""Reasons of dropped rows that a result should have been computed from."""


def every_script_runs(pipeline: Runnable, script: TestStream) -> bool:
    """No rows make the pipeline fail.

    It compares scripts with rows.
    """
    _outcome(pipeline, ended(pipeline, script))
    return any(as_step(event).rows for event in script.events)


def _outcome(pipeline: Runnable, script: TestStream) -> Outcome:
    """The output of a run; with restarts, which change nothing, so that one run is enough for most laws."""
    return outcome(pipeline, script, restarts=True)


def live_panes_equal_expected(
    pipeline: Runnable, script: TestStream, expected: Callable[..., Any], tolerance: float = TOLERANCE
) -> bool:
    """At the end of time the live panes are what is expected of the rows that were not too late.

    It compares scripts of which something is expected, or a pane is live: no row is dropped by an earlier stage, or from one of
    several windows.
    """
    script = ended(pipeline, script)
    rows = _taken_rows(pipeline, script)
    if rows is None or may_begin_again(pipeline, script):
        return False
    wanted = as_rows(value_of_function(expected, rows))
    sides = [comparable_rows(rows) for rows in (wanted, given_rows(_outcome(pipeline, script).live, wanted))]
    check_types(*sides)
    require_each(live_panes_equal_expected, *sides, value=dict, shown=row_in_words, tolerance=tolerance)
    return any(sides)


def _taken_rows(pipeline: Runnable, script: TestStream) -> Any:
    """The rows that a result is of; None: a stage has dropped some, or one from a part of its windows."""
    *inner, last = _outcome(pipeline, script).dropped
    if any(of[reason] for of in inner for reason in of if reason != "superseded"):
        return None
    if not sum(last.values()):
        return rows_of(pipeline, script)
    listed = outcome(listing(pipeline), script).dropped_rows
    late = [pane for pane in listed if str(pane.reason) not in PRESENT]
    return None if late and any(_overlap(pipeline)) else rows_of(pipeline, script, late)


def _overlap(pipeline: Runnable) -> Iterator[bool]:
    """Whether a row may be in several windows, of each windowing or of several ones."""
    window = pipeline.flow.stage.core.declared("window")
    if window is not None:
        yield bool(window.windowings)
        yield window.may_overlap and not window.merging


def live_panes_equal_batch(pipeline: Runnable, script: TestStream, tolerance: float = TOLERANCE) -> bool:
    """At the end of time the live panes are those of the same rows in one batch, in the order of time, if none was dropped.

    It compares scripts with a live pane whose rows are all taken: no row is dropped as too late, and no session begins again.
    """
    script = ended(pipeline, script)
    pipeline = with_final_panes(pipeline)
    return _require_live(
        live_panes_equal_batch, pipeline, in_one_batch(pipeline, script), script, tolerance, restarts=True
    )


def arrival_order_is_irrelevant(pipeline: Runnable, script: TestStream, tolerance: float = TOLERANCE) -> bool:
    """Rows that arrive in the order of time give the same live panes, in bundles of the same sizes.

    It compares scripts with a live pane whose rows are all taken.
    """
    pipeline, script = with_final_panes(pipeline), ended(pipeline, script)
    expected, given = in_order_of_time(pipeline, script), as_arrived(pipeline, script)
    return _require_live(arrival_order_is_irrelevant, pipeline, expected, given, tolerance)


def batches_are_irrelevant(pipeline: Runnable, script: TestStream, tolerance: float = TOLERANCE) -> bool:
    """Rows that arrive in one bundle give the same live panes as in several, in the order of time.

    It compares scripts with a live pane whose rows are all taken.
    """
    pipeline, script = with_final_panes(pipeline), ended(pipeline, script)
    expected, given = in_one_batch(pipeline, script), in_order_of_time(pipeline, script)
    return _require_live(batches_are_irrelevant, pipeline, expected, given, tolerance)


def restart_is_irrelevant(pipeline: Runnable, script: TestStream, tolerance: float = TOLERANCE) -> bool:
    """A pipeline that is restarted after each step, from its stored state, gives the same panes.

    It compares scripts of several steps with a pane.
    """
    sides = [
        [pane for panes in of.by_event for pane in sorted(panes, key=_place)]
        for of in (outcome(pipeline, script), outcome(pipeline, script, restarts=True))
    ]
    require_each(restart_is_irrelevant, *sides, value=_whole, shown=shown_fully, tolerance=tolerance)
    return bool(sides[0]) and len(script.events) > 1


def _require_live(
    law: Law, pipeline: Runnable, one: TestStream, other: TestStream, tolerance: float, *, restarts: bool = False
) -> bool:
    """Raise unless two scripts have the same live panes; False: a row was dropped, or a window began again."""
    if may_begin_again(pipeline, other):
        return False
    given = outcome(pipeline, other, restarts=restarts)
    expected = None if given.loses else outcome(pipeline, one)
    if expected is None or expected.loses:
        return False
    _require_panes(law, expected.live, given.live, tolerance)
    return bool(expected.live)


def _require_panes(law: Law, expected: Sequence[Pane], given: Sequence[Pane], tolerance: float) -> None:
    sides = [sorted(panes, key=_place) for panes in (expected, given)]
    require_each(law, *sides, value=_content, shown=shown, tolerance=tolerance)


def _content(pane: Pane) -> Any:
    return _identity(pane), pane.values


def _whole(pane: Pane) -> Any:
    return _identity(pane), pane.timing, pane.index, pane.values


def _identity(pane: Pane) -> str:
    return repr((pane.kind, dict(pane.key), pane.window))


def _place(pane: Pane) -> str:
    """Where a pane is among others; floats that are nearly equal are in one place."""
    values = [f"{value:.6g}" if isinstance(value, float) else repr(value) for value in pane.values.values()]
    return repr((_identity(pane), values))


def _by_key(pane: Pane) -> str:
    return repr(dict(pane.key))


def shown_fully(pane: Pane) -> str:
    """A pane in words, with its kind, timing and number."""
    what = pane.reason if pane.kind is PaneKind.DROPPED else f"{pane.timing} {pane.index}"
    return f"{pane.kind} {what} {shown(pane)}"


def retractions_repeat_the_live_pane(pipeline: Runnable, script: TestStream) -> bool:
    """A retraction repeats the live pane of its window; a window has at most one.

    It compares retractions.
    """
    live: dict[str, Pane] = {}
    compared = False
    for pane in _outcome(pipeline, script).output:
        if pane.kind is PaneKind.DROPPED:
            continue
        at = _slot(pipeline.flow.completed.gives, pane)
        before = live.pop(at, None)
        if pane.kind is PaneKind.RETRACTION:
            _require_lines(retractions_repeat_the_live_pane, [shown_as_live(before)], [shown_as_live(pane)])
            compared = True
        else:
            _require_lines(retractions_repeat_the_live_pane, ["nothing is live"], [shown_as_live(before)])
            live[at] = pane
    return compared


def changes_fold_to_live_panes(pipeline: Runnable, script: TestStream) -> bool:
    """After each step the changes so far fold to the live panes, and so does a table that keeps the latest change of each window.

    It compares panes that replace others, or are retracted; where a window has one pane, any panes.
    """
    given = _outcome(pipeline, script)
    gives = pipeline.flow.completed.gives
    live: dict[str, Pane] = {}
    with _UpsertTable() as table:
        for panes in given.by_event:
            changes = [pane for pane in panes if pane.kind is not PaneKind.DROPPED]
            for pane in changes:
                at = _slot(gives, pane)
                expected = [None] if pane.change is PaneChange.INSERT else [live.get(at)]
                if pane.change in (PaneChange.UPDATE_BEFORE, PaneChange.DELETE):
                    _require_lines(changes_fold_to_live_panes, _lines(expected), [shown_as_live(pane)])
                    del live[at]
                elif pane.kind is PaneKind.PANE:
                    if pane.change is PaneChange.INSERT:
                        _require_lines(changes_fold_to_live_panes, ["nothing is live"], [shown_as_live(live.get(at))])
                    live[at] = pane
            table.write([(_slot(gives, pane), pane) for pane in changes])
            _require_lines(changes_fold_to_live_panes, sorted(_lines(live.values())), table.rows)
    _require_lines(changes_fold_to_live_panes, sorted(_lines(given.live)), sorted(_lines(live.values())))
    seen = {pane.change for pane in given.output if pane.kind is not PaneKind.DROPPED}
    return bool(seen - {PaneChange.INSERT} if may_replace(pipeline) else seen)


def _lines(panes: Any) -> list[str]:
    return [shown_as_live(pane) for pane in panes]


def shown_as_live(pane: Pane | None) -> str:
    """A live pane in words."""
    return "nothing is live" if pane is None else f"{pane.timing} {pane.index} {shown(pane)}"


def _require_lines(law: Law, expected: Sequence[str], given: Sequence[str]) -> None:
    if list(expected) != list(given):
        raise LawError(law, expected, given)


def _slot(gives: Relation, pane: Pane) -> str:
    columns = gives.keys if gives.slot is None else gives.slot
    return repr(([{**pane.key, **pane.values}.get(name) for name in columns], pane.key.get("windowing"), pane.window))


class _UpsertTable:
    """A table in SQLite that keeps the row with the greatest sequence of each slot, in whichever order they arrive."""

    def __enter__(self) -> Self:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("CREATE TABLE live (slot TEXT PRIMARY KEY, sequence INTEGER, pane TEXT)")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def write(self, changes: Sequence[tuple[str, Pane]]) -> None:
        """Write the changes of a step, the last one first; a deleted row has no pane."""
        rows = [
            (at, pane.sequence, None if pane.kind is PaneKind.RETRACTION else shown_as_live(pane))
            for at, pane in reversed(changes)
        ]
        self._connection.executemany(
            "INSERT INTO live VALUES (?, ?, ?) ON CONFLICT (slot) DO UPDATE SET sequence = excluded.sequence, "
            "pane = excluded.pane WHERE excluded.sequence > live.sequence",
            rows,
        )

    @property
    def rows(self) -> list[str]:
        found = self._connection.execute("SELECT pane FROM live WHERE pane IS NOT NULL")
        return sorted(pane for (pane,) in found)


def panes_are_numbered(pipeline: Runnable, script: TestStream) -> bool:
    """The panes of a window are numbered 0, 1, 2, ...; they are early, then at most one is on time, then late; none follows the last.

    It compares windows with panes.
    """
    if may_begin_again(pipeline, script):
        return False
    windows: dict[str, list[Pane]] = {}
    for pane in _outcome(pipeline, script).output:
        if pane.kind is PaneKind.PANE:
            windows.setdefault(_slot(pipeline.flow.completed.gives, pane), []).append(pane)
    order = [PaneTiming.EARLY, PaneTiming.ON_TIME, PaneTiming.LATE]
    for panes in windows.values():
        timings = sorted((pane.timing for pane in panes), key=order.index)
        seen_on_time, early, expected = False, timings.count(PaneTiming.EARLY), []
        for number, timing in enumerate(timings):
            again = timing is PaneTiming.ON_TIME and seen_on_time
            seen_on_time |= timing is PaneTiming.ON_TIME
            last = panes[number].is_last and number == len(panes) - 1
            on_time = max(number - early, -1)
            expected.append(_number(PaneTiming.LATE if again else timing, number, on_time, number == 0, last))
        given = [_number(pane.timing, pane.index, pane.on_time_index, pane.is_first, pane.is_last) for pane in panes]
        _require_lines(panes_are_numbered, expected, given)
    return bool(windows)


def _number(timing: PaneTiming, index: int, on_time_index: int, is_first: bool, is_last: bool) -> str:
    return f"{timing} {index}, on-time index {on_time_index}{' first' * is_first}{' last' * is_last}"


def no_row_is_lost(pipeline: Runnable, script: TestStream) -> bool:
    """At the end of time each row is in a pane of each of its windows, or dropped with a reason.

    It compares scripts with rows.
    """
    script = ended(pipeline, script)
    pipeline = in_parts(pipeline)
    given, merging = outcome(pipeline, script), merges(pipeline.flow)
    found: Counter[str] = Counter()
    panes = [pane for pane in given.output if pane.kind is PaneKind.PANE]
    for pane in panes:
        found[_counted(pane.key, None if merging else pane.window)] += pane.values[ROWS]
    if sum(given.dropped[-1].values()):
        listed = outcome(listing(pipeline), script).dropped_rows
        found.update(_counted(pane.key, None if merging else pane.window) for pane in listed)
    expected = _assigned(pipeline, script)
    at = sorted({*expected, *found})
    lines = ([f"{name}: {counts[name]} rows" for name in at] for counts in (expected, found))
    _require_lines(no_row_is_lost, *lines)
    return bool(at)


def _assigned(pipeline: Runnable, script: TestStream) -> Counter[str]:
    """How many rows each key and window has been assigned."""
    flow = pipeline.flow.completed
    names = {id(option): name for name, option in flow.stage.core.declared("window").windowings.items()}
    found: Counter[str] = Counter()
    for one in (arrival for leaf in flow.leaves for arrival in arrivals(*leaf, script)):
        key = {name: value_of(one.row, of) for name, of in zip(flow.gives.keys, one.source.keys, strict=False)}
        if one.option is not None and names:
            key["windowing"] = names[id(one.option)]
        is_global = one.option is not None and one.option.is_all_of_time
        windows: list[Window | None] = [
            Window(None, None) if is_global else Window(instant(start), instant(end)) for start, end in one.windows
        ]
        for window in windows or ([None] if value_of(one.row, one.source.event_time) is None else []):
            found[_counted(key, None if merges(flow) else window)] += 1
    return found


def _counted(key: Mapping[str, Any], window: Any) -> str:
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in key.items()}
    plain = {name: value + 0.0 if isinstance(value, float) else value for name, value in plain.items()}  # -0.0 is 0.0
    return words((plain, window), {}).rstrip(": ") or "all rows"


def discarding_panes_add_up(pipeline: Runnable, script: TestStream, tolerance: float = TOLERANCE) -> bool:
    """The discarding panes of a window up to a pane, added up, are the accumulating pane.

    It compares scripts with panes, in which no session begins again.
    """
    script = ended(pipeline, script)
    if may_begin_again(pipeline, script):
        return False
    made = in_parts(pipeline)
    adders = {
        name: of
        for name, of in adders_of(pipeline).items()
        if made.flow.stage.core.declared("accumulations")[name] == of.made
    }
    parts, merging = dict[str, list[Pane]](), merges(pipeline.flow)
    for part in outcome(made, script).output:
        if part.kind is PaneKind.PANE:
            parts.setdefault(_by_key(part), []).append(part)
    expected, given = [], []
    for pane, number in _accumulating(outcome(with_final_panes(pipeline), script, restarts=True), pipeline):
        earlier = parts.get(_by_key(pane), [])[:number]
        own = [part.values for part in earlier if (_is_within(part, pane) if merging else part.window == pane.window)]
        expected.append(attrs.evolve(pane, values={name: pane.values[name] for name in adders}))
        values = {name: of.add([part[name] for part in own]) for name, of in adders.items()}
        given.append(attrs.evolve(pane, values=values))
    _require_panes(discarding_panes_add_up, expected, given, tolerance)
    return bool(expected)


def _accumulating(given: Outcome, pipeline: Runnable) -> Iterator[tuple[Pane, int | None]]:
    """The panes, each with its number among those of its key; of a suppress, which emits fewer, the live ones."""
    if pipeline.flow.stage.core is not pipeline.flow.stage:
        yield from ((pane, None) for pane in given.live)
        return
    numbers: Counter[str] = Counter()
    for pane in given.output:
        if pane.kind is PaneKind.PANE:
            numbers[_by_key(pane)] += 1
            yield pane, numbers[_by_key(pane)]


def _is_within(part: Pane, pane: Pane) -> bool:
    """Whether the window of a part is in that of a pane of the same key."""
    if part.window is None or pane.window is None or None in pane.window:
        return part.window == pane.window
    return bool(pane.window[0] <= part.window[0] and part.window[1] <= pane.window[1])  # type: ignore[operator]


def no_row_is_too_late(pipeline: Runnable, script: TestStream) -> bool:
    """No row is dropped for its lateness, if the source's disorder is as declared.

    It compares rows that arrive after the watermark has moved.
    """
    given = _outcome(pipeline, script)
    late = ("expired", "out_of_retention", "joined_already")
    lines = [
        f"stage {number}: {of.get(reason, 0)} rows {reason}"
        for number, of in enumerate(given.dropped, 1)
        for reason in late
    ]
    _require_lines(
        no_row_is_too_late, [f"{line.partition(':')[0]}: 0 rows {line.split()[-1]}" for line in lines], lines
    )
    arrived = (one for leaf in pipeline.flow.completed.leaves for one in arrivals(*leaf, script))
    return any(one.watermark_us is not None for one in arrived)


def spark_gives_the_same(pipeline: Runnable, script: TestStream, spark: SparkSession) -> None:
    """Spark gives the panes that the script gives, key by key."""
    expected = run(pipeline.flow.completed, script.events)
    sides = [sorted(panes, key=_by_key) for panes in (expected, script.on_spark(spark, pipeline))]
    require_each(spark_gives_the_same, *sides, value=_whole, shown=shown_fully)


def spark_session() -> SparkSession:
    """The session that runs a few examples: the active one, or a new one in this process."""
    from pyspark.sql import SparkSession

    from beamish.spark.runtime.session import ROCKSDB

    builder = SparkSession.builder.config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    builder = builder if SparkSession.getActiveSession() else builder.master("local[2]")
    return builder.getOrCreate()
