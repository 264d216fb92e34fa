"""Sinks: functions for ``foreachBatch`` that write panes to a table or topic (docs/sinks.md).

Source, trigger and checkpoint are configured by the user. A sink reduces a batch to one row per identity (the greatest sequence)
and writes only rows newer than the stored ones; those of a replayed batch replace those of its first run. So replaying a batch, in
whole or after a crash, leaves the table as it was.
"""

from beamish.sinks.kafka import KafkaSink, kafka
from beamish.sinks.merge import MergeSink, merge
from beamish.sinks.sql import SqlSink, sql

__all__ = ["KafkaSink", "MergeSink", "SqlSink", "kafka", "merge", "sql"]


def __dir__() -> list[str]:
    return list(__all__)
