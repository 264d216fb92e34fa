"""Rows, joined with the versions that were valid at their times."""
