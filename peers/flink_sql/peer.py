"""Flink SQL as text: the same statement goes to Flink and to ``bm.sql(..., dialect="flink")``. The program is that of ``flink``.

Normalised:

- The declarations of the sources are for ``bm.sql`` alone: there the program declares them. Its settings are ``SET`` statements here.
- A step is a row or a watermark. Times are tenths of seconds; a watermark of Flink is a millisecond less than ours. Gaps of sessions are
  a millisecond less than tenths, so that no row is exactly a gap after another.
- Cases with the same statement run as one job: the column ``of`` tells them apart, and is a key of all that the statement keys.
- An update of a Top-N that Flink writes without the row before it replaces that of its key, even if the key is not shown.
- ``final``: rows, with the watermark after which they are emitted. ``updates``: the rows of each window, one after the other; equal
  ones once. ``table``: the table at the end.
- Two inputs of Flink are read in any order, so rows of joins are not late. Rows of Top-N and OVER have different times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish.instants import instant_us
from beamish.pane import Pane, PaneKind
from beamish.testing import TestStream
from peers.cases import on_time, without_parts
from peers.peer import Case, Peer, Row

SECOND, MILLISECOND, TENTH = 1_000_000, 1000, 100_000
NEVER = -(10**15)
SOURCES = """
    CREATE TABLE {0} (`of` INT NOT NULL, key STRING, n BIGINT, part STRING, v BIGINT, ts TIMESTAMP_LTZ(3),
        WATERMARK FOR ts AS ts{1}) WITH ('connector' = 'peer');
