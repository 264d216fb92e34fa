"""The unit of the drawn scripts."""

S = 1_000_000
"""A second in microseconds."""
