"""Deduplication without windows."""