"""
KEY = ", PRIMARY KEY (`of`, key) NOT ENFORCED"
EMIT = "table.exec.emit."
FIRST = (" WHERE place <= 1", " WHERE place = 1")

_sizes: Mapping[str, st.SearchStrategy[tuple[float, ...]]] = {
    "TUMBLE": st.sampled_from([(5.0,), (2.5,), (12.0,)]),
    "HOP": st.sampled_from([(2.0, 6.0), (2.5, 7.5), (5.0, 5.0)]),
    "CUMULATE": st.sampled_from([(2.0, 6.0), (2.5, 10.0), (5.0, 5.0)]),
    "SESSION": st.sampled_from([(0.999,), (3.999,), (7.499,)]),
}
_names = {"TUMBLE": ["SIZE"], "HOP": ["SLIDE", "SIZE"], "CUMULATE": ["STEP", "SIZE"], "SESSION": ["GAP"]}
_offsets = st.sampled_from([None, None, 0.0, 1.0, -3.0, 0.5])
_group_keys = st.sampled_from([[], ["key"], ["key"], ["key", "part"], ["UPPER(part)"], ["n % 2"]])
_values = st.lists(
    st.sampled_from(
        [
            "COUNT(*)",
            "COUNT(v)",
            "COUNT(DISTINCT part)",
            "SUM(v)",
            "MIN(v)",
            "MAX(part)",
            "AVG(v)",
            "AVG(CAST(v AS DOUBLE))",
            "SUM(v) / COUNT(*)",
            "(SUM(n) - 7) / 2",
            "SUM(v) * 1.5E0 / 2",
            "SUM(v * 2 + n)",
            "MOD(SUM(n), 3)",
            "COALESCE(SUM(v), 0)",
            "CASE WHEN SUM(v) > 3 THEN 'it''s' ELSE 'small' END",
            "UPPER(MAX(part)) || '-'",
            "SUM(CASE WHEN v > 1 THEN v END)",
        ]
    ),
    min_size=1,
    max_size=3,
    unique=True,
)
_wheres = st.sampled_from(
    [
        "",
        "",
        "",
        "v > 1",
        "v IS NOT NULL",
        "part = 'x' OR v < 2",
        "v BETWEEN 1 AND 3",
        "NOT (v = 1)",
        "key IN ('red', 'blue')",
    ]
)
_havings = st.sampled_from(["", "", "COUNT(*) > 1", "SUM(v) > 3", "MAX(part) = 'y'"])
_hows = st.sampled_from(["JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN"])


def _interval(seconds: float) -> str:
    return f"INTERVAL '{seconds:.3f}' SECOND"


@st.composite
def _function(draw: st.DrawFn, kind: str, table: str, keys: Sequence[str] = ()) -> str:
    """A window function over a table, in one of its forms."""
    sizes = draw(_sizes[kind])
    spans = [_interval(size) for size in sizes]
    offset = None if kind == "SESSION" else draw(_offsets.filter(lambda offset: abs(offset or 0) < sizes[-1]))
    partition = f" PARTITION BY ({', '.join(keys)})" if keys else ""
    arguments = [f"TABLE `{table}`{partition}", "DESCRIPTOR(ts)", *spans]
    names = ["DATA", "TIMECOL", *_names[kind]]
    if offset is not None:
        arguments.append(_interval(offset))
        names.append("`OFFSET`")
    if draw(st.booleans()):
        arguments = [f"{name} => {argument}" for name, argument in zip(names, arguments, strict=True)]
    called = f"{kind}({', '.join(arguments)})"
    return f"TABLE({called})" if draw(st.booleans()) else called


def _select(items: Sequence[str], rest: str, where: str = "") -> str:
    """A query; its items are called c0, c1 and so on."""
    shown = ", ".join(f"{item} AS c{at}" for at, item in enumerate(items))
    before, _, after = rest.partition(" GROUP BY ")
    condition = f" WHERE {where}" if where else ""
    return f"SELECT {shown} FROM {before}{condition}" + (f" GROUP BY {after}" if after else "")


@st.composite
def _windowed(draw: st.DrawFn) -> Case:
    """Window functions with GROUP BY."""
    kind = draw(st.sampled_from(["TUMBLE", "HOP", "CUMULATE", "SESSION"]))
    keys = draw(_group_keys)
    if kind == "SESSION":
        keys = [key for key in keys if "(" not in key and "%" not in key]
    source = draw(_function(kind, "rows", ["`of`", *keys] if kind == "SESSION" else ()))
    bounds = draw(st.sampled_from([[], ["window_time"]]))
    group = draw(st.permutations(["`of`", *keys, "window_start", "window_end", *bounds]))
    having = draw(_havings)
    rest = f"{source} GROUP BY {', '.join(group)}" + (f" HAVING {having}" if having else "")
    items = ["`of`", *keys, "window_start", "window_end", *bounds, *draw(_values)]
    return {
        "kind": kind.lower(),
        "compared": "final",
        "sql": _select(items, rest, draw(_wheres)),
        "identity": len(keys) + (0 if kind == "SESSION" else 2),
    }


@st.composite
def _group_window(draw: st.DrawFn) -> Case:
    """Windows under GROUP BY, with settings of the output."""
    kind = draw(st.sampled_from(["TUMBLE", "HOP", "SESSION"]))
    keys = draw(_group_keys)
    arguments = ", ".join(["ts", *map(_interval, draw(_sizes[kind]))])
    lateness = draw(st.sampled_from([0, 3, 1000]))
    settings: dict[str, str] = {}
    if kind != "SESSION":
        for fire in ("early-fire", "late-fire") if lateness else ("early-fire",):
            if draw(st.booleans()):
                settings |= {f"{EMIT}{fire}.enabled": "true", f"{EMIT}{fire}.delay": "0 ms"}
        if lateness:
            settings[f"{EMIT}allow-lateness"] = f"{lateness} s"
    bounds = [f"{kind}_{bound}({arguments})" for bound in ("START", "END")]
    group = draw(st.permutations(["`of`", *keys, f"{kind}({arguments})"]))
    items = ["`of`", *keys, *bounds, *draw(_values)]
    return {
        "kind": f"group {kind.lower()}" + (" fires" if settings else ""),
        "compared": "updates" if settings else "final",
        "settings": settings,
        "sql": _select(items, f"`rows` GROUP BY {', '.join(group)}", draw(_wheres)),
        "identity": len(keys) + (0 if kind == "SESSION" else 2),
    }


@st.composite
def _totals(draw: st.DrawFn) -> Case:
    """GROUP BY without windows."""
    keys = draw(_group_keys)
    having = draw(_havings)
    rest = f"`rows` GROUP BY {', '.join(['`of`', *keys])}" + (f" HAVING {having}" if having else "")
    shown = keys if draw(st.booleans()) else []
    return {
        "kind": "totals",
        "compared": "table",
        "sql": _select(["`of`", *shown, *draw(_values)], rest, draw(_wheres)),
    }


@st.composite
def _numbered(draw: st.DrawFn) -> Case:
    """ROW_NUMBER in an inner SELECT: Top-N and deduplication, of all rows or in each window."""
    kind = draw(st.sampled_from(["", "", "TUMBLE", "HOP", "CUMULATE"]))
    keys = ["`of`", *draw(st.sampled_from([[], ["key"], ["key", "part"]]))]
    direction = draw(st.sampled_from(["ASC", "DESC"]))
    by = draw(
        st.sampled_from(
            [f"v {direction}, n {direction}", f"ts {direction}", f"part {direction}, v {direction}, n {direction}"]
        )
    )
    source, bounds = "`rows`", list[str]()
    if kind:
        source, bounds = draw(_function(kind, "rows")), ["window_start", "window_end"]
    where = draw(_wheres)
    most = draw(st.sampled_from(["place <= 1", "place = 1", "place < 3", "place <= 3", "place <= 2 AND v > 1"]))
    partition = ", ".join(draw(st.permutations([*bounds, *keys])))
    inner = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {by}) AS place FROM {source}"
    inner += f" WHERE {where}" if where else ""
    items = ["`of`", *bounds, "key", "n", *draw(st.sampled_from([[], ["place"]]))]
    return {
        "kind": f"numbered {kind.lower()}".strip(),
        "compared": "table",
        "sql": f"SELECT {', '.join(items)} FROM ({inner}) WHERE {most}",
    }


@st.composite
def _numbered_groups(draw: st.DrawFn) -> Case:
    """ROW_NUMBER around a windowed GROUP BY."""
    kind = draw(st.sampled_from(["TUMBLE", "HOP", "CUMULATE"]))
    keys = draw(st.sampled_from([["key"], ["key", "part"]]))
    source = draw(_function(kind, "rows"))
    group = ", ".join(["window_start", "window_end", "`of`", *keys])
    shown = draw(st.sampled_from([["most"], ["most", "num", "place"]]))
    most = (
        draw(st.sampled_from(["SUM(n)", "MAX(n)"])) if len(shown) == 1 else "MAX(n)"
    )  # the numbers of equal ones may be any
    inner = f"SELECT {group}, {most} AS most, COUNT(*) AS num FROM {source} GROUP BY {group}"
    partition = ", ".join(["window_start", "window_end", "`of`", *draw(st.sampled_from([[], keys[1:]]))])
    by = draw(st.sampled_from(["most DESC", "most ASC", "most"]))
    numbered = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {by}) AS place FROM ({inner})"
    items = ", ".join(["`of`", "window_start", "window_end", *shown])
    return {
        "kind": "numbered groups",
        "compared": "table",
        "sql": f"SELECT {items} FROM ({numbered}) WHERE place <= {draw(st.integers(1, 2))}",
    }


@st.composite
def _alone(draw: st.DrawFn) -> Case:
    """A window function alone, of rows that are not late."""
    kind = draw(st.sampled_from(["TUMBLE", "HOP", "CUMULATE", "SESSION"]))
    source = draw(_function(kind, "rows", ["`of`", "key"] if kind == "SESSION" else ()))
    items = ["`of`", "n", "window_start", "window_end", "v + 1"]
    where = draw(st.sampled_from(["", "key IN ('red', 'blue')"]) if kind == "SESSION" else _wheres)
    return {"kind": f"alone {kind.lower()}", "compared": "table", "sql": _select(items, source, where)}


@st.composite
def _over(draw: st.DrawFn) -> Case:
    """OVER, of rows that are not late."""
    keys = ["`of`", *draw(st.sampled_from([[], ["key"], ["key", "part"]]))]
    frame = draw(
        st.sampled_from(
            [
                "",
                " RANGE BETWEEN INTERVAL '2.5' SECOND PRECEDING AND CURRENT ROW",
                " RANGE BETWEEN INTERVAL '0:05' MINUTE TO SECOND PRECEDING AND CURRENT ROW",
                " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
            ]
        )
    )
    calls = draw(
        st.lists(
            st.sampled_from(
                ["COUNT(*)", "COUNT(v)", "SUM(v)", "MIN(v)", "MAX(part)", "AVG(v)", "AVG(CAST(v AS DOUBLE))"]
            ),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    over = f"(PARTITION BY {', '.join(keys)} ORDER BY ts{frame})"
    named = draw(st.booleans())
    items = ["`of`", "n", *(f"{call} OVER {'w' if named else over}" for call in calls)]
    return {
        "kind": "over",
        "compared": "final",
        "sql": _select(items, "`rows`", draw(_wheres)) + (f" WINDOW w AS {over}" if named else ""),
        "identity": 1,
    }


@st.composite
def _interval_join(draw: st.DrawFn) -> Case:
    """Two streams within a time."""
    before, after = draw(st.sampled_from([(3.0, 0.0), (0.0, 4.0), (2.0, 5.0), (0.5, 0.0)]))
    least, most = f"l.ts - {_interval(before)}", f"l.ts + {_interval(after)}"
    bounds = draw(
        st.sampled_from(
            [
                f"r.ts BETWEEN {least} AND {most}",
                f"r.ts >= {least} AND r.ts <= {most}",
                f"l.ts <= r.ts + {_interval(before)} AND l.ts >= r.ts - {_interval(after)}",
            ]
        )
    )
    how = draw(_hows)
    conditions = ["l.`of` = r.`of`", "l.key = r.key", bounds]
    inner = how in ("JOIN", "INNER JOIN")
    if inner:
        conditions += draw(st.sampled_from([[], ["l.v > 1"], ["l.v < r.v"]]))
    on = " AND ".join(conditions)
    if inner and draw(st.booleans()):
        rest = f"`left` AS l, `right` AS r WHERE {on}"
    else:
        rest = f"`left` l {how} `right` r ON {on}"
    return {
        "kind": f"interval join {how.split()[0].lower()}",
        "compared": "table",
        "sql": f"SELECT COALESCE(l.`of`, r.`of`) AS c0, l.n AS c1, r.n AS c2, l.v AS c3 FROM {rest}",
    }


@st.composite
def _window_join(draw: st.DrawFn) -> Case:
    """Two streams in the same windows."""
    kind = draw(st.sampled_from(["TUMBLE", "HOP", "CUMULATE"]))
    source = draw(_function(kind, "left"))
    sides = [f"(SELECT * FROM {source.replace('`left`', f'`{side}`')})" for side in ("left", "right")]
    how = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL OUTER JOIN"]))
    on = "l.`of` = r.`of` AND l.key = r.key AND l.window_start = r.window_start AND l.window_end = r.window_end"
    bounds = "COALESCE(l.window_start, r.window_start) AS c1, l.window_end AS c2, r.window_end AS c3"
    return {
        "kind": f"window join {how.split()[0].lower()}",
        "compared": "table",
        "sql": f"SELECT COALESCE(l.`of`, r.`of`) AS c0, {bounds}, l.n AS c4, r.n AS c5 FROM {sides[0]} l {how} {sides[1]} AS r ON {on}",
    }


@st.composite
def _temporal_join(draw: st.DrawFn) -> Case:
    """A stream with the versions of a table."""
    how = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
    rest = f"`left` AS l {how} `right` FOR SYSTEM_TIME AS OF l.ts AS r ON l.`of` = r.`of` AND l.key = r.key"
    return {
        "kind": f"temporal {how.lower()}",
        "compared": "table",
        "sql": f"SELECT l.`of` AS c0, l.n AS c1, r.n AS c2, r.part || 'x' AS c3 FROM {rest}",
    }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A statement, rows and watermarks."""
    made = st.one_of(
        _windowed(),
        _windowed(),
        _group_window(),
        _totals(),
        _numbered(),
        _numbered_groups(),
        _alone(),
        _over(),
        _interval_join(),
        _window_join(),
        _temporal_join(),
    )
    case = draw(made)
    return {**case, "script": list(draw(_events(case)))}


