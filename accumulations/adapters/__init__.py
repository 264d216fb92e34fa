"""Accumulations around others: over rows that may be taken back, of one input, of gathered rows, in plain Python."""
