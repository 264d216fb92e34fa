"""Trees: the root is a merge and the sides are sources, stages, chains or merges.

Scripts for them are those of merges: they name sources.
"""

from __future__ import annotations

import random
from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.flow import Flow
from beamish.testing import TestStream
from beamish.triggers import AfterCount, AfterWatermark, Always, Default, Never, Repeatedly, Trigger
from tests.declared_options import said
from tests.seconds import S
from tests.strategies.merges import JOINS, null_keys, policies, scripts
from tests.strategies.pipelines import combiners, modes, retracting
from tests.strategies.triggers import usual_triggers
from tests.strategies.windows import fixed_windows, global_windows, sessions, sliding_windows, taking

NAMES = ("orders", "clicks", "visits", "views", "taps", "calls")
PANES = ("v0", "v1")
"""The value columns of every stage below the root."""

not_merging = st.one_of(fixed_windows, fixed_windows, sliding_windows, global_windows)
some_windows = st.one_of(not_merging, sessions)
losing_nothing = st.sampled_from(
    [Default(), Never(), Repeatedly(AfterCount(2)), AfterWatermark(early=Always(), late=Always())]
)


@attrs.frozen
class Drawing:
    """The strategies of the stages of a tree.

    Attributes:
        trigger, mode, lateness, window: of stages below the root.
        policy: of sources.
    """

    trigger: st.SearchStrategy[Trigger] = usual_triggers
    mode: st.SearchStrategy[bm.AccumulationMode] = modes
    lateness: st.SearchStrategy[float] = st.sampled_from([0, 5, 1000])
    window: st.SearchStrategy[bm.WindowOption] = some_windows
    policy: st.SearchStrategy[bm.Watermark] = policies
    combiner: st.SearchStrategy[bm.TimestampCombiner] = combiners


ANYTHING = Drawing()
NOTHING_LOST = Drawing(
    trigger=losing_nothing,
    lateness=st.sampled_from([5, 1000]),
    window=st.one_of(fixed_windows, sliding_windows, sessions),
    policy=st.just(bm.BoundedOutOfOrderness(0)),
    combiner=st.just(bm.TimestampCombiner.END_OF_WINDOW),
)


@attrs.frozen
class Side:
    """An input of a merge: its pipeline, its value columns, and whether it retracts."""

    pipeline: bm.Pipeline
    columns: tuple[str, ...]
    retracts: bool = False


def _windowed(
    draw: st.DrawFn,
    pipeline: bm.Pipeline,
    how: Drawing,
    window: bm.WindowOption | None,
    *,
    signed: bool,
    behind_us: int = 0,
) -> bm.Pipeline:
    """The pipeline with all options of its last stage except accumulations; ``behind_us``: the lateness of its input panes."""
    mode = draw(how.mode.filter(lambda one: not signed or one is not bm.AccumulationMode.DISCARDING))
    pipeline = pipeline if window is None else pipeline.window(window)
    pipeline = (
        pipeline.trigger(draw(how.trigger), allow_data_loss=True)
        .allowed_lateness(
            max(draw(how.lateness), behind_us / S, *(relation.behind_us / S for relation in pipeline.flow.takes))
        )
        .accumulation_mode(mode)
        .timestamp_combiner(draw(how.combiner))
    )
    if mode is retracting and window is not None and window.merging and draw(st.booleans()):
        pipeline = pipeline.retract_merged(draw(st.sampled_from(bm.RetractMerged)))
    if mode is not bm.AccumulationMode.DISCARDING and draw(st.booleans()):
        pipeline = pipeline.only_updated_panes()
    return pipeline


def _stages(sides: dict[str, Side]) -> list[Flow]:
    """The sides that are not sources."""
    return [side.pipeline.flow for side in sides.values() if side.columns == PANES]


def _side_of(pipeline: bm.Pipeline) -> Side:
    return Side(pipeline, PANES, said(pipeline).retracts)


def _source(draw: st.DrawFn, name: str, keys: tuple[str, ...], how: Drawing) -> Side:
    source = bm.Pipeline().event_time(f"{name}_at", draw(how.policy)).key_by(*(f"{name}_{key}" for key in keys))
    return Side(source, ("value",))


