"""Apache Beam Java on its DirectRunner: windows, triggers, panes.

Normalised, since the SDK or its runner is free to do it or measures time in milliseconds:

- Event times, sizes and delays are whole milliseconds; the timestamp of a pane is compared in milliseconds.
- A step has one part: a bundle, a watermark or a clock.
- AfterProcessingTime fires *past* its target, here *at* it: Beam gets a delay that is 1 ms shorter.
- Rows of a pane are compared as a set; windows and keys of a step in any order.
- Retractions are omitted, so that the retracting mode is compared with Beam's accumulating mode.
- A trigger that may lose rows is refused by both; then its panes are compared all the same.
- Rows between sampled windows are given to ours only: the DirectRunner fails on them.

``model.py`` computes Beam's output by its own rules.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import Collect
from beamish.durations import Duration
from beamish.errors import BeamishError
from beamish.instants import instant_us
from beamish.kernels.identity import identity
from beamish.kernels.spec import read_spec
from beamish.pane import Pane, PaneKind
from beamish.script import Event, as_step
from beamish.testing import TestStream
from beamish.windows.option import END_OF_TIME_US
from peers.beam.model import BeamError, Model, refuses
from peers.cases import without_parts
from peers.peer import Case, Peer, Row, failed
from tests.strategies import pipelines, triggers, windows
from tests.strategies.scripts import scripts

MILLISECOND = 1000
_RETRACTING = bm.AccumulationMode.ACCUMULATING_AND_RETRACTING

_delays = st.sampled_from([0, 1, 2, 3, 5, 2.5])
_after_processing_time = st.one_of(
    st.builds(t.AfterProcessingTime, _delays),
    st.builds(t.AfterProcessingTime, _delays),
    st.builds(t.AfterProcessingTime, _delays, aligned_to=st.sampled_from([2, 3, 5]), offset=st.sampled_from([0, 1, 7])),
)
_leaves = st.one_of(
    triggers.after_count,
    triggers.after_count,
    _after_processing_time,
    triggers.plain_after_watermark,
    triggers.never,
)


def _several(trigger: st.SearchStrategy[t.Trigger]) -> st.SearchStrategy[list[t.Trigger]]:
    return st.lists(trigger, min_size=2, max_size=3)


_once = st.recursive(
    _leaves,
    lambda once: (
        _several(once).map(lambda parts: t.AfterAny(*parts)) | _several(once).map(lambda parts: t.AfterAll(*parts))
    ),
    max_leaves=4,
)
"""What Java calls a OnceTrigger: allowed as a part of AfterAny and AfterAll, early, late, and after OrFinally."""
_triggers = st.recursive(
    st.one_of(triggers.default, _once, triggers.after_watermark(_once)),
    lambda any_: st.one_of(
        st.builds(t.Repeatedly, any_),
        _several(any_).map(lambda parts: t.AfterEach(*parts)),
        st.builds(t.OrFinally, any_, _once),
    ),
    max_leaves=4,
)
_calendar_windows = st.builds(
    lambda unit, timezone: bm.CalendarWindows(**unit, timezone=timezone),
    st.sampled_from([{"days": 1}, {"days": 3}, {"months": 1}, {"months": 5}, {"years": 1}]),
    st.sampled_from(["UTC", "Europe/Paris", "Asia/Kathmandu"]),
)
_windows = st.one_of(
    windows.fixed_windows,
    windows.fixed_windows,
    windows.sliding_windows,
    windows.own_sessions,
    windows.own_sessions,
    windows.own_sessions,
    windows.global_windows,
    _calendar_windows,
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A pipeline that Beam Java can express, and a script."""
    option = draw(_windows)
    lateness = draw(pipelines.latenesses)
    case = {
        "window": identity(option),
        "trigger": identity(draw(_triggers)),
        "lateness": round(lateness * 1_000_000),
        "mode": draw(pipelines.modes).value,
        "on_time": draw(pipelines.on_time_behaviors).value,
        "closing": draw(pipelines.closing_behaviors).value,
        "combiner": draw(pipelines.combiners).value,
    }
    before_1970 = draw(st.sampled_from([False] * 19 + [True]))
    ends = draw(st.sampled_from([True, True, True, False]))
    script = draw(scripts(_pipeline(case), ends=ends, nulls=False, bare=True, least=None if before_1970 else 0))
    return case | {"script": list(_events(script))}


