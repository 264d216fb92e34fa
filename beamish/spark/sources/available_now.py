"""Spark 4.2's mark of sources that end under Trigger.AvailableNow; nothing before."""

from __future__ import annotations

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark 4.0 and 4.1 do not know it."""


__all__ = ["SupportsTriggerAvailableNow"]
