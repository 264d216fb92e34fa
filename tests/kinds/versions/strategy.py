"""Tables and their versions, as-of joins, the flows around them, and scripts for all of these.

Every source has the same columns: its event time and its keys are called after it, ``orders_at`` and ``orders_team``. One
without a name has ``ts`` and ``team``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.durations import Duration
from beamish.flow import Panes
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Default, Repeatedly
from tests.declared_options import said, versions_of
from tests.strategies.pipelines import retracting

TEAMS = (*["red"] * 6, "blue", "blue", None)
KEYS = ("team", "part")
VARIED = {
    "time": (*range(-6, 5), -12, -0.000001, 0.000001),
    "team": TEAMS,
    "part": (0.0, -0.0, float("nan"), None, 1.0),
    "value": (None, 1, 2, 2, 3),
    "ratio": (None, 0.5, 0.5, 0.0, -0.0, float("nan")),
    "mark": (None, "", "a", "b"),
    "seq": (None, 1, 1, 2, 3),
    "gone": (None, False, False, False, True),
}
"""Row values; ``time``: distance from now, in seconds."""
ALIKE = VARIED | {
    "time": (-4, -2, -1, 0, 1),
    "part": (1.0,),
    "value": (1, 1, 2),
    "ratio": (0.5,),
    "mark": ("a",),
    "seq": (1,),
    "gone": (False, False, True),
}
"""Many rows are equal, and many changes have equal times."""

yes, no = st.just(True), st.just(False)  # noqa: FBT003
some_keys = st.sampled_from([("team",), ("team",), ("team",), (), ("team", "part")])
spans = st.sampled_from([10, 5, 1000, 10, 5, 2, 0])
simple = st.just(bm.BoundedOutOfOrderness(0))
policies = st.one_of(
    simple,
    simple,
    simple,
    simple,
    st.builds(bm.BoundedOutOfOrderness, st.just(0), idle_timeout=st.sampled_from([None, 1, 4])),
    st.builds(bm.ProcessingTimeLag, st.integers(0, 5)),
)


def column(name: str | None, what: str) -> str:
    """A column of a source, with the source's name as prefix."""
    return what if name is None else f"{name}_{what}"


