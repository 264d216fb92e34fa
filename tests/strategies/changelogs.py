"""Changelogs in every format, and pipelines over them: inserts, updates, deletes, retractions of missing rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

import beamish as bm
from beamish import accumulations as a
from beamish.forms import FORMATS
from beamish.testing import TestStream
from beamish.triggers import AfterWatermark, Always, Repeatedly
from tests.own.windows import UntilMinute
from tests.strategies.triggers import usual_triggers
from tests.strategies.windows import fixed_windows, global_windows, sliding_windows

Data = Mapping[str, Any]

SUMS = {"n": a.Count(), "total": a.Sum("score")}
KEEPERS = {"top": a.TopN(2, "score"), "names": a.Collect("name"), "least": a.Min("score"), "ratio": a.Sum("ratio")}
windows = st.one_of(fixed_windows, fixed_windows, sliding_windows, global_windows, st.just(UntilMinute()))
modes = st.sampled_from([bm.AccumulationMode.ACCUMULATING, bm.AccumulationMode.ACCUMULATING_AND_RETRACTING])
FORMATS_ = tuple(name for name in FORMATS if name != "delta-cdf")


@attrs.frozen
class Feed:
    """Bundles of changes of a table, and the table after each.

    Attributes:
        bundles: each a list of changes: the row before, the row after; None: no row.
        tables: the rows after each bundle.
    """

    bundles: Sequence[Sequence[tuple[Data | None, Data | None]]]
    tables: Sequence[Sequence[Data]]


@st.composite
def data(draw: st.DrawFn, times: st.SearchStrategy[int] = st.integers(0, 25)) -> Data:  # noqa: B008
    """A row of the table."""
    score = draw(st.sampled_from([1, 1, 2, 3, None]))
    return {
        "ts": draw(times),
        "team": draw(st.sampled_from(["red", "red", "blue", None])),
        "score": score,
        "name": draw(st.sampled_from(["a", "b", None])),
        "ratio": draw(st.sampled_from([0.5, 0.25])),
    }


@st.composite
def feeds(draw: st.DrawFn, *, strays: bool = False) -> Feed:
    """A changelog; with ``strays`` some retractions are of missing rows."""
    table: list[Data] = []
    bundles, tables = [], []
    for _ in range(draw(st.integers(1, 5))):
        bundle: list[tuple[Data | None, Data | None]] = []
        for _ in range(draw(st.sampled_from([1, 1, 2, 3, 4]))):
            what = draw(st.sampled_from(["insert", "insert", "update", "delete", *(["stray"] * strays)]))
            before = None
            if what == "stray":
                bundle.append(({**draw(data()), "score": 99, "name": "zz", "ratio": 9.0}, None))
                continue
            if what != "insert" and table:
                before = table.pop(draw(st.integers(0, len(table) - 1)))
            after = None if what == "delete" and before else draw(data())
            table += [after] if after else []
            bundle.append((before, after))
        bundles.append(bundle)
        tables.append(list(table))
    return Feed(bundles, tables)


def words(format_: str, before: Data | None, after: Data | None) -> list[dict[str, Any]]:
    """A change as rows of a format."""
    if format_ == "debezium":
        op = "u" if before and after else "d" if before else "c"
        tombstone: dict[str, Any] = {"op": None, "before": None, "after": None}
        return [{"op": op, "before": before, "after": after}, *([tombstone] if op == "d" else [])]
    if format_ == "diff":
        return [{**row, "_diff": by} for row, by in ((before, -1), (after, 1)) if row]
    name, both, alone = {
        "spark": ("_change_type", ("update_preimage", "update_postimage"), ("delete", "insert")),
        "flink": ("op", ("-U", "UPDATE_AFTER"), ("DELETE", "+I")),
    }[format_]
    says = both if before and after else alone
    return [{**row, name: say} for row, say in zip((before, after), says, strict=True) if row]


@st.composite
def pipelines(draw: st.DrawFn, *, at_once: bool = False) -> bm.Pipeline:
    """A pipeline over a changelog; ``at_once``: it fires with every bundle and drops nothing."""
    trigger = AfterWatermark(early=Always(), late=Always()) if at_once else draw(usual_triggers.map(Repeatedly))
    both = {**SUMS, **KEEPERS}
    chosen = draw(st.lists(st.sampled_from(sorted(both)), min_size=1, max_size=3, unique=True))
    pipeline = (
        bm.Pipeline()
        .from_changelog(draw(st.sampled_from(FORMATS_)))
        .event_time("ts", bm.BoundedOutOfOrderness(0))
        .key_by(*draw(st.sampled_from([(), ("team",)])))
        .window(draw(windows))
        .trigger(trigger)
        .allowed_lateness(10_000 if at_once else draw(st.sampled_from([0, 5, 100])))
        .accumulation_mode(bm.AccumulationMode.ACCUMULATING_AND_RETRACTING if at_once else draw(modes))
        .accumulate(**{name: both[name] for name in chosen})
    )
    return pipeline.with_dropped() if draw(st.booleans()) else pipeline


def keeps(pipeline: bm.Pipeline) -> bool:
    """Whether one of its accumulations stores the rows of its windows."""
    return any(name in KEEPERS for name in pipeline.flow.stage.options.accumulations)  # type: ignore[attr-defined]


@st.composite
def scripts(draw: st.DrawFn, pipeline: bm.Pipeline, feed: Feed) -> TestStream:
    """The changelog in the pipeline's format, with watermark and clock updates between its bundles."""
    (source,) = pipeline.flow.sources
    script, now, clock = TestStream(), 0, 0
    for bundle in feed.bundles:
        rows = [row for change in bundle for row in words(source.form.format, *change)]  # type: ignore[union-attr]
        now += draw(st.sampled_from([0, 0, 3, 10]))
        clock += draw(st.sampled_from([0, 0, 2]))
        script = script.step(rows, watermark=now, clock=clock)
    return script
