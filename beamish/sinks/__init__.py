"""Sinks: functions for ``foreachBatch`` that keep a table, or a topic, as the panes say (docs/sinks.md).

Source, trigger and checkpoint stay the user's. Each nets a batch to one row per identity (the greatest sequence) and writes only
what is newer than what is there, so a batch that is run again, whole or after a crash half way, changes nothing.
"""

from beamish.sinks.kafka import KafkaSink, kafka
from beamish.sinks.merge import MergeSink, merge
from beamish.sinks.sql import SqlSink, sql

__all__ = ["KafkaSink", "MergeSink", "SqlSink", "kafka", "merge", "sql"]


def __dir__() -> list[str]:
    return list(__all__)
