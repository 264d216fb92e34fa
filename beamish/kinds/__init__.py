"""One folder per kind of stage, each with its options, plan, stage, operator and shard."""
