"""A case of one peer in the terms of the others: the same windows or join, and a script whose watermark moves alike.

``query_of`` reads what a case asks, ``put`` writes it for a peer, or tells why the peer has no such pipeline. Where rows move a peer's watermark, records of
the key ``tick`` (Kafka Streams) or ``clock`` (Spark) move it to where the script has it: as far ahead as rows run ahead of the script's, a
distance that the peer's grace or delay makes up for. Steps of the peer's script are those of the first script that they stand for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from peers.neutral import answer_of
from peers.peer import Case, Row
from peers.spark.batches import CLOCK, JOINS, sides_of, watermarks
from peers.translated import from_beam_python, to_beam_python

SECOND, MILLISECOND = 1_000_000, 1000
FAR = 1000 * SECOND
FLINK_SHIFT = 2_520_000 * SECOND
"""From case to case in a job of Flink (Peer.java): other windows than those that it is a multiple of run apart."""
TICK, NONE = "tick", "none"
FINAL, UPDATES, TRIGGERS = "final", "updates", "triggers"
"""Kinds of queries: a row per window when it ends; each update of a window; panes of a trigger. Others are those of cases."""
FIRST = "first for ever"
"""The first row of each key, of all time."""
KINDS = {"window": FINAL, "session": FINAL, "on_close": FINAL, "limit": "buffer"}
"""Kinds of queries, by those of cases."""
Event = dict[str, Any]
Step = tuple[int, Event]

REASONS = {
    "triggers": "has no triggers",
    "panes": "has no such trigger, accumulation mode or closing behavior",
    "window": "has no such windows",
    "offset": "aligns windows at the epoch",
    "gaps": "has no hopping windows with gaps between them",
    "sampled": "has hopping windows only where the size is a multiple of the hop",
    "all-time": "emits no row when all time ends",
    "merged": "has no updates of sessions that are retracted when they merge",
    "bundles": "updates a window with each row, not with each bundle",
    "step": "has no such step in its own API, or leaves it to the user's code",
    "first": "forgets the keys of first rows by another clock than the time of rows",
    "how": "has no such outer join of these streams",
    "late": "reads the inputs of a join in any order, or ignores late rows of it",
    "null-keys": "drops rows whose key is null",
    "buffer": "has no buffer of updates",
    "immediate": "waits for the watermark of both inputs",
    "end": "emits the rows that wait when its input ends",
}
"""Why a peer has no such pipeline, by code."""


class _UnsupportedError(Exception):
    """A peer cannot express a query: a code of REASONS."""


@attrs.frozen
class Query:
    """The pipeline of a case, independent of the peer.

    Attributes:
        kind: ``FINAL``, ``UPDATES``, ``TRIGGERS``, or the kind of a peer's case.
        window: as Beam Java's cases have it.
        lateness: how long after its end a window takes rows; of a join, after a row.
        steps: rows, watermarks and clocks in microseconds, each with its step in the first script.
        how, before, after: of a join.
        case: the case of Beam Java, if it has one.
    """

    kind: str
    window: Mapping[str, Any]
    lateness: int
    steps: list[Step]
    how: str = ""
    before: int = 0
    after: int = 0
    case: Case | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows."""
        return [row for _, event in self.steps for row in event.get("rows", [])]

    @property
    def span(self) -> int:
        """The length of a window or of the time between rows of a pair."""
        sizes: list[int] = [self.window.get(name, 0) for name in ("size", "gap")]
        return max([*sizes, self.before + self.after, SECOND])

    @property
    def period(self) -> int:
        """Windows are aligned at multiples of it."""
        found: int = self.window.get("period") or self.window.get("size") or SECOND
        return found

    def watermarked(self) -> Iterator[tuple[int, Event, int]]:
        """The steps, each with the watermark of its script from then on: before the first one that is before all windows."""
        times = [row["ts"] for row in self.rows]
        marks = [event["watermark"] for _, event in self.steps if isinstance(event.get("watermark"), int)]
        now = min([*times, *marks], default=0) - self.span - SECOND
        for step, event in self.steps:
            mark = event.get("watermark")
            now = max(now, mark) if isinstance(mark, int) else now
            yield step, event, now

    @property
    def ahead(self) -> int:
        """How far rows are ahead of the watermark at most."""
        return max(
            (row["ts"] - now for _, event, now in self.watermarked() for row in event.get("rows", [])), default=0
        )

    def shift(self, first: int) -> int:
        """Added to times, a multiple of the windows, so that the earliest are not before a time."""
        times = [now for _, _, now in self.watermarked()]
        return -((min(times, default=0) - first) // self.period) * self.period


@attrs.frozen
class Put:
    """A query for a peer.

    Attributes:
        peer: the peer.
        case: its case.
        steps: by step of its script, that of the first script; others came after its end.
        shift: added to its times.
        kind: of the query.
        names: keys by the peer's names of them.
    """

    peer: str
    case: Case
    steps: list[int]
    kind: str
    shift: int = 0
    names: Mapping[str, Any] = attrs.field(factory=dict)

    def answer(self, rows: list[Row]) -> dict[str, Any]:
        """The peer's answer, by the steps and times of the first script."""
        found = answer_of(self.peer, self.case, rows)
        if "rows" in found:
            told = [dict(self._told(row)) for row in found["rows"] if self._is_of_script(row)]
            found["rows"] = _last_of_steps(told) if self.kind == UPDATES else told
        return found

    def _is_of_script(self, row: Mapping[str, Any]) -> bool:
        """Whether a row comes within the script, and is not that of a record that moves the watermark."""
        return row.get("step", 0) < len(self.steps) and (row.get("left") or 0) >= 0

    def _told(self, row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in row.items():
            match name:
                case "step":
                    yield name, self.steps[value]
                case "start" | "end" if value is not None:
                    time = round(value * SECOND) - self.shift
                    yield name, time // SECOND if time % SECOND == 0 else time / SECOND
                case "key":
                    yield name, self.names.get(str(value), value)
                case _:
                    yield name, value


def _last_of_steps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last row of each window in each step, numbered per window; ``replaces`` is that of the step's first row."""
    left: dict[str, dict[str, Any]] = {}
    for at, row in enumerate(rows):
        slot = json.dumps([row["key"], row["start"], row["end"], row.get("step", f"row {at}")])
        first = left.get(slot, row)
        left[slot] = row | ({"replaces": first["replaces"]} if "replaces" in row else {})
    numbers: dict[str, int] = {}
    for row in left.values():
        window = json.dumps([row["key"], row["start"], row["end"]])
        row["number"] = numbers[window] = numbers.get(window, -1) + 1
    return list(left.values())


def own(peer: str, case: Case) -> Put:
    """A case as its own peer has it."""
    return Put(peer, case, list(range(len(case["script"]) + 2)), query_of(peer, case).kind)


# Queries of cases


def query_of(peer: str, case: Case) -> Query:
    """The query of a peer's case."""
    match peer:
        case "beam":
            return _of_beam(case)
        case "flink":
            return _of_flink(case)
        case "spark":
            return _of_spark(case)
        case "beam_python":
            found = from_beam_python(case)
            return Query(TRIGGERS, {}, 0, []) if found is None else _of_beam(found)
    return _of_kafka(case)


def _of_beam(case: Case) -> Query:
    kind, quiet = TRIGGERS, case["on_time"] == case["closing"] == "fire_if_non_empty"
    match case["trigger"]:
        case {"is": "Default"} if not case["lateness"]:
            kind = FINAL
        case {"is": "AfterWatermark", **parts} if not case["lateness"] and not parts:
            kind = FINAL
        case {"is": "Repeatedly", "trigger": {"is": "AfterCount", "n": 1}} if quiet and case["mode"] != "discarding":
            kind = UPDATES
    return Query(kind, case["window"], case["lateness"], list(enumerate(case["script"])), case=case)


def _of_flink(case: Case) -> Query:
    kind: str = case["kind"]
    window = dict(case.get("window", {}))
    if window:
        names = {"TUMBLE": "FixedWindows", "HOP": "SlidingWindows", "SESSION": "Sessions"}
        spans = {name: round(value * SECOND) for name, value in window.items() if name != "is"}
        spans = {"gap": spans["size"]} if window["is"] == "SESSION" else spans
        window = {"is": names.get(window["is"], window["is"])} | spans
    steps = [*enumerate(case["script"]), (len(case["script"]), {"watermark": "infinity"})]
    before, after = (round(side * SECOND) for side in case.get("span", (0, 0)))
    lateness = case.get("lateness", 0) * SECOND
    if kind == "first":
        kind = FIRST if case["by"] == "arrival" else "earliest"
    return Query(KINDS.get(kind, kind), window, lateness, steps, case.get("how", ""), before, after)


def _of_kafka(case: Case) -> Query:
    kind: str = case["kind"]
    kind = KINDS.get(kind, kind)
    if kind == "closes":
        kind = FINAL if case["max_records"] is None else "buffer"
    steps, now = list[Step](), None
    for step, event in enumerate(case["script"]):
        (row,) = event["rows"]
        if row["input"] != "table" and (now is None or row["ts"] > now):
            now = row["ts"]
            steps.append((step, {"watermark": now}))
        if row["key"] != TICK:
            steps.append((step, {"rows": [row]}))
    if case["kind"] == "join" and case["how"] != "inner":
        steps.append((len(case["script"]), {"watermark": "infinity"}))
    spans = (case.get(name, 0) for name in ("before", "after"))
    kind = "immediate" if kind == "as_of" and case["grace"] is None else kind
    return Query(kind, case.get("window", {}), case["grace"] or 0, steps, case.get("how", ""), *spans)


def _of_spark(case: Case) -> Query:
    marks, steps = watermarks(case), list[Step]()
    for step, (event, mark) in enumerate(zip(case["script"], marks, strict=False)):
        rows = [row for row in event["rows"] if row["key"] != CLOCK]
        steps += [(step, {"rows": rows})] if rows else []
        steps.append((step, {"watermark": mark}))
    last = len(case["script"])
    steps += [(last, {"watermark": marks[-1]}), (last + 1, {"watermark": "infinity"})]
    kind: str = case["kind"]
    window: dict[str, Any] = {}
    if "gap" in case:
        window = {"is": "Sessions", "gap": case["gap"]}
    elif "size" in case:
        fixed = case["size"] == case["period"]
        names = ("size", "offset") if fixed else ("size", "period", "offset")
        window = {"is": "FixedWindows" if fixed else "SlidingWindows"} | {name: case[name] for name in names}
    named = KINDS.get(kind, kind)
    return Query(named, window, 0, steps, case.get("how", ""), case.get("before", 0), case.get("after", 0))


# The same for a peer


def put(peer: str, of: str, case: Case) -> Put | str:
    """A case of a peer in the terms of another; a code of REASONS if that has no such pipeline."""
    if of == peer:
        return own(peer, case)
    writer = {
        "beam": _to_beam,
        "beam_python": _to_beam_python,
        "flink": _to_flink,
        "kafka_streams": _to_kafka,
        "spark": _to_spark,
    }[peer]
    try:
        return writer(query_of(of, case))
    except _UnsupportedError as why:
        return str(why)


def _only(query: Query, *kinds: str) -> None:
    """Refuse kinds that a peer does not have, and windows that only one has."""
    if query.kind not in kinds:
        code = "first" if query.kind == FIRST else query.kind
        raise _UnsupportedError(code if code in REASONS else "step")
    if query.window and query.window["is"] not in ("FixedWindows", "SlidingWindows", "Sessions"):
        raise _UnsupportedError("all-time" if query.window["is"] == "GlobalWindow" else "window")
    if query.window.get("period", 0) > query.window.get("size", 0):
        raise _UnsupportedError("gaps")
    if query.kind == UPDATES and query.window["is"] == "Sessions":
        raise _UnsupportedError("merged")


def _to_beam(query: Query) -> Put:
    if query.case is not None:
        return Put("beam", query.case, list(range(len(query.case["script"]))), query.kind)
    _only(query, FINAL, UPDATES)
    updates = {"is": "Repeatedly", "trigger": {"is": "AfterCount", "n": 1}}
    final = {"is": "Never"} if query.lateness else {"is": "Default"}
    # Beam Python has no other than these of Beam Java's behaviors, which are the same for windows with rows that have one pane.
    behavior = "fire_if_non_empty" if query.kind == UPDATES else "fire_always"
    steps: list[Step] = []
    now = None
    for step, event in query.steps:
        mark: Any = event.get("watermark")
        if "rows" in event:
            rows = [{name: row[name] for name in ("ts", "key", "n")} for row in event["rows"]]
            steps.append((step, {"rows": rows}))
        elif mark == "infinity" or now is None or mark > now:
            now = mark
            steps.append((step, {"watermark": mark}))
    case = {
        "window": {name: value for name, value in query.window.items() if value or name != "offset"},
        "trigger": updates if query.kind == UPDATES else final,
        "lateness": query.lateness,
        "mode": "accumulating" if query.kind == UPDATES else "discarding",
        "on_time": behavior,
        "closing": behavior,
        "combiner": "end_of_window",
        "script": [event for _, event in steps],
    }
    return Put("beam", case, [step for step, _ in steps], query.kind)


def _to_beam_python(query: Query) -> Put:
    beam = _to_beam(query)
    clock, steps = 0, list[Step]()
    for step, event in zip(beam.steps, beam.case["script"], strict=True):
        if "clock" not in event or event["clock"] > clock:  # its clock must move
            clock = event.get("clock", clock)
            steps.append((step, event))
    case = to_beam_python({**beam.case, "script": [event for _, event in steps]})
    if case is None:
        raise _UnsupportedError("panes")
    return attrs.evolve(beam, peer="beam_python", case=case, steps=[step for step, _ in steps])


def _to_flink(query: Query) -> Put:
    _only(query, FINAL, UPDATES, "join", "window_join", "as_of")
    case: Case = {"kind": {FINAL: "window"}.get(query.kind, query.kind)}
    early = query.lateness if query.kind != UPDATES else 0
    steps: list[Step] = []
    now: int | None = None
    for step, event in query.steps:
        mark = event.get("watermark")
        if "rows" in event:
            if query.kind == UPDATES and len(event["rows"]) > 1:
                raise _UnsupportedError("bundles")
            if query.how and any(now is not None and row["ts"] < now for row in event["rows"]):
                raise _UnsupportedError("late")
            steps += [(step, {"rows": [_flink_row(query, row)]}) for row in event["rows"]]
        elif mark == "infinity":
            break
        elif isinstance(mark, int) and (now is None or mark - early > now):
            now = mark - early
            steps.append((step, {"watermark": now}))
    waiting = (row for row in query.rows if row.get("input") != "table" and (now is None or row["ts"] > now))
    if query.kind == "as_of" and query.steps[-1][1].get("watermark") != "infinity" and any(waiting):
        raise _UnsupportedError("end")
    if query.window:
        case |= _flink_window(query)
    if query.how:
        if query.kind != "window_join" and query.how not in ("inner", "left"):
            raise _UnsupportedError("how")
        case |= {"how": query.how} | (
            {"span": [query.before / SECOND, query.after / SECOND]} if query.kind == "join" else {}
        )
    apart = any(row["ts"] < 0 for row in query.rows) or FLINK_SHIFT % query.period != 0
    case |= {"before_1970": apart, "script": [event for _, event in steps]}
    ends = [step for step, event in query.steps if event.get("watermark") == "infinity"]
    return Put("flink", case, [*(step for step, _ in steps), *ends], query.kind)


def _flink_window(query: Query) -> Case:
    window = query.window
    if window["is"] == "Sessions":
        return {"window": {"is": "SESSION", "size": window["gap"] / SECOND}, "touch": False}
    size, period, offset = (window.get(name, 0) for name in ("size", "period", "offset"))
    if window["is"] == "SlidingWindows" and (offset or size % period):
        raise _UnsupportedError("offset" if offset else "sampled")
    if query.kind == UPDATES and offset:
        raise _UnsupportedError("offset")
    spans = {"size": size} | ({"period": period} if period else {"offset": offset})
    found = {"is": "HOP" if period else "TUMBLE"} | {name: value / SECOND for name, value in spans.items()}
    more = {"lateness": query.lateness / SECOND} if query.kind == UPDATES else {"touch": False}
    return {"window": found, **more}


def _flink_row(query: Query, row: Mapping[str, Any]) -> dict[str, Any]:
    side = {"rows": "left", "table": "right"}.get(row.get("input", ""), row.get("input"))
    return {
        "ts": row["ts"],
        "key": row["key"],
        "n": row["n"],
        "input": side if query.how else "rows",
        "part": row.get("part", ""),
        "gone": row.get("gone", False),
    }


def _to_kafka(query: Query) -> Put:
    _only(query, FINAL, UPDATES, "join", "as_of")
    if query.window.get("offset"):
        raise _UnsupportedError("offset")
    if query.how and query.how not in ("inner", "left"):
        raise _UnsupportedError("how")
    keys = {row["key"] for row in query.rows}
    if None in keys and (query.how or NONE in keys):
        raise _UnsupportedError("null-keys")
    shift, ahead = query.shift(FAR), query.ahead
    inputs = {"join": ["left", "right"]}.get(query.kind, ["rows"])
    records: list[tuple[int, dict[str, Any]]] = []
    told = None
    for step, event, now in query.watermarked():
        mark = event.get("watermark")
        time = now + ahead + shift
        time += query.span + query.lateness + ahead + FAR if mark == "infinity" else 0
        if told is None or time > told:
            told = time
            records += [(step, {"ts": time, "key": TICK, "n": 0, "input": name}) for name in inputs]
        records += [(step, _kafka_row(query, row, shift)) for row in event.get("rows", [])]
    for number, (_, record) in enumerate(records):
        record["n"] = -1 - number if record["key"] == TICK else record["n"]
    case: Case = {
        "kind": {FINAL: "on_close"}.get(query.kind, query.kind),
        "grace": query.lateness + ahead,
        "script": [{"rows": [record]} for _, record in records],
    }
    if query.window:
        window = {name: value for name, value in query.window.items() if name != "offset"}
        case |= {"window": window, "max_records": None, "when_full": "shut_down", "wait": SECOND}
    elif query.kind == "join":
        case |= {"before": query.before, "after": query.after, "how": query.how}
    else:
        case |= {"history": 1000 * FAR, "how": query.how}
    return Put(
        "kafka_streams", case, [step for step, _ in records], query.kind, shift, {NONE: None} if None in keys else {}
    )


def _kafka_row(query: Query, row: Mapping[str, Any], shift: int) -> dict[str, Any]:
    side = row.get("input") if query.kind == "join" else "rows"
    if query.kind == "as_of" and row["input"] in ("right", "table"):
        side = "table"
    found = {"ts": row["ts"] + shift, "key": NONE if row["key"] is None else row["key"], "n": row["n"], "input": side}
    return found | ({"gone": row["gone"]} if side == "table" else {})


def _to_spark(query: Query) -> Put:
    _only(query, FINAL, UPDATES, FIRST, *JOINS)
    if query.kind == "join" and query.how == "full":
        raise _UnsupportedError("how")
    ahead = query.ahead
    shift = query.shift(query.lateness + 10 * FAR)
    sides = sides_of({"kind": query.kind})
    batches: list[tuple[int, list[dict[str, Any]]]] = []
    told = None
    for step, event, now in query.watermarked():
        clocks = [{"ts": now + ahead + shift, "key": CLOCK, "n": -1, "input": side} for side in sides]
        if query.how and any(row["ts"] <= now - query.lateness for row in event.get("rows", [])):
            raise _UnsupportedError("late")
        rows = [_spark_row(query, row, shift) for row in event.get("rows", [])]
        if rows:
            batches.append((step, rows + clocks))
        elif event.get("watermark") != "infinity" and now != told:
            # Rows are judged by the watermark of the batch before, so the next ones come after two.
            batches += [(step, clocks), (step, clocks)]
        told = now
    kind = query.kind
    case: Case = {"kind": {FINAL: "window", FIRST: "first"}.get(kind, kind), "delay": query.lateness + ahead}
    if kind == FIRST:
        case["delay"] += FAR
    if query.window:
        gap, size, offset = (query.window.get(name, 0) for name in ("gap", "size", "offset"))
        session = query.window["is"] == "Sessions"
        spans = (
            {"gap": gap} if session else {"size": size, "period": query.window.get("period", size), "offset": offset}
        )
        case |= {"kind": "session"} | spans if session else spans
    if query.how:
        case |= {"how": query.how} | ({"before": query.before, "after": query.after} if query.kind == "join" else {})
    case["script"] = [{"rows": rows} for _, rows in batches]
    ends = [step for step, event in query.steps if event.get("watermark") == "infinity"] * 2
    return Put("spark", case, [*(step for step, _ in batches), *ends], query.kind, shift)


def _spark_row(query: Query, row: Mapping[str, Any], shift: int) -> dict[str, Any]:
    side = row["input"] if query.how else "left"
    return {"ts": row["ts"] + shift, "key": row["key"], "input": side, "n": row["n"]}
