"""Query checkpoints, read and rewritten with Spark's own readers."""
