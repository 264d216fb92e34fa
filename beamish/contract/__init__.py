"""The contract of a kind of stage: the stage, its operator, its shards, and what they exchange."""
