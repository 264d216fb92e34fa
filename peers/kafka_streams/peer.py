"""Kafka Streams on its TopologyTestDriver: windows, suppress, versioned stores, joins.

Normalised:

- A step is a record: the watermark moves to the greatest event time so far (stream time), then the row arrives.
- Times are tenths of seconds from 1970 on; keys are never null. A record with the key ``tick`` stands for a watermark.
- A record changes rows of a result. Only what a record leaves of each is compared, so not a tombstone that the same record replaces.
- A versioned store gives a version without its end.
- Sessions of Kafka merge at the gap too: its gap is 1 ms shorter. Its sessions end with their last record, here a gap later.
- Windows anchored at rows are Kafka's sliding windows (``kafka_sliding``), bounds included, by milliseconds; here half-open, by microseconds.
- Joins of a stream with a table are due *at* the grace (KIP-923), here past it: our watermark is 1 us ahead.
- Left joins of streams are compared as a set at the end of time: ours pair when windows end. Full outer joins are refused by ours.
- A record that replaces a row of a result is compared with the row that ours retracts.
- Under ``onWindowClose`` the stores keep windows for 30 days: by default their retention is so short that closing records evict windows
  that have not been emitted.

What Kafka Streams gives by its own rules is in ``model.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish import triggers as t
from beamish.accumulations import Collect, InnerJoin, LeftOuterJoin
from beamish.durations import Duration
from beamish.errors import BufferFullError
from beamish.instants import instant_us
from beamish.kernels.identity import identity
from beamish.kernels.spec import read_spec
from beamish.pane import Pane, PaneKind
from beamish.script import as_step
from beamish.testing import TestStream
from peers.cases import without_parts
from peers.kafka_streams import model
from peers.peer import Case, Peer, Row
from tests.strategies import pipelines, windows
from tests.strategies.scripts import scripts

SECOND, MILLISECOND, TENTH = 1_000_000, 1000, 100_000
WINDOWS = ("updates", "closes", "on_close", "limit")
"""Kinds of cases with windows: each update, suppressed until the window closes, emitted when it closes, suppressed for a time."""
TICK = "tick"

_windows = st.one_of(
    st.builds(bm.FixedWindows, windows.few_seconds),
    st.builds(
        lambda period, times: bm.SlidingWindows(period * times, period),
        windows.few_seconds,
        st.sampled_from([1, 1.5, 2, 3]),
    ),
    windows.own_sessions,
    windows.own_sessions,
)
_spans = st.sampled_from([(3, 0), (0, 4), (2, 5), (0.5, 0), (7, 1), (20, 0)])
base = bm.Pipeline().event_time("ts", bm.BoundedOutOfOrderness(0))


def _us(seconds: float) -> int:
    return round(seconds * SECOND)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A topology, and records."""
    kind = draw(
        st.sampled_from(
            ["updates", "closes", "closes", "on_close", "limit", "limit", "versions", "as_of", "as_of", "join", "join"]
        )
    )
    case: Case = {"kind": kind, "grace": _us(draw(pipelines.latenesses))}
    names = ["rows"]
    if kind in WINDOWS:
        case["window"] = identity(draw(_windows))
        case["max_records"] = draw(st.sampled_from([None, None, 1, 2, 3])) if kind in ("closes", "limit") else None
        limited = kind == "limit" and case["max_records"] is not None
        case["when_full"] = draw(st.sampled_from(["emit_early", "shut_down"])) if limited else "shut_down"
        case["wait"] = _us(draw(windows.few_seconds))
    elif kind == "join":
        names = ["left", "right"]
        case["before"], case["after"] = map(_us, draw(_spans))
        case["how"] = draw(st.sampled_from(["inner", "left"]))
    else:
        case["history"] = _us(draw(st.sampled_from([5, 20, 1000])))
    if kind == "as_of":
        names = ["rows", "table"]
        case["how"] = draw(st.sampled_from(["inner", "left"]))
        case["grace"] = draw(st.sampled_from([None, 0, 2, 5]).map(lambda grace: grace and _us(grace)))
    script = draw(scripts(base.window(bm.GlobalWindow()).accumulate(n=Collect("n")), nulls=False, bare=True, least=0))
    records = draw(records_of(script, names, deletes="history" in case))
    case["script"] = [{"rows": [row]} for row in records]
    if kind in ("closes", "on_close"):
        last = max((row["ts"] for row in records), default=0) + case["grace"] + 100 * SECOND
        case["script"].append({"rows": [{"ts": last, "key": TICK, "n": len(records), "input": "rows"}]})
    if kind == "versions":
        times = sorted({row["ts"] + off for row in _rows(case) for off in (-TENTH, 0) if row["ts"] + off >= 0})
        keys = sorted({row["key"] for row in _rows(case)})
        case["reads"] = [{"key": key, "ts": ts} for key in keys for ts in times]
    return case


