from collections import Counter

import pytest

from beamish.spark.rows.pack import shard_ids, spark_hash


def test_the_hash_is_sparks(spark):
    numbers = [*range(50), 12_345, 2**31 - 1]
    rows = spark.createDataFrame([(n,) for n in numbers], "id int").selectExpr("id", "hash(id) as hash").collect()
    assert {row["id"]: row["hash"] for row in rows} == {n: spark_hash(n) for n in numbers}


@pytest.mark.parametrize(
    ("shards", "partitions"), [(1, 1), (2, 2), (8, 2), (8, 4), (8, 8), (12, 3), (200, 200), (200, 40)]
)
def test_every_partition_gets_the_same_number_of_shards(shards, partitions):
    counts = Counter(spark_hash(shard) % partitions for shard in shard_ids(shards))
    assert counts == dict.fromkeys(range(partitions), shards // partitions)


def test_the_first_shard_is_always_zero():
    assert {shard_ids(n)[0] for n in range(1, 100)} == {0}