def _stage(draw: st.DrawFn, name: str, keys: tuple[str, ...], how: Drawing, window: bm.WindowOption | None) -> Side:
    source = _source(draw, name, keys, how).pipeline
    pipeline = _windowed(draw, source, how, window or draw(how.window), signed=False)
    return _side_of(pipeline.accumulate(v0=draw(st.sampled_from([a.Sum("value"), a.Max("value")])), v1=a.Count()))


def _chain(draw: st.DrawFn, name: str, keys: tuple[str, ...], how: Drawing, window: bm.WindowOption | None) -> Side:
    """Two stages; with given windows the second inherits those of the first."""
    first = _stage(draw, name, keys, how, window)
    own = None if window or draw(st.booleans()) else draw(how.window.filter(lambda one: not one.merging))
    own = taking(own, first.pipeline.flow)
    second = bm.Pipeline().key_by(*(f"{name}_{key}" for key in keys))
    second = _windowed(
        draw, second, how, own, signed=first.retracts, behind_us=first.pipeline.flow.gives.behind_us
    ).accumulate(v0=a.Sum("v0"), v1=a.Count())
    return _side_of(first.pipeline.then(second))


def _merge(
    draw: st.DrawFn, names: tuple[str, ...], keys: tuple[str, ...], how: Drawing, window: bm.WindowOption | None
) -> Side:
    """A merge as an input of a merge: of sources or stages, in windows of its own."""
    merging = window is not None and window.merging
    kinds = st.sampled_from(["source"] if merging else ["source", "stage", "chain"])
    sides = {name: _plain_side(draw, draw(kinds), name, keys, how) for name in names}
    signed = any(side.retracts for side in sides.values())
    own = window or draw(how.window.filter(lambda one: not (signed and one.merging)))
    if taking(own, *_stages(sides)) is not own:
        sides, signed = {name: _source(draw, name, keys, how) for name in names}, False
    merged = _windowed(draw, bm.merge(**{name: side.pipeline for name, side in sides.items()}), how, own, signed=signed)
    return _side_of(merged.accumulate(v0=a.Sum(sides[names[0]].columns[0]).of(names[0]), v1=a.Count()))


def _plain_side(  # noqa: PLR0917
    draw: st.DrawFn,
    kind: str,
    name: str,
    keys: tuple[str, ...],
    how: Drawing,
    window: bm.WindowOption | None = None,
) -> Side:
    if kind == "source":
        return _source(draw, name, keys, how)
    return (_stage if kind == "stage" else _chain)(draw, name, keys, how, window)


def _side(  # noqa: PLR0917
    draw: st.DrawFn, kind: str, name: str, others: tuple[str, ...], keys: tuple[str, ...], how: Drawing, window: Any
) -> Side:
    """An input of the root; half of those that are not sources are keyed differently, and rekeyed."""
    again = kind != "source" and draw(st.booleans())
    own = ((*keys, "part") if keys else ("team",)) if again else keys
    if kind == "merge":
        side, first = _merge(draw, others, own, how, window), others[0]
    else:
        side, first = _plain_side(draw, kind, name, own, how, window), name
    if not again:
        return side
    return attrs.evolve(side, pipeline=side.pipeline.then(bm.Pipeline().key_by(*(f"{first}_{key}" for key in keys))))


def _accumulations(draw: st.DrawFn, sides: dict[str, Side], join: bool) -> dict[str, a.Accumulation]:
    names = list(sides)
    if join:
        left, right = draw(st.permutations(names))[:2]
        return {"pairs": draw(st.sampled_from(JOINS))(left, right, null_keys=draw(null_keys))}
    of_one = [
        inner.of(name)
        for name, side in sides.items()
        for inner in (a.Count(), a.Sum(side.columns[0]), a.Max(side.columns[0]), a.Collect(side.columns[0]))
    ]
    drawn = draw(st.lists(st.sampled_from([a.Count(), a.CoGroup(*names), *of_one]), min_size=1, max_size=3))
    return {f"w{i}": one for i, one in enumerate(drawn)}


