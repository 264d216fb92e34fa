"""Streaming sources of our own: the clock, and test scripts."""
