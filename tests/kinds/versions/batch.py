"""The batch result for changes, and for rows joined with them: plain sorted lists (rules/tables.md#versions, #as-of-joins)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

import beamish as bm
from beamish import Pane, PaneKind
from beamish.contract.stage import Stage
from beamish.contract.stored import DictStore
from beamish.instants import END_OF_TIME_US, instant, instant_us
from beamish.kinds.as_of.stage import AsOfStage
from beamish.kinds.versions.options import VALID_FROM
from beamish.kinds.versions.stage import VersionsStage
from beamish.script import Bundle, Step, as_step, panes_from_table, script_rows
from beamish.testing import TestStream
from tests.declared_options import versions_of
from tests.lines import line
from tests.twin.order import normal, same, spark_order

Versions = Mapping[str, Sequence[tuple[int, int | None, Mapping[str, Any]]]]
"""The versions of each key, in order: validity interval and value."""


@attrs.frozen
class Change:
    """A change that was taken, or a row of the left input that was."""

    time_us: int
    key: str
    row: Mapping[str, Any]


def key_name(row: Mapping[str, Any], keys: Iterable[str]) -> str:
    """A key, to look up by."""
    return repr([normal(row.get(name)) for name in keys])


def rows_of(script: TestStream, source: Any, keys: Iterable[str], left_out: Iterable[Any] = ()) -> list[Change]:
    """The rows of a source that have a time, but for those of these ids."""
    gone = set(left_out)
    return [
        Change(instant_us("time", row[source.event_time]), key_name(row, keys), row)
        for step in map(as_step, script.events)
        if step.input == source.name
        for row in step.rows
        if row[source.event_time] is not None and row["id"] not in gone
    ]


def numbered(script: TestStream, number: int) -> TestStream:
    """The script with an ``id`` in each row; they come in any order."""
    chance = random.Random(number)
    ids = chance.sample(range(10_000), sum(len(as_step(event).rows) for event in script.events))
    events = [
        attrs.evolve(event, rows=tuple({**row, "id": ids.pop()} for row in event.rows))
        if isinstance(event, Bundle | Step)
        else event
        for event in script.events
    ]
    return TestStream(tuple(events))


def dropped_ids(panes: Iterable[Pane], name: str | None = None) -> list[int]:
    """The ids of the rows (of an input) that are listed as dropped, but for those that are in the table all the same."""
    rows = [
        pane.values if name is None else pane.values[name]
        for pane in panes
        if pane.kind is PaneKind.DROPPED and pane.reason is not bm.pane.DropReason.JOINED_ALREADY
    ]
    return [row["id"] for row in rows if row is not None]


def ordered_by_id(pipeline: bm.Pipeline) -> bm.Pipeline:
    """The table, or the join with it, with ``sequence_by="id"``: no two changes are equal."""
    return declaring(pipeline, sequence_by="id")


def declaring(pipeline: bm.Pipeline, **options: Any) -> bm.Pipeline:
    """The same with something else declared of its table."""
    stage = pipeline.flow.stage
    assert isinstance(stage, AsOfStage | VersionsStage)
    if isinstance(stage, AsOfStage):
        changed: Stage = attrs.evolve(stage, table=attrs.evolve(stage.table, **options))
    else:
        changed = attrs.evolve(stage, options=attrs.evolve(stage.options, **options))
    return bm.Pipeline(attrs.evolve(pipeline.flow, stage=changed))


def versions_of_batch(pipeline: bm.Pipeline, changes: Iterable[Change], names: Sequence[str]) -> Versions:
    """The versions of a table whose changes came all at once.

    Args:
        pipeline: it says what the columns are.
        changes: those that were taken.
        names: of the columns that are values.
    """
    options, _ = versions_of(pipeline.flow.stage)
    assert options is not None
    by_key: dict[str, list[Change]] = {}
    for change in changes:
        by_key.setdefault(change.key, []).append(change)
    found: dict[str, Any] = {}
    for key, several in by_key.items():
        spans: list[Any] = []
        several.sort(key=lambda one: (one.time_us, spark_order(one.row.get(str(options.sequence_by)))))
        last_of = {change.time_us: change.row for change in several}
        times = list(last_of)
        for time_us, end in zip(times, [*times[1:], None], strict=True):
            values = {name: last_of[time_us].get(name) for name in names}
            if options.deleted is not None and last_of[time_us].get(options.deleted) is True:
                continue
            if options.only_updated and spans and spans[-1][1] == time_us and same(spans[-1][2], values):
                spans[-1] = (spans[-1][0], end, spans[-1][2])
            else:
                spans.append((time_us, end, values))
        found[key] = [span for span in spans if span[1] is None or not options.latest_only]
    return {key: spans for key, spans in found.items() if spans}


def live(panes: Iterable[Pane]) -> list[Pane]:
    """Read the rows in order and strike out what is retracted; each retraction repeats a row that is live."""
    rows: list[tuple[str, Pane]] = []
    for pane in panes:
        if pane.kind is PaneKind.DROPPED:
            continue
        values = {name: zeros_alike(value) for name, value in pane.values.items()}
        words = line(attrs.evolve(pane, kind=PaneKind.PANE, values=values))
        if pane.kind is PaneKind.PANE:
            rows.append((words, pane))
            continue
        at = [i for i, (other, _) in enumerate(rows) if other == words]
        assert at, f"{line(pane)}: nothing is live"
        del rows[at[0]]
    return [pane for _, pane in rows]


def zeros_alike(value: Any) -> Any:
    """A value in which -0.0 is 0.0, which it equals."""
    if isinstance(value, dict):
        return {name: zeros_alike(one) for name, one in value.items()}
    return normal(value)


def matches_of_batch(
    pipeline: bm.Pipeline, changes: Iterable[Change], rows: Iterable[Change], names: Sequence[str]
) -> dict[int, dict[str, Any] | None]:
    """The final match of each row that the join emits, by its id; null if it has none.

    Args:
        pipeline: a join of rows with the rows of a table.
        changes: those that were taken.
        rows: those that were.
        names: of the columns that are values.
    """
    _, options = versions_of(pipeline.flow.stage)
    assert options is not None
    versions = versions_of_batch(pipeline, changes, names)
    found: dict[int, dict[str, Any] | None] = {}
    for row in rows:
        time_us = row.time_us - (not options.allow_exact_matches)
        reached = [
            one for one in versions.get(row.key, ()) if one[0] <= time_us and (one[1] is None or time_us < one[1])
        ]
        if options.tolerance is not None:
            reached = [one for one in reached if row.time_us - one[0] <= options.tolerance.us]
        if options.direction != "backward":
            assert options.tolerance is not None
            first_us, last_us = row.time_us + (not options.allow_exact_matches), row.time_us + options.tolerance.us
            after = [one for one in versions.get(row.key, ()) if first_us <= one[0] <= last_us]
            reached = [] if options.direction == "forward" else reached
            reached = sorted([*reached, *after], key=lambda one: (abs(one[0] - row.time_us), one[0]))
        if reached or options.how == "left":
            found[row.row["id"]] = {**reached[0][2], VALID_FROM: instant(reached[0][0])} if reached else None
    return found


def in_a_batch(pipeline: bm.Pipeline, script: TestStream, shards: int) -> list[Pane]:
    """The result of a pipeline of one stage for all rows of a script in one step, followed by the final watermark."""
    rows = script_rows(pipeline.flow.final, script.events)
    operator = pipeline.flow.final.bind(rows.schemas, shards=shards).operator
    payloads: dict[int, list[bytes]] = {}
    for number, source in enumerate(pipeline.flow.sources):
        for bundle in rows.tables[source.name]:
            for shard, payload in operator.pack(number, bundle):
                payloads.setdefault(shard, []).append(payload)
    out = []
    for number in range(operator.shards):
        opened = operator.open(DictStore())
        out += [
            opened.step([None] * len(operator.takes), None, payloads.get(number, [])),
            opened.step([END_OF_TIME_US] * len(operator.takes), None, []),
        ]
    return panes_from_table(pa.concat_tables(out), operator.gives)


def is_final(pane: Pane) -> bool:
    """Whether it is as the panes of a batch are."""
    return pane.kind is PaneKind.PANE and str(pane).count(" ON_TIME 0 first last:") == 1 and pane.on_time_index == 0
