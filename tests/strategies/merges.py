"""Merges of two or three inputs, joins, and scripts that name their inputs."""

from __future__ import annotations

import operator
from typing import Any

from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.durations import duration
from beamish.testing import TestStream
from tests.declared_options import evolve
from tests.kinds.refine.strategy import OF_INPUTS, one_of
from tests.own.accumulations import join, sorted_values
from tests.strategies.pipelines import closing_behaviors, combiners, late_rows, latenesses, modes, on_time_behaviors
from tests.strategies.triggers import timeless_triggers, triggers
from tests.strategies.windows import fixed_windows, global_windows, sessions, sliding_windows

NAMES = ("orders", "clicks", "visits")
JOINS = (a.InnerJoin, a.LeftOuterJoin, a.RightOuterJoin, a.FullOuterJoin)

wait_for = st.sampled_from([bm.BOTH_INPUTS, bm.BOTH_INPUTS, bm.BOTH_INPUTS, bm.FASTEST_INPUT])
null_keys: st.SearchStrategy[Any] = st.sampled_from(["unmatched", "unmatched", "pair"])
match_conditions: st.SearchStrategy[list[Any]] = st.one_of(
    st.just([]), st.just([]), st.lists(one_of(OF_INPUTS), min_size=1, max_size=2)
)
windows = st.one_of(fixed_windows, sliding_windows, sessions, sessions, global_windows)
policies = st.one_of(
    st.builds(bm.BoundedOutOfOrderness, st.just(0), idle_timeout=st.sampled_from([None, None, 1, 4])),
    st.builds(bm.ProcessingTimeLag, st.integers(0, 5)),
)


def sides(names: tuple[str, ...]) -> st.SearchStrategy[a.Accumulation]:
    """Accumulations of the rows of one input, of several, or of all."""
    name = st.sampled_from(names)
    inner = st.sampled_from(
        [
            a.Count(),
            a.Sum("value"),
            a.Max("value"),
            a.Collect("value"),
            a.Last("value"),
            a.CountDistinct("value", "mark"),
            a.Reduce(operator.add, "value"),
            a.Fold([], sorted_values, merge=join, result_type="array<bigint>"),
        ]
    )
    of_one = st.builds(lambda inner, name: inner.of(name), inner, name)
    groups = st.lists(name, min_size=1, max_size=3, unique=True).map(lambda names: a.CoGroup(*names))
    return st.one_of(st.just(a.Count()), of_one, of_one, groups)


def joins(names: tuple[str, ...]) -> st.SearchStrategy[a.Accumulation]:
    """Joins of two of the inputs."""
    two = st.permutations(names).map(lambda names: names[:2])
    return st.builds(
        lambda kind, two, nulls, on: kind(*two, null_keys=nulls, match_if=dict(zip(two, on, strict=False))),
        st.sampled_from(JOINS),
        two,
        null_keys,
        match_conditions,
    )


@st.composite
def joins_once(draw: st.DrawFn, names: tuple[str, ...], window: bm.WindowOption, *, cuts: bool) -> a.Accumulation:
    """Joins of two inputs that emit each pair once, in such windows; with ``cuts`` some have retention."""
    two = draw(st.permutations(names))[:2]
    kept: dict[str, Any] = {}
    if cuts and draw(st.booleans()):
        kept["keep_rows"] = draw(st.dictionaries(st.sampled_from(two), st.integers(1, 3)))
    if cuts and draw(st.booleans()):
        kept["keep_for"] = draw(st.dictionaries(st.sampled_from(two), st.sampled_from([1, 4, 12])))
    kinds: tuple[Any, ...] = JOINS[:1] if window.overlaps else JOINS
    if isinstance(window, bm.Within):
        one_sided = a.RightOuterJoin if two[0] == window.of else a.LeftOuterJoin
        kinds = (a.InnerJoin, one_sided, *([] if "keep_rows" in kept else [a.FullOuterJoin]))
    kind = draw(st.sampled_from(kinds))
    match_if = dict(zip(two, draw(match_conditions), strict=False))
    return kind(*two, once=True, null_keys=draw(null_keys), match_if=match_if, **kept)


