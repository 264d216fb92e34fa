"""Deduplication without windows: each row once."""
