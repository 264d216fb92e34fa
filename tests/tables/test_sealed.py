"""Values that show that they are whole and in their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import beamish as bm
from beamish.contract.stored import DictStore
from beamish.tables.entries import SealedStore, is_sealed, new_word, seal, unseal

values = st.binary(max_size=200)


@given(values, st.integers(0, 9), st.text(max_size=5), st.text(max_size=5))
def test_a_sealed_value_is_read_back(value, shard, name, word):
    store = SealedStore(DictStore(), shard, word, {})
    store.put(name, value)
    assert store.get(name) == value
    store.remove(name)
    assert store.get(name) is None


@given(st.data(), values)
def test_an_altered_or_truncated_value_is_rejected(data, value):
    sealed = seal(value, 1, "s5", "word")
    at = data.draw(st.integers(0, len(sealed) - 1))
    byte = bytes([sealed[at] ^ data.draw(st.integers(1, 255))])
    for wrong in (sealed[:at] + byte + sealed[at + 1 :], sealed[:at], sealed[:at] + byte + sealed[at:]):
        if wrong != sealed:
            with pytest.raises(
                bm.StateError, match=r"entry 's5' of shard 1 is not what was written .*restore the checkpoint"
            ):
                unseal(wrong, 1, "s5", "word")


def test_an_intact_value_of_another_entry_shard_or_query_is_rejected():
    sealed = seal(b"windows", 1, "s5", "word")
    assert unseal(sealed, 1, "s5", "word") == b"windows"
    for place in ((1, "s6", "word"), (2, "s5", "word"), (1, "s5", new_word()), (1, "s5", "")):
        with pytest.raises(bm.StateError, match="another entry, shard or query"):
            unseal(sealed, *place)


def test_a_shard_older_than_seals_stays_unsealed():
    store = DictStore({"s5": b"windows"})
    old = SealedStore(store, 1, None, None)
    assert old.get("s5") == b"windows"
    old.put("s6", b"more")
    assert store == {"s5": b"windows", "s6": b"more"}
    assert not is_sealed(store["s6"])


def test_outdated_reappearing_and_lost_values_are_rejected():
    stored = DictStore()
    store = SealedStore(stored, 1, "word", {})
    store.put("s5", b"early")
    early = dict(stored)
    store.put("s5", b"late")
    stored.update(early)
    with pytest.raises(bm.StateError, match=r"'s5' of shard 1 is not what was written \(it is from an earlier batch\)"):
        store.get("s5")
    store.remove("s5")
    stored.update(early)
    with pytest.raises(bm.StateError, match="from an earlier batch"):
        store.get("s5")
    store.put("s5", b"again")
    stored.clear()
    with pytest.raises(bm.StateError, match="it was lost"):
        store.get("s5")


def test_a_shard_older_than_checksums_accepts_intact_values():
    stored = DictStore()
    store = SealedStore(stored, 1, "word", None)
    store.put("s5", b"early")
    early = dict(stored)
    store.put("s5", b"late")
    stored.update(early)
    assert store.get("s5") == b"early"
    stored.clear()
    assert store.get("s5") is None


def test_each_shard_has_its_own_random_word():
    assert len({new_word() for _ in range(1000)}) == 1000