@st.composite
def meetings(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[bm.Within, a.Accumulation]:
    """A ``Within`` of two inputs, and a join of these."""
    of, other = draw(st.permutations(names))[:2]
    before, after = draw(
        st.sampled_from([(3, 0), (0, 4), (2, 5), (0.5, 0), (7, 1), (20, 0), (-1, 4), (6, -2), (-2, 2)])
    )
    inclusive: Any = draw(st.sampled_from(["both", "both", "left", "right", "neither"] if before + after else ["both"]))
    one_sided = {(of, other): a.RightOuterJoin, (other, of): a.LeftOuterJoin}
    sides = draw(st.sampled_from(list(one_sided)))
    kind = draw(st.sampled_from([a.InnerJoin, one_sided[sides], a.FullOuterJoin]))
    match_if = dict(zip(sides, draw(match_conditions), strict=False))
    within = bm.Within(before, of=of, after=after, inclusive=inclusive)
    return within, kind(*sides, null_keys=draw(null_keys), match_if=match_if)


@st.composite
def merges(
    draw: st.DrawFn,
    *,
    window: st.SearchStrategy[bm.WindowOption] = windows,
    mode: st.SearchStrategy[bm.AccumulationMode] = modes,
    policy: st.SearchStrategy[bm.Watermark] = policies,
    join: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
    with_dropped: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
    meets: bool = False,
    once: bool = False,
    cuts: bool = True,
) -> bm.Pipeline:
    """Any valid merge; with ``meets`` an interval join; with ``once`` emitting each pair once.

    ``cuts``: such a join may have retention.
    """
    names = NAMES[: draw(st.sampled_from([2, 2, 3]))]
    keys = draw(st.sampled_from([(), ("team",), ("team",), ("team", "part")]))
    inputs = {
        name: bm.Pipeline().event_time(f"{name}_at", draw(policy)).key_by(*(f"{name}_{key}" for key in keys))
        for name in names
    }
    option, kind = draw(window), draw(mode)
    if isinstance(option, bm.CountSessions) and not keys:
        option = bm.CountWindows(option.others + 1)  # sessions by other rows need other keys
    retracts = kind is bm.AccumulationMode.ACCUMULATING_AND_RETRACTING
    accumulations = (
        {"pairs": draw(joins(names))}
        if draw(join)
        else {f"v{i}": one for i, one in enumerate(draw(st.lists(sides(names), min_size=1, max_size=3)))}
    )
    if meets:
        option, met = draw(meetings(names))
        accumulations, retracts = {"pairs": met}, False
    if once:
        if option.overlaps and not option.numbering and draw(st.booleans()):
            option, _ = draw(meetings(names))
        of = tuple(dict.fromkeys((option.of, *names)))[:2] if isinstance(option, bm.Within) else names
        accumulations = {"pairs": draw(joins_once(of, option, cuts=cuts))}
        kind, retracts = bm.AccumulationMode.DISCARDING, False
    pipeline = evolve(
        bm.merge(**inputs, wait_for=draw(wait_for)),
        window=option,
        trigger=draw(timeless_triggers if option.numbering else triggers),
        allow_data_loss=True,
        allowed_lateness=duration("lateness", 0 if option.numbering else draw(latenesses)),
        late_rows=draw(late_rows) if option.numbering else 0,
        mode=kind,
        on_time=draw(on_time_behaviors),
        closing=draw(closing_behaviors),
        combiner=draw(combiners),
        retract_merged=draw(st.sampled_from([None, *bm.RetractMerged])) if retracts and option.merging else None,
        only_updated=kind is not bm.AccumulationMode.DISCARDING and draw(st.booleans()),
        with_dropped=draw(with_dropped),
        accumulations=accumulations,
    )
    pipeline.flow.check()
    return pipeline


@st.composite
def rows(draw: st.DrawFn, name: str, about: int, least: int | None = None) -> dict[str, Any]:
    """A row of an input, with an event time near ``about``."""
    time = None if draw(st.integers(0, 19)) == 19 else about + draw(st.one_of(st.integers(-8, 8), st.integers(0, 3)))
    return {
        f"{name}_at": time if time is None or least is None else max(time, least),
        f"{name}_team": draw(st.sampled_from(["red", "red", "blue", None])),
        f"{name}_part": draw(st.sampled_from([1, 1, 2])),
        "value": draw(st.sampled_from([None, 1, 2, 2, 3])),
        "mark": draw(st.sampled_from([None, "a", "b"])),
    }


@st.composite
def scripts(
    draw: st.DrawFn, pipeline: bm.Pipeline, *, ends: bool | None = None, least: int | None = None
) -> TestStream:
    """A script: bundles of any source, each source's watermark by itself or all at once, the clock, whole steps."""
    sources = pipeline.flow.sources
    lagging = [one.name for one in sources if isinstance(one.watermark, bm.ProcessingTimeLag)]
    names = [str(one.name) for one in sources]
    watermarks = dict.fromkeys(names, -10 if least is None else least)
    script, now, clock = TestStream(), draw(st.sampled_from([0, 5])), 0
    kinds = st.sampled_from(["rows", "rows", "rows", "watermark", "all", "clock", "step", "step"])
    for kind in draw(st.lists(kinds, min_size=draw(st.sampled_from([1, 5, 10])), max_size=16)):
        name = draw(st.sampled_from(names))
        by = draw(st.sampled_from([0, 1, 1, 2, 3, 5, 10, 30]))
        bundle: list[dict[str, Any]] = []
        if kind in ("rows", "step"):
            size = draw(st.sampled_from([0, 1, 1, 2, 3]))
            bundle = draw(st.lists(rows(name, now, least), min_size=size, max_size=size))
        if kind == "rows":
            script = script.add(bundle, input=name)
            continue
        of_all = not lagging and not bundle and (kind == "all" or (kind == "step" and draw(st.booleans())))
        if of_all:
            watermarks = dict.fromkeys(names, max(watermarks.values()) + by)
        moves = of_all or (kind != "clock" and name not in lagging)
        if moves and not of_all:
            watermarks[name] = max(watermarks[name], now - 3) + by
        if not moves or (kind == "step" and draw(st.booleans())):
            clock += by
        if kind == "step":
            to = watermarks[name] if moves else None
            script = script.step(bundle, watermark=to, clock=clock, input=None if of_all else name)
        elif moves:
            script = script.advance_watermark_to(watermarks[name], input=None if of_all else name)
        else:
            script = script.advance_processing_time_to(clock)
        now += min(by, 5)
    if (draw(st.booleans()) if ends is None else ends) and not lagging:
        for name in draw(st.permutations(names)):
            script = script.advance_watermark_to_infinity(input=name)
    return script


@st.composite
def close_rows(draw: st.DrawFn, pipeline: bm.Pipeline) -> TestStream:
    """A long script of one key with close rows: overlapping windows, merging sessions, retractions."""
    names = [str(one.name) for one in pipeline.flow.sources]
    script, watermark, clock, now = TestStream(), 0, 0, 5
    for _ in range(draw(st.integers(4, 24))):
        now += draw(st.sampled_from([0, 0, 1, 2, 6]))
        kind = draw(st.sampled_from(["rows", "rows", "rows", "watermark", "clock"]))
        if kind == "rows":
            name = draw(st.sampled_from(names))
            times = draw(st.lists(st.integers(now - 9, now + 4), min_size=1, max_size=3))
            rows = [
                {f"{name}_at": time, f"{name}_team": "red", f"{name}_part": 1, "value": i % 2}
                for i, time in enumerate(times)
            ]
            script = script.add(rows, input=name)
        elif kind == "watermark":
            watermark = max(watermark, now - draw(st.sampled_from([0, 3, 9])))
            script = script.advance_watermark_to(watermark)
        else:
            clock += draw(st.sampled_from([1, 4, 10]))
            script = script.advance_processing_time_to(clock)
    return script.advance_watermark_to_infinity() if draw(st.booleans()) else script