def inputs(case: Case) -> list[str]:
    """The sources of a case."""
    return ["left", "right"] if "join" in case["kind"] else ["rows"]


@st.composite
def _events(draw: st.DrawFn, case: Case) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    names, kind = inputs(case), case["kind"]
    watermark = latest = NEVER
    in_time = kind.startswith(("over", "alone")) or len(names) == 2
    apart = kind.startswith(("numbered", "over"))
    for n in range(draw(st.integers(1, 9))):
        if draw(st.integers(0, 3)) == 0:
            watermark = max(watermark, draw(st.integers(0, 220)) * TENTH)
            events.append({"watermark": watermark})
        ts = draw(st.integers(0, 200)) * TENTH
        if draw(st.booleans()):
            ts = ts // (5 * SECOND) * 5 * SECOND  # at the ends of windows
        name = draw(st.sampled_from(names))
        ts = max(ts, watermark) if in_time else ts
        if "temporal" in kind and name == "right":
            ts = latest = max(ts, latest + TENTH)
        ts += n * MILLISECOND if apart else 0
        key = draw(st.sampled_from(["red", "red", "blue", "gold" if "temporal" in kind and name == "right" else None]))
        row = {"ts": ts, "key": key, "n": n, "part": draw(st.sampled_from("xxy"))}
        typed = (
            " / " in case["sql"] or "l.v" in case["sql"]
        )  # a script has no type for a column that is null in all rows
        numbers = [1, 1, 2, 5, -3, *([] if typed else [None])]
        row |= {"v": draw(st.sampled_from(numbers)), "input": name, "gone": False}
        events.append({"rows": [row]})
    return events


