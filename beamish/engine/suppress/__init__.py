"""Holding updates back: what a suppress holds of a shard, and when it leaves."""
