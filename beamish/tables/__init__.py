"""Keyed tables: what a shard stores between two steps."""
