"""Metrics of a running query, in a view and for dashboards (docs/sinks.md#metrics)."""