@st.composite
def records_of(
    draw: st.DrawFn, script: TestStream, names: list[str], *, deletes: bool = False, from_1970: bool = True
) -> list[dict[str, Any]]:
    """The rows and watermarks of a script as records; those not ``from_1970`` are later."""
    found: list[dict[str, Any]] = []
    for event in script.events:
        step = as_step(event)
        if step.watermark_us is not None and 0 <= step.watermark_us < 1e12:
            found.append({"ts": step.watermark_us, "key": TICK})
        found += [{"ts": round(row["ts"] * SECOND), "key": row["team"] or "none"} for row in step.rows]
    shift = draw(st.sampled_from([1000 * SECOND] * 19 + [0])) if from_1970 else 1000 * SECOND
    for number, record in enumerate(found):
        name = draw(st.sampled_from(names))
        record |= {"ts": shift + record["ts"] // TENTH * TENTH, "n": number, "input": name}
        if deletes and name == names[-1]:
            record["gone"] = draw(st.sampled_from([False, False, False, True]))
    return found


def _rows(case: Case) -> Iterator[dict[str, Any]]:
    for event in case["script"]:
        yield from event["rows"]


def given(case: Case) -> Case:
    """The case with the names of its inputs, a gap that is 1 ms shorter, and room for the rows of a join."""
    names = {"join": ("left", "right"), "as_of": ("rows", "table")}.get(case["kind"], ("rows",))
    case = case | {"inputs": [{"name": name} for name in names]}
    if "gap" in case.get("window", {}):
        case["window"] = case["window"] | {"gap": case["window"]["gap"] - MILLISECOND}
    if case["kind"] == "join":
        last = max((row["ts"] for row in _rows(case)), default=0) + case["before"] + case["after"] + case["grace"]
        end = [{"ts": last + SECOND, "key": TICK, "n": 0, "input": name} for name in names]
        case["script"] = [*case["script"], *({"rows": [row]} for row in end)]
    return case


def there(case: Case, answer: Mapping[str, Any]) -> list[Row]:
    """The answer of Kafka Streams."""
    match case["kind"]:
        case "versions":
            return [
                _read(read, row["n"], row["since"]) for read, row in zip(case["reads"], answer["rows"], strict=True)
            ]
        case "as_of":
            return [_match(row) for row in answer["rows"]]
        case "join":
            return _pairs(case, answer["rows"])
    return _effects(case, [row if "full" in row else row | _bounds(case["window"], row) for row in answer["rows"]])


def predicted(case: Case) -> list[Row]:
    """What Kafka Streams gives by its own rules."""
    return there(case, {"rows": model.answer(given(case))})


def _bounds(window: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, int]:
    start, end = row["start"] * MILLISECOND, row["end"] * MILLISECOND + window.get("gap", 0)
    if window["is"] == "AnchoredWindows":
        start, end = _half_open(start, end)
    return {"start": start, "end": end}


def _half_open(start: int, end: int) -> tuple[int, int]:
    """The bounds of a window anchored at a row, which is at a tenth of a second: it ends at it, or starts just after it."""
    after = start % TENTH == MILLISECOND
    return start - after * (MILLISECOND - 1), end - after * (MILLISECOND - 1) + 1


def _effects(case: Case, rows: list[dict[str, Any]]) -> list[Row]:
    """The rows of each window after each step, with those that they replace; a full buffer ends the run.

    Kafka replaces what it has emitted last. Ours is to retract that: its rows tell what they retract.
    """
    merging = case["window"]["is"] == "Sessions"
    left: dict[tuple[Any, ...], Row] = {}
    emitted: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        if "full" in row:
            left = {place: one for place, one in left.items() if place[0] < row["step"]}
            left[row["step"], "", 0, 0] = {"stream": ["full"], "place": [row["step"]], "rows": None}
            break
        step, key, start, end = (row[name] for name in ("step", "key", "start", "end"))
        if key == TICK:
            continue
        stream, slot = [key] if merging else [key, end, start], (key, start, end)
        replaced = row.get("retracted", emitted.get(slot))
        if (step, *slot) in left:
            replaced = left[step, *slot]["replaced"]
        values = None if row["rows"] is None else sorted(row["rows"])
        left[step, *slot] = {"stream": stream, "place": [step, end, start], "rows": values, "replaced": replaced}
        emitted[slot] = values
    return list(left.values())


def _read(read: Mapping[str, Any], n: int | None, since: int | None) -> Row:
    return {"stream": [read["key"], read["ts"]], "place": [], "n": n, "since": since}


def _match(row: Mapping[str, Any]) -> Row:
    return {"stream": [row["left"]], "place": [row["step"]], "left": row["left"], "right": row["right"]}


def _pairs(case: Case, rows: list[dict[str, Any]]) -> list[Row]:
    """Each pair of a join with the steps that gave it, of a left join with their number."""
    found: dict[tuple[int | None, int | None], list[int]] = {}
    for row in rows:
        if row["key"] != TICK:
            found.setdefault((row["left"], row["right"]), []).append(row["step"])
    inner = case["how"] == "inner"
    return [
        {"stream": list(pair), "place": [], "steps": steps if inner else len(steps), "left": pair[0], "right": pair[1]}
        for pair, steps in found.items()
    ]


def here(case: Case) -> list[Row]:
    """The answer of beamish."""
    match case["kind"]:
        case "versions":
            return _reads(case)
        case "as_of":
            return [
                _match({"step": step, "left": pane.values["n"], "right": (pane.values["table"] or {"n": None})["n"]})
                for step, pane in _traced(_as_of(case), script_of(case))
            ]
        case "join":
            return _pairs(case, list(_joined(case)))
    pipeline = _windowed(case)
    try:
        return _effects(case, list(_updates(_traced(pipeline, script_of(case)))))
    except BufferFullError:
        return _effects(case, list(_until_full(case, pipeline)))


def _traced(pipeline: bm.Pipeline, script: TestStream) -> Iterator[tuple[int, Pane]]:
    for step, (_, panes) in enumerate(script.trace(pipeline)):
        yield from ((step, pane) for pane in panes if pane.kind is not PaneKind.DROPPED)


def _until_full(case: Case, pipeline: bm.Pipeline) -> Iterator[dict[str, Any]]:
    """Updates before the first step that overflows the buffer."""
    rows: list[dict[str, Any]] = []
    fits, full = 0, len(case["script"])
    while fits + 1 < full:
        events = (fits + full) // 2
        try:
            rows = list(_updates(_traced(pipeline, script_of(case | {"script": case["script"][:events]}))))
            fits = events
        except BufferFullError:
            full = events
    yield from rows
    yield {"step": fits, "full": True}


def script_of(case: Case) -> TestStream:
    """The script: each record moves its watermark first."""
    kind = case["kind"]
    ahead = int(kind == "as_of")
    script, times = TestStream(), accumulate((row["ts"] if row["input"] != "table" else 0 for row in _rows(case)), max)
    for row, time in zip(_rows(case), times, strict=True):
        values = row | {"ts": row["ts"] / SECOND}
        name = values.pop("input")
        if kind == "join":
            values[name] = values.pop("n")
            script = script.step(watermark=time / SECOND).step([values], input=name)
        elif kind == "as_of":
            moves = name == "rows"
            values |= {"gone": bool(values.get("gone"))} if name == "table" else {}
            script = script.step([values], watermark=(time + ahead) / SECOND if moves else None, input=name)
        else:
            script = script.step([values], watermark=time / SECOND)
    return script.advance_watermark_to_infinity() if kind == "join" and case["how"] != "inner" else script


def _window(case: Case) -> bm.WindowOption:
    window = read_spec(case["window"], bm.WindowOption)
    return bm.Sessions(window.gap, late_rows="session") if isinstance(window, bm.Sessions) else window


def _windowed(case: Case) -> bm.Pipeline:
    pipeline = (
        base.key_by("key")
        .window(_window(case))
        .trigger(t.Always())
        .allowed_lateness(Duration(case["grace"]))
        .on_time_behavior(bm.OnTimeBehavior.FIRE_IF_NON_EMPTY)
        .timestamp_combiner(bm.TimestampCombiner.LATEST)
        .accumulating_and_retracting()
        .accumulate(rows=Collect("n"))
    )
    most = case["max_records"]
    full = bm.EMIT_EARLY if case["when_full"] == "emit_early" else bm.SHUT_DOWN
    buffer = bm.Buffer() if most is None else bm.Buffer(max_records=most, when_full=full)
    match case["kind"]:
        case "closes" | "on_close":
            return pipeline.suppress(bm.UntilWindowCloses(), buffer=buffer)
        case "limit":
            return pipeline.suppress(bm.UntilTimeLimit(Duration(case["wait"]), clock="event"), buffer=buffer)
    return pipeline


def _updates(panes: Iterator[tuple[int, Pane]]) -> Iterator[dict[str, Any]]:
    for step, pane in panes:
        assert pane.window is not None
        yield {
            "step": step,
            "key": pane.key["key"],
            "start": instant_us("start", pane.window.start),
            "end": instant_us("end", pane.window.end),
            "rows": None if pane.kind is PaneKind.RETRACTION else pane.values["rows"],
            "retracted": sorted(pane.values["rows"]) if pane.kind is PaneKind.RETRACTION else None,
        }


def _as_of(case: Case) -> bm.Pipeline:
    return bm.as_of_join(
        rows=base,
        table=base.key_by("key").versions(Duration(case["history"]), values=["n"], deleted="gone"),
        on="key",
        how=case["how"],
        grace=Duration(case["grace"] or 0),
        early=case["grace"] is None,
        wait_for=bm.LEFT_INPUT,
    )


def _joined(case: Case) -> Iterator[dict[str, Any]]:
    inner = case["how"] == "inner"
    join = InnerJoin("left", "right", once=True) if inner else LeftOuterJoin("left", "right")
    pipeline = (
        bm.merge(left=base.key_by("key"), right=base.key_by("key"))
        .window(bm.Within(Duration(case["before"]), of="right", after=Duration(case["after"])))
        .trigger(t.Repeatedly(t.AfterCount(1)) if inner else t.Never())
        .allowed_lateness(Duration(case["grace"]))
        .discarding()
        .accumulate(pair=join)
    )
    for step, pane in _traced(pipeline, script_of(case)):
        sides = {name: (pane.values["pair"][name] or {name: None})[name] for name in ("left", "right")}
        yield sides | {"key": pane.key["key"], "step": step // 2}


def _reads(case: Case) -> list[Row]:
    table = bm.VersionedTable(Duration(case["history"]))
    for row in _rows(case):
        table.put(row["key"], None if row["gone"] else row["n"], row["ts"] / SECOND)
    rows = []
    for read in case["reads"]:
        found = table.get(read["key"], read["ts"] / SECOND)
        since = None if found is None else instant_us("valid_from", found.valid_from) // MILLISECOND
        rows.append(_read(read, None if found is None else found.value, since))
    return rows


def facts(case: Case, here: Row | None, there: Row | None) -> Mapping[str, Any]:
    """Facts for the decisions.

    ``expired``: of the rows that the difference is about one came when its window was expired, here or there.
    ``own_expired``: a record of the key, or of its buffer with limits, came when the window that ends at it was expired.
    ``late``: one came behind the stream time. ``late_in_buffer``: any row did, whose window shares a buffer with limits.
    ``follows``: a row of the window came when the wait was over, and is in an earlier window too.
    ``shared``: a row of the window is in another one of a buffer with limits.
    ``before_1970``: the window starts before 1970, or one that shares its buffer.
    ``gone``: the earlier row of a pair was one size and the grace old.
    ``deleted_at_once``: a tombstone has the time of a version.
    ``at_end``: the stream time came to a record's time and the grace, when a suppress emits the window that ends at the record.
    ``merged``: a session took another record before; ``merged_key``: one of this key.
    ``past``: a record of the key is older than the history.
    """
    one = here or there or {}
    window = case.get("window", {"is": ""})
    found = {
        "kind": case["kind"],
        "window": window["is"],
        "how": case.get("how", ""),
        "buffer": case.get("max_records") is not None,
    }
    if case["kind"] in WINDOWS and "failed" not in one:
        return found | _facts_of_window(case, one)
    return found | _facts_of_pair(case, one)


def _arrived(case: Case) -> list[tuple[dict[str, Any], int]]:
    """The records, each with the stream time at which it came."""
    records = list(_rows(case))
    return list(zip(records, accumulate((row["ts"] for row in records), max), strict=True))


def _facts_of_window(case: Case, row: Row) -> dict[str, Any]:
    window, step = case["window"], row["place"][0]
    arrived = _arrived(case)[: step + 1]
    same = [(record, time) for record, time in arrived if record["key"] == row["stream"][0]]
    size = window.get("size", window.get("gap", window.get("difference")))
    period = window.get("period", size)
    buffered = case["max_records"] is not None
    found: dict[str, Any] = {
        "merged": _merged(arrived, window),
        "merged_key": _merged(same, window),
        "at_end": any(
            record["ts"] + case["grace"] == time for record, _ in (arrived if buffered else same) for _, time in arrived
        ),
        "late_in_buffer": buffered and any(record["ts"] < time for record, time in arrived),
        "before_1970": buffered and any(record["ts"] < size - period for record, _ in arrived),
    }
    if row["stream"] == ["full"]:
        return found | {"own_expired": any(record["ts"] + case["grace"] < time for record, time in arrived)}
    end, start = row["place"][1:]
    inside = [(record["ts"], time) for record, time in same if start <= record["ts"] < end]
    return found | {
        "late": any(ts < time for ts, time in inside),
        "follows": any(ts < end - period and time >= inside[0][0] + case["wait"] for ts, time in inside[1:]),
        "shared": buffered and any(ts < end - period or ts >= start + period for ts, _ in inside),
        "expired": any(record["ts"] + size + case["grace"] <= time for record, time in same),
        "own_expired": any(record["ts"] + case["grace"] < time for record, time in (arrived if buffered else same)),
        "before_1970": found["before_1970"] or start < 0,
    }


def _merged(arrived: list[tuple[dict[str, Any], int]], window: Mapping[str, Any]) -> bool:
    records = [record for record, _ in arrived]
    return any(
        record["key"] == other["key"] and abs(record["ts"] - other["ts"]) < window.get("gap", 0)
        for at, record in enumerate(records)
        for other in records[:at]
    )


def _facts_of_pair(case: Case, row: Row) -> dict[str, Any]:
    if "failed" in row:
        return {}
    arrived = _arrived(case)
    if case["kind"] == "versions":
        return {"deleted_at_once": _deleted_at_once([one for one, _ in arrived if one["key"] == row["stream"][0]])}
    (mine,) = (one for one in arrived if one[0]["n"] == row["left"])
    same = [one for one in arrived if one[0]["key"] == mine[0]["key"]]
    if case["kind"] == "as_of":
        _, now = arrived[row["place"][0]]
        return {"past": any(record["ts"] + case["history"] <= now for record, _ in same)}
    left, before, after = mine[0]["ts"], case["before"], case["after"]
    end = left // (before + after) * (before + after) + before + 2 * after
    met = [
        (record["ts"], time)
        for record, time in same
        if record["input"] == "right"
        and left - before <= record["ts"] <= left + after
        and row["right"] in (None, record["n"])
    ]
    here = any(time >= end + case["grace"] for _, time in [mine, *met])
    there = left + after < mine[1] or any(left + after + case["grace"] < time for _, time in met)
    stored = all(ts + before + after + case["grace"] > time for ts, time in [(left, mine[1]), *met])
    pairs = [(min(left, ts), max(mine[1], time)) for ts, time in met] if row["right"] is not None else []
    gone = any(first + before + after + case["grace"] <= time for first, time in pairs)
    return {"expired": here or there or not stored, "gone": gone}


def _deleted_at_once(records: list[dict[str, Any]]) -> bool:
    return any(
        one["gone"] and any(one["ts"] == other["ts"] for other in records[:at]) for at, one in enumerate(records)
    )


def kinds(case: Case) -> Iterator[str]:
    """By kind with its window or join."""
    yield case["kind"]
    yield " ".join(filter(None, (case["kind"], case.get("how"), case.get("window", {}).get("is"))))


def smaller(case: Case) -> Iterator[Case]:
    """Fewer records, then defaults."""
    yield from without_parts(case)
    plain = {"grace": 0, "max_records": None}
    for name, value in plain.items():
        if case.get(name, value) not in (value, None):
            yield case | {name: value} | ({"when_full": "shut_down"} if name == "max_records" else {})


PEER = Peer(
    "kafka_streams",
    "Kafka Streams",
    "4.1.0",
    cases(),
    given,
    here,
    there,
    facts,
    ("kind", "window", "how"),
    kinds,
    smaller,
    predicted=predicted,
)
