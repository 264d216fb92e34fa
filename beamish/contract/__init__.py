"""The contract of a kind of stage: stage, operator, shard, and the values they exchange."""