def keys_of(name: str | None, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(column(name, key) for key in keys)


PLAIN = [bm.AccumulationMode.DISCARDING, bm.AccumulationMode.ACCUMULATING]
"""Modes that do not retract."""


@attrs.frozen
class Columns:
    """The columns of a table.

    Attributes:
        all: whether they may all be values.
    """

    values: tuple[str, ...]
    deleted: tuple[str | None, ...] = (None,)
    sequence: tuple[str | None, ...] = (None,)
    all: bool = True


OF_ROWS = Columns(("value", "ratio", "mark"), (None, "gone", "gone"), (None, None, "seq", "mark"))
OF_PANES = Columns(("v0", "v1"), (None,), (None, None, "v1"))
OF_VERSIONS = Columns(("value",), (None,), (None, None, "valid_to"), all=False)
"""They have columns that versions of them have too."""


@attrs.frozen
class Drawing:
    """The strategies of tables and joins.

    Attributes:
        policy: of sources.
        history: of tables, in seconds; their lateness is some of it.
        whole: whether the lateness is all of the history.
        mode: of joins.
        with_dropped: of the last stage.
    """

    policy: st.SearchStrategy[bm.Watermark] = policies
    history: st.SearchStrategy[float] = spans
    whole: st.SearchStrategy[bool] = st.booleans()
    mode: st.SearchStrategy[bm.AccumulationMode] = st.sampled_from(
        [bm.AccumulationMode.DISCARDING, retracting, retracting]
    )
    with_dropped: st.SearchStrategy[bool] = st.booleans()


ANYTHING = Drawing()


# Tables


def source(draw: st.DrawFn, name: str | None, keys: tuple[str, ...], of: Drawing) -> bm.Pipeline:
    event_time = column(name, "at") if name else draw(st.sampled_from(["ts", "ts", "timestamp"]))
    pipeline = bm.Pipeline().event_time(event_time, draw(of.policy))
    return pipeline.key_by(*keys_of(name, keys)) if keys else pipeline


def totals(
    draw: st.DrawFn, name: str | None, keys: tuple[str, ...], of: Drawing, *, retracts: bool = True
) -> bm.Pipeline:
    """A stage of windows whose panes have timestamps; with ``retracts`` most retract."""
    window = draw(
        st.sampled_from(
            [bm.FixedWindows(5), bm.FixedWindows(2), bm.SlidingWindows(6, 3), bm.Sessions(3), bm.GlobalWindow()]
        )
    )
    late = st.sampled_from([AfterWatermark(late=Always()), AfterWatermark(Always(), Always()), Always()])
    trigger = draw(st.one_of(late, st.sampled_from([Default(), Repeatedly(AfterCount(2))])))
    combiner = bm.TimestampCombiner.LATEST if isinstance(window, bm.GlobalWindow) else None
    return (
        source(draw, name, keys, of)
        .window(window)
        .trigger(trigger, allow_data_loss=True)
        .allowed_lateness(draw(st.sampled_from([0, 5, 1000])))
        .accumulation_mode(draw(st.sampled_from([*bm.AccumulationMode, retracting] if retracts else PLAIN)))
        .timestamp_combiner(combiner or draw(st.sampled_from(bm.TimestampCombiner)))
        .accumulate(v0=draw(st.sampled_from([a.Sum("value"), a.Max("value")])), v1=a.Count())
    )


def table(  # noqa: PLR0917
    draw: st.DrawFn,
    before: bm.Pipeline,
    columns: Columns,
    of: Drawing,
    latest_only: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
    only_updated: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
) -> bm.Pipeline:
    """The versions of a source or, after ``key_by``, of a stage."""
    history = draw(of.history)
    lateness = None if draw(of.whole) else draw(spans.filter(lambda span: span <= history))
    return before.versions(
        history,
        values=draw(st.sampled_from([*[None] * columns.all, columns.values[:1], columns.values[:2]])),
        deleted=draw(st.sampled_from(columns.deleted)),
        sequence_by=draw(st.sampled_from(columns.sequence)),
        allowed_lateness=lateness,
        only_updated=draw(only_updated),
        latest_only=draw(latest_only),
    )


def table_of(  # noqa: PLR0917
    draw: st.DrawFn,
    kind: str,
    name: str | None,
    keys: tuple[str, ...],
    of: Drawing,
    latest_only: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
    only_updated: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
) -> bm.Pipeline:
    """A table of rows, of the panes of a stage, or of the versions of another table."""
    if kind == "rows":
        return table(draw, source(draw, name, keys, of), OF_ROWS, of, latest_only, only_updated)
    if kind == "panes":
        more = draw(st.sampled_from([keys, ("team", "part")]))
        before, columns = totals(draw, name, more, of), OF_PANES
    else:
        first = source(draw, name, ("team", "part"), of)
        deleted = draw(st.sampled_from(OF_ROWS.deleted))
        before, columns = first.versions(draw(of.history), values=["value"], deleted=deleted), OF_VERSIONS
    later = before.then(bm.Pipeline().key_by(*keys_of(name, keys)))
    return table(draw, later, columns, of, latest_only, only_updated)


def listing(draw: st.DrawFn, pipeline: bm.Pipeline, of: Drawing) -> bm.Pipeline:
    """The pipeline, with or without listing dropped rows."""
    pipeline = pipeline.with_dropped() if draw(of.with_dropped) else pipeline
    pipeline.flow.check()
    return pipeline


@st.composite
def versions(
    draw: st.DrawFn,
    *,
    of: Drawing = ANYTHING,
    kinds: tuple[str, ...] = ("rows", "rows", "panes", "versions"),
    latest_only: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
) -> bm.Pipeline:
    """Any table over one unnamed source, with its upstream stages."""
    kind, keys = draw(st.sampled_from(kinds)), draw(some_keys)
    return listing(draw, table_of(draw, kind, None, keys, of, latest_only=latest_only), of)


# Joins


def join(  # noqa: PLR0917
    draw: st.DrawFn,
    left: dict[str, bm.Pipeline],
    right: dict[str, bm.Pipeline],
    on: dict[str, str],
    of: Drawing,
    fixed: Mapping[str, Any],
) -> bm.Pipeline:
    """A join of any options that its checks accept."""
    (rows,), (changes,) = left.values(), right.values()
    options, _ = versions_of(changes.flow.stage)
    assert options is not None
    mode = retracting if said(rows).retracts else draw(of.mode)
    tolerance = None if options.only_updated else draw(st.sampled_from([None, None, 0, 2, 5]))
    tolerance = fixed.get("tolerance", tolerance)
    ahead = tolerance is not None and Duration(tolerance * 1_000_000) <= options.history
    direction = draw(st.sampled_from(["backward", "forward", "nearest"])) if ahead else "backward"
    waits = 0 if direction == "backward" else tolerance
    drawn = {
        "how": draw(st.sampled_from(["inner", "left"])),
        "tolerance": tolerance,
        "direction": direction,
        "grace": draw(
            st.sampled_from([0, 0, 1, 5]).filter(lambda grace: Duration((grace + waits) * 1_000_000) <= options.history)
        ),
        "early": draw(st.booleans()),
        "wait_for": draw(st.sampled_from([bm.BOTH_INPUTS, bm.BOTH_INPUTS, bm.LEFT_INPUT])),
        "allow_exact_matches": tolerance == 0 or draw(st.sampled_from([True, True, False])),
    }
    arguments: dict[str, Any] = {**left, **right, "on": on, **drawn, **fixed}
    return bm.as_of_join(**arguments).accumulation_mode(mode)


@st.composite
def joins_at_arrival(
    draw: st.DrawFn,
    *,
    of: Drawing = ANYTHING,
    lefts: tuple[str, ...] = ("rows", "panes", "join"),
    tables: tuple[str, ...] = ("rows", "panes", "versions"),
) -> bm.Pipeline:
    """Joins with a table as it stands when a row arrives."""
    fixed = {"tolerance": None, "direction": "backward", "grace": 0, "early": False, "allow_exact_matches": True}
    of = attrs.evolve(of, mode=st.just(bm.AccumulationMode.DISCARDING))
    return draw(as_of_joins(of=of, lefts=lefts, tables=tables, fixed={**fixed, "as_of": "arrival"}))


@st.composite
def as_of_joins(
    draw: st.DrawFn,
    *,
    of: Drawing = ANYTHING,
    lefts: tuple[str, ...] = ("rows", "rows", "panes", "join"),
    tables: tuple[str, ...] = ("rows", "rows", "panes", "versions"),
    fixed: Mapping[str, Any] | None = None,
) -> bm.Pipeline:
    """Any join: of rows, of panes or of the rows of a join, with a table of rows, of panes or of versions.

    Args:
        of: what it is drawn from.
        lefts: kinds of the left input.
        tables: kinds of tables.
        fixed: of its options, by their names.
    """
    kind, keys = draw(st.sampled_from(lefts)), draw(some_keys)
    first = "bought" if kind == "join" else "orders"
    if kind == "rows":
        left = source(draw, "orders", (), of)
    elif kind == "panes":
        retracts = (fixed or {}).get("as_of") != "arrival"
        left = totals(draw, "orders", ("team", "part"), of, retracts=retracts)
    else:
        orders = {"orders": source(draw, "orders", (), of)}
        users = {"users": table_of(draw, "rows", "users", ("part",), of, no)}
        left = join(draw, orders, users, {"orders_part": "users_part"}, of, {})
    rates = table_of(draw, draw(st.sampled_from(tables)), "rates", keys, of, no)
    on = dict(zip(keys_of("orders", keys), keys_of("rates", keys), strict=True))
    return listing(draw, join(draw, {first: left}, {"rates": rates}, on, of, fixed or {}), of)


# Stages after them


@st.composite
def followed(draw: st.DrawFn, pipelines: st.SearchStrategy[bm.Pipeline]) -> bm.Pipeline:
    """A table or a join that lists nothing, with a stage of windows or of versions over it."""
    before = draw(pipelines)
    keys, signed = said(before).keys, said(before).retracts
    by = bm.Pipeline().key_by(*draw(st.sampled_from([(), keys[:1], keys])))
    options, joins = versions_of(before.flow.stage)
    assert options is not None
    default = "v0" if isinstance(before.flow.inputs[0], Panes) else "value"
    value = "rates" if joins else (options.values or (default,))[0]
    if draw(st.sampled_from([True, False, False])):
        lateness = draw(spans)
        return before.then(by).versions(
            draw(spans.filter(lambda span: span >= lateness)),
            values=[value],
            allowed_lateness=lateness,
            only_updated=draw(st.booleans()),
        )
    mode = draw(st.sampled_from([*bm.AccumulationMode][1:] if signed else bm.AccumulationMode))
    later = (
        by.window(draw(st.sampled_from([bm.GlobalWindow(), bm.FixedWindows(5), bm.SlidingWindows(6, 3)])))
        .trigger(draw(st.sampled_from([Always(), AfterWatermark(late=Always()), Default()])), allow_data_loss=True)
        .allowed_lateness(draw(spans))
        .accumulation_mode(mode)
        .accumulate(n=a.Count(), some=a.Collect(value))
    )
    pipeline = before.then(later)
    pipeline.flow.check()
    return pipeline


# Scripts


def row(
    chance: random.Random, name: str | None, event_time: str, about: int, choices: Mapping[str, Any]
) -> dict[str, Any]:
    """A row of a source with an event time near ``about``, in seconds; all columns, in one order."""
    time = None if chance.random() < 0.04 else float(about + chance.choice(choices["time"]))
    columns = {what: chance.choice(several) for what, several in choices.items() if what != "time"}
    return {event_time: time, **{column(name, what) if what in KEYS else what: one for what, one in columns.items()}}


def script_of(number: int, pipeline: bm.Pipeline, steps: int, *, ends: bool | None = None) -> TestStream:
    """A random script: bundles of any source, late rows and ties, watermark jumps of one source or of all, whole steps."""
    chance = random.Random(number)
    choices = chance.choice([VARIED, VARIED, ALIKE])
    sources = pipeline.flow.sources
    times = {one.name: str(one.event_time) for one in sources}
    lagging = [one.name for one in sources if isinstance(one.watermark, bm.ProcessingTimeLag)]
    watermarks = dict.fromkeys(times, -20)
    script, now, clock = TestStream(), chance.choice([0, 5]), 0
    for name, event_time in times.items():  # without a row its columns are unknown
        script = script.add([row(chance, name, event_time, now, choices)], input=name)
    for _ in range(steps):
        name, what = chance.choice(list(times)), chance.choice("rrrrrrwwaacsss")
        size = chance.choice([0, 1, 1, 2, 3]) if what in "rs" else 0
        bundle = [row(chance, name, times[name], now, choices) for _ in range(size)]
        if what == "r":
            script = script.add(bundle, input=name)
            continue
        now += chance.choice([0, 0, 1, 1, 1, 2, 2, 3, 5, 20])
        clock += chance.choice([0, 1, 1, 2])
        moves = what in "was" and name not in lagging
        if what == "a" and not lagging:
            watermarks = dict.fromkeys(times, max(now, *watermarks.values()))
            script = script.advance_watermark_to(watermarks[name])
            continue
        if moves:
            watermarks[name] = max(watermarks[name], now - chance.choice([0, 0, 2]))
        if what == "s":
            to = watermarks[name] if moves else None
            script = script.step(bundle, watermark=to, clock=chance.choice([None, clock]), input=name)
        elif moves:
            script = script.advance_watermark_to(watermarks[name], input=name)
        else:
            script = script.advance_processing_time_to(clock)
    if (chance.random() < 0.5 if ends is None else ends) and not lagging:
        script = script.advance_watermark_to_infinity()
        last = chance.choice(list(times))
        script = script.add([row(chance, last, times[last], now, choices)], input=last) if ends is None else script
    return script


@st.composite
def scripts(draw: st.DrawFn, pipeline: bm.Pipeline, *, ends: bool | None = None) -> TestStream:
    """A script of some length; it shrinks by its length only."""
    steps = draw(st.sampled_from([25, 25, 20, 15, 10, 4]))
    return script_of(draw(st.integers(0, 2**40)), pipeline, steps, ends=ends)
