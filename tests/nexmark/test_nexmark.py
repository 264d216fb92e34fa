"""Nexmark: the events are those of its generator, and beamish's answers those of plain Python."""

from datetime import datetime, timedelta
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beamish as bm
from beamish.testing import TestStream
from benchmarks.nexmark.answers import EXPECTED, expected, of_panes
from benchmarks.nexmark.events import Settings, closing, tables, write
from benchmarks.nexmark.on_beamish import late_queries, queries
from benchmarks.nexmark.run import late

SETTINGS = Settings(10_000, rate=100, group=100)
LATE = late(Settings(4_000, rate=100))
PARTS = 4


@cache
def rows(first, last, settings=SETTINGS):
    return {name: table.to_pylist() for name, table in tables(settings, first, last).items()}


def script(pipeline, settings=SETTINGS, parts=PARTS):
    """Bundles of events, each with the watermark after it."""
    return _script(tuple(source.name for source in pipeline.flow.sources), settings, parts)


@cache
def _script(names, settings, parts):
    made, seen = TestStream(), dict[str | None, datetime]()
    for part in range(parts):
        own = dict(rows(settings.events * part // parts, settings.events * (part + 1) // parts, settings))
        arrived = {"p_time": max(row["dateTime"] for row in own["bids"])}
        own["bids"] = [row | arrived for row in own["bids"]]
        for name in names:
            made = made.add(own[name or "bids"], input=name)
        for name in names:
            times = [row["dateTime"] for row in own[name or "bids"]]
            seen[name] = max([*times, seen.get(name, times[0])])
            made = made.advance_watermark_to(seen[name] - timedelta(seconds=4), input=name)
    return made.advance_watermark_to_infinity()


@pytest.mark.dear
@pytest.mark.parametrize("query", EXPECTED)
def test_answers_are_those_of_plain_python(query):
    pipeline = queries(SETTINGS.longest_auction_ms)[query]
    answer = expected(query, rows(0, SETTINGS.events))
    assert of_panes(query, bm.live(pipeline.run(script(pipeline)))) == answer
    assert len(answer) >= 5


@pytest.mark.dear
@pytest.mark.parametrize("query", late_queries())
def test_late_rows_correct_the_answers(query):
    bundles, answer = 10, expected(query, rows(0, LATE.events, LATE))
    corrected, final = late_queries()[query], queries(LATE.longest_auction_ms)[query]
    assert of_panes(query, bm.live(corrected.run(script(corrected, LATE, bundles)))) == answer
    assert of_panes(query, bm.live(final.run(script(final, LATE, bundles)))) != answer


def test_proportions_are_those_of_the_generator():
    made = tables(Settings(200_000), 0, 200_000)
    counts = {name: table.num_rows for name, table in made.items()}
    assert counts == {"persons": 4_000, "auctions": 12_000, "bids": 184_000}
    bids, auctions = made["bids"], made["auctions"]
    assert share(bids["auction"].to_numpy() % 100 == 0) == pytest.approx(0.5, abs=0.01)
    assert share(bids["bidder"].to_numpy() % 100 == 1) == pytest.approx(0.75, abs=0.01)
    assert share(auctions["seller"].to_numpy() % 100 == 0) == pytest.approx(0.75, abs=0.02)
    assert set(auctions["category"].to_pylist()) == {10, 11, 12, 13, 14}
    assert min(map(len, made)) > 0
    prices = np.log10(bids["price"].to_numpy() / 100)
    assert (prices.min() >= 0, prices.max() <= 6) == (True, True)
    assert prices.mean() == pytest.approx(3, abs=0.02)
    assert [round(of.nbytes / of.num_rows, -2) for of in made.values()] == [200, 500, 100]


@pytest.mark.parametrize("cut", [1, 999, 1_000, 2_345])
def test_a_range_of_events_has_those_of_the_whole(cut):
    whole, parts = tables(Settings(3_000), 0, 3_000), (tables(Settings(3_000), *of) for of in ((0, cut), (cut, 3_000)))
    for name, table in zip(whole, zip(*(part.values() for part in parts), strict=True), strict=True):
        assert pa.concat_tables(table) == whole[name]


def test_events_are_out_of_order_within_groups_only():
    for group in (1, 1_000):
        settings = Settings(5_000, rate=1_000, group=group)
        times = tables(settings, 0, 5_000)["bids"]["dateTime"].cast(pa.int64()).to_numpy()
        behind = (np.maximum.accumulate(times) - times).max()
        assert behind < group
        assert (behind > 0) == (group > 1)


def test_other_seeds_have_other_events_and_the_same_seed_the_same(tmp_path):
    found = [write(Settings(2_000, seed=seed), tmp_path / str(i), 3) for i, seed in enumerate((1, 1, 2))]
    assert found[0] == found[1]
    assert all(found[0][name] != found[2][name] for name in found[0])
    assert found[0]["bids"].startswith("9cb56d85")
    read = pq.read_table(tmp_path / "0" / "auctions")
    assert read.num_rows == 121
    assert read["dateTime"][-1] == closing(Settings(2_000))["auctions"]["dateTime"][0]


def share(flags):
    return flags.sum() / len(flags)
