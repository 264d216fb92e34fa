"""Apache Beam Python on its in-process DirectRunner: windows, triggers, panes of pipelines that ``bm.beam`` makes.

A case has a WindowInto as Beam's SDK describes it to runners. The program makes the WindowInto by Beam's own code, runs it, and
describes it by ``beamish.beam``, which must give the same; here ``beamish.beam`` makes the pipeline from the description.

Normalised, since the SDK or its runner is free to do it or does not say it:

- Event times are whole milliseconds; a step has one part: a bundle, or a watermark or clock that advances.
- Rows of a pane are compared as a set; windows and keys of a step in any order.
- Whether a pane is the last one is not compared: there it says that the trigger is finished.
- Dropped rows are not compared: there they are not counted.
- A trigger that may lose rows is refused by both; then its panes are compared all the same.
- Rows between sampled windows are given to ours only: they stop the runner.

``model.py`` computes Beam Python's output by its own rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.accumulations import Collect
from beamish.beam import pipeline_of
from beamish.errors import BeamishError
from beamish.instants import END_OF_TIME_US
from beamish.pane import Pane, PaneKind
from beamish.script import Event, as_step
from beamish.testing import TestStream
from peers.beam.peer import inside, row_of, script_of
from peers.beam_python.model import Model
from peers.cases import without_parts
from peers.peer import BUILT, Case, Peer, PeerError, Row
from tests.strategies.scripts import scripts

SECOND = 1_000_000
MILLISECOND = 1_000


def _urn(name: str, **fields: int) -> dict[str, Any]:
    return {"urn": f"beam:window_fn:{name}:v1", **fields}


@st.composite
def _intervals(draw: st.DrawFn) -> dict[str, Any]:
    size, period = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    if draw(st.booleans()):
        return _urn("fixed_windows", size=size * SECOND, offset=draw(st.integers(0, size - 1)) * SECOND)
    offset = draw(st.integers(0, period - 1))
    return _urn("sliding_windows", size=size * SECOND, offset=offset * SECOND, period=period * SECOND)


_windows = st.one_of(
    _intervals(),
    st.integers(1, 10).map(lambda gap: _urn("session_windows", gap_size=gap * SECOND)),
    st.just(_urn("global_windows")),
)


def _delayed(seconds: int) -> dict[str, Any]:
    delay = {"delay_millis": str(seconds * 1000)} if seconds else {}
    return {"after_processing_time": {"timestamp_transforms": [{"delay": delay}]}}


def _several(kind: str, trigger: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(trigger, min_size=2, max_size=3).map(lambda parts: {kind: {"subtriggers": parts}})


_after_count = st.integers(1, 4).map(lambda n: {"element_count": {"element_count": n}})
_at_end: dict[str, Any] = {"after_end_of_window": {}}
_once = st.recursive(
    st.one_of(
        _after_count,
        _after_count,
        st.integers(0, 5).map(_delayed),
        st.just(_at_end),
        st.just({"never": {}}),
    ),
    lambda once: _several("after_any", once) | _several("after_all", once),
    max_leaves=3,
)


@st.composite
def _watermark_triggers(draw: st.DrawFn) -> dict[str, Any]:
    part = st.none() | _once.filter(lambda once: once != _at_end)  # which beamish refuses
    parts = {"early_firings": draw(part), "late_firings": draw(part)}
    return {"after_end_of_window": {name: part for name, part in parts.items() if part is not None}}


_triggers = st.recursive(
    st.one_of(st.just({"default": {}}), st.just({"always": {}}), _once, _watermark_triggers(), _watermark_triggers()),
    lambda any_: st.one_of(
        any_.map(lambda part: {"repeat": {"subtrigger": part}}),
        _several("after_each", any_),
        st.tuples(any_, _once).map(lambda parts: {"or_finally": {"main": parts[0], "finally": parts[1]}}),
    ),
    max_leaves=3,
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A WindowInto, as Beam's SDK describes it, and a script."""
    strategy = {
        "window_fn": draw(_windows),
        "trigger": draw(_triggers),
        "accumulation_mode": draw(st.sampled_from(["DISCARDING", "ACCUMULATING"])),
        "output_time": draw(st.sampled_from(["END_OF_WINDOW", "EARLIEST_IN_PANE", "LATEST_IN_PANE"])),
        "closing_behavior": "EMIT_ALWAYS",
        "on_time_behavior": "FIRE_ALWAYS",
    }
    lateness = draw(st.sampled_from([0, 0, 2, 5, 10, 1000]))
    if lateness:
        strategy["allowed_lateness"] = str(lateness * 1000)
    ends = draw(st.sampled_from([True, True, True, False]))
    script = draw(scripts(_pipeline({"windowing": strategy}), ends=ends, nulls=False))
    return {"windowing": strategy, "script": list(_events(script))}


