"""Topics of a broker, by confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tools.servers.kafka import LARGEST


class Record(NamedTuple):
    """A record of a topic."""

    partition: int
    offset: int
    key: str | None
    value: str | None
    timestamp_ms: int


def create(
    broker: str, topic: str, *, cleanup: str, unless_exists: bool = False, settings: Mapping[str, str] | None = None
) -> None:
    """Create a topic of two partitions; ``cleanup`` is its cleanup.policy, ``settings`` others of its settings."""
    client = AdminClient({"bootstrap.servers": broker})
    if unless_exists and topic in client.list_topics(timeout=60).topics:
        return
    (done,) = client.create_topics(
        [NewTopic(topic, 2, 1, config={"cleanup.policy": cleanup, **(settings or {})})]
    ).values()
    done.result(60)


def send(broker: str, topic: str, records: Iterable[tuple[str | None, str]]) -> None:
    """Append records, keys and values, to a topic; a key's are in one partition."""
    errors: list[object] = []
    limits = {"queue.buffering.max.messages": 2_000_000, "message.max.bytes": LARGEST}
    producer = Producer({"bootstrap.servers": broker, "log_level": 3, **limits})
    for key, value in records:
        producer.produce(topic, key=key, value=value, on_delivery=lambda *told: errors.append(told[0]))
        producer.poll(0)
    if producer.flush(300) or any(errors):
        raise ConnectionError(f"records were not delivered to {topic}: {set(map(str, errors))}")


def read(broker: str, topic: str) -> Iterator[Record]:
    """All records of a topic, partition by partition."""
    limits = {"fetch.max.bytes": LARGEST, "receive.message.max.bytes": LARGEST + 1_000_000}
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "reader", "enable.auto.commit": False, **limits})
    for partition in consumer.list_topics(topic, timeout=60).topics[topic].partitions:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
        consumer.assign([TopicPartition(topic, partition, first)])
        at = first
        while at < end:
            message = consumer.poll(60)
            if message is None or message.error():
                raise TimeoutError(f"{topic}, partition {partition}, offset {at}: {message and message.error()}")
            key, value = message.key(), message.value()
            stamp = message.timestamp()[1]
            yield Record(partition, message.offset(), key and key.decode(), value and value.decode(), stamp)
            at = message.offset() + 1
    consumer.close()
