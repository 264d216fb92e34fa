"""Records in ranges of two hashes: found one by one and by group, whatever is added, removed and cut."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamish.contract.stored import DictStore
from beamish.tables.ranges import Ranged, RangedRecords, ranged_layout

NONE = Ranged.none(pa.schema([("n", pa.int64())]))
LAYOUT = ranged_layout("rows")
hashes = st.tuples(st.sampled_from([-(2**63), -5, 0, 1, 2, 2**63 - 1]), st.integers(-3, 40))
steps = st.lists(st.tuples(st.lists(hashes, max_size=30), st.lists(hashes, max_size=30)), max_size=6)


def opened(store, rows):
    return RangedRecords(store, LAYOUT, NONE, rows)


def records(pairs):
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    return Ranged.new(pa.table({"n": columns[:, 1]}), group=columns[:, 0].copy(), place=columns[:, 1].copy())


def pairs_of(records):
    return Counter(zip(records["group"].tolist(), records["place"].tolist(), strict=True))


@given(steps, st.sampled_from([1, 2, 8]))
def test_records_are_found_by_place_and_by_group_after_any_steps(steps, rows):
    store, there = DictStore(), Counter()
    for removed, added in steps:
        table = opened(store, rows)
        gone = records(sorted(set(removed)))
        table.load_places(gone["group"], gone["place"])
        found = table.records
        chosen = [
            at
            for at, pair in enumerate(zip(found["group"].tolist(), found["place"].tolist(), strict=True))
            if pair in set(removed)
        ]
        assert pairs_of(found.take(np.array(chosen, np.int64))) == Counter(
            {pair: count for pair, count in there.items() if pair in set(removed)}
        )
        table.remove(np.array(chosen, np.int64))
        table.add(records(added))
        table.save()
        there = Counter({pair: count for pair, count in there.items() if pair not in set(removed)}) + Counter(added)
        assert pairs_of(opened(store, rows).stored()) == there
        for group in {group for group, _ in there}:
            table = opened(store, rows)
            table.load_groups(np.array([group]))
            found = pairs_of(table.records)
            assert {pair: count for pair, count in found.items() if pair[0] == group} == {
                pair: count for pair, count in there.items() if pair[0] == group
            }


def test_a_record_of_a_large_group_is_read_in_one_segment_and_a_group_in_its_own():
    store = DictStore()
    table = opened(store, 10)
    table.add(records([(group, place) for group, size in ((1, 1000), (2, 30), (3, 1)) for place in range(size)]))
    table.save()
    segments = len(store) - 1
    assert segments >= 1031 // 20
    table = opened(store, 10)
    table.load_places(np.array([1]), np.array([500]))
    assert len(table.read) == 1
    table = opened(store, 10)
    table.load_groups(np.array([2]))
    assert len(table.read) <= 5
    assert pairs_of(table.records) & Counter({(2, place): 1 for place in range(30)}) == Counter(
        {(2, place): 1 for place in range(30)}
    )


@pytest.mark.parametrize("left", [0, 1, 40])
def test_segments_that_have_become_short_are_joined(left):
    store = DictStore()
    table = opened(store, 8)
    table.add(records([(place * 7919 % 1009, place) for place in range(1000)]))
    table.save()
    for _ in range(3):
        table = opened(store, 8)
        table.load_all()
        table.remove(np.arange(left, len(table.records)))
        table.save()
        table = opened(store, 8)
        table.add(records([(5, 5000)]))
        table.save()
    assert len(store) <= 10 + left // 4
    assert len(opened(store, 8).stored()) >= left


def test_an_unchanged_table_writes_nothing():
    store = DictStore()
    table = opened(store, 4)
    table.add(records([(1, 1), (1, 2)]))
    table.save()
    before = dict(store)
    table = opened(store, 4)
    table.load_all()
    table.save()
    assert dict(store) == before
