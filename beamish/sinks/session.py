"""The Spark session of this process, if there is one when a sink is created: checks before the first batch."""

from __future__ import annotations

import sys
from typing import Any


def active_session() -> Any:
    """The active session, classic or Connect, or None."""
    sql = sys.modules.get("pyspark.sql")
    return None if sql is None else sql.SparkSession.getActiveSession()


def is_driver() -> bool:
    """Whether ``foreachBatch`` runs in this process (classic session), not on a Spark Connect server."""
    return hasattr(active_session(), "_jsparkSession")
