"""Past micro-batches of a query: their offsets, and their rows, read from the sources again."""
