"""The mix-in of Spark 4.2 for sources that end under Trigger.AvailableNow; empty in earlier versions."""

from __future__ import annotations

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark 4.0 and 4.1 lack it."""


__all__ = ["SupportsTriggerAvailableNow"]
