"""Shard ids: numbers that Spark distributes evenly over its partitions.

Spark assigns a group to partition ``hash(id) mod partitions``; small consecutive numbers are distributed badly. So the ids of
n shards are the smallest numbers, from 0 on, whose hashes differ modulo n. Then

1. the ids depend on n only, not on the session, so they are stable for a checkpoint; 2. every partition has the same number of
shards if the number of partitions divides n; 3. the first id is always 0.
"""

from __future__ import annotations

from functools import lru_cache

_MASK = 0xFFFFFFFF
FIRST_SHARD = 0


@lru_cache
def shard_ids(shards: int) -> tuple[int, ...]:
    """The ids of ``shards`` shards, by shard number."""
    ids: list[int] = []
    taken: set[int] = set()
    candidate = FIRST_SHARD
    while len(ids) < shards:
        residue = spark_hash(candidate) % shards
        if residue not in taken:
            taken.add(residue)
            ids.append(candidate)
        candidate += 1
    return tuple(ids)


def partition_of(shard: int, partitions: int) -> int:
    """The partition of a shard id (Spark 4.0 passes a numpy int, whose 32 bits are too few for the hash)."""
    return spark_hash(int(shard)) % partitions


def spark_hash(number: int) -> int:
    """Spark's ``hash`` of one int: Murmur3 with seed 42, as a signed 32-bit number."""
    h = 42 ^ (_rotate(number * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK)
    h = _rotate(h, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - 2**32 if h >= 2**31 else h


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK
