"""The cases of the conformance suite in terms of a peer's cases, and back: names that any engine has, times in seconds.

A pipeline tells what moves its watermark: ``script`` (its own events), ``rows`` (the greatest event time so far, before each row) or
``batches`` (so far, less ``delay``, after each batch). Scripts have the end that a peer's program adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from peers.peer import Case, Row
from peers.spark.batches import CLOCK, sides_of

SECOND = 1_000_000
SPANS = (
    "size",
    "period",
    "offset",
    "gap",
    "difference",
    "grace",
    "lateness",
    "history",
    "wait",
    "before",
    "after",
    "delay",
)
"""Options in microseconds; those of Flink's windows are seconds already."""
WATERMARKS = {
    "beam": "script",
    "beam_python": "script",
    "flink": "script",
    "flink_over": "script",
    "flink_sql": "script",
    "kafka_streams": "rows",
    "kafka_sliding": "rows",
    "spark": "batches",
}
WINDOWS = {
    "FixedWindows": "fixed",
    "SlidingWindows": "sliding",
    "Sessions": "session",
    "CalendarWindows": "calendar",
    "GlobalWindow": "global",
    "AnchoredWindows": "anchored",
    "TUMBLE": "fixed",
    "HOP": "sliding",
    "CUMULATE": "cumulative",
    "SESSION": "session",
}
SPARK_END = 10**6 * SECOND
BEAM = {"mode": "accumulation", "on_time": "on_time_pane", "closing": "closing_pane", "combiner": "timestamp"}
CALLS = {"AfterAny": "any", "AfterAll": "all", "AfterEach": "each"}
CONSTANTS = {"Default": "default", "Never": "never"}


def _flip(names: Mapping[str, str]) -> dict[str, str]:
    return {value: name for name, value in names.items()}


def seconds(value: Any) -> Any:
    """Microseconds as seconds; whole ones as whole numbers."""
    return (
        value
        if value is None or isinstance(value, str)
        else int(value / SECOND)
        if value % SECOND == 0
        else value / SECOND
    )


def micros(value: Any) -> Any:
    """Seconds as microseconds."""
    return value if value is None or isinstance(value, str) else round(value * SECOND)


def trigger_of(spec: Any) -> Any:
    """A trigger by its public name."""
    match spec:
        case [kind, parts]:
            return {CALLS[kind]: [trigger_of(part) for part in parts]}
        case {"is": "AfterCount", "n": n}:
            return {"count": n}
        case {"is": "AfterProcessingTime"}:
            names = ("delay", "aligned_to", "offset")
            return {"processing_time": {name: seconds(spec[name]) for name in names if name in spec}}
        case {"is": "AfterWatermark"}:
            return {"end_of_window": {name: trigger_of(spec[name]) for name in ("early", "late") if name in spec}}
        case {"is": "Repeatedly", "trigger": part}:
            return {"repeatedly": trigger_of(part)}
        case {"is": "OrFinally", "main": main, "finally_": last}:
            return {"until": {"main": trigger_of(main), "finally": trigger_of(last)}}
    return CONSTANTS[spec["is"]]


def spec_of(trigger: Any) -> Any:
    """The spec of a trigger by its public name."""
    if isinstance(trigger, str):
        return {"is": _flip(CONSTANTS)[trigger]}
    ((kind, value),) = trigger.items()
    match kind:
        case "count":
            return {"is": "AfterCount", "n": value}
        case "processing_time":
            return {"is": "AfterProcessingTime", **{name: micros(one) for name, one in value.items()}}
        case "end_of_window":
            return {"is": "AfterWatermark", **{name: spec_of(one) for name, one in value.items()}}
        case "repeatedly":
            return {"is": "Repeatedly", "trigger": spec_of(value)}
        case "until":
            return {"is": "OrFinally", "main": spec_of(value["main"]), "finally_": spec_of(value["finally"])}
    return [_flip(CALLS)[kind], [spec_of(part) for part in value]]


def pipeline_of(peer: str, case: Case) -> dict[str, Any]:
    """The pipeline of a case."""
    pipeline: dict[str, Any] = {"watermark": WATERMARKS[peer], "kind": case.get("kind", "windows")}
    for name, value in case.items():
        if name == "window":
            flink = peer == "flink"
            options = {one: span if flink else seconds(span) if one in SPANS else span for one, span in value.items()}
            pipeline["window"] = options | {"is": WINDOWS[value["is"]]}
        elif name == "trigger":
            pipeline["trigger"] = trigger_of(value)
        elif name not in ("kind", "script", "reads"):
            plain = name not in SPANS or peer == "flink"
            pipeline[BEAM.get(name, name)] = value if plain else seconds(value)
    if "reads" in case:
        pipeline["reads"] = [{"key": read["key"], "time": seconds(read["ts"])} for read in case["reads"]]
    return pipeline


def case_of(pipeline: Mapping[str, Any], script: list[dict[str, Any]]) -> tuple[str, Case]:
    """The peer whose normalisation a pipeline has, and its case."""
    kind, moved = pipeline["kind"], pipeline["watermark"]
    peer = {"rows": "kafka_streams", "batches": "spark"}.get(moved, "beam" if kind == "windows" else "flink")
    flink = peer == "flink"
    windows = {"fixed": "TUMBLE", "sliding": "HOP", "cumulative": "CUMULATE", "session": "SESSION"}
    windows = windows if flink else _flip(dict(list(WINDOWS.items())[:6]))
    case: Case = {} if kind == "windows" else {"kind": kind}
    for name, value in pipeline.items():
        if name == "window":
            options = {one: span if flink else micros(span) if one in SPANS else span for one, span in value.items()}
            case["window"] = options | {"is": windows[value["is"]]}
        elif name == "trigger":
            case["trigger"] = spec_of(value)
        elif name == "reads":
            case["reads"] = [{"key": read["key"], "ts": micros(read["time"])} for read in value]
        elif name not in ("kind", "watermark"):
            case[_flip(BEAM).get(name, name)] = value if name not in SPANS or flink else micros(value)
    case["script"] = [_event(event, micros, ("time", "ts"), ("deleted", "gone")) for event in script]
    case["script"] = case["script"][: len(script) - len(_end_of(peer, case))]
    return peer, case


