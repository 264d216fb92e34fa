"""The Spark session of this process, where there is one when a sink is made: it shows what is missing before the first batch."""

from __future__ import annotations

import sys
from typing import Any


def active_session() -> Any:
    """The active session, classic or Connect; None: there is none."""
    sql = sys.modules.get("pyspark.sql")
    return None if sql is None else sql.SparkSession.getActiveSession()


def is_driver() -> bool:
    """Whether ``foreachBatch`` runs in this process: it has a classic session. Under Spark Connect the server runs it."""
    return hasattr(active_session(), "_jsparkSession")
