"""Checkpoints of queries, read and rewritten by Spark's own readers."""