def script_of(peer: str, case: Case) -> list[dict[str, Any]]:
    """The events of a case, in seconds, with its end."""
    events = [*case["script"], *_end_of(peer, case)]
    return [_event(event, seconds, ("ts", "time"), ("gone", "deleted")) for event in events]


def _end_of(peer: str, case: Case) -> list[dict[str, Any]]:
    """The events that a peer's program appends to move the watermark to the end."""
    match peer:
        case "flink" | "flink_over" | "flink_sql" if case["kind"] != "over":
            return [{"watermark": "infinity"}]
        case "kafka_streams" if case["kind"] == "join":
            last = max((row["ts"] for event in case["script"] for row in event["rows"]), default=0)
            time = last + case["before"] + case["after"] + case["grace"] + SECOND
            return [{"rows": [{"ts": time, "key": "tick", "n": -1, "input": side}]} for side in ("left", "right")]
        case "spark":
            return [{"rows": [{"ts": SPARK_END, "key": CLOCK, "n": -1, "input": side} for side in sides_of(case)]}]
    return []


def _event(event: Mapping[str, Any], convert: Any, time: tuple[str, str], gone: tuple[str, str]) -> dict[str, Any]:
    if "rows" not in event:
        return {name: convert(value) for name, value in event.items()}
    names = {time[0]: time[1], gone[0]: gone[1]}
    return {
        "rows": [
            {names.get(name, name): convert(value) if name == time[0] else value for name, value in row.items()}
            for row in event["rows"]
        ]
    }


def answer_of(peer: str, case: Case, rows: list[Row]) -> dict[str, Any]:
    """An answer: rows by public names, or why there are none."""
    if rows and "failed" in rows[0]:
        return {"failed": rows[0]["failed"]}
    answer: dict[str, Any] = {}
    if any(row.get("refused") for row in rows):
        answer["warns"] = "rows may be lost"
    shown = [row for row in rows if row["stream"] not in (["refused"], ["expired"], ["described"])]
    return answer | {"rows": [told for row in shown for told in _told(peer, case, row)]}


def _told(peer: str, case: Case, row: Row) -> Iterator[dict[str, Any]]:
    """A row by public names; a pair as often as it comes, with its steps if they are compared."""
    if case.get("kind") not in ("join", "window_join", "as_of"):
        yield dict(_public(peer, case, row))
        return
    left, right = (row["left"], row["right"]) if "left" in row else row["stream"]
    steps = row.get("steps", row.get("times", row["place"]))
    for step in steps if isinstance(steps, list) else [None] * steps:
        yield {"left": left, "right": right} | ({} if step is None else {"step": step})


def _emitted(case: Case, after: int | None) -> int:
    """The step of the first watermark beyond one; the end of the script."""
    marks = ((step, event["watermark"]) for step, event in enumerate(case["script"]) if "watermark" in event)
    return next((step for step, mark in marks if after is None or mark > after), len(case["script"]))


def _whole(time: int | None) -> int | None:
    """A time in whole milliseconds, as Beam Java has it."""
    return None if time is None else time // 1000 * 1000


def _public(peer: str, case: Case, row: Row) -> Iterator[tuple[str, Any]]:
    stream, place = row["stream"], row["place"]
    if peer in ("beam", "beam_python"):
        for name in (
            "step",
            "key",
            "start",
            "end",
            "timestamp",
            "timing",
            "index",
            "on_time_index",
            "is_first",
            "is_last",
            "rows",
        ):
            if name in row:
                yield name, seconds(_whole(row[name])) if name in ("start", "end", "timestamp") else row[name]
        return
    if row["stream"] == ["full"]:
        yield from (("step", place[0]), ("full", True))
    elif "rows" in row and len(place) == 3:
        start, end = (place[2], place[1]) if peer.startswith("kafka") else (place[1], place[2])
        end += peer == "spark" and case["kind"] == "session"  # whose gap is 1 us shorter
        yield from (("step", place[0]), ("key", stream[0]), ("start", seconds(start)), ("end", seconds(end)))
        yield "rows", row["rows"]
    elif "rows" in row and len(place) == 2:
        yield from (("key", stream[0]), ("start", seconds(place[0])), ("end", seconds(place[1])), ("rows", row["rows"]))
    elif "rows" in row:
        yield from (("key", stream[0]), ("start", seconds(stream[1])), ("end", seconds(stream[2])))
        yield from (("number", place[0]), ("rows", row["rows"]))
    elif case.get("kind") == "versions":
        yield from (("key", stream[0]), ("time", seconds(stream[1])), ("n", row["n"]))
        yield "since", None if row["since"] is None else seconds(row["since"] * 1000)
        return
    else:
        yield "row", stream
        yield from ((name, value) for name, value in row.items() if name not in ("stream", "place", "after"))
    if "replaced" in row:
        yield "replaces", row["replaced"]
    if "after" in row:
        yield "step", _emitted(case, row["after"])
