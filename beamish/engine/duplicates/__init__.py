"""Rows that come again: ids that a shard remembers, and the stage that gives each row once (docs/semantics.md#duplicates)."""
