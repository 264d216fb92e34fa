"""Whether a pipeline may go on from a checkpoint, and what becomes of what the checkpoint holds (docs/upgrading.md)."""