def given(case: Case) -> Case:
    """The case as a query."""
    return {
        "sql": case["sql"],
        "config": case.get("settings", {}),
        "inputs": [{"name": name, "upserts": _has_key(case, name)} for name in inputs(case)],
        "before_1970": False,
        "script": [*case["script"], {"watermark": "infinity"}],
    }


def _has_key(case: Case, name: str) -> bool:
    return "temporal" in case["kind"] and name == "right"


def there(case: Case, answer: Mapping[str, Any]) -> list[Row]:
    """The answer of Flink."""
    return _compared(
        case,
        [
            (row["kind"], row["values"], None if row["watermark"] is None else row["watermark"] * MILLISECOND)
            for row in answer["rows"]
        ],
    )


def here(case: Case) -> list[Row]:
    """The answer of beamish."""
    return _compared(case, list(_changes(case)))


def text_of(case: Case) -> str:
    """The text for ``bm.sql``."""
    sources = "".join(SOURCES.format(f"`{name}`", KEY if _has_key(case, name) else "") for name in inputs(case))
    settings = "".join(f"SET '{key}' = '{value}';\n" for key, value in case.get("settings", {}).items())
    return f"{sources}{settings}{case['sql']};"


@lru_cache(maxsize=4096)
def _query(text: str) -> bm.Query:
    """The query of a text, which many cases share."""
    return bm.sql(text, dialect="flink")


