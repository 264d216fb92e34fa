"""Ids that a shard remembers, and their hashes beside them (rules/output.md#duplicates-within)."""

import numpy as np
import pyarrow as pa
import pytest

from beamish.contract.stored import DictStore
from beamish.errors import StateError
from beamish.kinds.deduplicate.remembered import RememberedIds
from beamish.tables.timed_records import SpanPolicy

SCHEMA = pa.schema([("id", pa.string())])
S = 1_000_000


def opened(store):
    return RememberedIds(SCHEMA, 10 * S, store, SpanPolicy(rows=2, first_us=S, few_spans=1))


def taken(store, ids, seconds, watermark=0):
    """Which of some ids came before, in a step of their own."""
    remembered = opened(store)
    again = remembered.take([pa.array(ids, pa.string())], np.array(seconds) * S, watermark * S)
    remembered.save(watermark * S)
    return again.tolist()


def test_ids_and_their_hashes_expire_with_the_watermark():
    store = DictStore()
    assert taken(store, ["a", "b", "a"], [1, 5, 9]) == [False, False, True]
    assert taken(store, ["a", "b", "c"], [4, 4, 20], watermark=10) == [True, True, False]
    assert taken(store, ["a", "b"], [12, 12], watermark=11) == [False, True]
    assert opened(store).next_due_us == 15 * S
    assert taken(store, [], [], watermark=40) == []
    assert [name for name in store if name != "ids/index"] == []


def test_every_segment_has_its_hashes_of_8_bytes_per_id():
    store = DictStore()
    taken(store, [f"id{number}" for number in range(40)], list(range(40)))
    segments = [name for name in store if name.startswith("ids/s")]
    assert len(segments) > 1
    assert sum(len(store.get(name.replace("/s", "/h"))) for name in segments) == 8 * 40


@pytest.mark.parametrize("held", [None, b"1234567", b"123456789"], ids=["gone", "cut", "longer"])
def test_damaged_hashes_are_rejected(held):
    store = DictStore()
    taken(store, ["a"], [1])
    (name,) = (name for name in store if name.startswith("ids/h"))
    store.remove(name)
    if held is not None:
        store.put(name, held)
    with pytest.raises(StateError, match=f"{name}.*is not what was written: restore the checkpoint"):
        taken(store, ["b"], [2])


def test_a_row_is_too_old_when_its_id_would_have_expired():
    ids = opened(DictStore())
    assert ids.too_old(np.array([0, 1, 2]) * S, 11 * S).tolist() == [True, True, False]
