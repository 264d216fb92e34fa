"""A compacted topic with the state of the panes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from beamish.addresses import printable
from beamish.errors import OptionError
from beamish.sinks.options import OfDriver, active_session, read_fields, read_keys, read_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def kafka(
    servers: str,
    topic: str,
    *,
    options: Mapping[str, str] | None = None,
    fields: Sequence[str] = (),
    keys: Sequence[str] | None = None,
    key_format: Literal["json"] | Callable[[Column], Column] = "json",
    value_format: Literal["json"] | Callable[[Column], Column] = "json",
) -> KafkaSink:
    """A function for ``foreachBatch`` that writes each change to a topic: ``bm.changelog(panes, "kafka")``.

    At least once: a replayed batch is written again. The topic should be compacted. A consumer keeps, by key, the record with the
    greatest ``_sequence``, and ignores older ones; a null value deletes (docs/sinks.md#kafka). Spark needs its Kafka
    connector: ``--packages org.apache.spark:spark-sql-kafka-0-10_2.13:...``.

    Args:
        servers: the brokers, ``host:port,host:port``.
        topic: its name.
        options: of Spark's Kafka sink, such as ``{"kafka.security.protocol": "SSL"}``.
        fields, keys: as for ``bm.sinks.sql``.
        key_format, value_format: ``"json"``, or a function that converts the struct to a column, such as ``to_avro``.

    Returns:
        the function, a value.

    Raises:
        OptionError: an option is invalid.
        SparkSetupError: the active session has no Kafka connector.

    Example:
        ``panes.writeStream.foreachBatch(bm.sinks.kafka("broker:9092", "scores")).option("checkpointLocation", ...)``
    """
    read_text("sinks.kafka", "servers", servers, "brokers such as 'host:9092'")
    read_text("sinks.kafka", "topic", topic, "the name of a topic")
    for name, format_ in (("key_format", key_format), ("value_format", value_format)):
        if format_ != "json" and not callable(format_):
            raise OptionError(
                f"sinks.kafka({name}={printable(format_)}): must be 'json', or a function of a struct column"
            )
    if options is not None and not isinstance(options, Mapping):
        raise OptionError(f"sinks.kafka(options={printable(options)}): must be a mapping of names to texts")
    call = f"sinks.kafka(..., {printable(topic)})"
    if session := active_session():
        from beamish.spark.runtime.session import check_connector

        check_connector(session, "kafka", call)
    return KafkaSink(
        servers, topic, dict(options or {}), read_fields(call, fields), read_keys(call, keys), key_format, value_format
    )


@attrs.frozen
class KafkaSink(OfDriver):
    """The function of ``bm.sinks.kafka``: call it with a batch and its number, or pass it to ``foreachBatch``.

    Attributes:
        servers, topic, options, fields, keys, key_format, value_format: as for ``bm.sinks.kafka``.
    """

    servers: str = attrs.field(repr=printable)
    topic: str = attrs.field(repr=printable)
    options: Mapping[str, str] = attrs.field(repr=printable)
    fields: tuple[str, ...]
    keys: tuple[str, ...] | None
    key_format: Any
    value_format: Any

    def __call__(self, batch_df: DataFrame, batch_id: int) -> None:
        """Write the changes of a batch of panes to the topic.

        Raises:
            ColumnError: not panes.
            PipelineError: they do not determine the current rows.
            SinkError: Spark has no Kafka connector.
        """
        from beamish.ledger import changelog
        from beamish.spark.runtime.session import connector_errors

        formats = {"key_format": self.key_format, "value_format": self.value_format}
        records = changelog(batch_df, "kafka", fields=self.fields, keys=self.keys, **formats)
        options = {"kafka.bootstrap.servers": self.servers, "topic": self.topic, **self.options}
        with connector_errors(batch_df.sparkSession, f"sinks.kafka(..., {printable(self.topic)})"):
            records.write.format("kafka").options(**options).mode("append").save()
