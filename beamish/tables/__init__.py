"""Keyed tables: the stored state of a shard."""