def _events(script: TestStream) -> Iterator[dict[str, Any]]:
    rows = 0
    for event in script.events:
        step = as_step(event)
        if step.watermark_us == END_OF_TIME_US:
            yield {"watermark": "infinity"}
            return  # Beam's TestStream takes no row afterwards
        if step.watermark_us is not None:
            yield {"watermark": step.watermark_us}
        if step.clock_us is not None:
            yield {"clock": step.clock_us}
        if step.rows:
            yield {
                "rows": [
                    {"ts": round(row["ts"] * 1_000_000) // MILLISECOND * MILLISECOND, "key": row["team"], "n": rows + i}
                    for i, row in enumerate(step.rows)
                ]
            }
            rows += len(step.rows)


def given(case: Case) -> Case:
    """The case with delays that are 1 ms shorter, and without rows between windows."""
    return case | {"trigger": _shorter(case["trigger"]), "script": list(_in_windows(case["window"], case["script"]))}


def _in_windows(window: Mapping[str, Any], script: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    size, period, offset = (window.get(name, 0) for name in ("size", "period", "offset"))
    for event in script:
        if "rows" in event and period > size:
            yield {"rows": [row for row in event["rows"] if (row["ts"] - offset) % period < size]}
        else:
            yield event


def _shorter(spec: Any) -> Any:
    match spec:
        case {"is": "AfterProcessingTime"}:
            if "aligned_to" in spec:  # here the next multiple, there one that is reached: then its own is just before
                return spec | {"offset": spec.get("offset", 0) - MILLISECOND}
            return spec | {"delay": spec.get("delay", 0) - MILLISECOND}
        case dict():
            return {name: _shorter(part) for name, part in spec.items()}
        case list():
            return [_shorter(part) for part in spec]
    return spec


def _pipeline(case: Case, *, allow_data_loss: bool = True) -> bm.Pipeline:
    pipeline = (
        bm.Pipeline()
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("key")
        .window(read_spec(case["window"], bm.WindowOption))
        .trigger(read_spec(case["trigger"], t.Trigger), allow_data_loss=allow_data_loss)
        .allowed_lateness(Duration(case["lateness"]))
        .on_time_behavior(bm.OnTimeBehavior(case["on_time"]))
        .closing_behavior(bm.ClosingBehavior(case["closing"]))
        .timestamp_combiner(bm.TimestampCombiner(case["combiner"]))
        .accumulate(rows=Collect("n"))
        .with_dropped()
    )
    match bm.AccumulationMode(case["mode"]):
        case bm.AccumulationMode.DISCARDING:
            return pipeline.discarding()
        case bm.AccumulationMode.ACCUMULATING:
            return pipeline.accumulating()
    return pipeline.accumulating_and_retracting()


def script_of(case: Case) -> TestStream:
    """The script of a case."""
    script = TestStream()
    for event in case["script"]:
        match event:
            case {"rows": rows}:
                script = script.add([row | {"ts": row["ts"] / 1e6} for row in rows])
            case {"clock": us}:
                script = script.advance_processing_time_to(us / 1e6)
            case {"watermark": "infinity"}:
                script = script.advance_watermark_to_infinity()
            case {"watermark": us}:
                script = script.advance_watermark_to(us / 1e6)
    return script


def here(case: Case) -> list[Row]:
    """The answer of beamish."""
    try:
        _pipeline(case, allow_data_loss=False).flow.check()
        refused = False
    except BeamishError:
        refused = True
    traced: list[tuple[Event, list[Pane]]] = script_of(case).trace(_pipeline(case))
    panes = [(step, pane) for step, (_, some) in enumerate(traced) for pane in some]
    expired = sum(pane.reason is bm.DropReason.EXPIRED for _, pane in panes)
    rows = [row_of(step, pane) for step, pane in panes if pane.kind is PaneKind.PANE]
    return _answer(case, rows, refused=refused, expired=expired)


def row_of(step: int, pane: Pane) -> dict[str, Any]:
    """A pane as a row of an answer."""
    assert pane.window is not None
    return {
        "step": step,
        "key": pane.key["key"],
        "start": _us(pane.window.start),
        "end": _us(pane.window.end),
        "timestamp": _us(pane.timestamp),
        "timing": pane.timing.value,
        "index": pane.index,
        "on_time_index": pane.on_time_index,
        "is_first": pane.is_first,
        "is_last": pane.is_last,
        "rows": pane.values["rows"],
    }


def _us(time: Any) -> int | None:
    return instant_us("time", time) if isinstance(time, datetime) else None


def there(case: Case, answer: Mapping[str, Any]) -> list[Row]:
    """The answer of Beam."""
    return _answer(case, answer["panes"], refused="refused" in answer, expired=answer["expired"])


def predicted(case: Case) -> list[Row]:
    """Beam's output, computed by its own rules."""
    to_beam = given(case)
    model = Model(to_beam, to_beam["trigger"])
    try:
        model.run()
    except BeamError as error:
        return [failed({"failed": str(error)})]
    return _answer(case, model.given, refused=refuses(case), expired=model.expired)


def _answer(case: Case, rows: list[dict[str, Any]], *, refused: bool, expired: int) -> list[Row]:
    merging = case["window"]["is"] == "Sessions"
    return [
        {"stream": ["refused"], "place": [], "refused": refused},
        {"stream": ["expired"], "place": [], "expired": expired},
        *(_placed(row, merging=merging) for row in rows),
    ]


def _placed(row: dict[str, Any], *, merging: bool) -> Row:
    window = [row["end"] or 0, row["start"] or 0]
    timestamp = row["timestamp"]
    return row | {
        "stream": [row["key"]] if merging else [row["key"], *window],
        "place": [row["step"], *window, row["index"]],
        "timestamp": None if timestamp is None else timestamp // MILLISECOND * MILLISECOND,
        "rows": sorted(row["rows"]),
    }


def facts(case: Case, here: Row | None, there: Row | None) -> Mapping[str, Any]:
    """Facts for the decisions.

    ``timing``: here and there. ``refused_by_rule``: ours refuses, or not, as docs/rules/triggers.md has it. ``again``: the window had a
    pane before, or a session that is only there a row. ``leapt``: the watermark passed its end and a later expiry at once. ``behind``:
    one of the pane's rows came behind the watermark. ``held``: a row of another window came on time, and may hold Beam's output watermark
    at or before the end of this one. ``nested``: a composite is early or late. ``before_1970``: a row of the key is. ``revived``: a
    session has taken one that had ended, and has not ended. ``each_or_finally``: an `OrFinally` is a part of an `AfterEach`.
    ``each``, ``timed``, ``aligned``: the trigger has an `AfterEach`, an `AfterProcessingTime`, an aligned one. ``merged``: several rows of the key are in the window.
    ``endless``: the runner does not finish, or fails on an `AfterEach` that has. ``untimed``: Beam's pane has no timestamp. ``repeats``: it
    may have no new row. ``ticked``: the clock has advanced since the watermark reached the window's end.
    """
    one = here or there or {}
    window = case["window"]
    found: dict[str, Any] = {
        "window": window["is"],
        "default": case["trigger"] == {"is": "Default"},
        "combiner": case["combiner"],
        "mode": case["mode"],
        "untimed": there is not None and there.get("timestamp") is None,
        "nested": _nested(case["trigger"]),
        "early": "'early'" in str(case["trigger"]),
        "each_or_finally": _each_or_finally(case["trigger"]),
        "timed": "'AfterProcessingTime'" in str(case["trigger"]),
        "each": "'AfterEach'" in str(case["trigger"]),
        "aligned": "'aligned_to'" in str(case["trigger"]),
        "before_1970": any(row["ts"] < 0 and row["key"] == one.get("key", row["key"]) for _, row, _ in _arrived(case)),
        "endless": any(text in one.get("failed", "") for text in ("not finished", "firstUnfinished")),
    }
    if "refused" in one:
        found["refused_by_rule"] = one["refused"] == _may_lose_rows(case["trigger"], case["lateness"])
    if "timing" in one:
        found |= _facts_of_pane(case, one, only_there=here is None)
        found["timing"] = " ".join(row["timing"] for row in (here, there) if row)
    return found


def _facts_of_pane(case: Case, pane: Row, *, only_there: bool) -> dict[str, Any]:
    arrived = [one for one in _arrived(case) if one[0] <= pane["step"]]
    span = case["window"].get("size", case["window"].get("gap", math.inf))
    end = math.inf if pane["end"] is None else pane["end"]
    found = inside(case, pane, end)
    came_before = any(step < pane["step"] and row in found for step, row, _ in arrived)
    return {
        "again": pane["index"] > 0 or (only_there and case["window"]["is"] == "Sessions" and came_before),
        "revived": _revived(case, pane, end),
        "merged": len(found) > 1,
        "repeats": not pane["rows"] or case["mode"] != "discarding",
        "ticked": _ticked(case["script"][: pane["step"]], end),
        "leapt": case["lateness"] > 0 and _leapt(case, pane["step"], end),
        "behind": any(row["n"] in pane["rows"] and row["ts"] < watermark for _, row, watermark in arrived),
        "held": any(
            row["n"] not in pane["rows"] and row["ts"] < end and row["ts"] + span > watermark
            for _, row, watermark in arrived
        ),
    }


def _revived(case: Case, pane: Row, end: float) -> bool:
    """Whether a session before its end has a row whose own session had ended."""
    gap = case["window"].get("gap", math.inf)
    watermark = max(
        (_watermark(event) for event in case["script"][: pane["step"]] if "watermark" in event), default=-math.inf
    )
    return watermark < end and any(row["ts"] + gap <= watermark for row in inside(case, pane, end))


def inside(case: Case, pane: Row, end: float) -> list[dict[str, Any]]:
    """The rows of a window until the step of its pane."""
    start = -math.inf if pane["start"] is None else pane["start"]
    came = (row for step, row, _ in _arrived(case) if step <= pane["step"] and pane["key"] == row["key"])
    return [row for row in came if start <= row["ts"] < end]


def _leapt(case: Case, step: int, end: float) -> bool:
    """Whether the step moves the watermark from before an end to its expiry or past it."""
    moved = [_watermark(event) for event in case["script"][: step + 1] if "watermark" in event]
    before = max(moved[:-1], default=-math.inf)
    return "watermark" in case["script"][step] and before < end and moved[-1] >= end + case["lateness"]


def _ticked(script: Sequence[Mapping[str, Any]], end: float) -> bool:
    """Whether a clock comes after a watermark at or past an end."""
    past = itertools.dropwhile(lambda event: "watermark" not in event or _watermark(event) < end, script)
    return any("clock" in event for event in past)


def _watermark(event: Mapping[str, Any]) -> float:
    return math.inf if event["watermark"] == "infinity" else float(event["watermark"])


def _arrived(case: Case) -> Iterator[tuple[int, dict[str, Any], float]]:
    """The rows, each with its step and the watermark at which it came."""
    watermark = -math.inf
    for step, event in enumerate(case["script"]):
        watermark = _watermark(event) if "watermark" in event else watermark
        yield from ((step, row, watermark) for row in event.get("rows", []))


def _may_lose_rows(spec: Any, lateness: int) -> bool:
    """The table of docs/rules/triggers.md#triggers-that-can-lose-rows."""
    match spec:
        case ["AfterEach", parts]:
            return all(_may_lose_rows(part, lateness) for part in parts)
        case [_, _]:
            return lateness > 0 or _fires_before_end(spec)
        case {"is": "OrFinally", "main": main, "finally_": last}:
            ends = last != {"is": "Never"} if lateness > 0 else _fires_before_end(last)
            return ends or _may_lose_rows(main, lateness)
        case {"is": "AfterWatermark"}:
            return "late" not in spec and lateness > 0
        case {"is": "Repeatedly" | "Never" | "Default"}:
            return False
    return True


def _fires_before_end(spec: Any) -> bool:
    match spec:
        case ["AfterEach", [first, *_]] | {"is": "Repeatedly", "trigger": first}:
            return _fires_before_end(first)
        case [name, parts]:
            return (all if name == "AfterAll" else any)(map(_fires_before_end, parts))
        case {"is": "OrFinally", "main": main, "finally_": last}:
            return _fires_before_end(main) or _fires_before_end(last)
        case {"is": "AfterWatermark"}:
            return "early" in spec and _fires_before_end(spec["early"])
    return spec["is"] not in ("Never", "Default")


def _each_or_finally(spec: Any) -> bool:
    match spec:
        case ["AfterEach", parts] if any(isinstance(part, dict) and part["is"] == "OrFinally" for part in parts):
            return True
        case [_, parts]:
            return any(map(_each_or_finally, parts))
        case dict():
            return any(_each_or_finally(part) for part in spec.values())
    return False


def _nested(spec: Any) -> bool:
    match spec:
        case [_, parts]:
            return any(map(_nested, parts))
        case {"is": "AfterWatermark"}:
            return isinstance(spec.get("early"), list) or isinstance(spec.get("late"), list)
        case dict():
            return any(_nested(part) for part in spec.values())
    return False


def kinds(case: Case) -> Iterator[str]:
    """By window, outermost trigger and mode."""
    trigger = case["trigger"]
    yield case["window"]["is"]
    yield trigger["is"] if isinstance(trigger, dict) else trigger[0]
    yield case["mode"]


def smaller(case: Case) -> Iterator[Case]:
    """Fewer events and rows, then a part of the trigger, then defaults."""
    yield from without_parts(case)
    for part in _parts(case["trigger"]):
        yield case | {"trigger": part}
    plain = {
        "lateness": 0,
        "mode": "discarding",
        "closing": "fire_if_non_empty",
        "combiner": "end_of_window",
        "on_time": "fire_always",
    }
    for name, value in plain.items():
        if case[name] != value:
            yield case | {name: value}


def _parts(spec: Any) -> Iterator[Any]:
    """Simpler triggers: each part of it, and itself with a simpler part."""
    if isinstance(spec, list):
        name, parts = spec
        yield from parts
        for at, part in enumerate(parts):
            if len(parts) > 1:
                yield [name, parts[:at] + parts[at + 1 :]]
            for simpler in _parts(part):
                yield [name, [*parts[:at], simpler, *parts[at + 1 :]]]
        return
    for field, part in spec.items():
        if isinstance(part, (dict, list)):
            yield part
            if spec["is"] == "AfterWatermark":
                yield {name: value for name, value in spec.items() if name != field}
            for simpler in _parts(part):
                yield spec | {field: simpler}


PEER = Peer(
    "beam",
    "Apache Beam Java",
    "2.73.0",
    cases(),
    given,
    here,
    there,
    facts,
    ("window", "timing"),
    kinds,
    smaller,
    predicted=predicted,
)