def _changes(case: Case) -> Iterator[tuple[str, list[Any], int | None]]:
    """The panes as changes, with the watermark before their step."""
    query = _query(text_of(case))
    scripted = query.scripted(_script(case))
    watermark: int | None = None
    found: list[tuple[Pane, int | None]] = []
    steps = TestStream(tuple(scripted.events)).trace(query.pipeline)
    for (_, panes), event in zip(steps, [*case["script"], {}], strict=True):
        found += [(pane, watermark) for pane in scripted.shown([*panes]) if pane.kind is not PaneKind.DROPPED]
        watermark = event.get("watermark", watermark)
    following = [pane for pane, _ in found[1:]]
    for (pane, at), after in zip_longest(found, following):
        values = _plain(case, {**pane.key, **pane.values})
        if pane.kind is PaneKind.RETRACTION:
            replaced = after is not None and after.kind is PaneKind.PANE and after.window == pane.window
            yield "-U" if replaced and case["compared"] == "updates" else "-D", values, at
        else:
            yield "+I", values, at


def _plain(case: Case, row: Mapping[str, Any]) -> list[Any]:
    """The values of a row as Flink writes them, without ``of``; those of a Top-N are called by their own names."""
    values = [row[f"c{at}"] for at in range(len(row))] if "c0" in row else [*_own(case, row)]
    return [instant_us("time", one) // MILLISECOND if isinstance(one, datetime) else one for one in values[1:]]


def _own(case: Case, row: Mapping[str, Any]) -> Iterator[Any]:
    return (row[name] for name in _shown(case))


def _shown(case: Case) -> list[str]:
    items = case["sql"].removeprefix("SELECT ").partition(" FROM ")[0]
    return [name.strip("`") for name in items.split(", ")]


def _script(case: Case) -> TestStream:
    """The script, a row per bundle; it ends."""
    script, two = TestStream(), len(inputs(case)) == 2
    for event in case["script"]:
        if "watermark" in event:
            script = script.advance_watermark_to(event["watermark"] / SECOND)
            continue
        (row,) = event["rows"]
        of_row = {name: value for name, value in row.items() if name not in ("input", "gone", "ts")}
        values = {"of": 1, **of_row, "ts": row["ts"] / SECOND}
        script = script.add([values], **({"input": row["input"]} if two else {}))
    return script.advance_watermark_to_infinity()


def _compared(case: Case, changes: Sequence[tuple[str, list[Any], int | None]]) -> list[Row]:
    match case["compared"]:
        case "final":
            size = case["identity"]
            return [
                {"stream": values[:size], "place": values[size : size + 2], "values": values[size:], "after": after}
                for _, values, after in changes
            ]
        case "updates":
            return _updates(case, changes)
    left: Counter[tuple[Any, ...]] = Counter()
    before = ""
    for kind, values, _ in changes:
        if case["kind"] == "numbered" and kind == "+U" and before != "-U":  # Flink leaves out what the key tells
            left -= Counter(row for row in left if _numbered_key(case, row) == _numbered_key(case, values))
        left[tuple(values)] += 1 if kind in ("+I", "+U") else -1
        before = kind
    return [{"stream": list(row), "place": [], "times": times} for row, times in left.items() if times]


def _numbered_key(case: Case, values: Sequence[Any]) -> list[Any]:
    """The key of a row of a Top-N: its number and its partition."""
    shown = dict(zip(_shown(case)[1:], values, strict=True))
    (row,) = (row for event in case["script"] for row in event.get("rows", []) if row["n"] == shown["n"])
    keys = case["sql"].partition(" (PARTITION BY ")[2].partition(" ORDER BY ")[0].split(", ")
    return [shown.get("place"), *(row[key] for key in keys if key != "`of`")]


def _updates(case: Case, changes: Sequence[tuple[str, list[Any], int | None]]) -> list[Row]:
    """The rows of each group and window, one after the other; equal ones once."""
    groups: dict[tuple[Any, ...], list[list[Any] | None]] = {}
    size = case["identity"]
    for kind, values, _ in changes:
        if kind != "-U":
            groups.setdefault(tuple(values[:size]), []).append(None if kind == "-D" else values[size:])
    return [
        {"stream": list(group), "place": [place], "values": values}
        for group, updates in groups.items()
        for place, (values, _) in enumerate(groupby(updates))
    ]


def predicted(case: Case) -> list[Row]:
    """Flink's output, computed by its own rules, where ours differ: a first row by time is never late."""
    if not _keeps_first(case):
        return here(case)
    script = list(on_time(case))
    return here(case | {"script": script}) if any("rows" in event for event in script) else []


def _keeps_first(case: Case) -> bool:
    return case["kind"] == "numbered" and "ORDER BY ts ASC" in case["sql"] and case["sql"].endswith(FIRST)


def facts(case: Case, here: Row | None, there: Row | None) -> Mapping[str, Any]:  # noqa: ARG001 - the facts are of the case
    """Facts for the decisions: the kind; ``late_first``: it keeps the first row by time, and has late rows."""
    late = list(on_time(case)) != case["script"]
    return {"kind": case["kind"], "late_first": _keeps_first(case) and late}


def kinds(case: Case) -> Iterator[str]:
    """By kind."""
    yield case["kind"]


PEER = Peer(
    "flink_sql",
    "Flink SQL as text",
    "2.3.0",
    cases(),
    given,
    here,
    there,
    facts,
    ("kind",),
    kinds,
    without_parts,
    program="flink",
    together=625,
    predicted=predicted,
)