def _events(script: TestStream) -> Iterator[dict[str, Any]]:
    rows, clock, watermark = 0, 0, -END_OF_TIME_US
    for event in script.events:
        step = as_step(event)
        if step.watermark_us == END_OF_TIME_US:
            yield {"watermark": "infinity"}
            return  # Beam's TestStream takes no row afterwards
        if step.watermark_us is not None and step.watermark_us > watermark:
            watermark = step.watermark_us
            yield {"watermark": watermark}
        if step.clock_us is not None and step.clock_us > clock:
            clock = step.clock_us
            yield {"clock": clock}
        if step.rows:
            yield {"rows": [_case_row(row, rows + i) for i, row in enumerate(step.rows)]}
            rows += len(step.rows)


def _case_row(row: Mapping[str, Any], n: int) -> dict[str, Any]:
    return {"ts": round(row["ts"] * SECOND) // MILLISECOND * MILLISECOND, "key": row["team"], "n": n}


def _pipeline(case: Case, *, allow_data_loss: bool = True) -> bm.Pipeline:
    return (
        pipeline_of(case["windowing"], allow_data_loss=allow_data_loss)
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by("key")
        .accumulate(rows=Collect("n"))
    )


def here(case: Case) -> list[Row]:
    """The answer of beamish."""
    traced: list[tuple[Event, list[Pane]]] = script_of(case).trace(_pipeline(case))
    panes = [_row(step, pane) for step, (_, some) in enumerate(traced) for pane in some if pane.kind is PaneKind.PANE]
    return _answer(case, {"refused": _refused(case), "described": case["windowing"], "panes": panes})


def _refused(case: Case) -> bool:
    try:
        _pipeline(case, allow_data_loss=False).flow.check()
    except BeamishError:
        return True
    return False


def _row(step: int, pane: Pane) -> dict[str, Any]:
    row = row_of(step, pane)
    del row["is_last"]
    return row | {"rows": sorted(row["rows"])}


def there(case: Case, answer: Mapping[str, Any]) -> list[Row]:
    """The answer of Beam."""
    return _answer(case, answer)


def given(case: Case) -> Case:
    """The case without rows between windows."""
    window = case["windowing"]["window_fn"]
    period, size = window.get("period", 0), window.get("size", 0)
    if period <= size:
        return case
    return case | {
        "script": [
            {"rows": [row for row in event["rows"] if (row["ts"] - window["offset"]) % period < size]}
            if "rows" in event
            else event
            for event in case["script"]
        ]
    }


def predicted(case: Case) -> list[Row]:
    """Beam Python's output, computed by its own rules."""
    model = Model(given(case))
    model.run()
    return _answer(case, {"refused": model.refused, "described": case["windowing"], "panes": model.given})


def _answer(case: Case, answer: Mapping[str, Any]) -> list[Row]:
    merging = "session_windows" in case["windowing"]["window_fn"]["urn"]
    return [
        {"stream": ["refused"], "place": [], "refused": answer["refused"]},
        {"stream": ["described"], "place": [], "described": answer["described"]},
        *(_placed(row, merging=merging) for row in answer["panes"]),
    ]


def _placed(row: Mapping[str, Any], *, merging: bool) -> Row:
    window = [row["end"] or 0, row["start"] or 0]
    return {
        **row,
        "stream": [row["key"]] if merging else [row["key"], *window],
        "place": [row["step"], *window, row["index"]],
    }


def facts(case: Case, here: Row | None, there: Row | None) -> Mapping[str, Any]:
    """Facts for the decisions.

    ``timing``: here and there. ``pane``: the difference is about panes. ``finishes``: the trigger may. ``ends``: several sub-triggers wait for the end of the window, or one does beside ``Always``.
    """
    text = json.dumps(case["windowing"]["trigger"])
    window = case["windowing"]["window_fn"]
    ends = text.count("after_end_of_window") + text.count("default")
    shown = [one for one in (here, there) if one and "timing" in one]
    return {
        "window": window["urn"].split(":")[2],
        "timing": " ".join(one["timing"] for one in shown),
        "combiner": case["windowing"]["output_time"],
        "pane": bool(shown),
        "refused": [one["refused"] for one in (here, there) if one and "refused" in one],
        "finishes": _refused(case),
        "processing_time": "after_processing_time" in text,
        "each": "after_each" in text,
        "default": "default" in text,
        "composite": any(name in text for name in ("after_any", "after_all", "after_each", "or_finally")),
        "ends": ends > 1 or (ends == 1 and "always" in text and "after_each" not in text),
        **(_moment(case, text, shown) if shown else {}),
    }


def _moment(case: Case, trigger: str, shown: list[Row]) -> dict[str, bool]:
    """The watermark and the clock when a pane was emitted, beside its window.

    ``at_expiry``: the watermark makes it expire. ``last_moment``: rows come while it is there. ``timed``: a processing-time timer may have
    fired. ``by_clock``: the clock is past the end, or the pane is early though the watermark is. ``expired``: so is a session that it overlaps.
    ``revived``: one of them has ended before the step.
    """
    row = shown[0]
    before = case["script"][: row["step"] + 1]
    given = [event["watermark"] for event in before if "watermark" in event]
    watermark = END_OF_TIME_US if "infinity" in given else max(given, default=-END_OF_TIME_US)
    end = END_OF_TIME_US if row["end"] is None else row["end"]
    lateness = int(case["windowing"].get("allowed_lateness", 0)) * MILLISECOND
    expiry = min(end + lateness, END_OF_TIME_US)
    gap = case["windowing"]["window_fn"].get("gap_size")
    near = [] if gap is None else inside(case, {**row, "start": row["start"] - gap + 1}, end)
    sessions = [one["ts"] + gap for one in near]
    ends = [end] if gap is None else [one["ts"] + gap for one in before[-1].get("rows", [])]
    return {
        "at_expiry": "watermark" in before[-1] and watermark >= expiry,
        "last_moment": "rows" in before[-1] and watermark in [one + lateness for one in ends],
        "timed": '"delay": {}' in trigger or any("clock" in event for event in before),
        "by_clock": max(event.get("clock", 0) for event in before) >= end
        or (shown[-1]["timing"] == "EARLY" and watermark >= end),
        "expired": any(one + lateness <= watermark for one in sessions),
        "revived": any(one <= max(given[:-1], default=-END_OF_TIME_US) for one in sessions),
    }


def kinds(case: Case) -> Iterator[str]:
    """By window function, outermost trigger and mode."""
    strategy = case["windowing"]
    yield strategy["window_fn"]["urn"].split(":")[2]
    yield from strategy["trigger"]
    yield strategy["accumulation_mode"]


def smaller(case: Case) -> Iterator[Case]:
    """Fewer events and rows, then a part of the trigger, then defaults."""
    yield from without_parts(case)
    strategy = case["windowing"]
    plain = {"allowed_lateness": "0", "accumulation_mode": "DISCARDING", "output_time": "END_OF_WINDOW"}
    for name, value in plain.items():
        if strategy.get(name, value) != value:
            yield case | {"windowing": strategy | {name: value}}
    for trigger in _simpler(strategy["trigger"]):
        simpler = case | {"windowing": strategy | {"trigger": trigger}}
        with suppress(BeamishError):  # not one that beamish refuses
            _pipeline(simpler)
            yield simpler


def _simpler(trigger: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each part of a trigger, then itself with fewer or simpler parts."""
    ((kind, fields),) = trigger.items()
    parts = fields.get("subtriggers", []) if isinstance(fields, dict) else []
    yield from parts
    for at, part in enumerate(parts):
        if len(parts) > 1:
            yield {kind: {"subtriggers": parts[:at] + parts[at + 1 :]}}
        for simpler in _simpler(part):
            yield {kind: {"subtriggers": [*parts[:at], simpler, *parts[at + 1 :]]}}
    for name in ("subtrigger", "early_firings", "late_firings", "main", "finally"):
        if name in fields:
            yield fields[name]
            if name.endswith("firings"):
                yield {kind: {one: part for one, part in fields.items() if one != name}}
            for simpler in _simpler(fields[name]):
                yield {kind: fields | {name: simpler}}


def _command() -> list[str | Path]:
    python = BUILT / "beam_python" / "bin" / "python"
    if not python.exists():
        raise PeerError(f"{python} does not exist: make it with make test-peers PEERS=beam_python")
    return [python, "-m", "peers.beam_python.program"]


PEER = Peer(
    "beam_python",
    "Apache Beam Python",
    "2.77.0",
    cases(),
    given,
    here,
    there,
    facts,
    ("window", "timing"),
    kinds,
    smaller,
    command=_command,
    predicted=predicted,
)
