"""A flow as a streaming query or a batch plan."""
