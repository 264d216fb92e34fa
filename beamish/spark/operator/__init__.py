"""What Spark calls: the stateful processor around a shard."""
