"""The stateful processor around a shard, called by Spark."""
