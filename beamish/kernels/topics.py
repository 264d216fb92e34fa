"""The settings of Kafka topics."""

from __future__ import annotations

_SPARE_US = 24 * 3_600_000_000


def compacted_topic(history_us: int) -> dict[str, str]:
    """The settings of a compacted topic from which a versioned table can be restored.

    Args:
        history_us: its history, microseconds.

    Returns:
        ``cleanup.policy``, and in ``min.compaction.lag.ms`` the history and 24 hours, so that compaction keeps what the history
        needs (KIP-889).
    """
    return {"cleanup.policy": "compact", "min.compaction.lag.ms": str(-(-(history_us + _SPARE_US) // 1_000))}
