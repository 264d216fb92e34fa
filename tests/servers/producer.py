"""A stand-in for Spark's Kafka connector, where that cannot be fetched: a data source that writes records by confluent-kafka.

It takes the connector's options for the brokers and the topic, and stands wherever a writer's format is ``kafka``, so that
``bm.sinks.kafka`` runs as it is.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrameWriter
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage


class Kafka(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kafka_stand_in"

    def schema(self) -> t.StructType:
        return t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.StringType())])

    def writer(self, schema: t.StructType, overwrite: bool) -> DataSourceWriter:
        return Producer(dict(self.options))


def stand_in(spark: Any) -> None:
    """Have writers of this process write records by it. (Spark keeps the name ``kafka`` to its own connector.)"""
    spark.dataSource.register(Kafka)
    named = DataFrameWriter.format

    def format_(writer: DataFrameWriter, source: str) -> DataFrameWriter:
        return named(writer, Kafka.name() if source == "kafka" else source)

    DataFrameWriter.format = format_  # type: ignore[assignment,method-assign]


class Producer(DataSourceWriter):
    def __init__(self, options: dict[str, str]) -> None:
        self._servers, self._topic = options["kafka.bootstrap.servers"], options["topic"]

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from confluent_kafka import Producer as Client

        client = Client({"bootstrap.servers": self._servers, "enable.idempotence": True})
        for key, value in iterator:
            client.produce(self._topic, key=key, value=value)
        left = client.flush(60)
        assert left == 0, f"{left} records were not delivered"
        return WriterCommitMessage()


def records(servers, topic):
    """All records of a topic, partition by partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "tests", "auto.offset.reset": "earliest"})
    found = []
    for partition in consumer.list_topics(topic, timeout=30).topics[topic].partitions:
        at = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(at, timeout=30)
        consumer.assign([at])
        while end and consumer.position([at])[0].offset < end:
            message = consumer.poll(10)
            assert message is not None
            assert not message.error()
            found.append((message.key().decode(), message.value() and message.value().decode()))
    consumer.close()
    return found
