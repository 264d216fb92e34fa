"""What a running query does, for people and for dashboards (docs/sinks.md#metrics)."""
