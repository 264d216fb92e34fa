"""Streaming sources: the clock, and test scripts."""