@st.composite
def flows(
    draw: st.DrawFn,
    *,
    how: Drawing = ANYTHING,
    root: Drawing = ANYTHING,
    join: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
    with_dropped: st.SearchStrategy[bool] = st.booleans(),  # noqa: B008
) -> bm.Pipeline:
    """Any merge with a side that is not a source.

    Args:
        how: of what the stages below the root are drawn.
        root: of what the root is drawn; its window only where it has one of its own.
        join: whether the root joins two sides.
        with_dropped: whether it lists dropped rows.
    """
    keys = draw(st.sampled_from([(), ("team",), ("team",)]))
    window = draw(how.window) if draw(st.booleans()) else None  # that of all sides, which the root inherits
    kinds = st.sampled_from(["stage", "stage", "chain", "merge", *(["source"] * 2 if window is None else [])])
    names = NAMES[: draw(st.sampled_from([2, 2, 3]))]
    chosen = [draw(st.sampled_from(["stage", "chain", "merge"])), *(draw(kinds) for _ in names[1:])]
    sides, merges = {}, 0
    for name, kind in zip(names, chosen, strict=True):
        if kind == "merge":
            merges += 1
            kind = "stage" if merges > 1 else kind  # noqa: PLW2901 - one is enough
        sides[name] = _side(draw, kind, name, NAMES[4:], keys, how, window)
    signed = any(side.retracts for side in sides.values())
    own = (
        None if window else taking(draw(root.window.filter(lambda one: not (signed and one.merging))), *_stages(sides))
    )
    merged = bm.merge(**{name: side.pipeline for name, side in sides.items()})
    pipeline = _windowed(draw, merged, root, own, signed=signed).accumulate(**_accumulations(draw, sides, draw(join)))
    pipeline = pipeline.with_dropped() if draw(with_dropped) else pipeline
    pipeline.flow.check()
    return pipeline


def dense_script(number: int, pipeline: bm.Pipeline) -> TestStream:
    """A long script of a few keys that ends; dense, not shrinkable."""
    chance = random.Random(number)
    sources = pipeline.flow.sources
    lagging = [one.name for one in sources if isinstance(one.watermark, bm.ProcessingTimeLag)]
    watermarks = {str(one.name): -10 for one in sources}
    script, now, clock = TestStream(), 0, 0
    for _ in range(25):
        name, what = chance.choice(list(watermarks)), chance.choice("rrrrrwwacss")
        bundle = [_dense_row(chance, name, now) for _ in range(chance.choice([1, 2, 3]))] if what in "rs" else []
        if what == "r":
            script = script.add(bundle, input=name)
            continue
        now += chance.choice([1, 1, 2, 3])
        if what == "s":
            clock += chance.choice([0, 1, 2, 3])
            moves = name not in lagging and chance.random() < 0.7
            watermarks[name] = max(watermarks[name], now - 2) if moves else watermarks[name]
            to = watermarks[name] if moves else None
            script = script.step(bundle, watermark=to, clock=chance.choice([None, clock]), input=name)
            continue
        if what == "a" and not lagging:
            watermarks = dict.fromkeys(watermarks, max(now, *watermarks.values()))
            script = script.advance_watermark_to(watermarks[name])
        elif what == "w" and name not in lagging:
            watermarks[name] = max(watermarks[name], now - 2)
            script = script.advance_watermark_to(watermarks[name], input=name)
        else:
            clock += chance.choice([1, 2, 3])
            script = script.advance_processing_time_to(clock)
    return script if lagging else script.advance_watermark_to_infinity()


def _dense_row(chance: random.Random, name: str, about: int) -> dict[str, Any]:
    return {
        f"{name}_at": about + chance.randint(-5, 4),
        f"{name}_team": chance.choice(["red", "red", "blue"]),
        f"{name}_part": chance.choice([1, 2]),
        "value": chance.choice([None, 1, 2, 3]),
        "mark": chance.choice([None, "a", "b"]),
    }


@st.composite
def tree_scripts(draw: st.DrawFn, pipeline: bm.Pipeline, *, ends: bool | None = None) -> TestStream:
    """A script for a tree; most are dense."""
    if draw(st.integers(0, 3)) == 3:
        return draw(scripts(pipeline, ends=ends))
    return dense_script(draw(st.integers(0, 2**40)), pipeline)
