"""The event time of a later stage: a column of its rows (docs/rules/stage-rows.md#event-time-of-stages)."""
